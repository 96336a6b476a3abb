//! Every model of fx-nn as StableHLO, with inputs and results for `tests/judge.py`.
//!
//! `cargo run --release -p fx-stablehlo --example stablehlo_out -- FOLDER` writes a folder for each model.
#![allow(clippy::print_stdout, reason = "an example prints")]

#[path = "../../fx-onnx/examples/support/families.rs"]
mod families;
#[path = "../../fx-onnx/examples/support/models.rs"]
#[allow(dead_code, reason = "each program uses a part of it")]
mod models;

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use fx_nn::prelude::*;
use fx_nn::trace::CallArgs;
use fx_stablehlo::{Export, StableHloExt};

/// The tensors of a result, in order.
fn tensors(value: &Value, all: &mut Vec<Tensor>) {
    match value {
        Value::List(items) | Value::Tuple(items) => {
            items.iter().for_each(|item| tensors(item, all))
        }
        Value::Dict(items) => items.values().for_each(|item| tensors(item, all)),
        value => all.extend(value.downcast_ref::<Tensor>().cloned()),
    }
}

fn save(path: &Path, tensors: impl IntoIterator<Item = (String, Tensor)>) -> Result<()> {
    let mut all = HashMap::new();
    for (name, tensor) in tensors {
        all.insert(name, tensor.candle()?.contiguous().map_err(Error::other)?);
    }
    fx_nn::candle_core::safetensors::save(&all, path).map_err(Error::other)
}

fn main() -> Result<()> {
    let mut args = std::env::args().skip(1);
    let folder = PathBuf::from(
        args.next()
            .unwrap_or_else(|| "target/stablehlo_out".to_string()),
    );
    let only: Vec<String> = args.collect();
    let (mut exported, mut refused) = (0, 0);
    for case in models::all()?.into_iter().chain(families::all()?) {
        if !only.is_empty() && !only.iter().any(|name| name == case.name) {
            continue;
        }
        let inputs = (case.inputs)(2)?;
        let call = CallArgs {
            args: inputs.iter().cloned().map(Value::object).collect(),
            kwargs: Vec::new(),
        };
        let folder = folder.join(case.name);
        let started = std::time::Instant::now();
        match case
            .gm
            .to_stablehlo(&folder, &Export::example(call.clone()))
        {
            Ok(report) => println!(
                "{}: {} operations, {} weights, {:.2} s",
                case.name,
                report.operations,
                report.weights,
                started.elapsed().as_secs_f64()
            ),
            Err(error) => {
                refused += 1;
                println!("{}: {error}", case.name);
                continue;
            }
        }
        exported += 1;
        let mut results = Vec::new();
        tensors(&case.gm.forward::<Value>(call)?, &mut results);
        let names = case
            .gm
            .graph()
            .placeholders()
            .map(|node| node.target().to_string());
        save(&folder.join("inputs.safetensors"), names.zip(inputs))?;
        let results = results.into_iter().enumerate();
        save(
            &folder.join("results.safetensors"),
            results.map(|(at, x)| (at.to_string(), x)),
        )?;
    }
    println!("exported {exported} refused {refused}");
    Ok(())
}
