//! Shapes of what is recorded into a graph whose shapes are known.

use rustc_hash::{FxHashMap, FxHashSet};

use super::graph::Inference;
use crate::error::{Error, Result};
use crate::graph_module::GraphModule;
use crate::ir::argument::Argument;
use crate::ir::graph::Graph;
use crate::ir::node::NodeRef;
use crate::ir::signature::ParamSpec;
use crate::ir::value_meta::ValueMeta;
use crate::module::attributes::Attributes;
use crate::shapes::Contract;
use crate::trace::appending::GraphAppendingTracer;
use crate::trace::context::TraceContext;
use crate::trace::infers::{Inferred, Infers};
use crate::trace::tracer::Tracer;
use crate::value::dim::Dim;
use crate::value::handle::NodeId;
use crate::value::tree::Tree;
use crate::value::value::IntoValue;

impl GraphModule {
    /// Replaces a node by what `body` computes: it is recorded before the node, with the appending
    /// tracer and the node's own place in the source, and the node's users use its result instead.
    /// The node itself stays, unused. Of a module with a [`contract`](GraphModule::contract), sizes that are known are
    /// numbers and no nodes.
    ///
    /// # Errors
    /// Returns an error if there is no such node, `body` fails, or its result is not a symbolic
    /// value. Nothing changes then.
    #[track_caller]
    pub fn append_before<R: IntoValue>(
        &mut self,
        node: NodeId,
        body: impl FnOnce(&TraceContext) -> Result<R>,
    ) -> Result<NodeId> {
        self.edit(|gm| {
            let shapes = gm.contract().map(Appending::of);
            let mut edit = gm.graph_mut();
            let (graph, attributes) = edit.parts();
            let users: FxHashSet<NodeId> = graph.node(node)?.users().map(NodeRef::id).collect();
            let new = GraphAppendingTracer::append_knowing(graph, attributes, shapes, |cx| {
                let value = cx.recording_before(node, || body(cx))?.into_value();
                match GraphAppendingTracer.create_arg(cx, &value)? {
                    Argument::Node(new) => Ok(new),
                    _ => Err(Error::msg(format_args!(
                        "append_before: {} takes no node's place, a symbolic value does",
                        value.describe()
                    ))),
                }
            })?;
            graph
                .node_mut(node)?
                .replace_uses_with_filter(new, |user| users.contains(&user.id()))?;
            Ok(new)
        })
    }
}

/// What is known of the nodes of a graph, and of those that are recorded into it.
struct Appending {
    inference: Inference,
    /// What nodes give, by their indices.
    values: FxHashMap<usize, ValueMeta>,
    /// Which nodes these are: an index is used again.
    ids: FxHashMap<usize, NodeId>,
}

impl Appending {
    fn of(contract: &Contract) -> Box<dyn Infers> {
        let mut inference = Inference::new();
        inference.env = contract.env();
        Box::new(Appending {
            inference,
            values: FxHashMap::default(),
            ids: FxHashMap::default(),
        })
    }

    fn is_known(&self, node: NodeId) -> bool {
        self.ids.get(&(node.index as usize)) == Some(&node)
    }

    fn set(&mut self, node: NodeId, value: ValueMeta) {
        self.ids.insert(node.index as usize, node);
        self.values.insert(node.index as usize, value);
    }
}

impl Infers for Appending {
    fn start(&mut self, _: &Graph, _: &[ParamSpec], _: &[Tree]) -> Result<()> {
        Ok(())
    }

    /// Nothing of a node of which its rule does not know what it gives.
    fn node(&mut self, graph: &Graph, attributes: &Attributes, node: NodeId) -> Result<ValueMeta> {
        let mut left = vec![node];
        while let Some(id) = left.last().copied() {
            if self.is_known(id) {
                left.pop();
                continue;
            }
            let node = graph.node(id)?;
            if let Some(meta) = node.meta::<ValueMeta>()
                && !meta.is_opaque()
            {
                self.set(id, meta.clone());
                continue;
            }
            let before = left.len();
            let inputs = node.all_input_nodes().map(NodeRef::id);
            left.extend(inputs.filter(|input| !self.is_known(*input)));
            if left.len() > before {
                continue;
            }
            let mut none = std::iter::empty();
            let given = self
                .inference
                .node(node, attributes, &self.values, &mut none);
            self.set(id, given.unwrap_or(ValueMeta::none()));
        }
        let value = self.values.get(&(node.index as usize));
        Ok(value.cloned().unwrap_or(ValueMeta::none()))
    }

    fn truth(
        &mut self,
        graph: &Graph,
        attributes: &Attributes,
        node: NodeId,
    ) -> Result<Option<bool>> {
        Ok(match self.node(graph, attributes, node)? {
            ValueMeta::Bool(truth) => truth,
            _ => None,
        })
    }

    fn number(&mut self, _: &Dim) -> Result<Option<i64>> {
        Ok(None)
    }

    fn finish(&mut self, _: &Graph, _: &Attributes) -> Result<Inferred> {
        Err(Error::msg(
            "what is appended to a graph has the graph's contract",
        ))
    }
}
