//! `graph.edit`: changes that are kept or taken back as one.
//!
//! Invariant: an edit that fails leaves the graph as it was.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use super::graph::Graph;
use super::journal::{Record, Savepoint};
use crate::error::{Error, Result};

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
    pub(crate) fn open_edit(&mut self) -> Savepoint<Graph> {
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
    pub(crate) fn is_of(&self, start: &Savepoint<Graph>) -> bool {
        self.journal.is_on(&start.shelf)
    }

    /// Keeps the changes since a savepoint, unless an enclosing edit is undone.
    pub(crate) fn keep_edit(&mut self, start: Savepoint<Graph>) {
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
    pub(crate) fn undo_edit(&mut self, start: Savepoint<Graph>) -> bool {
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
    pub(super) fn records_since(&self, start: &Savepoint<Graph>) -> &[Record] {
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
