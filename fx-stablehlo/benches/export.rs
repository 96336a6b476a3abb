//! What writing programs costs: `stablehlo.export/N` in seconds for a chain of N calls, and the exponent of its growth.
#![allow(clippy::print_stdout, reason = "a benchmark prints")]

use std::time::{Duration, Instant};

use fx_nn::ir::{Graph, operator};
use fx_nn::module::Attributes;
use fx_nn::prelude::*;
use fx_stablehlo::{Export, StableHloExt};

/// Calls of a chain. A size is exported from as many graphs as make the largest one, built beforehand, and the texts are
/// kept: all sizes work on the same amount of memory.
const SIZES: [usize; 2] = [10_000, 100_000];

/// The shortest of three runs.
fn shortest<R>(mut run: impl FnMut() -> Result<R>) -> Result<Duration> {
    let mut best = Duration::MAX;
    for _ in 0..3 {
        let start = Instant::now();
        std::hint::black_box(run()?);
        best = best.min(start.elapsed());
    }
    Ok(best)
}

fn chain(count: usize) -> Result<GraphModule> {
    let mut graph = Graph::with_capacity(count + 2);
    let x = graph.placeholder("x")?;
    let mut last = x;
    for at in 0..count {
        last = match at % 2 {
            0 => graph.call_function(function!(ops::relu), (last,), ())?,
            _ => graph.call_function(operator::add, (last, x), ())?,
        };
    }
    graph.output(last)?;
    GraphModule::new(Attributes::default(), graph, "Chain")
}

fn main() -> Result<()> {
    let export = Export::example(&Tensor::ones((2, 4))?);
    let mut times = Vec::new();
    for count in SIZES {
        let all = (0..SIZES[1] / count).map(|_| chain(count));
        let all = all.collect::<Result<Vec<GraphModule>>>()?;
        let export_all = || {
            let texts = all.iter().map(|gm| gm.to_stablehlo_text(&export));
            texts.collect::<Result<Vec<_>>>()
        };
        let time = shortest(export_all)?.as_secs_f64() / all.len() as f64;
        println!("stablehlo.export/{count}: {time:.3} s");
        times.push(time);
    }
    println!(
        "stablehlo.export/exponent: {:.2}",
        (times[1] / times[0]).log10()
    );
    Ok(())
}
