//! The fx side of `llm.py`, which compares a language model with llama.cpp and builds this program. It answers lines of
//! standard input:
//!
//! - `load PATH`: a folder of Hugging Face's, or a GGUF file;
//! - `prompt COUNT`: ms for each token of a prompt;
//! - `decode BEHIND COUNT`: ms for each of so many tokens behind a prompt;
//! - `profile BEHIND COUNT`: the times of the steps of so many tokens at once, on standard error;
//! - `scores COUNT`: the logarithms of the probabilities of the five likeliest tokens behind a prompt.

#[path = "support/lines.rs"]
mod lines;

use std::time::Instant;

use fx_nn::cpu::Cpu;
use fx_nn::models::hf::decoder::{Cache, CausalLM};
use fx_nn::models::hf::gguf::Gguf;
use fx_nn::passes::backend::Compile;
use fx_nn::prelude::*;

use lines::answer_each;

/// A model, compiled.
struct Loaded {
    source: Source,
    fast: GraphModule,
}

/// What a model was read from, which makes its caches.
enum Source {
    Folder(CausalLM),
    Gguf(Gguf),
}

type Step = (Tensor, Vec<Cache>);

impl Loaded {
    fn of(path: &str) -> Result<Self> {
        let (source, mut gm) = match path.ends_with(".gguf") {
            true => {
                let file = Gguf::open(path)?.dtype(DType::F16);
                let gm = file.trace()?;
                (Source::Gguf(file), gm)
            }
            false => {
                let model = CausalLM::from_folder(path)?;
                let gm = model.trace()?;
                (Source::Folder(model), gm)
            }
        };
        CausalLM::keep_last_scores(&mut gm)?;
        let fast = gm.compile(Compile::new(Cpu::new()))?;
        Ok(Loaded { source, fast })
    }

    fn caches(&self) -> Result<Vec<Cache>> {
        match &self.source {
            Source::Folder(model) => model.caches(1),
            Source::Gguf(file) => file.caches(1),
        }
    }

    /// A prompt of the tokens that `llm.py` gives llama.cpp.
    fn prompt(&self, count: usize) -> Result<Step> {
        let tokens = (0..count as i64).map(|at| 100 + at * 37 % 5000).collect();
        let tokens = Tensor::from_vec(tokens, (1, count))?;
        self.fast.forward((&tokens, self.caches()?))
    }

    fn answer(&self, words: &[&str]) -> Result<String> {
        let count = |at: usize| -> Result<usize> {
            let word = words.get(at).and_then(|word| word.parse().ok());
            word.ok_or_else(|| Error::msg("a number is missing"))
        };
        let start = Instant::now();
        match words {
            ["prompt", ..] => {
                self.prompt(count(1)?)?;
                Ok((start.elapsed().as_secs_f64() * 1e3 / count(1)? as f64).to_string())
            }
            ["decode", ..] => {
                let (mut scores, mut caches) = self.prompt(count(1)?)?;
                let start = Instant::now();
                for _ in 0..count(2)? {
                    let word = scores.i((.., -1))?.argmax(-1, false)?.unsqueeze(1)?;
                    (scores, caches) = self.fast.forward((&word, caches))?;
                }
                Ok((start.elapsed().as_secs_f64() * 1e3 / count(2)? as f64).to_string())
            }
            ["profile", ..] => {
                let (_, caches) = self.prompt(count(1)?)?;
                let word = Tensor::from_vec(vec![7i64; count(2)?], (1, count(2)?))?;
                eprint!("{}", self.fast.profile(20, (&word, caches))?);
                Ok("profiled".to_string())
            }
            ["scores", ..] => {
                let (scores, _) = self.prompt(count(1)?)?;
                let scores = scores.i((0, -1))?.to_dtype(DType::F32)?;
                let likely = ops::log_softmax(&scores, -1)?.topk(5, -1, true, true)?;
                let (values, tokens): (Tensor, Tensor) = likely;
                Ok(format!("{:?} {:?}", tokens.to_vec()?, values.to_vec()?))
            }
            _ => Err(Error::msg("prompt, decode, profile or scores")),
        }
    }
}

fn main() {
    let mut loaded = None;
    answer_each(|line| {
        fx_nn::no_grad(|| {
            let words: Vec<&str> = line.split_whitespace().collect();
            if let ["load", folder] = words[..] {
                loaded = Some(Loaded::of(folder)?);
                return Ok("loaded".to_string());
            }
            let model = loaded.as_ref();
            model
                .ok_or_else(|| Error::msg("nothing is loaded"))?
                .answer(&words)
        })
    });
}
