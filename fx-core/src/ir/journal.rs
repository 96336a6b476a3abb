//! The journal: how to undo each change of an open edit to a graph, last change first.
//!
//! Invariants: a record describes the state right after its change, so records are undone only in
//! reverse order. Places and uses that an edit gives up keep their content until the outermost edit
//! ends, so that they can be restored.

use std::num::NonZeroU32;
use std::sync::Arc;

use smallvec::SmallVec;

use super::argument::Argument;
use super::columns::{Inputs, Notes};
use super::mentions::Path;
use super::meta::CurrentPass;
use super::names::{NameId, NameSpace, Taken};
use super::order::Order;
use super::places::ScopeId;
use super::uses::{Edges, Retarget, UseChange};
use super::version::Version;
use crate::shelf::Shelf;

/// A change to a graph, with what is needed to undo it.
#[derive(Debug)]
pub(super) enum Record {
    /// A node was created, in a place that was free or is new.
    Created { index: u32, is_reused: bool },
    /// A node was erased; it was before `next`. Its inputs and notes are still in its place.
    Erased {
        index: u32,
        stamp: NonZeroU32,
        next: u32,
        /// The node that followed it in the detour.
        detour_next: u32,
        is_marked: bool,
    },
    /// A node's arguments were replaced.
    Inputs(Box<FormerInputs>),
    /// A node with many arguments got new ones at some places.
    Written(Box<FormerPlaces>),
    /// A user of `old` uses `new` instead, which it did not use before.
    Retargeted {
        user: u32,
        old: u32,
        new: u32,
        edge: Retarget,
    },
    /// Observers were notified that a user of `old` uses `new` instead.
    Replaced { user: u32, old: u32, new: u32 },
    /// A node's op was changed.
    Op { index: u32, op: u32 },
    /// A node's name was changed.
    Name { index: u32, name: NameId },
    /// A name was assigned.
    Named(Taken),
    /// All nodes were renamed from another name space.
    Renamed(Box<(NameSpace, Vec<(u32, NameId)>)>),
    /// A node was moved; it was before `next`.
    Moved { index: u32, next: u32 },
    /// All nodes were rearranged from this order.
    Rearranged(Box<[u32]>),
    /// The detour was created.
    DetourMade,
    /// A node was moved in the detour; it was before `next`.
    DetourMoved { index: u32, next: u32 },
    /// The detour was dropped.
    DetourDropped(Box<Order>),
    /// A node's location, modules, type or entries changed.
    Notes { index: u32, notes: Box<Notes> },
    /// A node's mark was set or cleared.
    Mark { index: u32, is_set: bool },
    /// An op was added to the table.
    Interned,
}

/// A node's arguments and uses.
#[derive(Debug)]
pub(super) struct FormerInputs {
    pub index: u32,
    pub inputs: Inputs,
    pub edges: Edges,
}

/// The former arguments at some places of a node.
#[derive(Debug)]
pub(super) struct FormerPlaces {
    pub index: u32,
    pub places: Vec<(Path, Argument)>,
    pub uses: Vec<UseChange>,
    /// The uses of the nodes that are or were there.
    pub slots: Vec<(u32, Option<u32>)>,
}

/// The changes of the open edits. A clone of the graph has none.
#[derive(Debug)]
pub(super) struct Journal<G> {
    /// The number of open edits.
    pub depth: usize,
    pub records: Vec<Record>,
    /// The number of records when the innermost edit began.
    pub floor: usize,
    pub shelf: Option<Arc<Shelf<G>>>,
}

impl<G> Default for Journal<G> {
    fn default() -> Self {
        Journal {
            depth: 0,
            records: Vec::new(),
            floor: 0,
            shelf: None,
        }
    }
}

impl<G> Journal<G> {
    #[inline]
    pub fn is_open(&self) -> bool {
        self.depth > 0
    }

    #[cold]
    pub fn record(&mut self, record: Record) {
        if self.records.len() == self.records.capacity() && self.is_left() {
            // The edit is over, and it ended while the graph was elsewhere.
            self.depth = 0;
            self.records.clear();
            return;
        }
        self.records.push(record);
    }

    /// Whether the last record already keeps the node's notes from before a change in the innermost
    /// edit.
    pub fn has_just_kept_notes(&self, of: u32) -> bool {
        let last = self.records.get(self.floor..).and_then(<[Record]>::last);
        matches!(last, Some(Record::Notes { index, .. }) if *index == of)
    }

    /// Whether no edit remains that could return to this graph.
    pub fn is_left(&self) -> bool {
        self.shelf
            .as_ref()
            .is_none_or(|shelf| Arc::strong_count(shelf) == 1)
    }

    pub fn is_on(&self, shelf: &Arc<Shelf<G>>) -> bool {
        self.shelf
            .as_ref()
            .is_some_and(|own| Arc::ptr_eq(own, shelf))
    }
}

/// A state of a graph that an edit can restore.
#[derive(Debug)]
pub(crate) struct Savepoint<G> {
    /// The number of open edits.
    pub(super) depth: usize,
    /// The number of records.
    pub(super) records: usize,
    /// The number of records when the enclosing edit began.
    pub(super) floor: usize,
    pub(super) shelf: Arc<Shelf<G>>,
    pub(super) before: u32,
    pub(super) former: SmallVec<[u32; 4]>,
    pub(super) walks: SmallVec<[u32; 4]>,
    pub(super) scope: ScopeId,
    pub(super) pass: CurrentPass,
    pub(super) version: Version,
    pub(super) inputs_version: Version,
}

impl<G> Savepoint<G> {
    /// Where the savepoint's graph is kept, if it was replaced.
    pub fn shelf(&self) -> &Shelf<G> {
        &self.shelf
    }
}
