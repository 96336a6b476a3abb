//! Adapters of low rank in a model of Hugging Face, trained by compiled steps: the base is frozen, and no gradient of it is
//! computed.
//!
//! `cargo run --release -p fx-nn --example lora_step [FOLDER]`: with `config.json` and weights; without, a small model of
//! random weights.
#![allow(clippy::print_stdout, reason = "an example shows what it does")]

use std::time::Instant;

use fx_nn::models::hf::decoder::{CausalLM, Config};
use fx_nn::optim::{AdamW, Optimizer};
use fx_nn::prelude::*;
use fx_nn::train::TrainStep;

const BATCH: usize = 2;
const LENGTH: usize = 64;
const STEPS: usize = 10;
const RANK: usize = 8;

const RANDOM: &str = r#"{
    "model_type": "qwen2", "vocab_size": 8192, "hidden_size": 256, "intermediate_size": 768,
    "num_hidden_layers": 4, "num_attention_heads": 4, "num_key_value_heads": 2,
    "max_position_embeddings": 256, "rms_norm_eps": 1e-6, "rope_theta": 10000.0,
    "hidden_act": "silu", "tie_word_embeddings": true
}"#;

/// The scores of the next token at each place of a text.
#[derive(Module)]
struct Scores {
    lm: CausalLM,
}

#[trace]
impl Scores {
    fn forward(&self, tokens: &Tensor) -> Result<Tensor> {
        let (scores, _) = self.lm.forward(tokens, self.lm.caches(BATCH)?)?;
        Ok(scores)
    }
}

fn loss(scores: &Tensor, next: &Tensor) -> Result<Tensor> {
    let classes = scores.size(-1)?;
    let scores = scores.reshape((-1, classes))?;
    ops::cross_entropy(&scores, &next.reshape([-1])?, None, -100, "mean", 0.0)
}

fn main() -> Result<()> {
    fx_nn::manual_seed(0);
    let lm = match std::env::args().nth(1) {
        Some(folder) => CausalLM::from_folder(folder)?,
        None => CausalLM::new(&Config::from_json(RANDOM)?)?,
    };
    let mut model = Scores { lm };
    nn::set_requires_grad(&mut model, false)?;
    let mut gm = symbolic_trace(&model)?;
    let changed = gm.replace_modules("**.self_attn.{q,v}_proj", |_, linear: &nn::Linear| {
        nn::LoraLinear::from_linear(linear, RANK, 2.0)
    })?;
    println!("{changed}");
    let words = (Tensor::rand((BATCH, LENGTH + 1))? * 1000.0)?.to_dtype(DType::I64)?;
    let (text, next) = (
        words.i((.., ..LENGTH as i64))?.contiguous()?,
        words.i((.., 1..))?.contiguous()?,
    );

    let of = || traced!(|scores: &Tensor, next: &Tensor| loss(scores, next));
    let mut step = TrainStep::new(&gm, of(), AdamW::new(&gm)?.lr(1e-2))?;
    let mut by_tape = gm.clone();
    let mut optimizer = AdamW::new(&by_tape)?.lr(1e-2);
    let (mut compiled, mut eager) = (Vec::new(), Vec::new());
    for at in 0..STEPS {
        let start = Instant::now();
        let found = step.run((&text, &next))?.item()?;
        compiled.push(start.elapsed());
        let start = Instant::now();
        let scores: Tensor = by_tape.forward(&text)?;
        let value = loss(&scores, &next)?;
        optimizer.step(&value.backward()?)?;
        eager.push(start.elapsed());
        println!(
            "step {at}: loss {found:.4}, by the tape {:.4}",
            value.item()?
        );
    }
    compiled.sort();
    eager.sort();
    println!(
        "a step takes {:.1} ms compiled, {:.1} ms by the tape",
        compiled[STEPS / 2].as_secs_f64() * 1e3,
        eager[STEPS / 2].as_secs_f64() * 1e3
    );
    step.store(&mut by_tape)?;
    Ok(())
}
