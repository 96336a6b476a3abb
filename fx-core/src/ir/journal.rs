//! The journal: while an edit is open, how to take back each change of a graph, the last first.
//!
//! Invariants: what a record says holds in the state right after its change, so records are taken back in reverse order alone.
//! Places and uses that an edit gives up keep what they hold until the outermost edit ends, so that they can come back.

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

/// A change of a graph, with what it takes to go back.
#[derive(Debug)]
pub(super) enum Record {
    /// A node was made, in a place that was free before or in a new one.
    Created { index: u32, is_reused: bool },
    /// A node was erased, which stood before `next`. Its inputs and notes are in its place still.
    Erased {
        index: u32,
        stamp: NonZeroU32,
        next: u32,
        /// Before which one it stood in the detour.
        detour_next: u32,
        is_marked: bool,
    },
    /// A node has other arguments.
    Inputs(Box<FormerInputs>),
    /// A node with many arguments has other ones at some places.
    Written(Box<FormerPlaces>),
    /// A user of `old` uses `new` in its place, which it did not use before.
    Retargeted {
        user: u32,
        old: u32,
        new: u32,
        edge: Retarget,
    },
    /// Observers were told that a user of `old` uses `new` instead.
    Replaced { user: u32, old: u32, new: u32 },
    /// A node has another op.
    Op { index: u32, op: u32 },
    /// A node has another name.
    Name { index: u32, name: NameId },
    /// A name was given.
    Named(Taken),
    /// All nodes have names of another name space.
    Renamed(Box<(NameSpace, Vec<(u32, NameId)>)>),
    /// A node stands elsewhere; it stood before `next`.
    Moved { index: u32, next: u32 },
    /// All nodes stood in this order.
    Rearranged(Box<[u32]>),
    /// There was no detour.
    DetourMade,
    /// A node stands elsewhere in the detour; it stood before `next`.
    DetourMoved { index: u32, next: u32 },
    /// There was a detour.
    DetourDropped(Box<Order>),
    /// A node has another place in the source, other modules around it, another type or other entries.
    Notes { index: u32, notes: Box<Notes> },
    /// A node was marked, or its mark was taken away.
    Mark { index: u32, is_set: bool },
    /// An op was entered into the table.
    Interned,
}

/// A node's arguments and uses.
#[derive(Debug)]
pub(super) struct FormerInputs {
    pub index: u32,
    pub inputs: Inputs,
    pub edges: Edges,
}

/// What stood at places among a node's arguments.
#[derive(Debug)]
pub(super) struct FormerPlaces {
    pub index: u32,
    pub places: Vec<(Path, Argument)>,
    pub uses: Vec<UseChange>,
    /// The uses of the nodes that are there and were there.
    pub slots: Vec<(u32, Option<u32>)>,
}

/// Where a graph waits that was put away in an edit, by the assignment of another one.
#[derive(Debug, Default)]
pub(crate) struct Shelf(Mutex<Option<Graph>>);

impl Shelf {
    fn put(&self, graph: Graph) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(graph);
    }

    fn take(&self) -> Option<Graph> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Looks at the graph that waits.
    pub fn look<R>(&self, look: impl FnOnce(&Graph) -> R) -> Option<R> {
        let graph = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        graph.as_ref().map(look)
    }
}

/// The changes of the edits that are open. A clone of the graph has none.
#[derive(Debug, Default)]
pub(super) struct Journal {
    /// How many edits are open.
    depth: usize,
    pub records: Vec<Record>,
    /// How many records there were when the innermost edit began.
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
            // The edit is over, and the graph was somewhere else at its end.
            self.depth = 0;
            self.records.clear();
            return;
        }
        self.records.push(record);
    }

    /// Whether the last record keeps a node's notes as they were before some change in the innermost edit.
    pub fn has_just_kept_notes(&self, of: u32) -> bool {
        let last = self.records.get(self.floor..).and_then(<[Record]>::last);
        matches!(last, Some(Record::Notes { index, .. }) if *index == of)
    }

    /// Whether no edit is left that could come back to the graph.
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

/// The state of a graph to which an edit can go back.
#[derive(Debug)]
pub(crate) struct Savepoint {
    /// How many edits were open.
    depth: usize,
    /// How many records there were.
    records: usize,
    /// How many there were when the edit around began.
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
    /// The graph that the savepoint is of, where it was put away and waits.
    pub fn shelf(&self) -> &Shelf {
        &self.shelf
    }
}

impl Graph {
    /// Changes the graph as one: when `change` fails or panics, the graph is as it was before, and new nodes get the names
    /// that they would have got. It costs what was changed; an edit inside of an edit goes back to its own start.
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
    /// Observers that are registered when it is taken back stay so, and are told the reverse of what they were told.
    ///
    /// # Errors
    /// What `change` says. Where it moved the graph out and something else keeps it, the graph cannot be put back, which the
    /// error says.
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

    /// The state to which [`undo_edit`](Graph::undo_edit) goes back; changes are recorded until the edit ends.
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

    /// Whether a savepoint is this graph's.
    pub(crate) fn is_of(&self, start: &Savepoint) -> bool {
        self.journal.is_on(&start.shelf)
    }

    /// What was changed since a savepoint stays, unless an edit around it is taken back.
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

    /// Goes back to a savepoint; `false` where its graph is neither here nor waits for it.
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

    /// No edit is open any more: what was given up is free.
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

/// The error of an edit that cannot be taken back.
pub(crate) fn moved_out(what: &str, error: &Error) -> Error {
    Error::msg(format_args!(
        "{error}; the {what} could not be put back: the edit moved it out, and it is kept elsewhere; clone it instead"
    ))
}

impl Drop for Graph {
    /// A graph that an open edit may come back to waits on the edit's shelf.
    fn drop(&mut self) {
        if !self.journal.is_open() || self.journal.is_left() {
            return;
        }
        if let Some(shelf) = self.journal.shelf.clone() {
            shelf.put(std::mem::take(self));
        }
    }
}
