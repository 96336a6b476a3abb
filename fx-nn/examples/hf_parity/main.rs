//! Compares models of Hugging Face's families with the library itself, on the folders that
//! `fx-nn/tests/hf/make.py DIR` wrote, each with its inputs and outputs.
#![allow(clippy::print_stdout, reason = "an example shows what it does")]

mod decoder;
mod encoder_decoder;
mod encoders;
mod experts;
mod family;
mod found;
mod mamba;
mod steps;

use std::collections::BTreeSet;
use std::path::PathBuf;

use fx_nn::prelude::*;

use family::compare;

fn main() -> Result<()> {
    let folder = std::env::args().nth(1);
    let folder = folder.ok_or_else(|| Error::msg("give the folder that make.py wrote"))?;
    let entries = std::fs::read_dir(&folder).map_err(Error::other)?;
    let mut folders: Vec<PathBuf> = entries
        .map(|entry| Ok(entry.map_err(Error::other)?.path()))
        .collect::<Result<_>>()?;
    folders.sort();
    let mut families = BTreeSet::new();
    let (mut single, mut half, mut differing) = (0f64, 0f64, 0);
    for folder in &folders {
        let name = folder.file_name().unwrap_or_default().display().to_string();
        let Some((config, dtype)) = name.rsplit_once('-') else {
            continue;
        };
        // A family may have several configurations: `t5` and `t5.first`.
        let family = config.split('.').next().unwrap_or(config);
        let found = compare(family, folder)?;
        let most = match dtype {
            "float32" => &mut single,
            _ => &mut half,
        };
        for (mode, distance) in &found.distances {
            println!("{config} {dtype} {mode}: {distance:.1e}");
            *most = most.max(*distance);
        }
        println!(
            "{config} {dtype} eager and traced differ in: {}",
            found.differing
        );
        if found.experts.all > 0 {
            println!("{config} {dtype} experts computed: {}", found.experts);
        }
        differing += found.differing;
        families.insert(family.to_string());
    }
    println!("families: {}", families.len());
    println!("max_rel_err_f32: {single:.1e}");
    println!("max_rel_err_bf16: {half:.1e}");
    println!("eager_vs_traced: {differing}");
    Ok(())
}
