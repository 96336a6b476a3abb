//! ResNet-50 at batch 32 and GPT-2's decoding on the devices of a plugin, beside the CPU: `tests/gpu.sh` runs it.
//!
//! `FX_PJRT_PLUGIN=PLUGIN pjrt_gpu [FOLDER]`: weights are drawn from a seed, nothing is read. With a folder, ResNet-50 and
//! a step of GPT-2 are written there for `tests/jax_times.py`.
#![allow(clippy::print_stdout, reason = "an example prints")]

#[path = "support/decode.rs"]
mod decode;

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::time::Instant;

use decode::{Decoder, Programs};
use fx_nn::cpu::Cpu;
use fx_nn::models::gpt2::{Config, Gpt2};
use fx_nn::models::resnet::resnet50;
use fx_nn::passes::backend::Compile;
use fx_nn::prelude::*;
use fx_pjrt::{Client, DeviceTensor, LoadedProgram, Pjrt};
use fx_stablehlo::{Export, Program, StableHloExt};

const PROMPT: [i64; 8] = [3, 14, 15, 9, 26, 5, 35, 8];
const TOKENS: usize = 64;

fn median(mut all: Vec<f64>) -> f64 {
    all.sort_by(f64::total_cmp);
    all.get(all.len() / 2).copied().unwrap_or(f64::NAN)
}

/// Writes inputs beside a program.
fn save_inputs(folder: &Path, inputs: &[(&str, &Tensor)]) -> Result<()> {
    let mut all = HashMap::new();
    for (name, x) in inputs {
        all.insert(
            (*name).to_string(),
            x.candle()?.contiguous().map_err(Error::other)?,
        );
    }
    fx_nn::candle_core::safetensors::save(&all, folder.join("inputs.safetensors"))
        .map_err(Error::other)
}

fn resnet(client: &Client, folder: Option<&Path>) -> Result<()> {
    let mut model = resnet50(1000)?;
    model.eval();
    let gm = symbolic_trace(&model)?;
    let x = Tensor::randn((32, 3, 224, 224))?;
    let program = Program::of(&gm, &Export::example(&x))?;
    let start = Instant::now();
    let loaded = LoadedProgram::new(client, &program)?;
    println!("resnet50: compile_s {:.2}", start.elapsed().as_secs_f64());
    let inputs = loaded.place([&x])?;
    let inputs: Vec<&DeviceTensor> = inputs.iter().collect();
    let found = loaded.run(&inputs)?[0].to_tensor()?;
    let mut times = Vec::new();
    for _ in 0..20 {
        let start = Instant::now();
        loaded.run(&inputs)?[0].wait()?;
        times.push(start.elapsed().as_secs_f64());
    }
    let on_cpu = gm.compile(Compile::new(Cpu::new()).like(&x))?;
    let expected: Tensor = on_cpu.forward(&x)?;
    let most = expected.abs()?.amax(..)?.item()?;
    let error = (&found - &expected)?.abs()?.amax(..)?.item()? / most;
    println!(
        "resnet50: batch 32 fx_ms {:.2} max_rel_err {error:.1e}",
        median(times) * 1e3
    );
    if let Some(folder) = folder {
        let folder = folder.join("resnet50");
        gm.to_stablehlo(&folder, &Export::example(&x))?;
        save_inputs(&folder, &[("x", &x)])?;
    }
    Ok(())
}

fn gpt2(client: &Client, folder: Option<&Path>) -> Result<()> {
    let decoder = Decoder::new(Gpt2::new(&Config::default())?)?;
    let length = PROMPT.len() + TOKENS;
    let start = Instant::now();
    let programs = Programs::new(client, &decoder, PROMPT.len(), length)?;
    println!("gpt2: compile_s {:.2}", start.elapsed().as_secs_f64());
    let mut text = programs.read(&decoder, &PROMPT, length)?;
    let mut written = vec![text.token.to_tensor()?.item()? as i64];
    let mut times = Vec::new();
    while written.len() < TOKENS {
        let start = Instant::now();
        text = programs.next(client, text)?;
        written.push(text.token.to_tensor()?.item()? as i64);
        times.push(start.elapsed().as_secs_f64());
    }
    let expected = fx_nn::no_grad(|| decoder.on_the_cpu(&PROMPT, TOKENS))?;
    let same = written
        .iter()
        .zip(&expected)
        .take_while(|(a, b)| a == b)
        .count();
    println!(
        "gpt2: token_ms {:.2} same_tokens {same} of {TOKENS}",
        median(times) * 1e3
    );
    if let Some(folder) = folder {
        // Without donation, since a timing runs it on the same arguments again.
        let folder = folder.join("gpt2_step");
        let (cache, one) = (decoder.cache(length)?, Tensor::full((1, 1), 0, DType::I64)?);
        let start = Tensor::full(1, 8, DType::I64)?;
        let gm = symbolic_trace(&decoder)?;
        gm.to_stablehlo(&folder, &Export::example((&one, &start, &cache, &cache)))?;
        let inputs = [
            ("tokens", &one),
            ("start", &start),
            ("keys", &cache),
            ("values", &cache),
        ];
        save_inputs(&folder, &inputs)?;
    }
    Ok(())
}

fn main() -> Result<()> {
    let folder = std::env::args().nth(1).map(PathBuf::from);
    let pjrt = Pjrt::from_env()?;
    let client = pjrt.client();
    println!("plugin: {}", client.plugin());
    println!(
        "platform: {} {}",
        client.platform(),
        client.platform_version()
    );
    for device in client.devices() {
        println!("device: {device} ({})", device.kind());
    }
    for (name, value) in client.plugin().attributes()? {
        println!("{name}: {value}");
    }
    fx_nn::manual_seed(0);
    resnet(client, folder.as_deref())?;
    gpt2(client, folder.as_deref())
}
