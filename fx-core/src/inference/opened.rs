//! `opened`: the graph of a graph module with the operations inside of its layers.

use crate::error::{Error, Result};
use crate::graph_module::GraphModule;
use crate::ir::argument::Argument;
use crate::ir::op::Op;
use crate::ir::operator::assert_specialized;
use crate::ir::value_meta::ValueMeta;
use crate::shapes::Contract;
use crate::trace::root::Trace;
use crate::trace::tracer::NoLeaves;
use crate::value::value::Value;

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
        let mut trace = Trace::new(self).tracer(NoLeaves);
        for (param, value) in self.specialised()? {
            trace = trace.concrete(&param, value);
        }
        let mut opened = trace.graph_module()?;
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

    /// The inputs that the graph was specialised to a value of, with the value: a new trace of it
    /// binds them as [`Trace::concrete`].
    ///
    /// ```
    /// use fx_core::prelude::*;
    /// let root = traced!(|x: Float, twice: bool| if twice { x * 2.0 } else { Ok(x) });
    /// let gm = Trace::new(root).concrete("twice", true).graph_module()?;
    /// let specialised = gm.specialised()?;
    /// assert!(matches!(&specialised[..], [(name, Value::Bool(true))] if name == "twice"));
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// Returns an error if the graph calls a node that it does not have.
    pub fn specialised(&self) -> Result<Vec<(String, Value)>> {
        let mut found = Vec::new();
        for node in self
            .graph()
            .find_nodes(&Op::CallFunction(assert_specialized))
        {
            let [Argument::Node(input), _, value] = node.args() else {
                continue;
            };
            let input = self.graph().node(*input)?;
            // A value that a node gives is none of a trace.
            let value = value.to_value(&mut |_| Err(Error::msg("a node")));
            if let (Op::Placeholder(param), Ok(value)) = (input.op(), value) {
                found.push((param.to_string(), value));
            }
        }
        Ok(found)
    }
}
