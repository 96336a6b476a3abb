//! The cost of running a graph beyond the same candle calls by hand: time per node, memory,
//! compiling, long chains.
#![allow(clippy::print_stdout, reason = "a benchmark prints its figures")]

mod support;

use std::hint::black_box;
use std::time::{Duration, Instant};

use fx_nn::models::hf::decoder::{Cache, CausalLM, Config};
use fx_nn::models::resnet::resnet18;
use fx_nn::no_grad;
use fx_nn::prelude::*;
use fx_nn::run::PlainInterpreter;
use peak_alloc::PeakAlloc;

use support::wanted;

#[global_allocator]
static PEAK: PeakAlloc = PeakAlloc;

fn time<T>(run: impl FnOnce() -> Result<T>) -> Result<Duration> {
    let start = Instant::now();
    black_box(run()?);
    Ok(start.elapsed())
}

fn median(mut times: Vec<Duration>) -> f64 {
    times.sort_unstable();
    times[times.len() / 2].as_secs_f64()
}

/// A chain of `n` additions.
fn chain(n: usize) -> Result<GraphModule> {
    symbolic_trace(traced!(move |x: &Tensor, y: &Tensor| {
        let mut h = x.clone();
        for _ in 0..n {
            h = (&h + y)?;
        }
        Ok(h)
    }))
}

/// `forward` and the interpreter against candle by hand, in ns per node, on tensors of one element.
fn overhead() -> Result<(f64, f64)> {
    const NODES: usize = 1000;
    let gm = chain(NODES)?;
    let (x, y) = (Tensor::rand(1)?, Tensor::rand(1)?);
    let by_hand = || {
        let y = y.candle()?;
        let mut h = x.candle()?.clone();
        for _ in 0..NODES {
            h = (&h + y).map_err(Error::other)?;
        }
        Ok(h)
    };
    let (mut candle, mut forward, mut interpreter) = (f64::INFINITY, f64::INFINITY, f64::INFINITY);
    // Interleaved, so that a slowdown of the machine affects all.
    for _ in 0..1000 {
        candle = candle.min(time(by_hand)?.as_secs_f64());
        forward = forward.min(time(|| gm.forward::<Tensor>((&x, &y)))?.as_secs_f64());
        let plain = || gm.interpret::<Tensor>(&mut PlainInterpreter, (&x, &y));
        interpreter = interpreter.min(time(plain)?.as_secs_f64());
    }
    let beyond = |time: f64| (time - candle) * 1e9 / NODES as f64;
    Ok((beyond(forward), beyond(interpreter)))
}

/// ResNet-18: the time of a traced run over that of calling the model, and the same for peak
/// memory.
fn resnet() -> Result<(f64, f64)> {
    let mut model = resnet18(1000)?;
    model.eval();
    nn::set_requires_grad(&mut model, false)?;
    let traced = symbolic_trace(&model)?;
    let x = Tensor::rand((2, 3, 64, 64))?;
    let eager = || model.forward(&x);
    let run = || traced.forward::<Tensor>(&x);
    let (mut eager_times, mut run_times) = (Vec::new(), Vec::new());
    // Interleaved, each first every other time.
    for i in 0..101 {
        if i % 2 == 0 {
            eager_times.push(time(eager)?);
            run_times.push(time(run)?);
        } else {
            run_times.push(time(run)?);
            eager_times.push(time(eager)?);
        }
    }
    let peak = |run: &dyn Fn() -> Result<Tensor>| -> Result<f64> {
        let before = PEAK.current_usage();
        PEAK.reset_peak_usage();
        black_box(run()?);
        Ok(PEAK.peak_usage().saturating_sub(before) as f64)
    };
    // Not the first run of this shape: memory that is kept between runs is already allocated.
    let memory = peak(&run)? / peak(&eager)?;
    Ok((median(run_times) / median(eager_times), memory))
}

/// A Qwen2 of width 64, whose products take no longer than its size arithmetic: the time of a traced
/// step over that of calling the model, for one token after 16.
fn small_decoder() -> Result<f64> {
    let config = r#"{
        "model_type": "qwen2", "vocab_size": 256, "hidden_size": 64, "intermediate_size": 128,
        "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2,
        "max_position_embeddings": 64, "rms_norm_eps": 1e-6, "rope_theta": 10000.0,
        "hidden_act": "silu", "tie_word_embeddings": true
    }"#;
    let model = CausalLM::new(&Config::from_json(config)?)?;
    let traced = model.trace()?;
    let prompt = Tensor::from_vec((0..16i64).collect(), (1, 16))?;
    let token = Tensor::from_vec(vec![7i64], (1, 1))?;
    no_grad(|| {
        let (_, caches) = model.forward(&prompt, model.caches(1)?)?;
        let (mut eager, mut traced_times) = (Vec::new(), Vec::new());
        for i in 0..101 {
            let (ours, theirs) = (caches.clone(), caches.clone());
            let mut run_eager = Some(|| model.forward(&token, theirs));
            if i % 2 == 0
                && let Some(run) = run_eager.take()
            {
                eager.push(time(run)?);
            }
            traced_times.push(time(|| {
                traced.forward::<(Tensor, Vec<Cache>)>((&token, ours))
            })?);
            if let Some(run) = run_eager {
                eager.push(time(run)?);
            }
        }
        Ok(median(traced_times) / median(eager))
    })
}

/// The time to compile a chain of `n` nodes, in seconds.
fn compile(n: usize, runs: usize) -> Result<f64> {
    let mut gm = chain(n)?;
    let node = gm.graph().nodes().last().map(|node| node.id());
    let node = node.ok_or_else(|| Error::msg("a chain has nodes"))?;
    let mut best = f64::INFINITY;
    for _ in 0..runs {
        // A graph that has not changed since it was compiled is not compiled again.
        let args = gm.graph().node(node)?.args().to_vec();
        gm.graph_mut().node_mut(node)?.set_args(args)?;
        best = best.min(time(|| gm.recompile())?.as_secs_f64());
    }
    Ok(best)
}

/// A chain of a million nodes: each step of its life, in seconds.
fn long_life() -> Result<()> {
    const NODES: usize = 1_000_000;
    let whole = Instant::now();
    let mut step = Instant::now();
    let mut parts = Vec::new();
    let mut done = |what: &str| {
        parts.push(format!("{what} {:.2}", step.elapsed().as_secs_f64()));
        step = Instant::now();
    };
    let gm = chain(NODES)?;
    done("traced");
    black_box(gm.forward::<Tensor>((&Tensor::ones(1)?, &Tensor::ones(1)?))?);
    done("run");
    black_box(gm.graph().to_string());
    done("printed");
    let copy = gm.clone();
    done("copied");
    drop(copy);
    drop(gm);
    done("dropped");
    let whole = whole.elapsed().as_secs_f64();
    println!("run.chain/{NODES} {whole:.2} s ({})", parts.join(", "));
    Ok(())
}

fn main() -> Result<()> {
    if wanted("overhead") {
        let (forward, interpreter) = overhead()?;
        println!("run.forward_overhead {forward:.1} ns/node");
        println!("run.interpreter_overhead {interpreter:.1} ns/node");
    }
    if wanted("resnet18") {
        let (time, memory) = resnet()?;
        println!("run.resnet18_ratio {time:.3}");
        println!("run.peak_memory_ratio {memory:.3}");
    }
    if wanted("decode") {
        println!("run.decode_small_ratio {:.3}", small_decoder()?);
    }
    if wanted("compile") {
        let (short, long) = (compile(100_000, 10)?, compile(1_000_000, 5)?);
        println!("run.compile/100000 {short:.4} s");
        println!("run.compile/1000000 {long:.4} s");
        println!("run.compile/exponent {:.2}", (long / short).log10());
    }
    if wanted("chain") {
        long_life()?;
    }
    Ok(())
}
