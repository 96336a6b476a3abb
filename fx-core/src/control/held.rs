//! Plain data as it was before a region: a graph cannot change it when it runs.
//!
//! Invariant: what is held is compared with what is there after the region.

use std::any::Any;

use indexmap::IndexMap;

use crate::error::{Error, Result};

/// Plain data as it was before a region.
#[derive(Default)]
pub struct Held(IndexMap<&'static str, Box<dyn Any>>);

impl Held {
    pub(super) fn hold<T: Clone + 'static>(&mut self, name: &'static str, local: &T) {
        self.0.insert(name, Box::new(local.clone()));
    }

    pub(super) fn hold_first<T: Clone + 'static>(&mut self, name: &'static str, local: &T) {
        let entry = self.0.entry(name);
        entry.or_insert_with(|| Box::new(local.clone()));
    }

    /// Keeps what was held first.
    pub(super) fn join(&mut self, other: &mut Held) {
        for (name, data) in other.0.drain(..) {
            self.0.entry(name).or_insert(data);
        }
    }

    pub(super) fn check<T: PartialEq + 'static>(&self, name: &str, now: &T) -> Result<()> {
        let before = self.0.get(name);
        match before.and_then(|before| before.downcast_ref::<T>()) {
            Some(before) if before != now => Err(Error::msg(format_args!(
                "`{name}` is plain data and changes where a traced value decides: the graph cannot change it when it runs"
            ))),
            _ => Ok(()),
        }
    }
}
