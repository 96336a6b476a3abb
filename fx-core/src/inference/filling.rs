//! Shapes of what an edit made: a pass or a rewrite of a graph whose shapes are known leaves one
//! whose shapes are known.

use super::graph::Inference;
use crate::graph_module::GraphModule;
use crate::ir::node::NodeRef;
use crate::ir::op::Op;
use crate::ir::value_meta::ValueMeta;
use crate::shapes::{Contract, Fake};
use crate::value::handle::NodeId;

impl GraphModule {
    /// Gives nodes without a [`ValueMeta`] entry one, if those of their inputs are known and their
    /// rules say what they give. What a rule assumes of a size becomes a guard of the contract.
    pub(crate) fn fill_shapes(&mut self) {
        let is_known = |node: NodeRef<'_>| node.meta::<ValueMeta>().is_some();
        let knows_shapes = self.graph().placeholders().any(is_known);
        if !self.graph().knows_anything() || !knows_shapes {
            return;
        }
        let mut inference = Inference::new();
        if let Some(contract) = self.contract() {
            inference.env = contract.env();
        }
        let mut values: Vec<Option<Fake>> = vec![None; self.graph().index_bound()];
        let mut found: Vec<(NodeId, ValueMeta)> = Vec::new();
        for node in self.graph().nodes() {
            let at = node.index();
            if let Some(meta) = node.meta::<ValueMeta>() {
                values[at] = Fake::of_meta(meta);
                continue;
            }
            let is_known = |input: NodeRef<'_>| values[input.index()].is_some();
            let is_call = !matches!(node.op(), Op::Placeholder(_));
            if is_call && node.all_input_nodes().all(is_known) {
                let mut none = std::iter::empty();
                // What cannot be inferred stays unknown: the edit is none of an inference.
                let given = inference.node(node, self.attributes(), &values, &mut none);
                if let Ok(given) = given {
                    found.push((node.id(), given.meta()));
                    values[at] = Some(given);
                }
            }
        }
        if found.is_empty() {
            return;
        }
        let mut graph = self.graph_mut();
        for (node, meta) in found {
            if let Ok(mut node) = graph.node_mut(node) {
                node.set_meta(meta);
            }
        }
        drop(graph);
        if let Some(contract) = self.contract() {
            let mut new: Contract = contract.clone();
            inference
                .env
                .guards()
                .iter()
                .for_each(|guard| new.add_guard(guard.clone()));
            if new != *contract {
                self.set_meta(new);
            }
        }
    }
}
