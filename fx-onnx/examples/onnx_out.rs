//! Every model of fx-nn as ONNX, at four versions of ONNX's operators, and what rten makes of the files.
//!
//! `cargo run --release -p fx-onnx --example onnx_out [-- FOLDER]` writes the files, with inputs and results for
//! `judge.py`, into a folder (`target/onnx_out`), and runs each in rten at three sizes of the batch. It adds a decoder with
//! its loop, models with their batch norms folded, and an edited file with an operator that fx does not have.
#![allow(clippy::print_stdout, reason = "an example prints")]

mod support;

use std::path::{Path, PathBuf};

use fx_nn::ir::Op;
use fx_nn::passes::FuseBatchNorm;
use fx_nn::prelude::*;
use fx_nn::trace::CallArgs;
use fx_onnx::{Export, Layers, OnnxExt};
use support::{greedy, models, npy, rten, unknown};

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

/// The example models that torchvision has too.
const TORCHVISION: [&str; 6] = [
    "alexnet",
    "mobilenet_v2",
    "resnet18",
    "resnet50",
    "vgg11_bn",
    "vit_b_16",
];

/// Writes the arrays of a call of the model `name` with a batch.
fn arrays(
    folder: &Path,
    name: &str,
    batch: usize,
    inputs: &[Tensor],
    results: &[Tensor],
) -> Result<()> {
    for (kind, all) in [("in", inputs), ("out", results)] {
        for (at, x) in all.iter().enumerate() {
            npy::write(&folder.join(format!("{name}.{batch}.{kind}{at}.npy")), x)?;
        }
    }
    Ok(())
}

/// The decoder with its loop and its cache.
fn decoder(folder: &Path) -> Result<()> {
    let (gm, args) = greedy::greedy()?;
    let tokens: Value = gm.forward(args.clone())?;
    let flat = Value::List(gm.process_inputs(args.clone())?.into());
    let (mut inputs, mut results) = (Vec::new(), Vec::new());
    tensors(&flat, &mut inputs);
    tensors(&tokens, &mut results);
    arrays(folder, "greedy", 1, &inputs, &results)?;
    let report = gm.to_onnx(folder.join("greedy.20.onnx"), &Export::example(args))?;
    println!("greedy: {report}");
    Ok(())
}

/// A file with an operator that fx does not have: one node of it is another, and the operator is as it was.
fn surgery(folder: &Path) -> Result<()> {
    let mut gm = fx_onnx::Load::new().from_bytes(unknown::file())?.module;
    let relu = gm
        .graph()
        .nodes()
        .find(|node| *node.op() == Op::CallFunction(function!(ops::relu)));
    let relu = relu.ok_or_else(|| Error::msg("the file has a Relu"))?.id();
    gm.graph_mut()
        .node_mut(relu)?
        .set_op(Op::CallFunction(function!(ops::sigmoid)))?;
    gm.to_onnx(
        folder.join("unknown.20.onnx"),
        &Export::example(&Tensor::ones((2, 3))?),
    )?;
    Ok(())
}

fn main() -> Result<()> {
    let folder = std::env::args()
        .nth(1)
        .unwrap_or_else(|| "target/onnx_out".to_string());
    let folder = PathBuf::from(folder);
    std::fs::create_dir_all(&folder).map_err(Error::other)?;
    let (mut exported, mut checked, mut most) = (0, 0, 0f64);
    for case in models::all()? {
        let calls = case.batches.map(|batch| (batch, (case.inputs)(batch)));
        let mut runs = Vec::new();
        for (batch, inputs) in calls {
            let inputs = inputs?;
            let args = inputs.iter().cloned().map(Value::object).collect();
            let result: Value = case.gm.forward(CallArgs {
                args,
                kwargs: Vec::new(),
            })?;
            let mut results = Vec::new();
            tensors(&result, &mut results);
            arrays(&folder, case.name, batch, &inputs, &results)?;
            runs.push((inputs, results));
        }
        if TORCHVISION.contains(&case.name) {
            let mut fused = case.gm.clone();
            fused.apply(&FuseBatchNorm)?;
            let example = CallArgs {
                args: runs[0].0.iter().cloned().map(Value::object).collect(),
                kwargs: Vec::new(),
            };
            fused.to_onnx(
                folder.join(format!("{}.fused.onnx", case.name)),
                &Export::example(example),
            )?;
        }
        let args = runs[0].0.iter().cloned().map(Value::object).collect();
        let axes = case.axes();
        for opset in [18, 20, 21, 23] {
            let example = CallArgs {
                args: Vec::clone(&args),
                kwargs: Vec::new(),
            };
            let export = Export::example(example)
                .dynamic("batch", axes.iter().map(|(input, dim)| (&**input, *dim)))
                .opset(opset);
            let path = folder.join(format!("{}.{opset}.onnx", case.name));
            let report = case.gm.to_onnx(&path, &export)?;
            exported += 1;
            if opset == 20 {
                println!("{}: {report}", case.name);
                let path = folder.join(format!("{}.functions.onnx", case.name));
                case.gm
                    .to_onnx(&path, &export.clone().layers(Layers::Functions))?;
            }
            let model = rten::load(std::fs::read(&path).map_err(Error::other)?)?;
            let mut worst = 0f64;
            for (inputs, expected) in &runs {
                let found = rten::run(&model, inputs)?;
                let list =
                    |all: &[Tensor]| Value::List(all.iter().cloned().map(Value::object).collect());
                let error = fx_onnx::max_rel_err(&list(&found), &list(expected))?;
                worst = worst.max(error);
            }
            if worst <= 1e-5 {
                checked += 1;
            } else {
                println!("{} at opset {opset}: {worst:.1e}", case.name);
            }
            most = most.max(worst);
        }
    }
    decoder(&folder)?;
    surgery(&folder)?;
    println!("exported {exported} checked {checked} max_rel_err_rten: {most:.1e}");
    Ok(())
}
