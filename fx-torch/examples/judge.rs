//! Exported programs beside PyTorch: `judge DIR [PART,PART]` reads each `NAME.pt2` there (with a part in its name), runs it on
//! the inputs of `NAME_0.npz` and `NAME_1.npz` (`in_00`, `in_01`, ..), as read and compiled, and compares the results with
//! `out_00` and so on.
#![allow(clippy::print_stdout, reason = "an example prints")]

mod support;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

use fx_nn::cpu::Cpu;
use fx_nn::passes::backend::{Compile, LowerReport};
use fx_nn::prelude::*;
use support::{ALLOWED, Off, arrays, by_position, of_kind, off};

/// What came of a path: how far it is off at each size.
fn judged(gm: &GraphModule, stem: &Path) -> Result<[Off; 2]> {
    let at = |n: usize| PathBuf::from(format!("{}_{n}.npz", stem.display()));
    Ok([off(gm, &at(0), by_position)?, off(gm, &at(1), by_position)?])
}

/// How far two sizes are off, with what is allowed where that is more than usual.
fn shown(both: &[Off; 2]) -> String {
    let one = |off: &Off| match off.allowed > ALLOWED {
        true => format!("{:.1e} (of {:.1e})", off.most, off.allowed),
        false => format!("{:.1e}", off.most),
    };
    format!("{} {}", one(&both[0]), one(&both[1]))
}

fn main() -> Result<()> {
    let mut given = std::env::args().skip(1);
    let folder = given
        .next()
        .ok_or_else(|| Error::msg("judge DIR [PART,PART]"))?;
    let parts = given.next().unwrap_or_default();
    let entries = std::fs::read_dir(&folder).map_err(Error::other)?;
    let mut files: Vec<PathBuf> = entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.extension().is_some_and(|e| e == "pt2"))
        .filter(|path| {
            let name = path.file_stem().unwrap_or_default().to_string_lossy();
            parts.split(',').any(|part| name.contains(part))
        })
        .collect();
    files.sort();
    let (mut loaded, mut equal, mut second, mut compiled) = (0, 0, 0, 0);
    let (mut opaque, mut panics) = (0, 0);
    for path in &files {
        let name = path
            .file_stem()
            .map_or_else(String::new, |stem| stem.to_string_lossy().into_owned());
        let stem = path.with_extension("");
        let run = catch_unwind(AssertUnwindSafe(|| -> Result<String> {
            let gm = fx_torch::load(path)?;
            loaded += 1;
            opaque += usize::from(!fx_torch::support(path)?.missing.is_empty());
            let read = judged(&gm, &stem)?;
            equal += usize::from(read[0].is_equal());
            second += usize::from(read[1].is_equal());
            let arrays = arrays(&PathBuf::from(format!("{}_0.npz", stem.display())))?;
            let like = by_position(of_kind(&arrays, "in_"));
            let fast = gm.compile(Compile::new(Cpu::new()).like(like))?;
            let fast_off = judged(&fast, &stem)?;
            let is_equal = fast_off.iter().all(|off| off.is_equal());
            compiled += usize::from(is_equal);
            let left = fast
                .meta::<LowerReport>()
                .map_or(0, |report| report.left.len());
            let wrong = match is_equal && read.iter().all(|off| off.is_equal()) {
                true => "",
                false => "NOT EQUAL ",
            };
            Ok(format!(
                "{wrong}read {} compiled {} left {left}",
                shown(&read),
                shown(&fast_off)
            ))
        }));
        match run {
            Ok(Ok(line)) => println!("{name}: {line}"),
            Ok(Err(error)) => println!("{name}: ERROR {error}"),
            Err(_) => {
                panics += 1;
                println!("{name}: PANIC");
            }
        }
    }
    println!(
        "exported {} loaded {loaded} equal {equal} equal_second_size {second} compiled_equal {compiled} rules {} opaque {opaque} panics {panics}",
        files.len(),
        fx_torch::operators().len()
    );
    Ok(())
}
