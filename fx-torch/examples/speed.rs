//! What a program costs: `speed read FILE.pt2` reads the bytes of a file, `speed load FILE.pt2` loads it,
//! `speed first FILE.pt2` loads, compiles and runs it once on the inputs of `FILE_0.npz`, `speed run FILE.pt2 RUNS` several
//! times, and `speed steps FILE.pt2 RUNS` says what each step takes. Each prints its times in milliseconds and the most memory that the process held, in megabytes (Linux).
#![allow(clippy::print_stdout, reason = "an example prints")]

#[allow(dead_code, reason = "the judge uses the rest")]
mod support;

use std::path::{Path, PathBuf};
use std::time::Instant;

use fx_nn::cpu::Cpu;
use fx_nn::passes::backend::Compile;
use fx_nn::prelude::*;
use support::{arrays, by_position, of_kind};

fn since(start: Instant) -> f64 {
    start.elapsed().as_secs_f64() * 1e3
}

/// The most memory that this process held, in megabytes; 0 where the system does not say it.
fn peak() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kilobytes = line.and_then(|line| line.trim().trim_end_matches(" kB").parse().ok());
    kilobytes.map_or(0.0, |kilobytes: f64| kilobytes / 1e3)
}

fn inputs(file: &Path) -> Result<Vec<Tensor>> {
    let stem = file.with_extension("");
    let arrays = arrays(&PathBuf::from(format!("{}_0.npz", stem.display())))?;
    Ok(of_kind(&arrays, "in_"))
}

fn main() -> Result<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let (what, file, runs) = match args.as_slice() {
        [what, file] => (what, PathBuf::from(file), 1),
        [what, file, runs] => (
            what,
            PathBuf::from(file),
            runs.parse().map_err(Error::other)?,
        ),
        _ => {
            return Err(Error::msg(
                "speed read|load|first|run|steps FILE.pt2 [RUNS]",
            ));
        }
    };
    let start = Instant::now();
    if what == "read" {
        let bytes = std::fs::read(&file).map_err(Error::other)?;
        println!(
            "read_ms {:.1} bytes {} peak_mb {:.0}",
            since(start),
            bytes.len(),
            peak()
        );
        return Ok(());
    }
    let gm = fx_torch::load(&file)?;
    let load = since(start);
    if what == "load" {
        println!("load_ms {load:.1} peak_mb {:.0}", peak());
        return Ok(());
    }
    let inputs = inputs(&file)?;
    let start = Instant::now();
    let fast = gm.compile(Compile::new(Cpu::new()).like(by_position(inputs.clone())))?;
    let compile = since(start);
    let mut times = Vec::new();
    for _ in 0..runs.max(1) {
        let start = Instant::now();
        let _: Value = fast.forward(by_position(inputs.clone()))?;
        times.push(since(start));
    }
    if what == "steps" {
        println!("{}", fast.profile(runs.max(1), by_position(inputs))?);
    }
    let least = times.iter().copied().fold(f64::INFINITY, f64::min);
    println!(
        "load_ms {load:.1} compile_ms {compile:.1} first_ms {:.1} least_ms {least:.3} peak_mb {:.0}",
        times[0],
        peak()
    );
    Ok(())
}
