//! Generates text with a model's folder in Hugging Face's layout: `config.json`, weights and
//! `tokenizer.json`; without a folder, numbers of tokens with a model of random weights.
//!
//! ```text
//! cargo run --release -p fx-nn --example generate -- --folder DIR --tokens 64
//! cargo run --release -p fx-nn --example generate -- --compiled --tokens 64
//! ```
//!
//! One traced graph reads the prompt and writes token after token; a cache holds what it has read.
//! With `--compiled` the graph runs as code for the CPU. The model's own `forward` then writes the
//! same text too, in turns, to compare tokens and times: `plans` is how many programs the code has
//! for all lengths, `token_ratio` the median time per token over that of eager code.
#![allow(clippy::print_stdout, reason = "an example shows what it does")]

mod folder;
mod model;
mod sampling;

use std::path::PathBuf;
use std::time::{Duration, Instant};

use fx_nn::cpu::Cpu;
use fx_nn::passes::backend::{Compile, LowerReport};
use fx_nn::prelude::*;
use indicatif::{ProgressBar, ProgressStyle};

use folder::{Limits, tokenizer};
use model::{Caches, Model};
use sampling::Sampling;

const USAGE: &str = "usage: generate [--folder DIR] [--compiled] [--tokens 64] [--prompt TEXT] [--temperature 0] [--top-p 1] [--seed 0]";

/// The options of the command line.
struct Options {
    folder: Option<PathBuf>,
    compiled: bool,
    tokens: usize,
    prompt: String,
    sampling: Sampling,
    seed: u64,
}

impl Options {
    fn read(mut args: impl Iterator<Item = String>) -> Result<Self> {
        let mut options = Options {
            folder: None,
            compiled: false,
            tokens: 64,
            prompt: "A graph is".to_string(),
            sampling: Sampling {
                temperature: 0.0,
                top_p: 1.0,
            },
            seed: 0,
        };
        while let Some(name) = args.next() {
            if name == "--compiled" {
                options.compiled = true;
                continue;
            }
            let value = args.next();
            let value =
                value.ok_or_else(|| Error::msg(format_args!("{name} needs a value\n{USAGE}")))?;
            match name.as_str() {
                "--folder" => options.folder = Some(PathBuf::from(value)),
                "--tokens" => options.tokens = number(&name, &value)?,
                "--prompt" => options.prompt = value,
                "--temperature" => options.sampling.temperature = number(&name, &value)?,
                "--top-p" => options.sampling.top_p = number(&name, &value)?,
                "--seed" => options.seed = number(&name, &value)?,
                _ => return Err(Error::msg(format_args!("{name} is not an option\n{USAGE}"))),
            }
        }
        Ok(options)
    }
}

fn number<T: std::str::FromStr>(name: &str, value: &str) -> Result<T> {
    let found = value.parse();
    found.map_err(|_| Error::msg(format_args!("{name} {value} is no such number\n{USAGE}")))
}

/// A text in the making: what the next step reads, and what was written.
struct Text {
    next: Vec<i64>,
    caches: Caches,
    written: Vec<u32>,
    times: Vec<Duration>,
}

impl Text {
    fn new(prompt: &[u32], caches: Caches) -> Self {
        Text {
            next: prompt.iter().map(|id| (*id).into()).collect(),
            caches,
            written: Vec::new(),
            times: Vec::new(),
        }
    }

    /// Adds a token by what computes scores and caches; returns `false` at the end of the text.
    fn step(
        &mut self,
        sampling: Sampling,
        ends: &[u32],
        run: impl FnOnce(&Tensor, Caches) -> Result<(Tensor, Caches)>,
    ) -> Result<bool> {
        let tokens = Tensor::from_vec(self.next.clone(), (1, self.next.len()))?;
        let start = Instant::now();
        let (scores, seen) = run(&tokens, std::mem::take(&mut self.caches))?;
        self.times.push(start.elapsed());
        self.caches = seen;
        let token = sampling.pick(&scores.i((0, -1))?)?;
        if ends.contains(&token) {
            return Ok(false);
        }
        self.written.push(token);
        self.next = vec![token.into()];
        Ok(true)
    }

    /// The median time of a step after the first, which reads the prompt.
    fn median(&self) -> f64 {
        let mut times = self.times[1.min(self.times.len())..].to_vec();
        times.sort_unstable();
        times
            .get(times.len() / 2)
            .map_or(f64::NAN, Duration::as_secs_f64)
    }
}

/// How many programs the parts of a module have.
fn plans(gm: &GraphModule) -> Result<usize> {
    let mut plans = 0;
    for part in gm
        .meta::<LowerReport>()
        .map_or(&[][..], |report| &report.parts)
    {
        let part = gm.submodule_as::<GraphModule>(&part.path)?;
        let code = part.compiled();
        plans += code.map_or(0, fx_nn::passes::backend::Compiled::plans);
    }
    Ok(plans)
}

fn run() -> Result<()> {
    let options = Options::read(std::env::args().skip(1))?;
    fx_nn::manual_seed(options.seed);
    let (model, limits, words) = match &options.folder {
        Some(folder) => {
            let limits = Limits::of_folder(folder)?;
            let words = tokenizer(folder, &limits)?;
            (Model::of_folder(folder, &limits)?, limits, Some(words))
        }
        None => (Model::random()?, Limits::of_random()?, None),
    };
    let prompt: Vec<u32> = match &words {
        Some(words) => {
            let read = words.encode(options.prompt.as_str(), true);
            read.map_err(Error::other)?.get_ids().to_vec()
        }
        None => (1..9).collect(),
    };
    if prompt.is_empty() || prompt.len() >= limits.positions {
        return Err(Error::msg(format_args!(
            "the prompt has {} tokens: give between 1 and {}",
            prompt.len(),
            limits.positions - 1
        )));
    }
    let graph = match options.compiled {
        true => model.graph.compile(Compile::new(Cpu::new()))?,
        false => model.graph.clone(),
    };

    let most = options.tokens.min(limits.positions - prompt.len());
    let bar = ProgressBar::new(most as u64);
    let style = ProgressStyle::with_template("{bar:40} {pos}/{len} tokens, {per_sec}");
    bar.set_style(style.map_err(Error::other)?);
    let mut text = Text::new(&prompt, (model.caches)()?);
    let mut eager = Text::new(&prompt, (model.caches)()?);
    let start = Instant::now();
    while text.written.len() < most
        && text.step(options.sampling, &limits.ends, |tokens, caches| {
            graph.forward((tokens, caches))
        })?
    {
        if options.compiled {
            eager.step(options.sampling, &limits.ends, &model.eager)?;
        }
        bar.inc(1);
    }
    let seconds = start.elapsed().as_secs_f64();
    bar.finish_and_clear();

    let all = [&prompt[..], &text.written].concat();
    match &words {
        Some(words) => println!("{}", words.decode(&all, true).map_err(Error::other)?),
        None => println!("{all:?}"),
    }
    println!("tokens: {}", text.written.len());
    match options.compiled {
        true => {
            println!("plans: {}", plans(&graph)?);
            println!("same_tokens: {}", text.written == eager.written);
            println!("token_ratio: {:.3}", text.median() / eager.median());
        }
        false => println!(
            "tokens_per_second: {:.1}",
            text.written.len() as f64 / seconds
        ),
    }
    Ok(())
}

fn main() -> Result<()> {
    fx_nn::no_grad(run)
}
