//! `Canonicalize`: one order and one set of names for graphs that compute the same in the same way.
//!
//! Invariant: the order depends on what the graph computes, not on how it was built; impure nodes,
//! and those that read what impure calls change, keep their order.

use super::pass::Pass;
use crate::error::Result;
use crate::graph_module::GraphModule;
use crate::ir::graph::Graph;
use crate::ir::node::NodeRef;
use crate::ir::op::Op;
use crate::module::attributes::Attributes;
use crate::region::ordered::Ordered;
use crate::value::handle::NodeId;

/// Orders and names nodes by what they compute alone: first the inputs in their order, then, for
/// each impure node in order and for the output last, what it needs, the part of its first argument
/// first. Names are those that a trace would give in that order. What nobody needs comes last, in
/// its own order.
///
/// ```
/// use fx_core::prelude::*;
/// use fx_core::passes::Canonicalize;
/// let mut a = symbolic_trace(traced!(|x: Float| { let (p, q) = ((x * 2.0)?, (x - 1.0)?); p + q }))?;
/// let mut b = symbolic_trace(traced!(|x: Float| { let (q, p) = ((x - 1.0)?, (x * 2.0)?); p + q }))?;
/// assert_ne!(a.graph().to_string(), b.graph().to_string());
/// a.apply(&Canonicalize)?;
/// b.apply(&Canonicalize)?;
/// assert_eq!(a.graph().to_string(), b.graph().to_string());
/// # Ok::<(), Error>(())
/// ```
#[derive(Debug, Clone, Copy, Default)]
pub struct Canonicalize;

impl Pass for Canonicalize {
    fn enters_control(&self) -> bool {
        true
    }

    fn run(&self, gm: &mut GraphModule) -> Result<bool> {
        let mut edit = gm.graph_mut();
        let (graph, attributes) = edit.parts();
        let order = order(graph, attributes);
        arrange(graph, &order, true)
    }
}

/// Puts the nodes in an order, and gives them the names that they would be recorded with, if asked
/// to. Returns whether anything changed.
pub(super) fn arrange(graph: &mut Graph, order: &[NodeId], renames: bool) -> Result<bool> {
    let nodes = graph.nodes().map(|node| node.id());
    let is_ordered = nodes.eq(order.iter().copied());
    if !is_ordered {
        graph.rearrange(order)?;
    }
    let renamed = renames && graph.rename_all(|node| node.op().name_candidate());
    Ok(!is_ordered || renamed)
}

/// The canonical order of a graph's nodes.
fn order(graph: &Graph, attributes: &Attributes) -> Vec<NodeId> {
    let mut placed = Placed {
        seen: vec![false; graph.index_bound()],
        order: Vec::with_capacity(graph.len()),
        pending: Vec::new(),
    };
    for input in graph.placeholders() {
        placed.add(input.id());
    }
    let inner = || graph.nodes().filter(|node| *node.op() != Op::Output);
    let ordered = Ordered::of(graph, attributes);
    for node in inner().filter(|node| ordered.contains(*node)) {
        placed.add_with_inputs(node);
    }
    // The output comes last, after dead code in its own order.
    for output in graph.nodes().filter(|node| *node.op() == Op::Output) {
        for input in output.all_input_nodes() {
            placed.add_with_inputs(input);
        }
    }
    inner().for_each(|node| placed.add_with_inputs(node));
    graph.nodes().for_each(|node| placed.add(node.id()));
    placed.order
}

/// An order under construction.
struct Placed {
    /// By the node's index.
    seen: Vec<bool>,
    order: Vec<NodeId>,
    /// Nodes to place, the next one last, and whether their inputs were put on this list.
    pending: Vec<(NodeId, bool)>,
}

impl Placed {
    fn add(&mut self, id: NodeId) {
        if !std::mem::replace(&mut self.seen[id.index as usize], true) {
            self.order.push(id);
        }
    }

    /// Adds what a node needs, the part of its first input first, then the node.
    fn add_with_inputs(&mut self, node: NodeRef<'_>) {
        let graph = node.graph();
        self.pending.push((node.id(), false));
        while let Some((id, inputs_are_listed)) = self.pending.pop() {
            if inputs_are_listed {
                self.add(id);
                continue;
            }
            if self.seen[id.index as usize] {
                continue;
            }
            self.pending.push((id, true));
            let start = self.pending.len();
            let inputs = graph.node(id).into_iter();
            let inputs = inputs.flat_map(|node| node.all_input_nodes());
            let waiting = inputs.filter(|input| !self.seen[input.index()]);
            self.pending
                .extend(waiting.map(|input| (input.id(), false)));
            self.pending[start..].reverse();
        }
    }
}
