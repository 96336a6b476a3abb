//! One operation replaced everywhere with a rule, and a `relu` inserted after each call of another
//! by hand.
#![allow(clippy::print_stdout, reason = "an example shows what it does")]

use fx_nn::ir::Op;
use fx_nn::operator;
use fx_nn::pattern::replace_pattern;
use fx_nn::prelude::*;

#[trace]
fn model(x: &Tensor, y: &Tensor) -> Result<Tensor> {
    let sum = (x + y)?;
    (&sum + 1.0)? * (y + &sum)?
}

/// The program, with its inputs.
pub fn example() -> Result<(GraphModule, Vec<Value>)> {
    let inputs = vec![Value::of(Tensor::rand(3)?), Value::of(Tensor::rand(3)?)];
    Ok((symbolic_trace(traced!(model))?, inputs))
}

fn main() -> Result<()> {
    let traced = symbolic_trace(traced!(model))?;
    println!("before:\n{}", traced.code());

    // Every addition becomes a multiplication: the pattern's inputs stand for tensors and for numbers.
    let mut product = traced.clone();
    let add = traced!(|a: &Tensor, b: &Tensor| a + b);
    let matches = replace_pattern(&mut product, add, traced!(|a: &Tensor, b: &Tensor| a * b))?;
    println!(
        "{} additions are multiplications:\n{}",
        matches.len(),
        product.code()
    );

    // By hand: `relu` after each addition.
    let mut rectified = traced.clone();
    let mut graph = rectified.graph_mut();
    let adds = graph.find_nodes(&Op::CallFunction(operator::add));
    for add in adds.iter().map(|node| node.id()).collect::<Vec<_>>() {
        let relu = graph
            .inserting_after(add)?
            .call_function(function!(ops::relu), (add,), ())?;
        graph
            .node_mut(add)?
            .replace_uses_with_filter(relu, |user| user.id() != relu)?;
    }
    drop(graph);
    println!("relu behind each addition:\n{}", rectified.code());

    let (x, y) = (Tensor::rand(3)?, Tensor::rand(3)?);
    let by_hand = {
        let sum = (&x * &y)?;
        ((&sum * 1.0)? * (&y * &sum)?)?
    };
    let found: Tensor = product.forward((&x, &y))?;
    println!(
        "as by hand: {}",
        fx_nn::allclose(&found, &by_hand, 0.0, 0.0)?
    );
    Ok(())
}
