//! `opened`: the graph of a graph module with the operations inside of its layers.

use crate::error::Result;
use crate::graph_module::GraphModule;
use crate::ir::value_meta::ValueMeta;
use crate::shapes::Contract;
use crate::trace::root::Trace;
use crate::trace::tracer::NoLeaves;

impl GraphModule {
    /// The same computation without layers: each call of one becomes the functions that its
    /// `forward` calls. Module paths, source lines and parameters stay; so does the contract, and
    /// shapes that were known are known inside of the layers too.
    ///
    /// ```
    /// use fx_core::prelude::*;
    /// #[derive(Module, Default)]
    /// struct Double { tag: fx_core::module::Tag }
    /// #[trace(leaf)]
    /// impl Double { fn forward(&self, x: Float) -> Result<Float> { x * 2.0 } }
    /// #[derive(Module, Default)]
    /// struct Net { double: Double }
    /// #[trace]
    /// impl Net { fn forward(&self, x: Float) -> Result<Float> { self.double.forward(x)? + 1.0 } }
    ///
    /// let gm = symbolic_trace(&Net::default())?;
    /// assert!(gm.graph().find_name("double").is_some());
    /// let opened = gm.opened()?;
    /// assert!(opened.graph().find_name("double").is_none());
    /// let mul = opened.graph().find_name("mul").ok_or_else(|| Error::msg("it multiplies"))?;
    /// assert!(mul.module_stack().any(|scope| &*scope.path == "double"));
    /// assert_eq!(opened.forward::<f64>(3.0)?, 7.0);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// Returns an error if the body of a layer cannot be traced: if it reads elements or asks for
    /// sizes as plain numbers, for example.
    pub fn opened(&self) -> Result<GraphModule> {
        let mut opened = Trace::new(self).tracer(NoLeaves).graph_module()?;
        let before = self
            .graph()
            .placeholders()
            .map(|node| node.meta::<ValueMeta>());
        let inputs = opened.graph().placeholders().map(|node| node.id());
        let metas: Vec<_> = inputs.zip(before).collect();
        let known = metas
            .into_iter()
            .filter_map(|(id, meta)| Some((id, meta?.clone())));
        let known: Vec<_> = known.collect();
        opened.set_metas(&mut |graph| {
            let here = known.iter().filter(|(id, _)| graph.node(*id).is_ok());
            here.cloned().collect()
        })?;
        if let Some(contract) = self.contract() {
            opened.set_meta::<Contract>(contract.clone());
        }
        opened.fill_shapes();
        Ok(opened)
    }
}
