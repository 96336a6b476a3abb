//! Shapes of what an edit made: a pass or a rewrite of a graph whose shapes are known leaves one
//! whose shapes are known.

use rustc_hash::FxHashMap;

use super::graph::Inference;
use crate::graph_module::GraphModule;
use crate::ir::node::NodeRef;
use crate::ir::op::Op;
use crate::ir::value_meta::ValueMeta;
use crate::shapes::Contract;
use crate::value::handle::NodeId;

impl GraphModule {
    /// Gives nodes without a [`ValueMeta`] entry one, if those of their inputs are known and their
    /// rules say what they give. What a rule assumes of a size becomes a guard of the contract.
    pub(crate) fn fill_shapes(&mut self) {
        let lacks = |node: &NodeRef<'_>| node.meta::<ValueMeta>().is_none();
        let unknown: Vec<NodeId> = match self.knows_shapes() {
            true => self
                .graph()
                .nodes()
                .filter(lacks)
                .map(NodeRef::id)
                .collect(),
            false => return,
        };
        self.fill(&unknown);
    }

    /// The same of these nodes alone, which are in the graph's order: what an edit of a part costs does not depend on
    /// the whole.
    pub(crate) fn fill_shapes_of(&mut self, nodes: &[NodeId]) {
        if self.knows_shapes() {
            self.fill(nodes);
        }
    }

    fn knows_shapes(&self) -> bool {
        let is_known = |node: NodeRef<'_>| node.meta::<ValueMeta>().is_some();
        self.graph().knows_anything() && self.graph().placeholders().any(is_known)
    }

    fn fill(&mut self, nodes: &[NodeId]) {
        let mut inference: Option<Inference> = None;
        let mut values: FxHashMap<usize, ValueMeta> = FxHashMap::default();
        let mut found: Vec<(NodeId, ValueMeta)> = Vec::new();
        for id in nodes {
            let Ok(node) = self.graph().node(*id) else {
                continue;
            };
            let is_input = matches!(node.op(), Op::Placeholder(_));
            if is_input || node.meta::<ValueMeta>().is_some() {
                continue;
            }
            let mut is_known = |input: NodeRef<'_>| {
                let meta = input.meta::<ValueMeta>();
                if let Some(meta) = meta.filter(|meta| !meta.is_opaque()) {
                    values.entry(input.index()).or_insert_with(|| meta.clone());
                }
                values.contains_key(&input.index())
            };
            if !node.all_input_nodes().all(&mut is_known) {
                continue;
            }
            let inference = inference.get_or_insert_with(|| {
                let mut inference = Inference::new();
                if let Some(contract) = self.contract() {
                    inference.env = contract.env();
                }
                inference
            });
            let mut none = std::iter::empty();
            // What cannot be inferred stays unknown: the edit is none of an inference.
            if let Ok(given) = inference.node(node, self.attributes(), &values, &mut none) {
                found.push((*id, given.entry()));
                values.insert(node.index(), given);
            }
        }
        let Some(inference) = inference.filter(|_| !found.is_empty()) else {
            return;
        };
        let mut graph = self.graph_mut();
        for (node, meta) in found {
            if let Ok(mut node) = graph.node_mut(node) {
                node.set_meta(meta);
            }
        }
        drop(graph);
        if let Some(contract) = self.contract()
            && inference.env.guards() != contract.guards()
        {
            let mut new: Contract = contract.clone();
            let guards = inference.env.guards().iter();
            guards.for_each(|guard| new.add_guard(guard.clone()));
            self.set_meta(new);
        }
    }
}
