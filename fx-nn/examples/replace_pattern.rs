//! A pattern of the documentation replaced: `cat` of two tensors becomes `stack`, then `cat` and `sum` together do.
#![allow(clippy::print_stdout, reason = "an example shows what it does")]

use fx_nn::pattern::replace_pattern;
use fx_nn::prelude::*;

#[trace]
fn cat_sum(x: &Tensor, w1: &Tensor, w2: &Tensor) -> Result<Tensor> {
    let m1 = ops::cat(&[w1.clone(), w2.clone()], 0)?.sum(..)?;
    let m2 = ops::cat(&[w1.clone(), w2.clone()], 0)?.sum(..)?;
    (x + ops::amax(&m1, .., false)?)? + ops::amax(&m2, .., false)?
}

#[trace]
fn stacked(w1: &Tensor, w2: &Tensor) -> Result<Tensor> {
    ops::stack(&[w1.clone(), w2.clone()], 0)
}

/// The program with its second pattern replaced, with its inputs.
pub fn example() -> Result<(GraphModule, Vec<Value>)> {
    let mut traced = symbolic_trace(traced!(cat_sum))?;
    let cat_sum =
        traced!(|w1: &Tensor, w2: &Tensor| ops::cat(&[w1.clone(), w2.clone()], 0)?.sum(..));
    replace_pattern(&mut traced, cat_sum, traced!(stacked))?;
    let inputs = (0..3).map(|_| Ok(Value::of(Tensor::rand((2, 2))?)));
    Ok((traced, inputs.collect::<Result<_>>()?))
}

fn main() -> Result<()> {
    let traced = symbolic_trace(traced!(cat_sum))?;
    println!("before:\n{}", traced.code());

    let mut one = traced.clone();
    let cat = traced!(|w1: &Tensor, w2: &Tensor| ops::cat(&[w1.clone(), w2.clone()], 0));
    let matches = replace_pattern(&mut one, cat, traced!(stacked))?;
    println!("cat replaced, {} matches:\n{}", matches.len(), one.code());

    let mut two = traced.clone();
    let cat_sum =
        traced!(|w1: &Tensor, w2: &Tensor| ops::cat(&[w1.clone(), w2.clone()], 0)?.sum(..));
    let matches = replace_pattern(&mut two, cat_sum, traced!(stacked))?;
    println!(
        "cat and sum replaced, {} matches:\n{}",
        matches.len(),
        two.code()
    );
    Ok(())
}
