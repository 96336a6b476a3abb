//! What many runs and many compiles leave in memory.
//!
//! `FX_PJRT_PLUGIN=PLUGIN cargo run --release -p fx-pjrt --example pjrt_leaks`
#![allow(clippy::print_stdout, reason = "an example prints")]

use fx_nn::prelude::*;
use fx_pjrt::{LoadedProgram, Pjrt};
use fx_stablehlo::{Export, Program};

/// The memory of the process that is resident, in KiB.
fn resident() -> Result<i64> {
    let status = std::fs::read_to_string("/proc/self/status").map_err(Error::other)?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let number = line.and_then(|line| line.split_whitespace().next()?.parse().ok());
    number.ok_or_else(|| Error::msg("/proc/self/status has no VmRSS"))
}

/// How much more memory is resident after `count` times than after the first `warm` ones, in KiB.
fn growth(warm: usize, count: usize, mut each: impl FnMut() -> Result<()>) -> Result<i64> {
    for _ in 0..warm {
        each()?;
    }
    let before = resident()?;
    for _ in warm..count {
        each()?;
    }
    Ok(resident()? - before)
}

fn main() -> Result<()> {
    let pjrt = Pjrt::from_env()?;
    let gm = symbolic_trace(traced!(|x: &Tensor| x.relu()?.exp()))?;
    let x = Tensor::ones((4, 4))?;
    let program = Program::of(&gm, &Export::example(&x))?;
    let loaded = LoadedProgram::new(pjrt.client(), &program)?;
    let there = loaded.place([&x])?;
    let run = || loaded.run(&[&there[0]])?[0].wait();
    println!("rss_growth_of_runs_kib: {}", growth(1_000, 100_000, run)?);
    let call = || loaded.call([&x]).map(drop);
    println!("rss_growth_of_calls_kib: {}", growth(1_000, 100_000, call)?);
    let compile = || {
        LoadedProgram::new(pjrt.client(), &program)?
            .call([&x])
            .map(drop)
    };
    println!(
        "rss_growth_of_compiles_kib: {}",
        growth(200, 1_000, compile)?
    );
    Ok(())
}
