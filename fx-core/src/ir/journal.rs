//! The journal: how to undo each change of an open edit to a graph, last change first.
//!
//! Invariants: a record describes the state right after its change, so records are undone only in
//! reverse order. Places and uses that an edit gives up keep their content until the outermost edit
//! ends, so that they can be restored.

use std::num::NonZeroU32;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Arc, Mutex, PoisonError};

use smallvec::SmallVec;

use super::argument::Argument;
use super::graph::{Graph, Inputs, Notes};
use super::mentions::Path;
use super::meta::CurrentPass;
use super::names::{NameId, NameSpace, Taken};
use super::order::Order;
use super::places::ScopeId;
use super::uses::{Edges, Retarget, UseChange};
use super::version::Version;
use crate::error::{Error, Result};

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

/// Keeps a graph that was replaced during an edit, when another graph was assigned over it.
#[derive(Debug, Default)]
pub(crate) struct Shelf(Mutex<Option<Graph>>);

impl Shelf {
    fn put(&self, graph: Graph) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(graph);
    }

    fn take(&self) -> Option<Graph> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Calls `look` with the graph that is kept, if any.
    pub fn look<R>(&self, look: impl FnOnce(&Graph) -> R) -> Option<R> {
        let graph = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        graph.as_ref().map(look)
    }
}

/// The changes of the open edits. A clone of the graph has none.
#[derive(Debug, Default)]
pub(super) struct Journal {
    /// The number of open edits.
    depth: usize,
    pub records: Vec<Record>,
    /// The number of records when the innermost edit began.
    floor: usize,
    shelf: Option<Arc<Shelf>>,
}

impl Journal {
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
    fn is_left(&self) -> bool {
        self.shelf
            .as_ref()
            .is_none_or(|shelf| Arc::strong_count(shelf) == 1)
    }

    fn is_on(&self, shelf: &Arc<Shelf>) -> bool {
        self.shelf
            .as_ref()
            .is_some_and(|own| Arc::ptr_eq(own, shelf))
    }
}

/// A state of a graph that an edit can restore.
#[derive(Debug)]
pub(crate) struct Savepoint {
    /// The number of open edits.
    depth: usize,
    /// The number of records.
    records: usize,
    /// The number of records when the enclosing edit began.
    floor: usize,
    shelf: Arc<Shelf>,
    before: u32,
    former: SmallVec<[u32; 4]>,
    walks: SmallVec<[u32; 4]>,
    scope: ScopeId,
    pass: CurrentPass,
    version: Version,
    inputs_version: Version,
}

impl Savepoint {
    /// Where the savepoint's graph is kept, if it was replaced.
    pub fn shelf(&self) -> &Shelf {
        &self.shelf
    }
}

impl Graph {
    /// Changes the graph as one unit: if `change` fails or panics, the graph is restored, including
    /// the names that new nodes would get. The cost is proportional to the changes. A nested edit
    /// restores its own start.
    ///
    /// ```
    /// # use fx_core::{Error, operator};
    /// # use fx_core::ir::Graph;
    /// let mut graph = Graph::new();
    /// let x = graph.placeholder("x")?;
    /// let failed = graph.edit(|graph| {
    ///     graph.call_function(operator::neg, (x,), ())?;
    ///     graph.node_mut(x)?.rename("y");
    ///     Err::<(), Error>(Error::msg("no"))
    /// });
    /// assert!(failed.is_err() && graph.len() == 1 && graph.node(x)?.name() == "x");
    /// let neg = graph.call_function(operator::neg, (x,), ())?;
    /// assert!(graph.node(neg)?.name() == "neg");
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// Observers registered at the time of an undo stay registered, and are notified of the reverse
    /// of each event.
    ///
    /// # Errors
    /// Returns the error of `change`. If `change` moved the graph out and something else keeps it,
    /// the graph cannot be restored; the error says so.
    pub fn edit<R>(&mut self, change: impl FnOnce(&mut Graph) -> Result<R>) -> Result<R> {
        let start = self.open_edit();
        let result = catch_unwind(AssertUnwindSafe(|| change(self)));
        match result {
            Ok(Ok(value)) => {
                self.keep_edit(start);
                Ok(value)
            }
            Ok(Err(error)) => match self.undo_edit(start) {
                true => Err(error),
                false => Err(moved_out("graph", &error)),
            },
            Err(panic) => {
                self.undo_edit(start);
                resume_unwind(panic)
            }
        }
    }

    /// Starts an edit and returns the state to which [`undo_edit`](Graph::undo_edit) can return;
    /// changes are recorded until the edit ends.
    pub(crate) fn open_edit(&mut self) -> Savepoint {
        let journal = &mut self.journal;
        if journal.is_left() {
            journal.depth = 0;
            journal.records.clear();
            journal.shelf = None;
        }
        let shelf = journal.shelf.get_or_insert_default().clone();
        let start = Savepoint {
            depth: journal.depth,
            records: journal.records.len(),
            floor: journal.floor,
            shelf,
            before: self.cursor.before,
            former: self.cursor.former.as_slice().into(),
            walks: self.cursor.walks.as_slice().into(),
            scope: self.current_scope,
            pass: self.pass.copied(),
            version: self.version.now(),
            inputs_version: self.inputs_version.now(),
        };
        self.journal.depth += 1;
        self.journal.floor = start.records;
        start
    }

    /// Whether a savepoint belongs to this graph.
    pub(crate) fn is_of(&self, start: &Savepoint) -> bool {
        self.journal.is_on(&start.shelf)
    }

    /// Keeps the changes since a savepoint, unless an enclosing edit is undone.
    pub(crate) fn keep_edit(&mut self, start: Savepoint) {
        if self.is_of(&start) {
            self.journal.depth = start.depth;
            self.journal.floor = start.floor;
            if start.depth == 0 {
                self.end_edits();
            }
        } else if start.depth == 0
            && let Some(mut other) = start.shelf.take()
        {
            other.end_edits();
        }
    }

    /// Restores a savepoint. Returns `false` if its graph is neither this one nor kept by the
    /// savepoint.
    pub(crate) fn undo_edit(&mut self, start: Savepoint) -> bool {
        if !self.is_of(&start) {
            match start.shelf.take() {
                Some(graph) => *self = graph,
                None => return false,
            }
        }
        debug_assert!(
            self.journal.depth > start.depth,
            "edits end in the reverse order of their beginnings"
        );
        let panic = self.undo_to(start.records);
        self.cursor.before = start.before;
        self.cursor.former = start.former.into_vec();
        self.cursor.walks = start.walks.into_vec();
        self.current_scope = start.scope;
        self.pass = start.pass;
        self.version.go_back(start.version);
        self.inputs_version.go_back(start.inputs_version);
        self.journal.depth = start.depth;
        self.journal.floor = start.floor;
        if start.depth == 0 {
            self.end_edits();
        }
        if let Some(panic) = panic {
            resume_unwind(panic);
        }
        true
    }

    /// Ends all edits and frees what they gave up.
    pub(crate) fn end_edits(&mut self) {
        let journal = std::mem::take(&mut self.journal);
        for record in &journal.records {
            self.release(record);
        }
    }

    pub(super) fn records(&self) -> &[Record] {
        &self.journal.records
    }

    /// The records since a savepoint.
    pub(super) fn records_since(&self, start: &Savepoint) -> &[Record] {
        self.records().get(start.records..).unwrap_or_default()
    }
}

/// The error for an edit that cannot be undone.
pub(crate) fn moved_out(what: &str, error: &Error) -> Error {
    Error::msg(format_args!(
        "{error}; the {what} could not be put back: the edit moved it out, and it is kept elsewhere; clone it instead"
    ))
}

impl Drop for Graph {
    /// A graph that an open edit may return to is moved to the edit's shelf.
    fn drop(&mut self) {
        if !self.journal.is_open() || self.journal.is_left() {
            return;
        }
        if let Some(shelf) = self.journal.shelf.clone() {
            shelf.put(std::mem::take(self));
        }
    }
}
