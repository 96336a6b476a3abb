//! ResNet-18: the tracing time per node, and its traced run against calling the model.
#![allow(clippy::print_stdout, reason = "a benchmark prints its figures")]

use std::hint::black_box;
use std::time::{Duration, Instant};

use fx_nn::models::resnet::resnet18;
use fx_nn::prelude::*;

fn median(mut times: Vec<Duration>) -> f64 {
    times.sort_unstable();
    times[times.len() / 2].as_secs_f64()
}

fn main() -> Result<()> {
    let mut module = resnet18(1000)?;
    module.eval();
    nn::set_requires_grad(&mut module, false)?;

    let nodes = Trace::new(&module).graph()?.len() as f64;
    let trace = median(
        (0..501)
            .map(|_| {
                let start = Instant::now();
                let graph = Trace::new(&module).graph();
                let time = start.elapsed();
                black_box(graph).map(|_| time)
            })
            .collect::<Result<_>>()?,
    );
    println!("trace.resnet18 {:.0} ns/node", trace * 1e9 / nodes);
    let module_time = median(
        (0..501)
            .map(|_| {
                let start = Instant::now();
                let traced = symbolic_trace(&module);
                let time = start.elapsed();
                black_box(traced).map(|_| time)
            })
            .collect::<Result<_>>()?,
    );
    println!(
        "trace.resnet18_graph_module {:.0} ns/node",
        module_time * 1e9 / nodes
    );

    let traced = symbolic_trace(&module)?;
    let x = Tensor::rand((2, 3, 64, 64))?;
    let eager = || -> Result<Duration> {
        let start = Instant::now();
        black_box(module.forward(&x)?);
        Ok(start.elapsed())
    };
    let run = || -> Result<Duration> {
        let start = Instant::now();
        black_box(traced.forward::<Tensor>(&x)?);
        Ok(start.elapsed())
    };
    // Interleaved, each first every other time, so that a slowdown of the machine affects both.
    let (mut eager_times, mut run_times) = (Vec::new(), Vec::new());
    for i in 0..101 {
        let (e, r) = if i % 2 == 0 {
            let e = eager()?;
            (e, run()?)
        } else {
            let r = run()?;
            (eager()?, r)
        };
        eager_times.push(e);
        run_times.push(r);
    }
    println!(
        "run.resnet18_ratio {:.3}",
        median(run_times) / median(eager_times)
    );
    Ok(())
}
