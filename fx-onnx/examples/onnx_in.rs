//! Reads a folder of ONNX files, each with a folder of its inputs and results (`in_0.pb`, `out_0.pb`), runs and compares
//! them: what `tests/judge.py in` made with torch's exporters and onnxruntime.
#![allow(clippy::print_stdout, reason = "an example prints")]

#[path = "support/tensor_files.rs"]
mod tensor_files;

use std::path::{Path, PathBuf};

use fx_nn::prelude::*;
use fx_nn::trace::CallArgs;
use fx_onnx::proto::TensorProto;
use prost::Message;
use tensor_files::tensor_files;

fn tensors(folder: &Path, kind: &str) -> Result<Vec<Value>> {
    let files = tensor_files(folder, kind).into_iter();
    let each = files.map(|bytes| {
        let proto = TensorProto::decode(&*bytes).map_err(Error::other)?;
        Ok(Value::object(fx_onnx::tensor(&proto)?))
    });
    each.collect()
}

fn run(path: &Path) -> Result<f64> {
    let folder = path.with_extension("");
    let (args, expected) = (tensors(&folder, "in")?, tensors(&folder, "out")?);
    let gm = fx_onnx::load(path)?.module;
    let found: Value = gm.forward(CallArgs {
        args,
        kwargs: Vec::new(),
    })?;
    let list = Value::List(expected.into());
    fx_onnx::max_rel_err(&found, &list)
}

fn main() -> Result<()> {
    let folder = PathBuf::from(
        std::env::args()
            .nth(1)
            .unwrap_or_else(|| "target/onnx_in".to_string()),
    );
    let entries = std::fs::read_dir(&folder).map_err(Error::other)?;
    let mut paths: Vec<PathBuf> = entries
        .filter_map(|e| Some(e.ok()?.path()))
        .filter(|p| p.extension().is_some_and(|e| e == "onnx"))
        .collect();
    paths.sort();
    let (mut ran, mut most) = (0, 0f64);
    for path in &paths {
        match run(path) {
            Ok(error) => {
                ran += 1;
                most = most.max(error);
                println!("{}: {error:.1e}", path.display());
            }
            Err(error) => println!(
                "{}: {}\n{}",
                path.display(),
                error,
                fx_onnx::support(path)?
                    .operators
                    .iter()
                    .filter(|o| !o.2)
                    .map(|o| o.0.clone())
                    .collect::<Vec<_>>()
                    .join(", ")
            ),
        }
    }
    println!("read {} run {ran} max_rel_err {most:.1e}", paths.len());
    Ok(())
}
