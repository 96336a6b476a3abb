//! Inverts a chain of invertible functions: each operation is replaced by its inverse, the last one
//! first.
#![allow(clippy::print_stdout, reason = "an example shows what it does")]

use fx_nn::ir::{Argument, Function, Graph, Op};
use fx_nn::module::Attributes;
use fx_nn::operator;
use fx_nn::prelude::*;

#[trace]
fn squash(x: &Tensor) -> Result<Tensor> {
    (((x * 3.0)? + 1.5)?.exp()? - 0.25)?.sqrt()
}

/// The inverse of a function of one tensor and at most one number.
fn inverse(function: Function) -> Result<Op> {
    let pairs = [
        (operator::add, operator::sub),
        (operator::mul, operator::truediv),
        (function!(ops::exp), function!(ops::log)),
        (function!(ops::sqrt), function!(square)),
    ];
    let found = pairs.into_iter().find_map(|(f, g)| match function {
        function if function == f => Some(g),
        function if function == g => Some(f),
        _ => None,
    });
    let found = found.ok_or_else(|| Error::msg(format!("`{function}` has no inverse here")))?;
    Ok(Op::CallFunction(found))
}

#[wrap]
fn square(x: &Tensor) -> Result<Tensor> {
    x * x
}

/// The graph of the inverse of a chain.
fn inverted(gm: &GraphModule) -> Result<GraphModule> {
    let mut graph = Graph::new();
    let mut at = graph.placeholder("y")?;
    let calls: Vec<_> = gm.graph().nodes().collect();
    for node in calls.iter().rev() {
        let function = match node.op() {
            Op::CallFunction(function) => *function,
            // A method is the function of the same name.
            Op::CallMethod(name) => fx_nn::ir::registry::methods(name)
                .first()
                .copied()
                .ok_or_else(|| Error::msg(format!("no method `{name}`")))?,
            _ => continue,
        };
        let mut args = node.args().to_vec();
        args[0] = Argument::Node(at);
        at = graph.create_node(inverse(function)?, args, ())?;
    }
    graph.output(at)?;
    GraphModule::new(Attributes::default(), graph, "Inverse")
}

/// The chain, with an input.
pub fn example() -> Result<(GraphModule, Vec<Value>)> {
    let x = Tensor::rand(5)?;
    Ok((symbolic_trace(traced!(squash))?, vec![Value::of(x)]))
}

fn main() -> Result<()> {
    let traced = symbolic_trace(traced!(squash))?;
    let back = inverted(&traced)?;
    println!("{}", traced.code());
    println!("{}", back.code());

    let x = Tensor::rand(5)?;
    let again: Tensor = back.forward(&traced.forward::<Tensor>(&x)?)?;
    println!(
        "there and back: {}",
        fx_nn::allclose(&again, &x, 1e-4, 1e-5)?
    );
    let twice = inverted(&back)?;
    let y: Tensor = traced.forward(&x)?;
    println!(
        "inverse of the inverse: {}",
        fx_nn::allclose(&twice.forward(&x)?, &y, 0.0, 0.0)?
    );
    Ok(())
}
