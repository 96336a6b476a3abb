//! Saving and loading a large file: time, and memory beyond the weights.
//!
//! `cargo bench -p fx-nn --bench files -- 4096` sets the size of the weights in MiB (default: 256).
//! The file is created in the temporary folder. Each figure is measured in a process of its own,
//! with every page of the weights counted by the kernel. Without `/proc/self/status` there are only
//! times.
#![allow(clippy::print_stdout, reason = "a benchmark prints its figures")]

use std::fs;
use std::hint::black_box;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use fx_nn::prelude::*;
use fx_nn::weights;

const MIB: usize = 1 << 20;

/// A field of the process's status, in bytes.
fn status(name: &str) -> Option<usize> {
    let text = fs::read_to_string("/proc/self/status").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    let kib: usize = line.split_whitespace().nth(1)?.parse().ok()?;
    Some(kib * 1024)
}

/// Time and peak memory of a step; memory is counted from `base`, relative to that of the weights.
fn measure<T>(
    name: &str,
    base: Option<usize>,
    size: usize,
    step: impl FnOnce() -> Result<T>,
) -> Result<T> {
    // Resets the peak: making the weights is not measured.
    let is_reset = fs::write("/proc/self/clear_refs", "5").is_ok();
    let start = Instant::now();
    let result = black_box(step()?);
    let time = start.elapsed().as_secs_f64();
    println!("files.{name} {time:.2} s");
    if let (true, Some(most), Some(base)) = (is_reset, status("VmHWM"), base) {
        let ratio = most.saturating_sub(base) as f64 / size as f64;
        match name.split_once('/') {
            Some((name, rest)) => println!("files.{name}_peak_ratio/{rest} {ratio:.3}"),
            None => println!("files.{name}_peak_ratio {ratio:.3}"),
        }
    }
    Ok(result)
}

/// A graph module with `count` parameters of equal size, every page of them written.
fn module(count: usize, size: usize) -> Result<GraphModule> {
    let mut gm = symbolic_trace(traced!(|x: &Tensor| x + 1.0))?;
    for i in 0..count {
        let elements = size / count / 4;
        let numbers: Vec<f32> = (0..elements).map(|at| (at % 1000 + i) as f32).collect();
        let tensor = Tensor::from_vec(numbers, [elements])?.into_parameter()?;
        gm.set_parameter(&format!("weight{i}"), &tensor)?;
    }
    Ok(gm)
}

/// One step, in a process of its own.
fn step(name: &str, path: &Path, count: usize, size: usize) -> Result<()> {
    let base = status("VmRSS");
    let kind = if count == 1 { "/one" } else { "" };
    let named = format!("{}{kind}", name.trim_start_matches("weights_"));
    match name {
        "save" => {
            let gm = module(count, size)?;
            measure(&named, base, size, || gm.save(path))
        }
        "load" => measure(&named, base, size, || GraphModule::load(path)).map(drop),
        _ => {
            let mut gm = module(count, size)?;
            measure(&format!("weights_{named}"), base, size, || {
                weights::load(&mut gm, path)
            })
        }
    }
}

/// A file that is removed when the benchmark ends.
struct Scratch(PathBuf);

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

fn main() -> Result<()> {
    let args: Vec<String> = std::env::args()
        .skip(1)
        .filter(|a| !a.starts_with('-'))
        .collect();
    let number = |text: &String| text.parse::<usize>().map_err(Error::other);
    if let [name, path, count, size] = args.as_slice() {
        return step(name, Path::new(path), number(count)?, number(size)?);
    }
    let size = args.first().map_or(Ok(256), number)? * MIB;
    println!("files.weights {} MiB", size / MIB);
    let name = format!("fx_files_{}.safetensors", std::process::id());
    let file = Scratch(std::env::temp_dir().join(name));
    let program = std::env::current_exe().map_err(Error::other)?;
    for count in [64, 1] {
        for name in ["save", "load", "weights_load"] {
            let mut child = Command::new(&program);
            child
                .arg(name)
                .arg(&file.0)
                .arg(count.to_string())
                .arg(size.to_string());
            let status = child.status().map_err(Error::other)?;
            if !status.success() {
                return Err(Error::msg(format_args!("{name} failed: {status}")));
            }
        }
    }
    Ok(())
}
