//! What writing and reading files costs: `onnx.export/N` in seconds for a chain of N calls, the exponent of its growth, and
//! `onnx.load_ratio_vs_rten`, the time to load ViT-B/16 beside rten's.
#![allow(clippy::print_stdout, reason = "a benchmark prints")]

use std::time::{Duration, Instant};

use fx_nn::ir::{Graph, operator};
use fx_nn::models::vit::vit_b_16;
use fx_nn::module::{Attributes, ComponentExt};
use fx_nn::prelude::*;
use fx_onnx::{Export, OnnxExt};

/// Calls of a chain. A size is exported from as many graphs as make the largest one, built beforehand, and the files are
/// kept: all sizes work on the same amount of memory, so that the exponent shows the growth of the algorithm and not the
/// sizes of the caches.
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
    let export = Export::example(&Tensor::ones((2, 4))?).dynamic("batch", [("x", 0)]);
    let mut times = Vec::new();
    for count in SIZES {
        let all = (0..SIZES[1] / count).map(|_| chain(count));
        let all = all.collect::<Result<Vec<GraphModule>>>()?;
        let export_all = || {
            let files = all.iter().map(|gm| gm.to_onnx_bytes(&export));
            files.collect::<Result<Vec<_>>>()
        };
        let time = shortest(export_all)?.as_secs_f64() / all.len() as f64;
        println!("onnx.export/{count}: {time:.3} s");
        times.push(time);
    }
    println!("onnx.export/exponent: {:.2}", (times[1] / times[0]).log10());

    let mut model = vit_b_16(224, 1000)?;
    model.eval();
    let image = Tensor::zeros((1, 3, 224, 224))?;
    let path = std::env::temp_dir().join(format!("fx_onnx_bench_{}.onnx", std::process::id()));
    symbolic_trace(&model)?.to_onnx(&path, &Export::example(&image))?;
    let foreign = |error: rten::LoadError| Error::msg(error);
    let theirs = shortest(|| rten::Model::load_file(&path).map_err(foreign))?;
    let ours = shortest(|| fx_onnx::load(&path))?;
    std::fs::remove_file(&path).map_err(Error::other)?;
    println!(
        "onnx.load: {:.3} s, rten {:.3} s",
        ours.as_secs_f64(),
        theirs.as_secs_f64()
    );
    println!(
        "onnx.load_ratio_vs_rten: {:.2}",
        ours.as_secs_f64() / theirs.as_secs_f64()
    );
    Ok(())
}
