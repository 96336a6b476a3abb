//! `Constants`: the part of a graph that depends only on parameters and constants, and that part as
//! a separate graph.
//!
//! Invariant: nothing in the part is impure, and nothing in it depends on an input or on a tensor
//! that changes.

use crate::error::Result;
use crate::ir::argument::Argument;
use crate::ir::graph::Graph;
use crate::ir::node::NodeRef;
use crate::ir::op::Op;
use crate::module::attributes::Attributes;
use crate::region::ordered::Ordered;
use crate::value::handle::NodeId;

/// The constant part of a graph.
pub(super) struct Constants {
    /// Its needed nodes, in order.
    pub nodes: Vec<NodeId>,
    /// Those that the rest of the graph uses, except parameters and constants themselves.
    pub results: Vec<NodeId>,
}

impl Constants {
    pub fn of(graph: &Graph, attributes: &Attributes, skip: impl Fn(NodeRef<'_>) -> bool) -> Self {
        let mut constant = vec![false; graph.index_bound()];
        let ordered = Ordered::of(graph, attributes);
        let is_constant = |constant: &[bool], node: NodeRef<'_>| match node.op() {
            Op::Placeholder(_) | Op::Output => false,
            _ => {
                let mut inputs = node.all_input_nodes();
                inputs.all(|input| constant[input.index()]) && !ordered.contains(node)
            }
        };
        let mut all = Vec::new();
        for node in graph.nodes() {
            if is_constant(&constant, node) && !skip(node) {
                constant[node.index()] = true;
                all.push(node);
            }
        }
        let mut results = Vec::new();
        let mut needed = vec![false; graph.index_bound()];
        let mut nodes = Vec::new();
        for node in all.into_iter().rev() {
            let place = node.index();
            let used = node.users().any(|user| !constant[user.index()]);
            if used && !matches!(node.op(), Op::GetAttr(_)) {
                results.push(node.id());
                needed[place] = true;
            }
            if needed[place] {
                nodes.push(node.id());
                for input in node.all_input_nodes() {
                    needed[input.index()] = true;
                }
            }
        }
        nodes.reverse();
        results.reverse();
        Constants { nodes, results }
    }

    /// A graph that computes the results, as a tuple.
    pub fn graph(&self, of: &Graph) -> Result<Graph> {
        let mut copies: Vec<Option<NodeId>> = vec![None; of.index_bound()];
        let mut graph = Graph::with_capacity(self.nodes.len() + 1);
        let now = |copies: &[Option<NodeId>], id: NodeId| {
            copies[id.index as usize].map_or(Argument::None, Argument::Node)
        };
        for id in &self.nodes {
            let copy = graph.node_copy(of.node(*id)?, |input| now(&copies, input))?;
            copies[id.index as usize] = Some(copy);
        }
        let results = self.results.iter().map(|id| now(&copies, *id));
        graph.output(Argument::Tuple(results.collect::<Vec<_>>().into()))?;
        Ok(graph)
    }
}
