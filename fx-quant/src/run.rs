//! Runs of a graph in which each value is seen.
//!
//! Invariant: values of the graph itself are seen, and none of a branch or a loop inside of it.

use fx_core::ir::NodeRef;
use fx_core::run::{Interpretation, Interpreter};
use fx_core::trace::{FromValue, IntoArgs};
use fx_core::value::Value;
use fx_core::{GraphModule, Result};
use fx_nn::Tensor;

struct Watch<F>(F);

impl<F: FnMut(NodeRef<'_>, &Value) -> Result<()>> Interpreter for Watch<F> {
    fn run_node(&mut self, run: &mut Interpretation<'_>, node: NodeRef<'_>) -> Result<Value> {
        let value = run.run_node(self, node)?;
        if run.path().is_empty() {
            (self.0)(node, &value).map_err(|error| node.blame("quantizing", error))?;
        }
        Ok(value)
    }
}

/// Runs a graph, and shows each node with its value.
pub(crate) fn watched(
    gm: &GraphModule,
    args: impl IntoArgs,
    see: impl FnMut(NodeRef<'_>, &Value) -> Result<()>,
) -> Result<Value> {
    gm.interpret::<Value>(&mut Watch(see), args)
}

/// The parameter or buffer at a path.
pub(crate) fn tensor_at(gm: &GraphModule, path: &str) -> Result<Tensor> {
    Tensor::from_value(gm.parameter(path).or_else(|_| gm.buffer(path))?)
}

/// The value as a tensor of floats, if it is one.
pub(crate) fn as_floats(value: &Value) -> Option<Tensor> {
    let tensor = Tensor::from_value(value.clone()).ok()?;
    let is_float = tensor.dtype().is_ok_and(|dtype| dtype.is_floating_point());
    is_float.then_some(tensor)
}
