//! Texts an engine writes at once beside one after another: `cargo bench -p fx-lm --bench engine -- FILE.gguf`.
//!
//! Prompts of 64 to 512 tokens, 64 tokens each. `engine.decode_ratio` compares tokens a second while all texts write;
//! `engine.ratio` counts the time of prompts too, which share no work.
#![allow(clippy::print_stdout, reason = "a benchmark shows what it measured")]

use std::time::{Duration, Instant};

use fx_core::{Error, Result};
use fx_lm::engine::{Engine, EngineOptions, GenerationOptions, Model, Stream};
use fx_nn::models::hf::gguf::Gguf;
use fx_nn::prelude::*;

const TEXTS: usize = 8;
const TOKENS: usize = 64;

fn prompt(text: usize, vocab_size: usize) -> Vec<u32> {
    let count = 64 + text * (512 - 64) / (TEXTS - 1);
    let ids = (0..count).map(|at| ((at * 7919 + text * 104_729) % vocab_size) as u32);
    ids.collect()
}

/// A text, and when its tokens came.
struct Written {
    ids: Vec<u32>,
    times: Vec<Duration>,
}

fn read(stream: Stream, start: Instant) -> Result<Written> {
    let mut written = Written {
        ids: Vec::new(),
        times: Vec::new(),
    };
    for token in stream {
        written.ids.push(token?.id);
        written.times.push(start.elapsed());
    }
    Ok(written)
}

fn submitted(engine: &Engine, text: usize, vocab_size: usize) -> Result<Stream> {
    let options = GenerationOptions::default().max_new_tokens(TOKENS);
    engine
        .submit(prompt(text, vocab_size), options)
        .map_err(Error::other)
}

/// All texts at once, and when each token came.
fn at_once(engine: &Engine, vocab_size: usize) -> Result<Vec<Written>> {
    let start = Instant::now();
    let streams: Result<Vec<Stream>> = (0..TEXTS)
        .map(|text| submitted(engine, text, vocab_size))
        .collect();
    let readers = streams?
        .into_iter()
        .map(|stream| std::thread::spawn(move || read(stream, start)));
    let readers: Vec<_> = readers.collect();
    let written = readers.into_iter().map(|reader| {
        let written = reader.join();
        written.map_err(|_| Error::msg("a reader panicked"))?
    });
    written.collect()
}

fn last(written: &[Written]) -> f64 {
    let last = written.iter().filter_map(|text| text.times.last()).max();
    last.map_or(f64::NAN, Duration::as_secs_f64)
}

fn main() -> Result<()> {
    let file = std::env::args()
        .skip(1)
        .find(|argument| !argument.starts_with("--"));
    let Some(file) = file else {
        println!("engine: give a GGUF file");
        return Ok(());
    };
    let opened = Gguf::open(&file)?;
    let vocab_size = opened.config().vocab_size;
    drop(opened);
    let load = move || Model::of_gguf(&Gguf::open(&file)?.dtype(DType::F16), TEXTS);
    let engine = Engine::start(load, EngineOptions::default())?;
    // Memory and code are there from here on.
    at_once(&engine, vocab_size)?;

    let start = Instant::now();
    let alone: Result<Vec<Written>> = (0..TEXTS)
        .map(|text| read(submitted(&engine, text, vocab_size)?, Instant::now()))
        .collect();
    let (alone, of_alone) = (alone?, start.elapsed().as_secs_f64());
    let spans = alone.iter().filter_map(|text| {
        let (first, last) = (text.times.first()?, text.times.last()?);
        Some((*last - *first).as_secs_f64())
    });
    let decoded = (TEXTS * (TOKENS - 1)) as f64 / spans.sum::<f64>();

    let together = at_once(&engine, vocab_size)?;
    let of_together = last(&together);
    // While all of them write: from the first token of the last one to the end of the first one.
    let from = together.iter().filter_map(|text| text.times.first()).max();
    let to = together.iter().filter_map(|text| text.times.last()).min();
    let (from, to) = (
        from.copied().unwrap_or_default(),
        to.copied().unwrap_or_default(),
    );
    let inside = |time: &&Duration| **time > from && **time <= to;
    let count = together
        .iter()
        .flat_map(|text| &text.times)
        .filter(inside)
        .count();
    let at_once_decoded = count as f64 / (to.saturating_sub(from)).as_secs_f64();

    let all = (TEXTS * TOKENS) as f64;
    let equal = alone
        .iter()
        .zip(&together)
        .filter(|(a, b)| a.ids == b.ids)
        .count();
    let mut firsts: Vec<Duration> = together
        .iter()
        .filter_map(|text| text.times.first().copied())
        .collect();
    firsts.sort_unstable();
    println!(
        "engine.decode_tokens_per_second batch 1 {decoded:.1} batch {TEXTS} {at_once_decoded:.1}"
    );
    println!(
        "engine.decode_ratio {:.2} (bar 3)",
        at_once_decoded / decoded
    );
    println!(
        "engine.tokens_per_second batch 1 {:.1} batch {TEXTS} {:.1}",
        all / of_alone,
        all / of_together
    );
    println!("engine.ratio {:.2}", of_alone / of_together);
    println!("engine.equal_to_lone {equal} of {TEXTS}");
    println!(
        "engine.first_token_ms last {:.0}",
        firsts
            .last()
            .map_or(f64::NAN, |time| time.as_secs_f64() * 1e3)
    );

    // Streams that are dropped free what they hold.
    let streams: Result<Vec<Stream>> = (0..TEXTS)
        .map(|text| submitted(&engine, text, vocab_size))
        .collect();
    let mut streams = streams?;
    for stream in &mut streams {
        stream.next().transpose()?;
    }
    drop(streams);
    let start = Instant::now();
    while engine.stats().blocks_in_use > 0 && start.elapsed() < Duration::from_secs(10) {
        std::thread::sleep(Duration::from_millis(1));
    }
    println!(
        "engine.blocks_in_use {} after all streams were dropped",
        engine.stats().blocks_in_use
    );
    Ok(())
}
