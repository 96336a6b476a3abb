//! A table of decompositions, each rule an ordinary function of tensors: a net in terms of few operations.
#![allow(clippy::print_stdout, reason = "an example shows what it does")]

use std::collections::BTreeMap;

use fx_nn::allclose;
use fx_nn::ir::Op;
use fx_nn::passes::{DecomposedCall, Decompositions, MethodsToFunctions};
use fx_nn::prelude::*;

/// A block of a transformer in functional form.
#[trace]
fn block(x: &Tensor, gate: &Tensor, scale: &Tensor) -> Result<Tensor> {
    let normed = ops::rms_norm(x, 8, Some(scale), 1e-6)?;
    let hidden = ops::silu(&(&normed * gate)?)?;
    let attended = hidden.softmax(-1)?;
    (attended + ops::gelu(&normed, "none")?)?.relu()
}

/// x · sigmoid(x).
fn silu(call: &DecomposedCall<'_>) -> Result<Tensor> {
    let x: Tensor = call.arg("x")?;
    &x * ops::sigmoid(&x)?
}

/// 1 / (1 + exp(-x)): the calls that `silu` makes are decomposed too.
fn sigmoid(call: &DecomposedCall<'_>) -> Result<Tensor> {
    let x: Tensor = call.arg("x")?;
    (x.neg()?.exp()? + 1.0)?.reciprocal()
}

/// exp(x - max) over its sum along the dim.
fn softmax(call: &DecomposedCall<'_>) -> Result<Tensor> {
    let (x, dim): (Tensor, i64) = (call.arg("x")?, call.arg("dim")?);
    let exp = (&x - x.amax_keepdim(dim)?)?.exp()?;
    &exp / exp.sum_keepdim(dim)?
}

/// The larger of x and 0, by a comparison.
fn relu(call: &DecomposedCall<'_>) -> Result<Tensor> {
    let x: Tensor = call.arg("x")?;
    x.gt(0.0)? * &x
}

/// x · (1 + erf(x / √2)) / 2; a rule reads plain arguments as they are.
fn gelu(call: &DecomposedCall<'_>) -> Result<Tensor> {
    let (x, approximate): (Tensor, String) = (call.arg("x")?, call.arg("approximate")?);
    if approximate != "none" {
        return Err(Error::msg("this table has the exact gelu only"));
    }
    let erf = (&x * std::f64::consts::FRAC_1_SQRT_2)?.erf()?;
    (erf + 1.0)? * (x * 0.5)?
}

/// How often each target is called.
fn calls(gm: &GraphModule) -> String {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for node in gm.graph().nodes() {
        if matches!(node.op(), Op::CallFunction(_) | Op::CallMethod(_)) {
            let name = node.target().rsplit("::").next().unwrap_or_default();
            *counts.entry(name).or_default() += 1;
        }
    }
    let counts: Vec<String> = counts
        .iter()
        .map(|(name, n)| format!("{name} {n}"))
        .collect();
    counts.join(", ")
}

fn table() -> Decompositions {
    Decompositions::new()
        .rule(function!(ops::silu), silu)
        .rule(function!(ops::sigmoid), sigmoid)
        .rule(function!(ops::softmax), softmax)
        .rule(function!(ops::relu), relu)
        .rule(function!(ops::gelu), gelu)
}

/// The decomposed block, with inputs.
pub fn example() -> Result<(GraphModule, Vec<Value>)> {
    let mut gm = symbolic_trace(traced!(block))?;
    gm.apply(&MethodsToFunctions)?;
    gm.apply(&table())?;
    let inputs = [Tensor::randn((2, 8))?, Tensor::randn(8)?, Tensor::randn(8)?];
    Ok((gm, inputs.into_iter().map(Value::of).collect()))
}

fn main() -> Result<()> {
    fx_nn::manual_seed(0);
    let mut gm = symbolic_trace(traced!(block))?;
    let inputs = (Tensor::randn((2, 8))?, Tensor::randn(8)?, Tensor::randn(8)?);
    let inputs = (&inputs.0, &inputs.1, &inputs.2);
    let before: Tensor = gm.forward(inputs)?;
    println!("before: {}", calls(&gm));

    gm.apply(&MethodsToFunctions)?;
    let record = gm.apply(&table())?;
    println!("{record}");
    println!("after: {}", calls(&gm));

    let after: Tensor = gm.forward(inputs)?;
    let closeness = allclose(&after, &before, 1e-5, 1e-6)?;
    println!("decomposed beside the original: {closeness}");
    Ok(())
}
