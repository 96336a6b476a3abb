//! Models of PyTorch that are changed by their paths: `surgery DIR` loads another state dict, puts adapters at every linear
//! layer and replaces activations, in the programs that `tests/surgery.py` writes, and compares the results with PyTorch's.
#![allow(clippy::print_stdout, reason = "an example prints")]

mod support;

use std::path::PathBuf;

use fx_nn::module::{Module, Tag};
use fx_nn::prelude::*;
use fx_nn::weights::Checkpoint;
use support::{by_position, off};

/// What takes the places of activations.
#[derive(Module, Clone, Default)]
struct Other {
    tag: Tag,
}

#[trace(leaf)]
impl Other {
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        x.tanh()? * 0.5
    }
}

/// Another state dict, by PyTorch's names.
fn weights(gm: &mut GraphModule, stem: &str) -> Result<usize> {
    let checkpoint = Checkpoint::open(format!("{stem}_weights.safetensors"))?;
    checkpoint.load_partial(gm)?;
    Ok(gm.state_dict().len())
}

/// Adapters at every linear layer that has one in the file.
fn lora(gm: &mut GraphModule, stem: &str) -> Result<usize> {
    let adapters = Checkpoint::open(format!("{stem}_lora.safetensors"))?;
    let surgery = gm.replace_modules("**", |path, linear: &nn::Linear| {
        Ok(nn::LoraLinear {
            base: linear.clone(),
            lora_a: adapters.tensor(&format!("{path}.lora_a"))?,
            lora_b: adapters.tensor(&format!("{path}.lora_b"))?,
            scale: 0.5,
        })
    })?;
    Ok(surgery.replaced.len())
}

/// Other activations.
fn replaced(gm: &mut GraphModule) -> Result<usize> {
    const TYPES: [&str; 7] = [
        "ReLU",
        "GELU",
        "SiLU",
        "Hardswish",
        "Hardsigmoid",
        "Tanh",
        "ReLU6",
    ];
    let surgery = gm.replace_any_modules("**", |_, module| {
        let name = module.type_name().rsplit("::").next().unwrap_or_default();
        Ok(TYPES
            .contains(&name)
            .then(|| Box::new(Other::default()) as Box<dyn Module>))
    });
    Ok(surgery.map_or(0, |surgery| surgery.replaced.len()))
}

fn main() -> Result<()> {
    let folder = std::env::args()
        .nth(1)
        .ok_or_else(|| Error::msg("surgery DIR"))?;
    let files = support::programs(&folder, "")?;
    let mut equal = [0; 3];
    for path in &files {
        let stem = path.with_extension("").display().to_string();
        let mut line = String::new();
        for (at, way) in ["weights", "lora", "replaced"].into_iter().enumerate() {
            let mut gm = fx_torch::load(path)?;
            let changed = match at {
                0 => weights(&mut gm, &stem)?,
                1 => lora(&mut gm, &stem)?,
                _ => replaced(&mut gm)?,
            };
            let off = off(
                &gm,
                &PathBuf::from(format!("{stem}_{way}.npz")),
                by_position,
            )?;
            equal[at] += usize::from(off.is_equal());
            line.push_str(&format!(" {way} {changed} {:.1e}", off.most));
        }
        println!(
            "{}:{line}",
            path.file_stem().unwrap_or_default().to_string_lossy()
        );
    }
    println!(
        "models {} weights {} lora {} replaced {}",
        files.len(),
        equal[0],
        equal[1],
        equal[2]
    );
    Ok(())
}
