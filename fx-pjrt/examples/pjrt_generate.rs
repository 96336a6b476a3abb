//! GPT-2 writes a text on the device of a plugin: the caches stay there, each in the memory of the one before.
//!
//! `FX_PJRT_PLUGIN=PLUGIN cargo run --release -p fx-pjrt --example pjrt_generate -- [--tokens 32] [--small]`: with random
//! weights from a seed; the CPU writes the same text, to compare tokens.
#![allow(clippy::print_stdout, reason = "an example prints")]

#[path = "support/decode.rs"]
mod decode;

use std::time::Instant;

use decode::{Decoder, Programs};
use fx_nn::models::gpt2::{Config, Gpt2};
use fx_nn::prelude::*;
use fx_pjrt::Pjrt;

const PROMPT: [i64; 8] = [3, 14, 15, 9, 26, 5, 35, 8];

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let tokens = arguments.iter().position(|argument| argument == "--tokens");
    let tokens = tokens
        .and_then(|at| arguments.get(at + 1)?.parse().ok())
        .unwrap_or(32usize);
    let config = match arguments.iter().any(|argument| argument == "--small") {
        true => Config {
            vocab_size: 101,
            block_size: 64,
            n_layer: 2,
            n_head: 4,
            n_embd: 64,
            dropout: 0.0,
        },
        false => Config::default(),
    };
    let length = PROMPT.len() + tokens;
    if length > config.block_size || tokens == 0 {
        return Err(Error::msg(format_args!(
            "--tokens is between 1 and {}",
            config.block_size - PROMPT.len()
        )));
    }
    fx_nn::manual_seed(0);
    let decoder = Decoder::new(Gpt2::new(&config)?)?;
    let pjrt = Pjrt::from_env()?;
    let client = pjrt.client();
    println!("{} on {}", client.plugin(), client.devices()[0]);
    let start = Instant::now();
    let programs = Programs::new(client, &decoder, PROMPT.len(), length)?;
    println!("compile_s: {:.2}", start.elapsed().as_secs_f64());

    let mut text = programs.read(&decoder, &PROMPT, length)?;
    let mut written = vec![text.token.to_tensor()?.item()? as i64];
    let cache = text.address();
    let mut moved = 0;
    let start = Instant::now();
    while written.len() < tokens {
        text = programs.next(client, text)?;
        written.push(text.token.to_tensor()?.item()? as i64);
        if let (Ok(before), Ok(now)) = (&cache, text.address()) {
            moved += usize::from(*before != now);
        }
    }
    let seconds = start.elapsed().as_secs_f64();
    println!("{written:?}");
    println!("tokens_per_second: {:.1}", (tokens - 1) as f64 / seconds);
    println!("caches_moved: {moved}");
    println!(
        "same_tokens: {}",
        written == fx_nn::no_grad(|| decoder.on_the_cpu(&PROMPT, tokens))?
    );
    Ok(())
}
