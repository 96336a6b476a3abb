//! A token of a language model in compiled code, by the type of its weights: prints `decode.name value` lines. Arguments
//! choose types: `f32`, `bf16`, `f16`, `i8`, and `q8_0` and `q4_0`, whose model is in `f16`.
//!
//! The model has Qwen2.5-0.5B's sizes and random weights. `share` is the bandwidth of a token over that of the machine: the
//! bytes of all weights and caches that a token reads, by its time, over the best of 12 sums of 1 GiB of floats in the same
//! run. `cache_factor` is the time of a token behind 4,096 others less that behind 128, over the time in which the machine
//! reads what was added to the caches. `appended_bytes` is what a run allocates on its thread besides the scores.
#![allow(clippy::print_stdout, reason = "a benchmark prints its figures")]

mod support;

use std::hint::black_box;
use std::time::Instant;

use fx_nn::cpu::{BlockKind, Cpu, WeightKind};
use fx_nn::models::hf::decoder::{Cache, CausalLM, Config};
use fx_nn::passes::backend::Compile;
use fx_nn::prelude::*;
use rayon::prelude::*;

use support::wanted;

const QWEN: &str = r#"{
    "model_type": "qwen2", "vocab_size": 151936, "hidden_size": 896, "intermediate_size": 4864, "num_hidden_layers": 24,
    "num_attention_heads": 14, "num_key_value_heads": 2, "max_position_embeddings": 8192, "rms_norm_eps": 1e-6,
    "rope_theta": 1000000.0, "tie_word_embeddings": true
}"#;

/// The tokens of a time.
const TOKENS: usize = 24;

/// The bytes that all threads read in a second, at best.
fn bandwidth() -> f64 {
    let floats = vec![1.0f32; 256 << 20];
    let mut best = f64::INFINITY;
    for _ in 0..12 {
        let start = Instant::now();
        let sums = floats.par_chunks(1 << 20).map(|part| {
            // Many sums, so that additions do not wait for each other.
            let mut sums = [0.0f32; 64];
            for part in part.as_chunks::<64>().0 {
                for (sum, x) in sums.iter_mut().zip(part) {
                    *sum += x;
                }
            }
            sums.iter().sum::<f32>()
        });
        black_box(sums.sum::<f32>());
        best = best.min(start.elapsed().as_secs_f64());
    }
    size_of_val(&floats[..]) as f64 / best
}

/// The seconds of a token behind the caches at best, and the caches with some more behind them.
fn token(fast: &GraphModule, mut caches: Vec<Cache>) -> Result<(f64, Vec<Cache>)> {
    let word = Tensor::from_vec(vec![7i64], (1, 1))?;
    let mut best = f64::INFINITY;
    for _ in 0..TOKENS {
        let start = Instant::now();
        let (scores, next): (Tensor, Vec<Cache>) = fast.forward((&word, caches))?;
        best = best.min(start.elapsed().as_secs_f64());
        black_box(scores);
        caches = next;
    }
    Ok((best, caches))
}

fn figures(
    name: &str,
    dtype: DType,
    kind: Option<WeightKind>,
    bytes_per_second: f64,
) -> Result<()> {
    let config = Config::from_json(QWEN)?;
    let mut model = CausalLM::new(&config)?;
    nn::set_requires_grad(&mut model, false)?;
    nn::to_dtype(&mut model, dtype)?;
    let gm = model.trace()?;
    let cpu = match kind {
        Some(kind) => Cpu::new().weights(kind),
        None => Cpu::new(),
    };
    let start = Instant::now();
    let fast = gm.compile(Compile::new(cpu))?;
    let prompt = |count: usize| Tensor::from_vec((0..count as i64).collect(), (1, count));
    let (_, caches): (Tensor, Vec<Cache>) = fast.forward((&prompt(128)?, model.caches(1)?))?;
    println!(
        "decode.compile_s/{name} {:.2}",
        start.elapsed().as_secs_f64()
    );
    let start = Instant::now();
    let (_, _): (Tensor, Vec<Cache>) = fast.forward((&prompt(512)?, model.caches(1)?))?;
    println!(
        "decode.prompt_ms_per_token/{name} {:.2}",
        start.elapsed().as_secs_f64() * 1e3 / 512.0
    );

    let (short, mut long) = token(&fast, caches)?;
    for _ in 0..31 {
        let (_, next): (Tensor, Vec<Cache>) = fast.forward((&prompt(128)?, long))?;
        long = next;
    }
    let behind = long[0].k.dims()?[2];
    let (far, long) = token(&fast, long)?;
    let width = |dtype: DType| if dtype == DType::F32 { 4 } else { 2 };
    let weight_bytes = match kind {
        Some(WeightKind::I8) => 1.0,
        Some(WeightKind::Blocks(kind)) => kind.block_bytes() as f64 / kind.block_size() as f64,
        _ => width(dtype) as f64,
    };
    let in_layer = 896 * (896 + 2 * 128 + 896 + 3 * 4864);
    let weights = (24 * in_layer + 151_936 * 896) as f64 * weight_bytes;
    let cached = |tokens: usize| 24 * 2 * 2 * 64 * tokens * width(dtype);
    let floor = (weights + cached(128) as f64) / bytes_per_second;
    let added = (cached(behind) - cached(128)) as f64 / bytes_per_second;
    println!("decode.token_ms/{name} {:.2}", short * 1e3);
    println!("decode.share/{name} {:.3}", floor / short);
    println!("decode.token_at_4096_ms/{name} {:.2}", far * 1e3);
    println!("decode.cache_factor/{name} {:.2}", (far - short) / added);

    let word = Tensor::from_vec(vec![7i64], (1, 1))?;
    let scores = 151_936 * width(dtype);
    let mut caches = Some(long);
    let allocated = allocation_counter::measure(|| {
        let made = fast.forward((&word, caches.take().unwrap_or_default()));
        drop(black_box::<Result<(Tensor, Vec<Cache>)>>(made));
    });
    println!(
        "decode.appended_bytes/{name} {}",
        allocated.bytes_total.saturating_sub(scores as u64)
    );
    Ok(())
}

fn main() -> Result<()> {
    let bytes_per_second = bandwidth();
    println!("decode.bandwidth_gb_s {:.1}", bytes_per_second / 1e9);
    for (name, dtype, kind) in [
        ("bf16", DType::BF16, None),
        ("f16", DType::F16, None),
        ("i8", DType::F32, Some(WeightKind::I8)),
        (
            "q8_0",
            DType::F16,
            Some(WeightKind::Blocks(BlockKind::Q8_0)),
        ),
        (
            "q4_0",
            DType::F16,
            Some(WeightKind::Blocks(BlockKind::Q4_0)),
        ),
        ("f32", DType::F32, None),
    ] {
        if wanted(name) {
            fx_nn::no_grad(|| figures(name, dtype, kind, bytes_per_second))?;
        }
    }
    Ok(())
}
