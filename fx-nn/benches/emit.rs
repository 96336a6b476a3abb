//! What saving and loading a chain of 100,000 nodes takes, and how the times grow from 10,000.
#![allow(clippy::print_stdout, reason = "a benchmark prints its figures")]

use std::hint::black_box;
use std::time::Instant;

use fx_nn::prelude::*;

/// The shortest of some runs, in seconds.
fn shortest<T>(runs: usize, run: impl Fn() -> Result<T>) -> Result<f64> {
    let mut best = f64::INFINITY;
    for _ in 0..runs {
        let start = Instant::now();
        let result = run()?;
        best = best.min(start.elapsed().as_secs_f64());
        drop(black_box(result));
    }
    Ok(best)
}

/// Seconds to save and to load a chain of `n` calls of functions, with some layers between them.
fn chain(n: usize, runs: usize) -> Result<(f64, f64)> {
    let layer = nn::Linear::new(4, 4)?;
    let gm = symbolic_trace(traced!(move |x: &Tensor| {
        let mut h = x.clone();
        for i in 0..n {
            h = match i % 1000 {
                999 => layer.forward(&h)?,
                _ => (h + 1.0)?,
            };
        }
        Ok(h)
    }))?;
    let bytes = gm.to_bytes()?;
    let save = shortest(runs, || gm.to_bytes())?;
    let load = shortest(runs, || GraphModule::from_bytes(&bytes))?;
    Ok((save, load))
}

fn main() -> Result<()> {
    let small = chain(10_000, 10)?;
    let large = chain(100_000, 5)?;
    let exponent = |small: f64, large: f64| (large / small).log10();
    println!("emit.save/100000 {:.3} s", large.0);
    println!("emit.load/100000 {:.3} s", large.1);
    println!("emit.save.exponent {:.2}", exponent(small.0, large.0));
    println!("emit.load.exponent {:.2}", exponent(small.1, large.1));
    Ok(())
}
