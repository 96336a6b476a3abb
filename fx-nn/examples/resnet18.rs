//! ResNet-18: built, filled (or loaded with `--weights FILE.safetensors`), traced, run, and compared
//! with PyTorch's graph and numbers.
#![allow(clippy::print_stdout, reason = "an example shows what it does")]

use std::time::Instant;

use fx_goldens::golden::NumGolden;
use fx_goldens::model;
use fx_nn::models::resnet::resnet18;
use fx_nn::prelude::*;

fn main() -> Result<()> {
    let golden = NumGolden::load("resnet18").map_err(Error::other)?;
    let mut module = resnet18(1000)?;
    let args: Vec<String> = std::env::args().skip(1).collect();
    match args.as_slice() {
        [] => model::fill(&mut module, golden.gain)?,
        [flag, file] if flag == "--weights" => fx_nn::weights::load(&mut module, file)?,
        _ => return Err(Error::msg("usage: resnet18 [--weights FILE.safetensors]")),
    }
    module.eval();
    nn::set_requires_grad(&mut module, false)?;

    let start = Instant::now();
    let traced = symbolic_trace(&module)?;
    let trace_time = start.elapsed();

    let inputs = model::inputs(&golden)?;
    let x = model::tensor(&inputs, 0)?;
    let start = Instant::now();
    let result = model::run(&traced, inputs.clone())?;
    let first_run = start.elapsed();
    let start = Instant::now();
    let runs = 10;
    for _ in 0..runs {
        model::run(&traced, inputs.clone())?;
    }
    let later_runs = start.elapsed() / runs;

    let eager = Value::object(module.forward(&x)?);
    let graph = model::compare("resnet18", &traced, &[])?;
    let numbers = model::compare_outputs(&golden, &result)?;
    println!("nodes: {}", traced.graph().len());
    println!("graph_matches_pytorch: {}", graph.equal);
    if !graph.equal {
        println!("{graph}");
    }
    println!(
        "max_abs_err_vs_eager: {}",
        model::max_abs_err(&eager, &result)?
    );
    println!("max_rel_err_vs_pytorch: {:.3e}", numbers.max_rel_err);
    if let Some(problem) = numbers.problem {
        println!("{problem}");
    }
    println!("trace: {:.3} ms", trace_time.as_secs_f64() * 1e3);
    println!("first run: {:.1} ms", first_run.as_secs_f64() * 1e3);
    println!("later runs: {:.1} ms", later_runs.as_secs_f64() * 1e3);
    Ok(())
}
