//! What compiling for the CPU costs, what compiled code needs of memory, and what share of the
//! machine's peak its kernels reach: prints `name value` lines. Arguments choose groups: `resnet50`,
//! `gpt2`, `kernels`.
//!
//! Memory is counted on one thread, which does all the work then.
#![allow(clippy::print_stdout, reason = "a benchmark prints its figures")]

mod support;

use std::hint::black_box;
use std::time::{Duration, Instant};

use allocation_counter::AllocationInfo;
use fx_kernels::attention::{Attention, HeadRows, attention};
use fx_kernels::conv::{Blocked, Conv2d, ConvOptions, ConvSpec};
use fx_kernels::matrix::{Finish, PackedMatrix, WeightKind, WeightOrder, linear};
use fx_kernels::{Activation, Level, peak_flops};
use fx_nn::cpu::Cpu;
use fx_nn::ir::ValueMeta;
use fx_nn::models::gpt2::{self, Gpt2};
use fx_nn::models::resnet::resnet50;
use fx_nn::module::ComponentExt;
use fx_nn::passes::backend::Compile;
use fx_nn::prelude::*;

use support::wanted;

fn time<T>(run: impl FnOnce() -> Result<T>) -> Result<f64> {
    let start = Instant::now();
    black_box(run()?);
    Ok(start.elapsed().as_secs_f64())
}

/// The least time of some runs, in seconds.
fn least<T>(runs: usize, mut run: impl FnMut() -> Result<T>) -> Result<f64> {
    let mut best = f64::INFINITY;
    for _ in 0..runs {
        best = best.min(time(&mut run)?);
    }
    Ok(best)
}

/// What a run allocates on this thread.
fn allocated<T>(run: impl FnOnce() -> Result<T>) -> Result<AllocationInfo> {
    let mut result = Ok(());
    let info = allocation_counter::measure(|| result = run().map(|value| drop(black_box(value))));
    result.map(|()| info)
}

/// Runs on a pool of some threads.
fn on_threads<T: Send>(threads: usize, run: impl FnOnce() -> Result<T> + Send) -> Result<T> {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads);
    pool.build().map_err(Error::other)?.install(run)
}

fn traced_resnet50() -> Result<GraphModule> {
    let mut model = resnet50(1000)?;
    model.eval();
    nn::set_requires_grad(&mut model, false)?;
    symbolic_trace(&model)
}

/// The bytes of a module's parameters and buffers.
fn weight_bytes(gm: &GraphModule) -> f64 {
    let state = gm.state_dict();
    let bytes = state.values().map(|value| ValueMeta::of(value).bytes());
    bytes.sum::<usize>() as f64
}

fn compile_times() -> Result<()> {
    let gm = traced_resnet50()?;
    let x = Tensor::randn((1, 3, 224, 224))?;
    let (mut compile, mut first) = (f64::INFINITY, f64::INFINITY);
    let mut steady = f64::INFINITY;
    for _ in 0..5 {
        let mut fast = None;
        let how = Compile::new(Cpu::new()).like(&x);
        compile = compile.min(time(|| {
            fast = Some(gm.compile(how)?);
            Ok(())
        })?);
        let fast = fast.ok_or_else(|| Error::msg("it was compiled"))?;
        first = first.min(time(|| fast.forward::<Tensor>(&x))?);
        steady = steady.min(least(10, || fast.forward::<Tensor>(&x))?);
    }
    println!("compile.resnet50_ms {:.0}", compile * 1e3);
    println!("compile.first_run_ratio {:.2}", first / steady);
    Ok(())
}

fn memory() -> Result<()> {
    let x = Tensor::randn((1, 3, 224, 224))?;
    let mut kept = None;
    let mut weights = 0.0;
    let held = allocated(|| {
        let gm = traced_resnet50()?;
        weights = weight_bytes(&gm);
        kept = Some(gm.compile(Compile::new(Cpu::new()).like(&x))?);
        Ok(())
    })?;
    let mut fast = kept.ok_or_else(|| Error::msg("it was compiled"))?;
    println!(
        "compile.weights_ratio {:.3}",
        held.bytes_current as f64 / weights
    );
    let released = allocated(|| fast.release_source())?;
    let held = held.bytes_current + released.bytes_current;
    println!(
        "compile.released_weights_ratio {:.3}",
        held as f64 / weights
    );

    let gm = traced_resnet50()?;
    gm.forward::<Tensor>(&x)?;
    let traced = allocated(|| gm.forward::<Tensor>(&x))?;
    let first = allocated(|| fast.forward::<Tensor>(&x))?;
    let ratio = first.bytes_max as f64 / traced.bytes_max as f64;
    println!("compile.peak_memory_ratio {ratio:.3}");
    Ok(())
}

/// The bytes that a run of GPT-2 allocates over those of its result, once memory is there.
fn steady_bytes() -> Result<f64> {
    let mut model = Gpt2::new(&gpt2::Config {
        block_size: 128,
        ..gpt2::Config::default()
    })?;
    model.eval();
    nn::set_requires_grad(&mut model, false)?;
    let tokens = Tensor::arange(0, 128)?.reshape((1, 128))?;
    let fast = symbolic_trace(&model)?.compile(Compile::new(Cpu::new()).like(&tokens))?;
    let scores = fast.forward::<Tensor>(&tokens)?;
    let steady = allocated(|| fast.forward::<Tensor>(&tokens))?;
    Ok(steady.bytes_total as f64 / (4 * scores.dims()?.iter().product::<usize>()) as f64)
}

/// The least time of a run, in seconds, of at least 0.3 seconds of runs.
fn steady(mut run: impl FnMut()) -> f64 {
    let (begin, mut best) = (Instant::now(), f64::INFINITY);
    while begin.elapsed() < Duration::from_millis(300) {
        let start = Instant::now();
        run();
        best = best.min(start.elapsed().as_secs_f64());
    }
    best
}

fn floats(n: usize) -> Vec<f32> {
    (0..n)
        .map(|i| ((i * 7919) % 2003) as f32 / 1001.5 - 1.0)
        .collect()
}

/// The share of the peak that a kernel with so many operations reaches on one thread; peak and
/// kernel are measured in turns.
fn share(flops: f64, mut run: impl FnMut()) -> f64 {
    let level = Level::best();
    let (mut peak, mut speed) = (0.0f64, 0.0f64);
    for _ in 0..5 {
        for _ in 0..20 {
            peak = peak.max(peak_flops(level));
        }
        speed = speed.max(flops / steady(&mut run));
    }
    speed / peak
}

fn conv_share() -> Result<f64> {
    let (spec, side) = (ConvSpec::new(64, 64, 3), 56);
    let options = ConvOptions {
        winograd: false,
        ..ConvOptions::default()
    };
    let conv = Conv2d::new(spec, &floats(64 * 64 * 9), None, options).map_err(Error::other)?;
    let mut x = Blocked::zeros(1, 64, side, side, conv.halo());
    x.copy_from_nchw(&floats(64 * side * side))
        .map_err(Error::other)?;
    let mut out = Blocked::zeros(1, 64, side, side, 0);
    let flops = (2 * 64 * 64 * 9 * side * side) as f64;
    Ok(share(flops, || {
        conv.run(&x, Activation::Relu.into(), &mut out)
            .expect("the sizes fit");
    }))
}

fn linear_share() -> Result<f64> {
    let (m, k, n) = (197, 3072, 768);
    let weight = PackedMatrix::new(
        &floats(n * k),
        k,
        n,
        WeightOrder::OutputsFirst,
        WeightKind::F32,
    )
    .map_err(Error::other)?;
    let (x, mut out) = (floats(m * k), vec![0.0; m * n]);
    Ok(share((2 * m * k * n) as f64, || {
        linear(Level::best(), m, &x, &weight, Finish::default(), &mut out).expect("the sizes fit");
    }))
}

/// The times of one row by weights of bf16 and of int8 over that of f32.
fn few_ratios() -> Result<[f64; 2]> {
    let (k, n) = (4096, 11008);
    let weight = floats(n * k);
    let packed = [WeightKind::F32, WeightKind::Bf16, WeightKind::I8]
        .map(|kind| PackedMatrix::new(&weight, k, n, WeightOrder::OutputsFirst, kind));
    let (x, mut out) = (floats(k), vec![0.0; n]);
    let mut best = [f64::INFINITY; 3];
    for _ in 0..4 {
        for (best, packed) in best.iter_mut().zip(&packed) {
            let packed = packed.as_ref().map_err(|e| Error::other(e.clone()))?;
            *best = best.min(steady(|| {
                linear(Level::best(), 1, &x, packed, Finish::default(), &mut out)
                    .expect("the sizes fit");
            }));
        }
    }
    Ok([best[1] / best[0], best[2] / best[0]])
}

/// The time of an eager depthwise convolution over that of its kernel in compiled code.
fn depthwise_ratio() -> Result<f64> {
    let (channels, side) = (144, 56);
    let mut layer = nn::Conv2d::grouped(channels, channels, 3, channels)?.padding(1);
    nn::set_requires_grad(&mut layer, false)?;
    let image = Tensor::randn((1, channels, side, side))?;
    let spec = ConvSpec {
        groups: channels,
        ..ConvSpec::new(channels, channels, 3)
    };
    let conv = Conv2d::new(spec, &floats(channels * 9), None, ConvOptions::default());
    let conv = conv.map_err(Error::other)?;
    let x = Blocked::zeros(1, channels, side, side, conv.halo());
    let mut out = Blocked::zeros(1, channels, side, side, 0);
    let (mut eager, mut kernel) = (f64::INFINITY, f64::INFINITY);
    for _ in 0..20 {
        eager = eager.min(least(3, || layer.forward(&image))?);
        kernel = kernel.min(least(3, || {
            let run = conv.run(&x, Activation::None.into(), &mut out);
            run.map_err(Error::other)
        })?);
    }
    Ok(eager / kernel)
}

/// The megabytes that attention over 4,096 tokens needs beyond its result.
fn attention_megabytes() -> Result<f64> {
    let (heads, tokens, size) = (16, 4096, 64);
    let data = floats(heads * tokens * size);
    let rows = HeadRows {
        data: &data,
        start: 0,
        batch: 0,
        head: tokens * size,
        place: size,
        column: 1,
    };
    let sizes = Attention::new(1, heads, tokens, size);
    let mut out = vec![0.0; heads * tokens * size];
    let needed = allocated(|| {
        attention(Level::best(), sizes, rows, rows, rows, &mut out).map_err(Error::other)
    })?;
    Ok(needed.bytes_max as f64 / 1e6)
}

fn main() -> Result<()> {
    if wanted("resnet50") {
        compile_times()?;
        on_threads(1, memory)?;
    }
    if wanted("gpt2") {
        println!(
            "compile.steady_bytes_ratio {:.3}",
            on_threads(1, steady_bytes)?
        );
    }
    if wanted("kernels") {
        let conv = on_threads(1, conv_share)?;
        println!("compile.conv3x3_share {conv:.3}");
        let linear = on_threads(1, linear_share)?;
        println!("compile.linear_share {linear:.3}");
        println!("compile.depthwise_speedup {:.2}", depthwise_ratio()?);
        let [bf16, int8] = few_ratios()?;
        println!("compile.gemv_bf16_ratio {bf16:.3}");
        println!("compile.gemv_int8_ratio {int8:.3}");
        let attention = on_threads(1, attention_megabytes)?;
        println!("compile.attention_mb {attention:.1}");
    }
    Ok(())
}
