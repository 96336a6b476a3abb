//! Greedy decoding as one graph: the loop over tokens, its stop token and the cache are inside, for
//! a GPT-2 and a Llama of random weights. Eager and graph write the same tokens.
#![allow(clippy::print_stdout, reason = "an example shows what it does")]

use std::time::Instant;

use fx_nn::models::hf::decoder::{self, Cache, CausalLM};
use fx_nn::models::hf::gpt2::{self, GPT2LMHeadModel};
use fx_nn::prelude::*;

const GPT2: &str = r#"{"model_type": "gpt2", "vocab_size": 1000, "n_positions": 128, "n_embd": 256,
    "n_layer": 4, "n_head": 8, "tie_word_embeddings": false}"#;
const LLAMA: &str = r#"{"model_type": "llama", "vocab_size": 1000, "hidden_size": 256, "intermediate_size": 688,
    "num_hidden_layers": 4, "num_attention_heads": 8, "num_key_value_heads": 2, "max_position_embeddings": 128,
    "rms_norm_eps": 1e-5, "tie_word_embeddings": false}"#;
const PROMPT: [i64; 4] = [3, 14, 159, 265];
const TOKENS: i64 = 64;

/// A model that writes until it writes `stop`, at most [`TOKENS`] tokens.
#[derive(Module)]
struct Greedy<M> {
    model: M,
    stop: i64,
}

#[trace(control_flow)]
impl<M: Module> Greedy<M> {
    /// The prompt `[1, T]` and what follows it.
    fn forward(&self, prompt: &Tensor, caches: Vec<Cache>) -> Result<Tensor> {
        let mut tokens = prompt.clone();
        let mut last = prompt.clone();
        let mut caches = caches;
        let mut count = Int::from(0);
        // The first turn, which reads the prompt, is recorded by itself: it always runs.
        loop {
            let (scores, after): (Tensor, Vec<Cache>) = self.model.forward((&last, caches))?;
            caches = after;
            last = scores.i((.., -1))?.argmax(-1, true)?;
            tokens = ops::cat(&[&tokens, &last], 1)?;
            if last.i((0, 0))? == self.stop {
                break;
            }
            count = (count + 1)?;
            if count == TOKENS {
                break;
            }
        }
        Ok(tokens)
    }
}

/// Prints how eager and graph compare; returns the largest difference and the ratio of times.
fn compare<M: Module>(name: &str, model: M, caches: &[Cache]) -> Result<(f64, f64)> {
    let mut greedy = Greedy { model, stop: -1 };
    let prompt = Tensor::from_vec(PROMPT.to_vec(), (1, PROMPT.len()))?;
    let mut worst: f64 = 0.0;
    let (mut eager_s, mut graph_s) = (f64::INFINITY, f64::INFINITY);
    // Without a stop token, for the times; then with one that the model writes on its way.
    for rounds in [5, 1] {
        let layers = vec![tree!({"k": PH, "v": PH}); caches.len()];
        let gm = Trace::new(&greedy)
            .concrete("caches", Value::List(layers.into()))
            .graph_module()?;
        let mut tokens = Vec::new();
        for _ in 0..rounds {
            let start = Instant::now();
            let eager = greedy.forward(&prompt, caches.to_vec())?;
            let middle = Instant::now();
            let graph: Tensor = gm.forward((&prompt, caches.to_vec()))?;
            let end = Instant::now();
            if greedy.stop < 0 {
                eager_s = eager_s.min((middle - start).as_secs_f64());
                graph_s = graph_s.min((end - middle).as_secs_f64());
            }
            tokens = eager.to_vec()?;
            let found = graph.to_vec()?;
            let apart = tokens.iter().zip(&found).map(|(a, b)| (a - b).abs());
            let longer = tokens.len().abs_diff(found.len()) as f64;
            worst = apart.fold(worst.max(longer), f64::max);
        }
        let written = &tokens[PROMPT.len()..];
        println!(
            "{name}: stop token {}, {} tokens",
            greedy.stop,
            written.len()
        );
        if let Some(on_the_way) = written.get(10) {
            greedy.stop = *on_the_way as i64;
        }
    }
    println!(
        "{name}: {:.3} ms a token in the graph, {:.3} ms eager",
        graph_s * 1e3 / TOKENS as f64,
        eager_s * 1e3 / TOKENS as f64
    );
    Ok((worst, graph_s / eager_s))
}

fn main() -> Result<()> {
    fx_nn::manual_seed(0);
    let gpt2 = GPT2LMHeadModel::new(&gpt2::Config::from_json(GPT2)?)?;
    let caches = gpt2.caches(1)?;
    let gpt2 = compare("gpt2", gpt2, &caches)?;
    let llama = CausalLM::new(&decoder::Config::from_json(LLAMA)?)?;
    let caches = llama.caches(1)?;
    let llama = compare("llama", llama, &caches)?;
    println!("max_abs_err_vs_eager: {}", gpt2.0.max(llama.0));
    println!("time_ratio_vs_eager: {:.2}", gpt2.1.max(llama.1));
    Ok(())
}
