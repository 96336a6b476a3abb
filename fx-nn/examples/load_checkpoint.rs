//! Time and memory of loading a checkpoint, compared with candle: a Qwen2 of 8 layers in `float32`.
//!
//! Each load is a process of its own, ours and candle's interleaved, with the file in the system's
//! cache; the minimum of five counts.
#![allow(clippy::print_stdout, reason = "an example shows what it does")]

use std::any::Any;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

use candle_nn::{embedding, linear, linear_no_bias, rms_norm};
use fx_nn::models::hf::decoder::{CausalLM, Config};
use fx_nn::prelude::*;
use fx_nn::weights::{Checkpoint, Save};

const CONFIG: &str = r#"{
    "model_type": "qwen2", "vocab_size": 8192, "hidden_size": 896, "intermediate_size": 3924,
    "num_hidden_layers": 8, "num_attention_heads": 14, "num_key_value_heads": 2, "max_position_embeddings": 2048,
    "tie_word_embeddings": true
}"#;

const ROUNDS: usize = 5;

/// All layers of the model in candle, with the weights of a file.
fn candle(file: &Path) -> candle_core::Result<Vec<Box<dyn Any>>> {
    let model = fx_candle_peer::mapped(file)?.pp("model");
    let mut layers: Vec<Box<dyn Any>> = vec![
        Box::new(embedding(8192, 896, model.pp("embed_tokens"))?),
        Box::new(rms_norm(896, 1e-6, model.pp("norm"))?),
    ];
    for at in 0..8 {
        let layer = model.pp(format!("layers.{at}"));
        let attention = layer.pp("self_attn");
        let mlp = layer.pp("mlp");
        for (name, outputs) in [("q_proj", 896), ("k_proj", 128), ("v_proj", 128)] {
            layers.push(Box::new(linear(896, outputs, attention.pp(name))?));
        }
        layers.push(Box::new(linear_no_bias(896, 896, attention.pp("o_proj"))?));
        layers.push(Box::new(linear_no_bias(896, 3924, mlp.pp("gate_proj"))?));
        layers.push(Box::new(linear_no_bias(896, 3924, mlp.pp("up_proj"))?));
        layers.push(Box::new(linear_no_bias(3924, 896, mlp.pp("down_proj"))?));
        for name in ["input_layernorm", "post_attention_layernorm"] {
            layers.push(Box::new(rms_norm(896, 1e-6, layer.pp(name))?));
        }
    }
    Ok(layers)
}

/// The peak memory of this process, in bytes.
fn peak_memory() -> Result<f64> {
    let status = std::fs::read_to_string("/proc/self/status").map_err(Error::other)?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kilobytes = line.and_then(|line| line.trim().strip_suffix(" kB")?.parse::<f64>().ok());
    let kilobytes = kilobytes.ok_or_else(|| Error::msg("the system does not say"))?;
    Ok(kilobytes * 1024.0)
}

/// The child process: loads, and prints seconds and bytes.
fn load(whose: &str, file: &Path) -> Result<()> {
    let start = Instant::now();
    let kept: Box<dyn Any> = match whose {
        "ours" => {
            let config = Config::from_json(CONFIG)?;
            Box::new(CausalLM::load(&config, &Checkpoint::open(file)?)?)
        }
        _ => Box::new(candle(file).map_err(Error::other)?),
    };
    let seconds = start.elapsed().as_secs_f64();
    println!("{seconds} {}", peak_memory()?);
    drop(kept);
    Ok(())
}

/// Seconds and bytes of a load in a process of its own.
fn child(whose: &str, file: &Path) -> Result<(f64, f64)> {
    let own = std::env::current_exe().map_err(Error::other)?;
    let output = Command::new(own).arg(whose).arg(file).output();
    let output = output.map_err(Error::other)?;
    let text = String::from_utf8_lossy(&output.stdout);
    let mut numbers = text.split_whitespace().map(str::parse::<f64>);
    match (numbers.next(), numbers.next()) {
        (Some(Ok(seconds)), Some(Ok(bytes))) if output.status.success() => Ok((seconds, bytes)),
        _ => Err(Error::msg(String::from_utf8_lossy(&output.stderr))),
    }
}

fn measure(file: &Path) -> Result<()> {
    let config = Config::from_json(CONFIG)?;
    let model = CausalLM::new(&config)?;
    Save::new().write(&model, file)?;
    drop(model);
    let bytes = file.metadata().map_err(Error::other)?.len();
    println!("file: {:.0} MB", bytes as f64 / 1e6);
    let mut least = [(f64::INFINITY, f64::INFINITY); 2];
    for _ in 0..ROUNDS {
        for (least, whose) in least.iter_mut().zip(["ours", "candle"]) {
            let (seconds, bytes) = child(whose, file)?;
            *least = (least.0.min(seconds), least.1.min(bytes));
        }
    }
    let [ours, theirs] = least;
    for (whose, (seconds, bytes)) in [("ours", ours), ("candle", theirs)] {
        println!("{whose}: {:.0} ms, {:.0} MB", seconds * 1e3, bytes / 1e6);
    }
    println!("load_ratio_vs_candle: {:.2}", ours.0 / theirs.0);
    println!("memory_ratio_vs_candle: {:.2}", ours.1 / theirs.1);
    Ok(())
}

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [whose, file] = arguments.as_slice() {
        return load(whose, Path::new(file));
    }
    let folder = std::env::temp_dir().join(format!("fx_load_{}", std::process::id()));
    std::fs::create_dir_all(&folder).map_err(Error::other)?;
    let measured = measure(&folder.join("model.safetensors"));
    std::fs::remove_dir_all(&folder).map_err(Error::other)?;
    measured
}
