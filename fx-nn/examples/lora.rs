//! LoRA adapters in a traced GPT-2: inserted by path, trained, merged and removed again, without
//! touching its `forward`.
//!
//! `cargo run --release -p fx-nn --example lora`
#![allow(clippy::print_stdout, reason = "an example shows what it does")]

use fx_nn::models::gpt2::{Config, Gpt2};
use fx_nn::module::ComponentExt;
use fx_nn::optim::{AdamW, Optimizer};
use fx_nn::prelude::*;

const LENGTH: usize = 16;
const STEPS: usize = 5;
const RANK: usize = 8;

fn max_abs_difference(a: &Tensor, b: &Tensor) -> Result<f64> {
    (a - b)?.abs()?.amax(..)?.item()
}

/// The number of trained elements, and of elements of all parameters and buffers.
fn elements(gm: &GraphModule) -> Result<(usize, usize)> {
    let trained = nn::variables(gm)?.iter().map(|v| v.elem_count()).sum();
    let mut all = 0;
    for value in gm
        .named_parameters()
        .into_values()
        .chain(gm.named_buffers().into_values())
    {
        all += Tensor::from_value(value)?.dims()?.iter().product::<usize>();
    }
    Ok((trained, all))
}

fn main() -> Result<()> {
    fx_nn::manual_seed(0);
    // GPT-2 small, for short texts.
    let config = Config {
        block_size: LENGTH,
        ..Config::default()
    };
    let mut model = Gpt2::new(&config)?;
    model.eval();
    nn::set_requires_grad(&mut model, false)?;
    let mut gm = symbolic_trace(&model)?;

    let words =
        (Tensor::rand((1, LENGTH + 1))? * config.vocab_size as f64)?.to_dtype(DType::I64)?;
    let (text, next) = (words.i((.., ..LENGTH as i64))?, words.i((.., 1..))?);
    let before: Tensor = gm.forward(&text)?;

    // Every attention's first layer gets an adapter.
    let surgery = gm.replace_modules("h.*.attn.c_attn", |_, linear: &nn::Linear| {
        nn::LoraLinear::from_linear(linear, RANK, 2.0)
    })?;
    println!("{surgery}");
    let (trained, all) = elements(&gm)?;
    println!("trainable parameters: {trained} of {all}");
    let new: Tensor = gm.forward(&text)?;
    println!(
        "max_abs_err_zero_init: {}",
        max_abs_difference(&new, &before)?
    );

    let mut optimizer = AdamW::new(&gm)?.lr(2e-3);
    let loss_of = nn::CrossEntropyLoss::default();
    for step in 0..STEPS {
        let scores: Tensor = gm.forward(&text)?;
        let loss = loss_of.forward(&scores.flatten(0, 1)?, &next.flatten(0, 1)?)?;
        println!("step {step}: loss {:.4}", loss.item()?);
        optimizer.step(&loss.backward()?)?;
    }
    let trained: Tensor = gm.forward(&text)?;
    println!(
        "max_abs_change_by_training: {:.4}",
        max_abs_difference(&trained, &before)?
    );

    // For use, the adapters are added to the weights: plain linear layers again.
    let mut merged = gm.clone();
    merged.replace_modules("**", |_, lora: &nn::LoraLinear| lora.merged())?;
    let one: Tensor = merged.forward(&text)?;
    println!(
        "max_abs_err_merged: {:.1e}",
        max_abs_difference(&one, &trained)?
    );

    surgery.undo(&mut gm)?;
    let back: Tensor = gm.forward(&text)?;
    println!(
        "max_abs_err_after_undo: {}",
        max_abs_difference(&back, &before)?
    );
    Ok(())
}
