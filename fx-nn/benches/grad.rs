//! Gradients of each example over one ordinary step, and the time to make the graph of a gradient.
#![allow(clippy::print_stdout, reason = "a benchmark prints its figures")]

mod support;

use std::hint::black_box;
use std::time::Instant;

use fx_nn::cpu::Cpu;
use fx_nn::func::{Transform, grad, vmap};
use fx_nn::passes::GramNorms;
use fx_nn::passes::backend::Compile;
use fx_nn::prelude::*;
use fx_nn::shapes::{Spec, spec};
use fx_nn::trace::TracedFn;

use support::wanted;

/// How many examples there are.
const EXAMPLES: usize = 64;

/// The shortest of several runs, in ms.
fn shortest<T>(runs: usize, mut run: impl FnMut() -> Result<T>) -> Result<f64> {
    let mut best = f64::INFINITY;
    for _ in 0..runs {
        let start = Instant::now();
        drop(black_box(run()?));
        best = best.min(start.elapsed().as_secs_f64() * 1e3);
    }
    Ok(best)
}

/// The loss of a network of three layers, of one example or of many.
fn mlp() -> TracedFn {
    traced!(
        |w1: &Tensor, w2: &Tensor, w3: &Tensor, x: &Tensor, y: &Tensor| {
            let h = ops::relu(&ops::linear(x, w1, None)?)?;
            let h = ops::relu(&ops::linear(&h, w2, None)?)?;
            ops::mse_loss(&ops::linear(&h, w3, None)?, y, "mean")
        }
    )
}

/// The times of 64 gradients, one for each example, and of their norms alone, over that of the one gradient of the batch;
/// all compiled.
fn per_sample() -> Result<(f64, f64)> {
    let sizes = [(256, 128), (256, 256), (10, 256)];
    let mut inputs = sizes
        .map(|(rows, columns)| Tensor::randn((rows, columns))? * 0.05)
        .into_iter()
        .collect::<Result<Vec<_>>>()?;
    inputs.push(Tensor::randn((EXAMPLES, 128))?);
    inputs.push(Tensor::randn((EXAMPLES, 10))?);
    let specs: Vec<Spec> = inputs.iter().map(Spec::of).collect();
    let of = || grad(mlp()).wrt([0, 1, 2]);
    let axes = [None, None, None, Some(0), Some(0)];
    let slopes = of();
    let norm = traced!(
        move |w1: &Tensor, w2: &Tensor, w3: &Tensor, x: &Tensor, y: &Tensor| {
            let (a, b, c): (Tensor, Tensor, Tensor) = slopes.call((w1, w2, w3, x, y))?;
            let first = (a.square()?.sum(..)? + b.square()?.sum(..)?)?;
            (first + c.square()?.sum(..)?)?.sqrt()
        }
    );
    let compiled = |gm: GraphModule| {
        let args: (&Tensor, &Tensor, &Tensor, &Tensor, &Tensor) =
            (&inputs[0], &inputs[1], &inputs[2], &inputs[3], &inputs[4]);
        gm.compile(Compile::new(Cpu::new()).like(args))
    };
    let one = compiled(of().graph_module(&specs)?)?;
    let all = compiled(vmap(&of()).in_axes(axes).graph_module(&specs)?)?;
    let mut norms = vmap(norm).in_axes(axes).graph_module(&specs)?;
    norms.apply(&GramNorms)?;
    let norms = compiled(norms)?;
    let run = |gm: &GraphModule| {
        let args = (&inputs[0], &inputs[1], &inputs[2], &inputs[3], &inputs[4]);
        gm.forward::<Value>(args)
    };
    let mut times = [f64::INFINITY; 3];
    // In turns, so that a slowdown of the machine affects all.
    for _ in 0..30 {
        for (time, gm) in times.iter_mut().zip([&one, &all, &norms]) {
            *time = time.min(shortest(2, || run(gm))?);
        }
    }
    Ok((times[1] / times[0], times[2] / times[0]))
}

/// The time to make the gradient of a chain of so many operations, in seconds.
fn graph(count: usize) -> Result<f64> {
    let chain = traced!(move |x: &Tensor| {
        let mut h = x.clone();
        for at in 0..count {
            h = if at % 2 == 0 { (h * 1.5)? } else { h.sin()? };
        }
        h.sum(..)
    });
    let of = grad(chain);
    Ok(shortest(3, || of.graph_module(&[spec![4; F32]]))? / 1e3)
}

fn main() -> Result<()> {
    if wanted("per_sample") {
        let (gradients, norms) = per_sample()?;
        println!("grad.per_sample_ratio: {gradients:.2}");
        println!("grad.per_sample_norm_ratio: {norms:.2}");
    }
    if wanted("graph") {
        let (few, many) = (graph(10_000)?, graph(100_000)?);
        println!("grad.graph/10000: {few:.3} s");
        println!("grad.graph/100000: {many:.3} s");
        println!("grad.graph exponent: {:.2}", (many / few).log10());
    }
    Ok(())
}
