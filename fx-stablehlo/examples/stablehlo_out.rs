//! Every model of fx-nn as StableHLO, with inputs and results for `tests/judge.py`.
//!
//! `cargo run --release -p fx-stablehlo --example stablehlo_out -- FOLDER` writes a folder for each model,
//! and for four of them folders of programs over eight devices. `--reference` has fx split and run those too.
#![allow(clippy::print_stdout, reason = "an example prints")]

#[path = "support/calls.rs"]
mod calls;
#[path = "../../fx-onnx/examples/support/families.rs"]
mod families;
#[path = "../../fx-onnx/examples/support/models.rs"]
#[allow(dead_code, reason = "each program uses a part of it")]
mod models;
#[path = "support/sharded.rs"]
mod sharded;

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use calls::{call, tensors};
use fx_nn::prelude::*;
use fx_stablehlo::shard::{explain_sharding, reference};
use fx_stablehlo::{Export, ExportReport, StableHloExt};
use sharded::{Sharded, sharded};

fn save(path: &Path, tensors: impl IntoIterator<Item = (String, Tensor)>) -> Result<()> {
    let mut all = HashMap::new();
    for (name, tensor) in tensors {
        all.insert(name, tensor.candle()?.contiguous().map_err(Error::other)?);
    }
    fx_nn::candle_core::safetensors::save(&all, path).map_err(Error::other)
}

/// Writes a program with the inputs and results of a call.
fn write(
    folder: &Path,
    case: &models::Case,
    gm: &GraphModule,
    batch: usize,
) -> Result<ExportReport> {
    let inputs = (case.inputs)(batch)?;
    let report = gm.to_stablehlo(folder, &Export::example(call(&inputs)))?;
    let mut results = Vec::new();
    tensors(&case.gm.forward::<Value>(call(&inputs))?, &mut results);
    let names = case.gm.graph().placeholders();
    let names = names.map(|node| node.target().to_string());
    save(&folder.join("inputs.safetensors"), names.zip(inputs))?;
    let results = results.into_iter().enumerate();
    save(
        &folder.join("results.safetensors"),
        results.map(|(at, x)| (at.to_string(), x)),
    )?;
    Ok(report)
}

/// Writes a model over eight devices: its batch split, its layers split, and both.
fn write_sharded(folder: &Path, case: &models::Case, with_reference: bool) -> Result<()> {
    let inputs = (case.inputs)(8)?;
    for split in sharded(case, &inputs)? {
        let Sharded {
            name,
            gm,
            mesh,
            report,
        } = split;
        let costs = explain_sharding(&gm, &mesh)?;
        println!("{name}:\n{report}\n{costs}");
        if with_reference {
            let mut expected = Vec::new();
            tensors(&case.gm.forward::<Value>(call(&inputs))?, &mut expected);
            let found = reference(&gm, &mesh)?.run(&inputs)?;
            let mut worst = 0f64;
            for (found, expected) in found.iter().zip(&expected) {
                let most = expected.abs()?.amax(..)?.item()?.max(1e-30);
                worst = worst.max((found - expected)?.abs()?.amax(..)?.item()? / most);
            }
            println!("{name}: reference max_rel_err {worst:.1e}");
        }
        write(&folder.join(name), case, &gm, 8)?;
    }
    Ok(())
}

fn main() -> Result<()> {
    let mut args = std::env::args().skip(1);
    let folder = args.next();
    let folder = PathBuf::from(folder.unwrap_or_else(|| "target/stablehlo_out".to_string()));
    let (flags, only): (Vec<String>, Vec<String>) = args.partition(|arg| arg.starts_with("--"));
    let with_reference = flags.iter().any(|flag| flag == "--reference");
    let (mut exported, mut refused) = (0, 0);
    for case in models::all()? {
        if !only.is_empty() && !only.iter().any(|name| name == case.name) {
            continue;
        }
        match write(&folder.join("one").join(case.name), &case, &case.gm, 2) {
            Ok(report) => {
                exported += 1;
                let (name, operations) = (case.name, report.operations);
                println!(
                    "{name}: {operations} operations, {} weights",
                    report.weights
                );
            }
            Err(error) => {
                refused += 1;
                println!("{}: {error}", case.name);
            }
        }
        write_sharded(&folder.join("eight"), &case, with_reference)?;
    }
    println!("exported {exported} refused {refused}");
    Ok(())
}
