//! The edits of a module that are open, with what each can restore.
//!
//! Invariant: a module that is replaced during an edit waits on the shelf of that edit.

use std::sync::{Arc, Mutex, PoisonError};

use crate::emit::hooks::Hooks;
use crate::ir::journal;
use crate::ir::meta::Entries;
use crate::ir::signature::ParamSpec;
use crate::ir::version::Version;
use crate::module::items::ItemsStart;
use crate::value::tree::Tree;

/// Holds a module that was replaced during an edit by assigning another one.
pub(super) struct Shelf<M>(Mutex<Option<M>>);

impl<M> Default for Shelf<M> {
    fn default() -> Self {
        Shelf(Mutex::default())
    }
}

impl<M> Shelf<M> {
    pub fn look<R>(&self, look: impl FnOnce(&M) -> Option<R>) -> Option<R> {
        let module = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        look(module.as_ref()?)
    }

    pub fn take(&self) -> Option<M> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    pub fn put(&self, module: M) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(module);
    }
}

/// The open edits.
pub(super) struct Edits<M> {
    pub shelf: Option<Arc<Shelf<M>>>,
    pub starts: Vec<Start>,
}

impl<M> Default for Edits<M> {
    fn default() -> Self {
        Edits {
            shelf: None,
            starts: Vec::new(),
        }
    }
}

/// The state that an edit can restore.
pub(super) struct Start {
    pub graph: journal::Savepoint,
    pub attributes: [ItemsStart; 2],
    pub params: Arc<Vec<ParamSpec>>,
    pub trees: Arc<Vec<Tree>>,
    pub followed: Version,
    pub hooks: Hooks,
    pub entries: Entries,
}

/// An open edit of a module.
pub(crate) struct Open<M> {
    pub(super) shelf: Arc<Shelf<M>>,
    /// How many edits were open before.
    pub(super) depth: usize,
}
