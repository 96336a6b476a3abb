//! The fx side of `bf16.py`, which compares models in `bf16` with OpenVINO and builds this program. It answers lines of
//! standard input: `load FOLDER` (a model, and an input to run), `run ENGINE COUNT` (the least time of so many runs in ms;
//! `bf16` or `f32`), `result ENGINE FILE`, `profile FILE`.

#[path = "../../fx-nn/benches/support/engines.rs"]
mod engines;
#[path = "../../fx-nn/benches/support/lines.rs"]
mod lines;

use std::path::Path;

use fx_nn::cpu::{Cpu, Precision};
use fx_nn::passes::backend::Compile;
use fx_nn::prelude::*;
use fx_nn::weights::Checkpoint;

use engines::answer_of_engine;
use lines::answer_each;

struct Loaded {
    bf16: GraphModule,
    f32: GraphModule,
    x: Tensor,
}

fn load(folder: &Path) -> Result<Loaded> {
    let gm = fx_onnx::load(folder.join("model.onnx"))?.module;
    let x = Checkpoint::open(folder.join("inputs.safetensors"))?.tensor("x")?;
    let compiled = |cpu: Cpu| gm.compile(Compile::new(cpu).like(&x));
    Ok(Loaded {
        bf16: compiled(Cpu::new().precision(Precision::Bf16))?,
        f32: compiled(Cpu::new())?,
        x,
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
            .as_ref()
            .ok_or_else(|| Error::msg("load a model first"))?;
        let engine = |name: &str| match name {
            "bf16" => Ok(&loaded.bf16),
            "f32" => Ok(&loaded.f32),
            other => Err(Error::msg(format_args!("there is no engine {other}"))),
        };
        match words[..] {
            ["profile", file] => {
                let profile = loaded.bf16.profile(10, &loaded.x)?;
                std::fs::write(file, profile.to_string()).map_err(Error::other)?;
                Ok("written".to_string())
            }
            _ => answer_of_engine(&words, |name| engine(name)?.forward(&loaded.x)),
        }
    });
}
