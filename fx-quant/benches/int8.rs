//! The fx side of `int8.py`, which compares quantized models with ONNX Runtime and OpenVINO and builds this program. It
//! answers lines of standard input: `load FOLDER` (a model in floats, inputs to calibrate with, and one to run), `run ENGINE
//! COUNT` (the least time of so many runs in ms; `int8` or `f32`), `result ENGINE FILE` (of `reference` too), `profile ENGINE FILE`,
//! `left` (the calls that stay in floats), `onnx FILE` (the reference form). `read FILE` reads a quantized file, which is
//! the engine `file` from then on; `dynamic` quantizes products by the range of each run, which is the engine `dynamic`.

#[path = "../../fx-nn/benches/support/engines.rs"]
mod engines;
#[path = "../../fx-nn/benches/support/lines.rs"]
mod lines;

use std::path::Path;

use fx_nn::cpu::Cpu;
use fx_nn::passes::backend::Compile;
use fx_nn::prelude::*;
use fx_nn::weights::Checkpoint;
use fx_onnx::{Export, Load, OnnxExt};
use fx_quant::{Calibration, Integers, MinMax, QConfig, Quantize};

use engines::answer_of_engine;
use lines::answer_each;

/// What a graph in reference form is in integers, and the calls that it leaves to the compiler of floats.
fn integers(reference: &GraphModule, x: &Tensor) -> Result<(GraphModule, String)> {
    let mut int8 = reference.clone();
    let report = int8.lower(&Integers::new())?;
    if report.left.len() + report.failed.len() > 0 {
        int8 = int8.compile(Compile::new(Cpu::new()).like(x))?;
    }
    Ok((int8, report.to_string().replace('\n', "; ")))
}

struct Loaded {
    file: Option<GraphModule>,
    dynamic: Option<GraphModule>,
    model: GraphModule,
    reference: GraphModule,
    int8: GraphModule,
    f32: GraphModule,
    x: Tensor,
    left: String,
}

fn load(folder: &Path) -> Result<Loaded> {
    let gm = fx_onnx::load(folder.join("model.onnx"))?.module;
    let inputs = Checkpoint::open(folder.join("inputs.safetensors"))?;
    let x = inputs.tensor("x")?;
    let mut batches = Vec::new();
    for name in inputs.names().filter(|name| *name != "x") {
        batches.push(inputs.tensor(name)?);
    }
    let config = QConfig::default().observer(MinMax::default);
    let plan = Quantize::new(config).plan(&gm)?;
    let reference = plan.convert(&plan.calibrate(&batches)?)?;
    let (int8, left) = integers(&reference, &x)?;
    Ok(Loaded {
        file: None,
        dynamic: None,
        model: gm.clone(),
        reference,
        int8,
        f32: gm.compile(Compile::new(Cpu::new()).like(&x))?,
        x,
        left,
    })
}

fn main() {
    let mut loaded: Option<Loaded> = None;
    answer_each(|line| {
        let words: Vec<&str> = line.split_whitespace().collect();
        if let ["load", folder] = words[..] {
            loaded = Some(load(Path::new(folder))?);
            return Ok("loaded".to_string());
        }
        let loaded = loaded
            .as_mut()
            .ok_or_else(|| Error::msg("load a model first"))?;
        if let ["read", file] = words[..] {
            let reference = Load::new().reference_form().load(file)?.module;
            let (made, left) = integers(&reference, &loaded.x)?;
            loaded.file = Some(made);
            return Ok(left);
        }
        if words[..] == ["dynamic"] {
            let plan = Quantize::new(QConfig::dynamic()).plan(&loaded.model)?;
            let reference = plan.convert(&Calibration::default())?;
            let (made, left) = integers(&reference, &loaded.x)?;
            loaded.dynamic = Some(made);
            return Ok(left);
        }
        let engine = |name: &str| match name {
            "dynamic" => {
                (loaded.dynamic.as_ref()).ok_or_else(|| Error::msg("ask for `dynamic` first"))
            }
            "file" => (loaded.file.as_ref()).ok_or_else(|| Error::msg("read a file first")),
            "int8" => Ok(&loaded.int8),
            "f32" => Ok(&loaded.f32),
            "reference" => Ok(&loaded.reference),
            other => Err(Error::msg(format_args!("there is no engine {other}"))),
        };
        match words[..] {
            ["profile", name, file] => {
                let profile = engine(name)?.profile(10, &loaded.x)?;
                std::fs::write(file, profile.to_string()).map_err(Error::other)?;
                Ok("written".to_string())
            }
            ["left"] => Ok(loaded.left.clone()),
            ["onnx", file] => {
                loaded
                    .reference
                    .to_onnx(file, &Export::example(&loaded.x))?;
                Ok("written".to_string())
            }
            _ => answer_of_engine(&words, |name| engine(name)?.forward(&loaded.x)),
        }
    });
}
