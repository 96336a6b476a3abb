//! The cost of tracing per node, on a model and on long chains, and of an eager op beyond candle's.
#![allow(clippy::print_stdout, reason = "a benchmark prints its figures")]

mod support;

use std::alloc::System;
use std::hint::black_box;
use std::time::Instant;

use fx_nn::models::resnet::resnet50;
use fx_nn::prelude::*;
use fx_nn::shapes::spec;
use stats_alloc::{INSTRUMENTED_SYSTEM, StatsAlloc};

use support::wanted;

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// The shortest of several runs, in ns.
fn shortest<T>(runs: usize, mut run: impl FnMut() -> Result<T>) -> Result<f64> {
    let mut best = f64::INFINITY;
    for _ in 0..runs {
        let start = Instant::now();
        let result = run()?;
        best = best.min(start.elapsed().as_secs_f64() * 1e9);
        drop(black_box(result));
    }
    Ok(best)
}

/// The time to trace a chain of `n` operations, per node.
fn chain(n: usize, runs: usize) -> Result<f64> {
    let best = shortest(runs, || {
        Trace::new(traced!(move |x: &Tensor| {
            let mut h = x.clone();
            for _ in 0..n {
                h = (h + 1.0)?;
            }
            Ok(h)
        }))
        .graph()
    })?;
    Ok(best / (n + 2) as f64)
}

/// Operations on tensors of one element: time and allocations per operation beyond candle's.
fn eager() -> Result<(f64, f64)> {
    const OPS: usize = 1000;
    let (a, b) = (Tensor::rand(1)?, Tensor::rand(1)?);
    let candle = |t: &Tensor| t.candle().cloned();
    let (c, d) = (candle(&a)?, candle(&b)?);
    let ours = || -> Result<()> {
        for _ in 0..OPS {
            black_box((black_box(&a) + black_box(&b))?);
        }
        Ok(())
    };
    let theirs = || -> Result<()> {
        for _ in 0..OPS {
            black_box((black_box(&c) + black_box(&d)).map_err(Error::other)?);
        }
        Ok(())
    };
    let (mut ours_best, mut theirs_best) = (f64::INFINITY, f64::INFINITY);
    // Interleaved, so that a slowdown of the machine affects both.
    for _ in 0..2000 {
        ours_best = ours_best.min(shortest(1, ours)?);
        theirs_best = theirs_best.min(shortest(1, theirs)?);
    }
    let allocations = |run: &dyn Fn() -> Result<()>| -> Result<f64> {
        let before = ALLOCATOR.stats().allocations;
        run()?;
        Ok((ALLOCATOR.stats().allocations - before) as f64 / OPS as f64)
    };
    Ok((
        (ours_best - theirs_best) / OPS as f64,
        allocations(&ours)? - allocations(&theirs)?,
    ))
}

fn main() -> Result<()> {
    if wanted("trace") {
        trace()?;
    }
    if wanted("shapes") {
        shapes()?;
    }
    if wanted("eager") {
        let (overhead, allocations) = eager()?;
        println!("eager.op_overhead {overhead:.1} ns");
        println!("eager.op_allocations {allocations:.2}");
    }
    Ok(())
}

/// Shapes of a model without a run, and what the guards cost a run.
fn shapes() -> Result<()> {
    let mut model = resnet50(1000)?;
    model.eval();
    let gm = symbolic_trace(&model)?;
    let image = [spec!["batch", 3, "h", "w"; F32]];
    let mut best = f64::INFINITY;
    for _ in 0..101 {
        let mut fresh = gm.clone();
        let start = Instant::now();
        fresh.infer_shapes(&image)?;
        best = best.min(start.elapsed().as_secs_f64() * 1e6);
    }
    println!("shapes.resnet50 {best:.0} us");

    const GUARDS: usize = 6;
    let same = traced!(|x: &Tensor| Ok(x.clone()));
    let mut guarded = symbolic_trace(same)?;
    let open = guarded.clone();
    let mut even = spec!["a", "b", "c", "d", "e", "f"; F32];
    for name in ["a", "b", "c", "d", "e", "f"] {
        even = even.constrained(&format!("{name} % 2 == 0"));
    }
    guarded.infer_shapes(&[even])?;
    let x = Tensor::zeros((2, 2, 2, 2, 2, 2))?;
    let runs = |gm: &GraphModule| -> Result<f64> {
        let time = shortest(1, || {
            for _ in 0..1000 {
                black_box(gm.forward::<Tensor>(&x)?);
            }
            Ok(())
        })?;
        Ok(time / 1000.0)
    };
    let (mut with, mut without) = (f64::INFINITY, f64::INFINITY);
    for _ in 0..300 {
        with = with.min(runs(&guarded)?);
        without = without.min(runs(&open)?);
    }
    println!("shapes.guard {:.1} ns", (with - without) / GUARDS as f64);
    Ok(())
}

fn trace() -> Result<()> {
    let mut model = resnet50(1000)?;
    model.eval();
    let nodes = Trace::new(&model).graph()?.len() as f64;
    let time = shortest(301, || Trace::new(&model).graph())?;
    println!("trace.resnet50 {:.0} ns/node", time / nodes);

    let (short, long) = (chain(100_000, 10)?, chain(1_000_000, 5)?);
    println!("trace.chain/100000 {short:.0} ns/node");
    println!("trace.chain/1000000 {long:.0} ns/node");
    println!("trace.chain/exponent {:.2}", 1.0 + (long / short).log10());
    Ok(())
}
