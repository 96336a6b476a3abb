//! `Constants`: the part of a graph that depends on parameters and constants only, and that part as a graph of its own.
//!
//! Invariant: nothing in the part is impure, and nothing in it depends on an input or on a tensor that impure calls are given.

use std::sync::Arc;

use rustc_hash::FxHashSet;

use super::predicate::{self, Predicate};
use crate::error::Result;
use crate::graph_module::is_impure;
use crate::ir::argument::Argument;
use crate::ir::graph::Graph;
use crate::ir::node::NodeRef;
use crate::ir::op::Op;
use crate::module::attributes::Attributes;
use crate::value::handle::NodeId;

/// The constant part of a graph.
pub(super) struct Constants {
    /// Its nodes that are needed, in order.
    pub nodes: Vec<NodeId>,
    /// Those that the rest of the graph uses, parameters and constants themselves not among them.
    pub results: Vec<NodeId>,
}

impl Constants {
    pub fn of(graph: &Graph, attributes: &Attributes, skip: &Option<Predicate>) -> Self {
        let mut constant = vec![false; graph.index_bound()];
        let changing = given_to_impure(graph, attributes);
        let is_constant = |constant: &[bool], node: NodeRef<'_>| match node.op() {
            Op::GetAttr(path) => !changing.contains(path),
            Op::Placeholder(_) | Op::Output => false,
            _ => {
                node.all_input_nodes()
                    .all(|input| constant[input.id().index as usize])
                    && !is_impure(attributes, node)
            }
        };
        let mut all = Vec::new();
        for node in graph.nodes() {
            if is_constant(&constant, node) && !predicate::holds(skip, node) {
                constant[node.id().index as usize] = true;
                all.push(node);
            }
        }
        let mut results = Vec::new();
        let mut needed = vec![false; graph.index_bound()];
        let mut nodes = Vec::new();
        for node in all.into_iter().rev() {
            let place = node.id().index as usize;
            let used = node.users().any(|user| !constant[user.id().index as usize]);
            if used && !matches!(node.op(), Op::GetAttr(_)) {
                results.push(node.id());
                needed[place] = true;
            }
            if needed[place] {
                nodes.push(node.id());
                for input in node.all_input_nodes() {
                    needed[input.id().index as usize] = true;
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

/// The tensors that impure calls are given: they may change them from run to run.
fn given_to_impure(graph: &Graph, attributes: &Attributes) -> FxHashSet<Arc<str>> {
    let is_inner = |node: &NodeRef<'_>| !matches!(node.op(), Op::Placeholder(_) | Op::Output);
    let calls = graph.nodes().filter(is_inner);
    let impure = calls.filter(|node| is_impure(attributes, *node));
    let inputs = impure.flat_map(|node| node.all_input_nodes());
    let paths = inputs.filter_map(|input| match input.op() {
        Op::GetAttr(path) => Some(path.clone()),
        _ => None,
    });
    paths.collect()
}
