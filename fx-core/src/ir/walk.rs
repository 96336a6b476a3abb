//! `NodeCursor`: a walk along a graph while it is being edited.
//!
//! Invariant: under any edits, nodes added after the current one are visited, and erased ones are
//! not.

use std::ops::{Deref, DerefMut};

use super::graph::Graph;
use super::order::ROOT;
use crate::value::handle::NodeId;

/// A position in a graph that stays valid while nodes around it are added and removed. Derefs to
/// the graph.
///
/// ```
/// # use fx_core::operator;
/// # use fx_core::ir::{Graph, Op};
/// let mut graph = Graph::new();
/// let x = graph.placeholder("x")?;
/// let y = graph.call_function(operator::neg, (x,), ())?;
/// graph.output(y)?;
///
/// // Take every negation out, while walking.
/// let mut cursor = graph.cursor();
/// while let Some(id) = cursor.advance() {
///     if *cursor.node(id)?.op() == Op::CallFunction(operator::neg)
///         && let Some(input) = cursor.node(id)?.args()[0].as_node()
///     {
///         cursor.node_mut(id)?.replace_all_uses_with(input)?;
///         cursor.erase_node(id)?;
///     }
/// }
/// drop(cursor);
/// assert_eq!(graph.len(), 2);
/// # Ok::<(), fx_core::Error>(())
/// ```
#[derive(Debug)]
pub struct NodeCursor<'g> {
    graph: &'g mut Graph,
    depth: usize,
}

impl Graph {
    /// Starts a walk at the first node, during which the graph can be edited.
    pub fn cursor(&mut self) -> NodeCursor<'_> {
        let depth = self.cursor.walks.len();
        self.cursor.walks.push(ROOT);
        NodeCursor { graph: self, depth }
    }
}

impl NodeCursor<'_> {
    /// Moves to the next node.
    pub fn advance(&mut self) -> Option<NodeId> {
        let walk = self.graph.cursor.walks.get(self.depth).copied()?;
        let next = self.graph.order.next(walk);
        if next == ROOT {
            return None;
        }
        self.graph.cursor.walks[self.depth] = next;
        Some(self.graph.id_of(next))
    }
}

impl Deref for NodeCursor<'_> {
    type Target = Graph;
    fn deref(&self) -> &Graph {
        self.graph
    }
}

impl DerefMut for NodeCursor<'_> {
    fn deref_mut(&mut self) -> &mut Graph {
        self.graph
    }
}

impl Drop for NodeCursor<'_> {
    fn drop(&mut self) {
        self.graph.cursor.walks.truncate(self.depth);
    }
}
