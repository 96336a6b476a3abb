//! Every model of fx-nn as StableHLO, with inputs and results for `tests/judge.py`.
//!
//! `cargo run --release -p fx-stablehlo --example stablehlo_out -- FOLDER` writes a folder for each model,
//! and for four of them folders of programs over eight devices. `--reference` has fx split and run those too.
#![allow(clippy::print_stdout, reason = "an example prints")]

#[path = "../../fx-onnx/examples/support/families.rs"]
mod families;
#[path = "../../fx-onnx/examples/support/models.rs"]
#[allow(dead_code, reason = "each program uses a part of it")]
mod models;

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use fx_nn::prelude::*;
use fx_nn::shapes::Spec;
use fx_nn::trace::CallArgs;
use fx_stablehlo::shard::{ShardRules, explain_sharding, mesh, reference, shard, shard_rules};
use fx_stablehlo::{Export, ExportReport, StableHloExt};

/// The tensors of a result, in order.
fn tensors(value: &Value, all: &mut Vec<Tensor>) {
    match value {
        Value::List(items) | Value::Tuple(items) => {
            items.iter().for_each(|item| tensors(item, all))
        }
        Value::Dict(items) => items.values().for_each(|item| tensors(item, all)),
        Value::Int(number) => all.extend(Tensor::full((), *number, DType::I64)),
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

/// A call of a case with a batch.
fn call(inputs: &[Tensor]) -> CallArgs {
    CallArgs {
        args: inputs.iter().cloned().map(Value::object).collect(),
        kwargs: Vec::new(),
    }
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

/// The rules of the models that are split over devices.
fn rules(name: &str) -> Result<Option<ShardRules>> {
    Ok(match name {
        "hf_llama" => Some(ShardRules::llama("model")),
        // As `ShardRules::gpt2`, but that eight devices do not divide these 101 words.
        "gpt2" => Some(shard_rules! {
            "**.attn.c_attn.weight" => ["model", _],
            "**.attn.c_attn.bias" => ["model"],
            "**.attn.c_proj.weight" => [_, "model"],
            "**.mlp.c_fc.weight" => ["model", _],
            "**.mlp.c_fc.bias" => ["model"],
            "**.mlp.c_proj.weight" => [_, "model"],
        }),
        "hf_vit" => Some(ShardRules::vit("model")),
        "resnet18" => Some(shard_rules! {
            "**.conv1.weight" => ["model", _, _, _],
            "**.conv2.weight" => [_, "model", _, _],
        }),
        _ => None,
    })
}

/// Writes a model over eight devices: its batch split, its layers split, and both.
fn sharded(
    folder: &Path,
    case: &models::Case,
    rules: &ShardRules,
    with_reference: bool,
) -> Result<()> {
    let inputs = (case.inputs)(8)?;
    let both = rules.clone().and(ShardRules::data_parallel("data"));
    for (kind, mesh, rules) in [
        (
            "data",
            mesh!["data" = 8]?,
            &ShardRules::data_parallel("data"),
        ),
        ("tensor", mesh!["model" = 8]?, rules),
        ("both", mesh!["data" = 2, "model" = 4]?, &both),
    ] {
        let mut gm = case.gm.opened()?;
        let specs = inputs.iter().map(|x| Spec::of(Value::object(x.clone())));
        gm.infer_shapes(&specs.collect::<Vec<_>>())?;
        let report = shard(&mut gm, &mesh, rules)?;
        let costs = explain_sharding(&gm, &mesh)?;
        let name = format!("{}.{kind}", case.name);
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
        if let Some(rules) = rules(case.name)? {
            sharded(&folder.join("eight"), &case, &rules, with_reference)?;
        }
    }
    println!("exported {exported} refused {refused}");
    Ok(())
}
