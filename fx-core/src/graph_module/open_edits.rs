//! The edits of a module that are open, with what each can restore.
//!
//! Invariant: a module that is replaced during an edit waits on the shelf of that edit.

use std::sync::Arc;

use crate::emit::hooks::Hooks;
use crate::ir::graph::Graph;
use crate::ir::journal::Savepoint;
use crate::ir::meta::Entries;
use crate::ir::signature::ParamSpec;
use crate::ir::version::Version;
use crate::module::items::ItemsStart;
use crate::shelf::Shelf;
use crate::value::tree::Tree;

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
    pub graph: Savepoint<Graph>,
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
