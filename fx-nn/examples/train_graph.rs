//! Trains a small GPT on the text of a file, eager and as one compiled graph a step: the losses are equal, and so are
//! the bits for any number of threads, and after a resume from a file.
//!
//! `cargo run --release -p fx-nn --example train_graph [STEPS [FOLDER]]`; the weights before the first step and the losses
//! are written into the folder, for `benches/train_graph.py`, which trains the same model by PyTorch.
#![allow(clippy::print_stdout, reason = "an example shows what it does")]

use std::time::Instant;

use fx_nn::models::gpt2::{Config, Gpt2};
use fx_nn::optim::{AdamW, Optimizer};
use fx_nn::prelude::*;
use fx_nn::train::TrainStep;
use fx_nn::weights;

const TEXT: &str = include_str!("../docs/transforms.md");
const BATCH: usize = 8;
const LENGTH: usize = 64;

fn model() -> Result<Gpt2> {
    fx_nn::manual_seed(1);
    Gpt2::new(&Config {
        vocab_size: 128,
        block_size: LENGTH,
        n_layer: 2,
        n_head: 4,
        n_embd: 64,
        dropout: 0.0,
    })
}

/// Characters of the text at some places, and those behind each.
fn batch(step: usize) -> Result<(Tensor, Tensor)> {
    let bytes: Vec<i64> = TEXT.bytes().map(|byte| i64::from(byte.min(127))).collect();
    let room = bytes.len() - LENGTH - 1;
    let rows = (0..BATCH).map(|row| &bytes[(step * BATCH + row) * 7919 % room..][..=LENGTH]);
    let rows: Vec<&[i64]> = rows.collect();
    let part = |from: usize| {
        let each = rows
            .iter()
            .flat_map(|row| row[from..from + LENGTH].iter().copied());
        Tensor::from_vec(each.collect::<Vec<_>>(), (BATCH, LENGTH))
    };
    Ok((part(0)?, part(1)?))
}

fn loss(scores: &Tensor, next: &Tensor) -> Result<Tensor> {
    let scores = scores.reshape((-1, 128))?;
    ops::cross_entropy(&scores, &next.reshape([-1])?, None, -100, "mean", 0.0)
}

fn graph_step(model: &Gpt2) -> Result<TrainStep> {
    let loss = traced!(|scores: &Tensor, next: &Tensor| loss(scores, next));
    TrainStep::new(model, loss, AdamW::new(model)?.lr(1e-3))
}

/// The parameters after some steps on a number of threads.
fn after(steps: usize, threads: usize) -> Result<Vec<Vec<f64>>> {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
    pool.map_err(Error::other)?.install(|| {
        let mut step = graph_step(&model()?)?;
        for at in 0..steps {
            let (x, next) = batch(at)?;
            step.run((&x, &next))?;
        }
        step.state_dict()?.values().map(Tensor::to_vec).collect()
    })
}

fn main() -> Result<()> {
    let steps = std::env::args()
        .nth(1)
        .and_then(|steps| steps.parse().ok())
        .unwrap_or(50);
    // The same loop, with one line changed.
    let eager = model()?;
    let mut optimizer = AdamW::new(&eager)?.lr(1e-3);
    let start = Instant::now();
    let mut eager_losses = Vec::new();
    for at in 0..steps {
        let (x, next) = batch(at)?;
        let loss = loss(&eager.forward(&x)?, &next)?;
        optimizer.step(&loss.backward()?)?;
        eager_losses.push(loss.item()?);
    }
    let eager_time = start.elapsed();

    let mut step = graph_step(&model()?)?;
    let start = Instant::now();
    let mut losses = Vec::new();
    for at in 0..steps {
        let (x, next) = batch(at)?;
        losses.push(step.run((&x, &next))?.item()?);
    }
    let time = start.elapsed();
    let pairs = losses.iter().zip(&eager_losses);
    let differ = pairs.map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
    println!("first loss: {:.4}", losses[0]);
    println!("last loss: {:.4}", losses[steps - 1]);
    println!("max_abs_difference_of_losses: {differ:.1e}");
    println!(
        "graph_time_over_eager: {:.2}",
        time.as_secs_f64() / eager_time.as_secs_f64()
    );

    let first = after(20, 1)?;
    let same = [1, 2, 4, 2, 4]
        .into_iter()
        .map(|threads| Ok(after(20, threads)? == first));
    let same = same.collect::<Result<Vec<bool>>>()?;
    println!("same_bits_for_threads: {}", same.iter().all(|same| *same));

    if let Some(folder) = std::env::args().nth(2).map(std::path::PathBuf::from) {
        weights::save(&model()?, folder.join("model.safetensors"))?;
        let lines = losses.iter().map(|loss| format!("{loss}\n"));
        let lines: String = lines.collect();
        std::fs::write(folder.join("losses.txt"), lines).map_err(Error::other)?;
    }

    let file =
        std::env::temp_dir().join(format!("fx_train_graph_{}.safetensors", std::process::id()));
    step.save(&file)?;
    let mut resumed = graph_step(&model()?)?;
    resumed.load(&file)?;
    let (x, next) = batch(steps)?;
    let (a, b) = (
        step.run((&x, &next))?.item()?,
        resumed.run((&x, &next))?.item()?,
    );
    println!("resumes_with_equal_numbers: {}", a == b);
    std::fs::remove_file(&file).map_err(Error::other)
}
