//! Shared by the benchmarks: which figures are wanted, and how a time grows with the size.
#![allow(dead_code, reason = "each benchmark uses its part")]

use std::hint::black_box;
use std::time::Instant;

use fx_core::ir::Graph;
use fx_core::prelude::*;

/// Whether a figure is among those named on the command line, or none is named.
pub fn wanted(what: &str) -> bool {
    let mut named = std::env::args()
        .skip(1)
        .filter(|a| !a.starts_with('-'))
        .peekable();
    named.peek().is_none() || named.any(|name| name == what)
}

/// A module of a graph, as a trace makes it: never compiled, so that it has no memory but its own.
pub fn module(graph: Graph) -> Result<GraphModule> {
    let mut gm = symbolic_trace(traced!(|x: Value| Ok(x)))?;
    *gm.graph_mut() = graph;
    Ok(gm)
}

/// Prints `group.what/N` in seconds for each size, the shortest of five times, and how it grows.
/// `run` returns the seconds that count. A size is run on as many states as make the largest one,
/// built beforehand: all sizes work on the same amount of memory, so that the exponent shows the
/// growth of the algorithm and not the sizes of the caches.
pub fn growth<S, const N: usize>(
    group: &str,
    sizes: [usize; N],
    what: &str,
    setup: impl Fn(usize) -> Result<S>,
    run: impl Fn(usize, &mut S) -> Result<f64>,
) -> Result<()> {
    if !wanted(what) {
        return Ok(());
    }
    let mut times = [f64::INFINITY; N];
    for (n, best) in sizes.iter().zip(&mut times) {
        let copies = sizes[N - 1] / n;
        for _ in 0..5 {
            let states = (0..copies).map(|_| setup(*n));
            let mut states = states.collect::<Result<Vec<S>>>()?;
            let mut total = 0.0;
            for state in &mut states {
                total += run(*n, black_box(state))?;
            }
            *best = best.min(total / copies as f64);
        }
        println!("{group}.{what}/{n} {best:.4} s");
    }
    let grown = (times[N - 1] / times[0]).ln();
    let exponent = grown / (sizes[N - 1] as f64 / sizes[0] as f64).ln();
    println!("{group}.{what}/exponent {exponent:.2}");
    Ok(())
}

/// Prints `group.what/N` in seconds for one size, the shortest of five times.
pub fn once<S>(
    group: &str,
    what: &str,
    n: usize,
    setup: impl Fn(usize) -> Result<S>,
    run: impl Fn(&mut S) -> Result<()>,
) -> Result<()> {
    if !wanted(what) {
        return Ok(());
    }
    let mut best = f64::INFINITY;
    for _ in 0..5 {
        let mut state = setup(n)?;
        best = best.min(seconds(|| run(black_box(&mut state)))?);
    }
    println!("{group}.{what}/{n} {best:.4} s");
    Ok(())
}

/// How long something takes, in seconds.
pub fn seconds(run: impl FnOnce() -> Result<()>) -> Result<f64> {
    let start = Instant::now();
    run()?;
    Ok(start.elapsed().as_secs_f64())
}
