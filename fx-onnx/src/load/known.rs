//! What is known of the values of bodies: of branches, loops and scans.
//!
//! Invariant: what is known of a value of a body is so in every turn.

use std::cell::{Cell, RefCell};

use fx_nn::ir::TensorMeta;
use rustc_hash::FxHashMap;

use super::scope::Scopes;
use crate::proto::GraphProto;

/// What is known of the values of bodies, by the address of the body and the name; `None` where turns differ.
#[derive(Default)]
pub(super) struct Known {
    bodies: RefCell<FxHashMap<usize, FxHashMap<String, Option<TensorMeta>>>>,
    /// How many looks are open.
    pub depth: Cell<usize>,
}

/// The address of a body, by which it is known while a file is read.
pub(super) fn address(body: &GraphProto) -> usize {
    std::ptr::from_ref(body) as usize
}

impl Known {
    /// What is known of a name, as the innermost scope sees it.
    pub fn find(&self, scopes: &Scopes, name: &str) -> Option<TensorMeta> {
        let bodies = self.bodies.borrow();
        let each = scopes.iter().rev().filter_map(|scope| scope.body);
        let mut found = each.filter_map(|body| bodies.get(&body)?.get(name));
        found.next()?.clone()
    }

    /// Whether a body is looked at now: what is recorded has to go again.
    pub fn is_looking(&self) -> bool {
        self.depth.get() > 0
    }

    /// Forgets a body and those in it.
    pub fn forget(&self, body: &GraphProto) {
        let mut bodies = self.bodies.borrow_mut();
        let mut left = vec![body];
        while let Some(body) = left.pop() {
            bodies.remove(&address(body));
            let nodes = body.node.iter().flat_map(|node| &node.attribute);
            left.extend(nodes.filter_map(|attribute| attribute.g.as_ref()));
        }
    }

    pub fn add(&self, body: &GraphProto, all: Vec<(String, TensorMeta)>) {
        let mut bodies = self.bodies.borrow_mut();
        let known = bodies.entry(address(body)).or_default();
        for (name, meta) in all {
            known
                .entry(name)
                .and_modify(|other| {
                    if other.as_ref() != Some(&meta) {
                        *other = None;
                    }
                })
                .or_insert(Some(meta));
        }
    }
}
