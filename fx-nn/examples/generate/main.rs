//! Generates text with a model's folder in Hugging Face's layout: `config.json`, weights and
//! `tokenizer.json`.
//!
//! ```text
//! cargo run --release -p fx-nn --example generate -- --folder DIR --tokens 64
//! ```
//!
//! One traced graph reads the prompt and writes token after token; a cache holds what it has read.
#![allow(clippy::print_stdout, reason = "an example shows what it does")]

mod sampling;

use std::path::{Path, PathBuf};
use std::time::Instant;

use fx_nn::models::hf::decoder::{Cache, CausalLM};
use fx_nn::models::hf::gpt2::GPT2LMHeadModel;
use fx_nn::prelude::*;
use indicatif::{ProgressBar, ProgressStyle};
use serde_json::Value as Json;
use tokenizers::Tokenizer;

use sampling::Sampling;

const USAGE: &str = "usage: generate --folder DIR [--tokens 64] [--prompt TEXT] [--temperature 0] [--top-p 1] [--seed 0]";

/// The options of the command line.
struct Options {
    folder: PathBuf,
    tokens: usize,
    prompt: String,
    sampling: Sampling,
    seed: u64,
}

impl Options {
    fn read(mut args: impl Iterator<Item = String>) -> Result<Self> {
        let mut folder = None;
        let mut options = Options {
            folder: PathBuf::new(),
            tokens: 64,
            prompt: "A graph is".to_string(),
            sampling: Sampling {
                temperature: 0.0,
                top_p: 1.0,
            },
            seed: 0,
        };
        while let Some(name) = args.next() {
            let value = args.next();
            let value =
                value.ok_or_else(|| Error::msg(format_args!("{name} needs a value\n{USAGE}")))?;
            match name.as_str() {
                "--folder" => folder = Some(PathBuf::from(value)),
                "--tokens" => options.tokens = number(&name, &value)?,
                "--prompt" => options.prompt = value,
                "--temperature" => options.sampling.temperature = number(&name, &value)?,
                "--top-p" => options.sampling.top_p = number(&name, &value)?,
                "--seed" => options.seed = number(&name, &value)?,
                _ => return Err(Error::msg(format_args!("{name} is not an option\n{USAGE}"))),
            }
        }
        options.folder = folder.ok_or_else(|| Error::msg(USAGE))?;
        Ok(options)
    }
}

fn number<T: std::str::FromStr>(name: &str, value: &str) -> Result<T> {
    let found = value.parse();
    found.map_err(|_| Error::msg(format_args!("{name} {value} is no such number\n{USAGE}")))
}

fn json(path: &Path) -> Result<Json> {
    let in_file = |e: &dyn std::fmt::Display| Error::msg(format_args!("{}: {e}", path.display()));
    let text = std::fs::read_to_string(path).map_err(|e| in_file(&e))?;
    serde_json::from_str(&text).map_err(|e| in_file(&e))
}

/// A folder's limits on texts: the model's family, the tokens that end a text, and the numbers of
/// positions and tokens.
struct Limits {
    family: String,
    ends: Vec<u32>,
    positions: usize,
    vocab_size: usize,
}

impl Limits {
    fn of_folder(folder: &Path) -> Result<Self> {
        let config = json(&folder.join("config.json"))?;
        let generation = folder.join("generation_config.json");
        let generation = match generation.exists() {
            true => json(&generation)?,
            false => Json::Null,
        };
        let ends = [&generation["eos_token_id"], &config["eos_token_id"]];
        let ends = ends.into_iter().find(|ends| !ends.is_null());
        let ends = match ends {
            Some(Json::Array(ends)) => ends.iter().filter_map(Json::as_u64).collect(),
            Some(end) => end.as_u64().into_iter().collect(),
            None => Vec::new(),
        };
        let size = |name: &str| config[name].as_u64().unwrap_or(u64::MAX) as usize;
        let family = config["model_type"].as_str().unwrap_or_default();
        Ok(Limits {
            family: family.to_string(),
            ends: ends.into_iter().map(|end: u64| end as u32).collect(),
            positions: size(if family == "gpt2" {
                "n_positions"
            } else {
                "max_position_embeddings"
            }),
            vocab_size: size("vocab_size"),
        })
    }
}

fn tokenizer(folder: &Path, limits: &Limits) -> Result<Tokenizer> {
    let path = folder.join("tokenizer.json");
    let in_file = |e: &dyn std::fmt::Display| Error::msg(format_args!("{}: {e}", path.display()));
    let tokenizer = Tokenizer::from_file(&path).map_err(|e| in_file(&e))?;
    let tokens = tokenizer.get_vocab_size(true);
    match tokens <= limits.vocab_size {
        true => Ok(tokenizer),
        false => Err(in_file(&format_args!(
            "it has {tokens} tokens, and the model knows {}",
            limits.vocab_size
        ))),
    }
}

fn main() -> Result<()> {
    let options = Options::read(std::env::args().skip(1))?;
    let limits = Limits::of_folder(&options.folder)?;
    let tokenizer = tokenizer(&options.folder, &limits)?;
    let prompt = tokenizer
        .encode(options.prompt.as_str(), true)
        .map_err(Error::other)?;
    let prompt = prompt.get_ids();
    if prompt.is_empty() || prompt.len() >= limits.positions {
        return Err(Error::msg(format_args!(
            "the prompt has {} tokens: give between 1 and {}",
            prompt.len(),
            limits.positions - 1
        )));
    }

    let (graph, mut caches) = match limits.family.as_str() {
        "gpt2" => {
            let model = GPT2LMHeadModel::from_folder(&options.folder)?;
            (model.trace()?, model.caches(1)?)
        }
        _ => {
            let model = CausalLM::from_folder(&options.folder)?;
            (model.trace()?, model.caches(1)?)
        }
    };
    fx_nn::manual_seed(options.seed);

    let most = options.tokens.min(limits.positions - prompt.len());
    let bar = ProgressBar::new(most as u64);
    let style = ProgressStyle::with_template("{bar:40} {pos}/{len} tokens, {per_sec}");
    bar.set_style(style.map_err(Error::other)?);
    let mut next: Vec<i64> = prompt.iter().map(|id| (*id).into()).collect();
    let mut written = Vec::new();
    let start = Instant::now();
    while written.len() < most {
        let tokens = Tensor::from_vec(next.clone(), (1, next.len()))?;
        let (scores, seen): (Tensor, Vec<Cache>) = graph.forward((&tokens, caches))?;
        caches = seen;
        let token = options.sampling.pick(&scores.i((0, -1))?)?;
        if limits.ends.contains(&token) {
            break;
        }
        written.push(token);
        next = vec![token.into()];
        bar.inc(1);
    }
    let seconds = start.elapsed().as_secs_f64();
    bar.finish_and_clear();

    let all = [prompt, &written].concat();
    println!("{}", tokenizer.decode(&all, true).map_err(Error::other)?);
    println!("tokens: {}", written.len());
    println!("tokens_per_second: {:.1}", written.len() as f64 / seconds);
    Ok(())
}
