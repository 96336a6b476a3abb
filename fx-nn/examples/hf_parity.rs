//! Models of Hugging Face's families beside the library itself: the folders that `fx-nn/tests/hf/make.py DIR` wrote, each with
//! its inputs and outputs.
#![allow(clippy::print_stdout, reason = "an example shows what it does")]

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use fx_nn::models::decoder::{Cache, CausalLM};
use fx_nn::prelude::*;
use fx_nn::weights::Checkpoint;

/// The largest distance, over the largest of the numbers that are expected.
fn distance(found: &Tensor, expected: &Tensor) -> Result<f64> {
    let largest = |x: Tensor| x.to_dtype(DType::F32)?.abs()?.amax(..)?.item();
    let found = found.to_dtype(DType::F32)?;
    Ok(largest((found - expected)?)? / largest(expected.clone())?)
}

type Step<'s> = dyn Fn(&Tensor, Vec<Cache>) -> Result<(Tensor, Vec<Cache>)> + 's;

/// Scores of all words, read one after another.
fn one_by_one(tokens: &Tensor, caches: Vec<Cache>, step: &Step<'_>) -> Result<Tensor> {
    let mut caches = caches;
    let mut scores = Vec::new();
    for at in 0..tokens.dims()?[1] {
        let word = tokens.i((.., at..at + 1))?;
        let (score, updated) = step(&word, caches)?;
        scores.push(score);
        caches = updated;
    }
    ops::cat(&scores, 1)
}

/// What a folder gave: in one pass, one by one, and whether the traced model gave the same numbers both ways.
struct Found {
    at_once: f64,
    cached: f64,
    differing: usize,
}

fn compare(folder: &Path) -> Result<Found> {
    let io = Checkpoint::open(folder.join("io.safetensors"))?;
    let (tokens, expected) = (io.tensor("tokens")?, io.tensor("expected")?);
    let model = CausalLM::from_folder(folder)?;
    let batch = tokens.dims()?[0];
    let eager = |tokens: &Tensor, caches| model.forward(tokens, caches);
    let gm = model.trace()?;
    let traced = |tokens: &Tensor, caches: Vec<Cache>| gm.forward((tokens, caches));
    let (at_once, _) = eager(&tokens, model.caches(batch)?)?;
    let cached = one_by_one(&tokens, model.caches(batch)?, &eager)?;
    let (at_once_traced, _) = traced(&tokens, model.caches(batch)?)?;
    let cached_traced = one_by_one(&tokens, model.caches(batch)?, &traced)?;
    let differing = |a: &Tensor, b: &Tensor| a.ne(b)?.to_dtype(DType::I64)?.sum(..)?.item();
    let differing = differing(&at_once, &at_once_traced)? + differing(&cached, &cached_traced)?;
    Ok(Found {
        at_once: distance(&at_once, &expected)?,
        cached: distance(&cached, &expected)?,
        differing: differing as usize,
    })
}

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
        let Some((family, dtype)) = name.rsplit_once('-') else {
            continue;
        };
        let found = compare(folder)?;
        println!("{family} {dtype} one pass: {:.1e}", found.at_once);
        println!("{family} {dtype} cached: {:.1e}", found.cached);
        println!(
            "{family} {dtype} eager and traced differ in: {}",
            found.differing
        );
        let most = match dtype {
            "float32" => &mut single,
            _ => &mut half,
        };
        *most = most.max(found.at_once).max(found.cached);
        differing += found.differing;
        families.insert(family.to_string());
    }
    println!("families: {}", families.len());
    println!("max_rel_err_f32: {single:.1e}");
    println!("max_rel_err_bf16: {half:.1e}");
    println!("eager_vs_traced: {differing}");
    Ok(())
}
