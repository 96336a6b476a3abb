//! Exported programs beside PyTorch: `judge DIR` reads each `NAME.pt2` there, runs it on the inputs of `NAME_0.npz` and
//! `NAME_1.npz` (`in_00`, `in_01`, ..), as read and compiled, and compares the results with `out_00` and so on.
#![allow(clippy::print_stdout, reason = "an example prints")]

mod support;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

use fx_nn::cpu::Cpu;
use fx_nn::passes::backend::{Compile, LowerReport};
use fx_nn::prelude::*;
use support::{ALLOWED, arrays, by_position, of_kind, off};

/// What came of a path: how far it is off at each size.
fn judged(gm: &GraphModule, stem: &Path) -> Result<[f64; 2]> {
    let at = |n: usize| PathBuf::from(format!("{}_{n}.npz", stem.display()));
    Ok([off(gm, &at(0), by_position)?, off(gm, &at(1), by_position)?])
}

fn main() -> Result<()> {
    let folder = std::env::args()
        .nth(1)
        .ok_or_else(|| Error::msg("judge DIR"))?;
    let entries = std::fs::read_dir(&folder).map_err(Error::other)?;
    let mut files: Vec<PathBuf> = entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.extension().is_some_and(|e| e == "pt2"))
        .collect();
    files.sort();
    let (mut loaded, mut equal, mut second, mut compiled, mut panics) = (0, 0, 0, 0, 0);
    for path in &files {
        let name = path
            .file_stem()
            .map_or_else(String::new, |stem| stem.to_string_lossy().into_owned());
        let stem = path.with_extension("");
        let run = catch_unwind(AssertUnwindSafe(|| -> Result<String> {
            let gm = fx_torch::load(path)?;
            loaded += 1;
            let [first, other] = judged(&gm, &stem)?;
            equal += usize::from(first <= ALLOWED);
            second += usize::from(other <= ALLOWED);
            let arrays = arrays(&PathBuf::from(format!("{}_0.npz", stem.display())))?;
            let like = by_position(of_kind(&arrays, "in_"));
            let fast = gm.compile(Compile::new(Cpu::new()).like(like))?;
            let [third, fourth] = judged(&fast, &stem)?;
            compiled += usize::from(third.max(fourth) <= ALLOWED);
            let left = fast
                .meta::<LowerReport>()
                .map_or(0, |report| report.left.len());
            Ok(format!(
                "read {first:.1e} {other:.1e} compiled {third:.1e} {fourth:.1e} left {left}"
            ))
        }));
        match run {
            Ok(Ok(line)) => println!("{name}: {line}"),
            Ok(Err(error)) => println!("{name}: {error}"),
            Err(_) => {
                panics += 1;
                println!("{name}: PANIC");
            }
        }
    }
    println!(
        "exported {} loaded {loaded} equal {equal} equal_second_size {second} compiled_equal {compiled} panics {panics}",
        files.len()
    );
    Ok(())
}
