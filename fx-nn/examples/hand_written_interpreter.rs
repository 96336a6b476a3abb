//! Shape propagation written from scratch: a loop over the nodes, a map of values, one arm per
//! opcode.
#![allow(clippy::print_stdout, reason = "an example shows what it does")]

use std::collections::HashMap;

use fx_nn::ir::{Op, ValueMeta};
use fx_nn::models::mlp::Mlp;
use fx_nn::prelude::*;
use fx_nn::trace::{CallArgs, call_method};
use fx_nn::value::NodeId;

/// Runs a graph on inputs, and returns each node's name with the metadata of its value.
fn propagate(gm: &GraphModule, inputs: Vec<Value>) -> Result<Vec<(String, ValueMeta)>> {
    let mut inputs = inputs.into_iter();
    let mut values: HashMap<NodeId, Value> = HashMap::new();
    let mut metas = Vec::new();
    for node in gm.graph() {
        let mut value_of = |input: NodeId| {
            let value = values.get(&input).cloned();
            value.ok_or_else(|| Error::msg("a node comes after its users"))
        };
        let call = CallArgs::of(node, &mut value_of)?;
        let value = match node.op() {
            Op::Placeholder(name) => inputs
                .next()
                .ok_or_else(|| Error::msg(format!("no input for `{name}`")))?,
            Op::GetAttr(path) => gm.parameter(path).or_else(|_| gm.buffer(path))?,
            Op::CallFunction(function) => function.call(call)?,
            Op::CallMethod(name) => call_method(name, call)?,
            Op::CallModule(path) => gm.submodule(path)?.forward(call)?,
            Op::Output => call.args.into_iter().next().unwrap_or_default(),
        };
        metas.push((node.name().to_string(), ValueMeta::of(&value)));
        values.insert(node.id(), value);
    }
    Ok(metas)
}

fn main() -> Result<()> {
    let mut mlp = Mlp::new(16, 32, 4)?;
    mlp.eval();
    let mut traced = symbolic_trace(&mlp)?;
    let x = Tensor::rand((2, 16))?;

    let metas = propagate(&traced, traced.process_inputs(&x)?)?;
    for (name, meta) in &metas {
        println!("{name:12} {meta}");
    }

    // The library's own shape propagation agrees on every node.
    traced.propagate_shapes(&x)?;
    let same = traced
        .graph()
        .nodes()
        .zip(&metas)
        .all(|(node, (_, meta))| node.meta() == Some(meta));
    println!("as propagate_shapes: {same}");
    Ok(())
}
