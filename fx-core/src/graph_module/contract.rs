//! The contract of a graph module: what its shapes hold for, checked when a run begins.

use rustc_hash::FxHashMap;

use super::GraphModule;
use crate::error::{Error, Result};
use crate::ir::argument::Argument;
use crate::ir::graph::Graph;
use crate::ir::node::NodeRef;
use crate::ir::op::Op;
use crate::ir::value_meta::ValueMeta;
use crate::shapes::Contract;
use crate::shapes::relied::ReliedOn;
use crate::value::dim::Dim;
use crate::value::handle::NodeId;

impl GraphModule {
    /// What the inputs have to be, and the guards among their sizes: written by
    /// [`infer_shapes`](GraphModule::infer_shapes) and [`Trace::inputs`](crate::trace::Trace::inputs).
    /// `None` if no shapes were inferred, the placeholders changed since, or the module is
    /// [`unguarded`](GraphModule::unguarded).
    pub fn contract(&self) -> Option<&Contract> {
        self.meta()
    }

    /// Removes the contract, so that runs with other sizes are not refused; returns `false` if
    /// there was none. The entries of the nodes stay: they hold for the sizes that they were
    /// inferred for.
    pub fn unguarded(&mut self) -> bool {
        let relied_on = |node: &NodeRef<'_>| node.meta::<ReliedOn>().is_some();
        let relied_on: Vec<NodeId> = self
            .graph
            .nodes()
            .filter(relied_on)
            .map(NodeRef::id)
            .collect();
        if !relied_on.is_empty() {
            let mut graph = self.graph_mut();
            for node in relied_on {
                if let Ok(mut node) = graph.node_mut(node) {
                    node.remove_meta::<ReliedOn>();
                }
            }
        }
        // A program is kept for a version of the graph, which entries do not change.
        self.forget_program();
        self.remove_meta::<Contract>()
    }

    /// Gives a symbol of the shapes a value: every size that it is in becomes simpler, and what
    /// was computed from sizes alone becomes a number of the graph.
    ///
    /// ```
    /// use fx_core::prelude::*;
    /// use fx_core::shapes::Spec;
    /// let mut gm = symbolic_trace(traced!(|n: Int, x: Float| x * ((n + 1)? * 2)?))?;
    /// gm.infer_shapes(&[Spec::int("n"), Spec::float()])?;
    /// gm.specialise("n", 3)?;
    /// assert_eq!(gm.forward::<f64>((3, 0.5))?, 4.0);
    /// assert!(gm.forward::<f64>((4, 0.5)).is_err());
    /// assert!(gm.graph().find_name("add").is_none());
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// Returns an error if the module has no contract or no such symbol, or the value breaks a
    /// guard; nothing changes then.
    pub fn specialise(&mut self, symbol: &str, value: i64) -> Result<()> {
        let contract = self.contract().ok_or_else(|| {
            Error::msg("the module has no sizes with names: infer its shapes with specs first")
        })?;
        let contract = contract.specialised(symbol, value)?;
        let of = |name: &str| (name == symbol).then(|| Dim::from(value));
        self.edit(|gm| {
            let mut metas = FxHashMap::default();
            gm.for_each_graph(&mut |graph| {
                for node in graph.nodes() {
                    if let Some(meta) = node.meta::<ValueMeta>() {
                        let meta = meta.with(&of).map_err(|e| node.blame("specialising", e))?;
                        metas.insert(node.id(), meta);
                    }
                }
                Ok(())
            })?;
            gm.put_known_sizes(&metas)?;
            gm.eliminate_dead_code()?;
            gm.set_metas(&mut |graph| {
                let ids = graph.nodes().map(NodeRef::id);
                ids.filter_map(|id| Some((id, metas.remove(&id)?)))
                    .collect()
            })?;
            gm.set_meta(contract);
            Ok(())
        })
    }

    /// Visits the graph and those of its sides.
    fn for_each_graph(&mut self, visit: &mut dyn FnMut(&Graph) -> Result<()>) -> Result<()> {
        visit(&self.graph)?;
        self.for_each_side(|_, side| side.for_each_graph(visit))
    }

    /// Replaces what is known to be a number by the number.
    fn put_known_sizes(&mut self, metas: &FxHashMap<NodeId, ValueMeta>) -> Result<()> {
        let known = |node: NodeRef<'_>| match metas.get(&node.id())? {
            ValueMeta::Int(dim)
                if !matches!(node.op(), Op::Placeholder(_) | Op::Output)
                    && node
                        .meta::<ValueMeta>()
                        .is_none_or(|old| old.known().is_none()) =>
            {
                Some((node.id(), Argument::Int(dim.as_number()?)))
            }
            _ => None,
        };
        let known: Vec<(NodeId, Argument)> = self.graph.nodes().filter_map(known).collect();
        let mut graph = self.graph_mut();
        let mut relied_on = Vec::new();
        for (node, _) in &known {
            let tensors = graph.node(*node)?.all_input_nodes();
            let tensors =
                tensors.filter(|node| !matches!(node.op(), Op::Placeholder(_) | Op::GetAttr(_)));
            let tensors = tensors.filter_map(|node| match metas.get(&node.id())? {
                meta @ ValueMeta::Single(_) => Some((node.id(), meta.clone())),
                _ => None,
            });
            relied_on.extend(tensors);
        }
        for (node, meta) in relied_on {
            graph.node_mut(node)?.set_meta(ReliedOn::new(meta));
        }
        graph.put_all(&known)?;
        drop(graph);
        self.for_each_side(|_, side| side.put_known_sizes(metas))
    }
}
