//! `ShapeProp`: one run on sample inputs, which records what every node returns.

use rustc_hash::FxHashMap;

use crate::error::Result;
use crate::graph_module::GraphModule;
use crate::ir::node::NodeRef;
use crate::ir::value_meta::ValueMeta;
use crate::run::interpreter::{Interpretation, Interpreter};
use crate::trace::call_args::IntoArgs;
use crate::value::handle::NodeId;
use crate::value::value::Value;

impl GraphModule {
    /// Runs the graph on sample inputs and sets the [`ValueMeta`] entry of every node to its
    /// result, torch.fx's `ShapeProp`; returns the result of the run. Nodes of the sides of
    /// branches and loops have that of their last step; a node that did not run keeps its entry.
    ///
    /// ```
    /// use fx_core::prelude::*;
    /// use fx_core::ir::ValueMeta;
    /// let mut gm = symbolic_trace(traced!(|x: Float| Ok((x * 2.0)?)))?;
    /// gm.propagate_shapes(1.5)?;
    /// let mul = gm.graph().find_name("mul").and_then(|node| node.meta::<ValueMeta>());
    /// assert_eq!(mul.map(ValueMeta::to_string), Some("3.0".to_string()));
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`forward`](GraphModule::forward).
    pub fn propagate_shapes(&mut self, args: impl IntoArgs) -> Result<Value> {
        struct ShapeProp(Vec<(NodeId, ValueMeta)>);
        impl Interpreter for ShapeProp {
            fn run_node(
                &mut self,
                run: &mut Interpretation<'_>,
                node: NodeRef<'_>,
            ) -> Result<Value> {
                let value = run.run_node(self, node)?;
                self.0.push((node.id(), ValueMeta::of(&value)));
                Ok(value)
            }
        }
        let mut shapes = ShapeProp(Vec::with_capacity(self.graph().len()));
        let result = self.interpret(&mut shapes, args)?;
        let mut inside: FxHashMap<NodeId, ValueMeta> = FxHashMap::default();
        self.set_metas(&mut |graph| {
            // The graph itself comes first, and most nodes are its own; a loop's last turn counts.
            let mut here = std::mem::take(&mut shapes.0);
            inside.extend(here.extract_if(.., |(node, _)| graph.node(*node).is_err()));
            if !inside.is_empty() {
                let nodes = graph.nodes().map(|node| node.id());
                here.extend(nodes.filter_map(|node| Some((node, inside.remove(&node)?))));
            }
            here
        })?;
        Ok(result)
    }
}
