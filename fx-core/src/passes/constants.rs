//! `Constants`: the part of a graph that depends on parameters and constants only, and that part as a graph of its own.
//!
//! Invariant: nothing in the part is impure, and nothing in it depends on an input.

use std::sync::Arc;

use rustc_hash::FxHashSet;

use super::predicate::{self, Predicate};
use crate::error::Result;
use crate::graph_module::is_impure;
use crate::ir::argument::{Args, Argument};
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
        let is_constant = |constant: &[bool], node: NodeRef<'_>| match node.op() {
            Op::GetAttr(_) => true,
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

    /// Erases the nodes that nobody uses any more, and gives the paths that the graph named through them.
    pub fn erase(&self, graph: &mut Graph) -> Result<Vec<Arc<str>>> {
        let mut paths = Vec::new();
        for id in self.nodes.iter().rev() {
            let node = graph.node(*id)?;
            if node.num_users() > 0 {
                continue;
            }
            if let Op::GetAttr(path) | Op::CallModule(path) = node.op() {
                paths.push(path.clone());
            }
            graph.erase_node(*id)?;
        }
        Ok(paths)
    }
}

/// The attributes that a graph names.
pub(super) fn named_by(graph: &Graph, attributes: &Attributes) -> Attributes {
    let mut named = Attributes::default();
    for node in graph.nodes() {
        match node.op() {
            Op::GetAttr(path) => {
                if let Some(tensor) = attributes.tensors.get(path) {
                    named.tensors.insert(path.clone(), tensor.clone());
                }
            }
            Op::CallModule(path) if !named.modules.contains_key(path) => {
                if let Some(module) = attributes.modules.get(path) {
                    named.modules.insert(path.clone(), module.clone());
                }
            }
            _ => {}
        }
    }
    named
}

/// Takes away those of the paths that a graph no longer names.
pub(super) fn forget_unnamed(graph: &Graph, attributes: &mut Attributes, paths: Vec<Arc<str>>) {
    let is_named = |op: Op| !graph.find_nodes_unsorted(&op).is_empty();
    let mut gone: FxHashSet<Arc<str>> = FxHashSet::default();
    for path in paths {
        if !is_named(Op::GetAttr(path.clone())) && !is_named(Op::CallModule(path.clone())) {
            gone.insert(path);
        }
    }
    attributes.tensors.retain(|path, _| !gone.contains(path));
    attributes.modules.retain(|path, _| !gone.contains(path));
}

/// Arguments of a new node.
pub(super) fn one(argument: impl Into<Argument>) -> Args {
    Args::from_iter([argument.into()])
}
