//! Where new nodes go: before a node or at the end, temporarily or permanently.
//!
//! Invariant: insertion points are live nodes or the end; erasing one moves it to the next node.

use std::ops::{Deref, DerefMut};

use super::graph::Graph;
use super::order::ROOT;
use crate::error::Result;
use crate::value::handle::NodeId;

/// A temporary insertion point, as a guard.
///
/// Derefs to the graph. Dropping it restores the former insertion point.
#[derive(Debug)]
pub struct InsertionPoint<'g> {
    graph: &'g mut Graph,
    depth: usize,
}

impl Deref for InsertionPoint<'_> {
    type Target = Graph;
    fn deref(&self) -> &Graph {
        self.graph
    }
}

impl DerefMut for InsertionPoint<'_> {
    fn deref_mut(&mut self) -> &mut Graph {
        self.graph
    }
}

impl Drop for InsertionPoint<'_> {
    fn drop(&mut self) {
        self.graph.leave_insertion(self.depth);
    }
}

impl Graph {
    /// Inserts new nodes before `node`, or before the first node for `None`, until the guard is
    /// dropped.
    ///
    /// # Errors
    /// Returns an error if the node is not in this graph.
    ///
    /// ```
    /// # use fx_core::operator;
    /// # use fx_core::ir::Graph;
    /// let mut graph = Graph::new();
    /// let x = graph.placeholder("x")?;
    /// let out = graph.output(x)?;
    /// let neg = graph.inserting_before(out)?.call_function(operator::neg, (x,), ())?;
    /// assert!(graph.is_before(neg, out)?);
    /// # Ok::<(), fx_core::Error>(())
    /// ```
    pub fn inserting_before(
        &mut self,
        node: impl Into<Option<NodeId>>,
    ) -> Result<InsertionPoint<'_>> {
        let target = match node.into() {
            Some(id) => self.index(id)?,
            None => self.order.next(ROOT),
        };
        Ok(self.insertion_point(target))
    }

    /// Inserts new nodes after `node`, or at the end for `None`, until the guard is dropped.
    ///
    /// # Errors
    /// Returns an error if the node is not in this graph.
    pub fn inserting_after(
        &mut self,
        node: impl Into<Option<NodeId>>,
    ) -> Result<InsertionPoint<'_>> {
        let target = match node.into() {
            Some(id) => self.order.next(self.index(id)?),
            None => ROOT,
        };
        Ok(self.insertion_point(target))
    }

    fn insertion_point(&mut self, target: u32) -> InsertionPoint<'_> {
        let depth = self.enter_insertion(target);
        InsertionPoint { graph: self, depth }
    }

    fn enter_insertion(&mut self, target: u32) -> usize {
        let depth = self.cursor.former.len();
        self.cursor.former.push(self.cursor.before);
        self.cursor.before = target;
        depth
    }

    /// [`inserting_before`](Graph::inserting_before) without a guard; returns the value to pass to
    /// [`leave_insertion`](Graph::leave_insertion).
    pub(crate) fn enter_insertion_before(&mut self, node: NodeId) -> Result<usize> {
        let target = self.index(node)?;
        Ok(self.enter_insertion(target))
    }

    pub(crate) fn leave_insertion(&mut self, depth: usize) {
        let cursor = &mut self.cursor;
        if let Some(former) = cursor.former.get(depth) {
            cursor.before = *former;
            cursor.former.truncate(depth);
        }
    }

    /// Inserts new nodes before `node` from now on, or at the end for `None`.
    ///
    /// # Errors
    /// Returns an error if the node is not in this graph.
    pub fn set_insertion_point(&mut self, node: impl Into<Option<NodeId>>) -> Result<()> {
        self.cursor.before = match node.into() {
            Some(id) => self.index(id)?,
            None => ROOT,
        };
        Ok(())
    }
}
