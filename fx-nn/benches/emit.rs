//! The times to write a chain of 100,000 nodes as source, to save and to load it, and their growth
//! from 10,000 nodes.
#![allow(clippy::print_stdout, reason = "a benchmark prints its figures")]

use std::hint::black_box;
use std::time::Instant;

use fx_nn::prelude::*;

/// The shortest time of several runs, in seconds.
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

/// Seconds to write, save and load a chain of `n` function calls with some layers in between.
fn chain(n: usize, runs: usize) -> Result<[f64; 3]> {
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
    let code = shortest(runs, || Ok(gm.code()))?;
    let save = shortest(runs, || gm.to_bytes())?;
    let load = shortest(runs, || GraphModule::from_bytes(&bytes))?;
    Ok([code, save, load])
}

fn main() -> Result<()> {
    let small = chain(10_000, 10)?;
    let large = chain(100_000, 5)?;
    let names = ["code", "save", "load"];
    for (name, time) in names.iter().zip(large) {
        println!("emit.{name}/100000 {time:.3} s");
    }
    for ((name, small), large) in names.iter().zip(small).zip(large) {
        println!("emit.{name}/exponent {:.2}", (large / small).log10());
    }
    Ok(())
}
