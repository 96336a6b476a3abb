//! Exported programs beside PyTorch: `judge DIR [PART,PART] [--crates OUT]` reads each `NAME.pt2` there (with a part in its name),
//! runs it on the inputs of `NAME_0.npz` and `NAME_1.npz` (`in_00`, `in_01`, ..), as read and compiled, and compares the results
//! with `out_00` and so on. With `--crates`, every eighth of them and five with open lengths become crates of a workspace in OUT,
//! which is built for release and run at both sizes. The example `forms` has what programs write and take besides.
#![allow(clippy::print_stdout, reason = "an example prints")]

#[path = "support/crates.rs"]
mod crates;
mod support;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::process::Command;

use fx_nn::cpu::Cpu;
use fx_nn::ir::registry;
use fx_nn::passes::backend::{Compile, LowerReport};
use fx_nn::passes::counts;
use fx_nn::prelude::*;
use support::{ALLOWED, Off, arrays, by_position, of_kind, off};

/// The part of a program's multiply-adds that compiled kernels do, and how many of the programs have to have it.
const SHARE: (f64, f64) = (0.98, 0.9);

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

/// The part of a compiled program's multiply-adds that are in compiled parts, and how many there are.
fn compiled_share(
    fast: &GraphModule,
    report: &LowerReport,
    inputs: Vec<Tensor>,
) -> Result<(f64, f64)> {
    let (mut all, mut compiled) = (0.0, 0.0);
    for node in counts(fast, by_position(inputs))?.nodes {
        let count = node.multiply_adds.as_known().ok_or_else(|| {
            Error::msg(format_args!(
                "the multiply-adds of `{}` are not known",
                node.node
            ))
        })? as f64;
        all += count;
        if report.parts.iter().any(|part| *part.path == *node.target) {
            compiled += count;
        }
    }
    let share = if all > 0.0 { compiled / all } else { 1.0 };
    Ok((share, all))
}

#[derive(Default)]
struct Counts {
    loaded: usize,
    equal: [usize; 2],
    compiled: usize,
    opaque: usize,
    panics: usize,
    /// The compiled part of each program for which it is known.
    shares: Vec<f64>,
}

impl Counts {
    fn one(&mut self, path: &Path) -> Result<String> {
        let stem = path.with_extension("");
        let gm = fx_torch::load(path)?;
        self.loaded += 1;
        self.opaque += usize::from(!fx_torch::support(path)?.missing.is_empty());
        let read = judged(&gm, &stem)?;
        for (count, off) in self.equal.iter_mut().zip(&read) {
            *count += usize::from(off.is_equal());
        }
        let arrays = arrays(&PathBuf::from(format!("{}_0.npz", stem.display())))?;
        let inputs = of_kind(&arrays, "in_");
        let fast = gm.compile(Compile::new(Cpu::new()).like(by_position(inputs.clone())))?;
        let fast_off = judged(&fast, &stem)?;
        let is_equal = fast_off.iter().all(|off| off.is_equal());
        self.compiled += usize::from(is_equal);
        let report = fast.meta::<LowerReport>();
        let report = report.ok_or_else(|| Error::msg("nothing is said of what was compiled"))?;
        let left = &report.left;
        let share = compiled_share(&fast, report, inputs);
        let share = match share {
            Ok((share, all)) => {
                self.shares.push(share);
                format!("{share:.3} of {:.1}M", all / 1e6)
            }
            Err(error) => format!("unknown ({error})"),
        };
        let wrong = match is_equal && read.iter().all(|off| off.is_equal()) {
            true => "",
            false => "NOT EQUAL ",
        };
        let (read, fast_off) = (shown(&read), shown(&fast_off));
        let mut line = format!(
            "{wrong}read {read} compiled {fast_off} compiled_share {share} left {}",
            left.len()
        );
        for node in left {
            line.push_str(&format!("\n    {node}"));
        }
        Ok(line)
    }
}

/// Builds the crates of some programs, and gives how many there are and how many give PyTorch's numbers.
fn crates_equal(files: &[PathBuf], out: &Path) -> Result<(usize, usize)> {
    let done = crates::write(files, out)?;
    for refused in &done.refused {
        println!("{refused}");
    }
    let manifest = out.join("Cargo.toml");
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let ran = Command::new(cargo)
        .args(["run", "--release", "--quiet", "--manifest-path"])
        .arg(&manifest)
        .output()
        .map_err(Error::other)?;
    let text = String::from_utf8_lossy(&ran.stdout);
    println!("{}", text.trim_end());
    let last = text.lines().last().unwrap_or_default();
    match last.split(' ').collect::<Vec<_>>().as_slice() {
        ["crates", _, "crate_equal", equal] => Ok((
            done.written + done.refused.len(),
            equal.parse().map_err(Error::other)?,
        )),
        _ => Err(Error::msg(String::from_utf8_lossy(&ran.stderr))),
    }
}

fn main() -> Result<()> {
    let mut given: Vec<String> = std::env::args().skip(1).collect();
    let out = given.iter().position(|arg| arg == "--crates").map(|at| {
        let out = given.drain(at..).nth(1).unwrap_or_default();
        PathBuf::from(out)
    });
    let (folder, parts) = match given.as_slice() {
        [folder] => (folder, ""),
        [folder, parts] => (folder, parts.as_str()),
        _ => return Err(Error::msg("judge DIR [PART,PART] [--crates OUT]")),
    };
    let files = support::programs(folder, parts)?;
    let mut counts = Counts::default();
    for path in &files {
        let name = path.file_stem().unwrap_or_default().to_string_lossy();
        match catch_unwind(AssertUnwindSafe(|| counts.one(path))) {
            Ok(Ok(line)) => println!("{name}: {line}"),
            Ok(Err(error)) => println!("{name}: ERROR {error}"),
            Err(_) => {
                counts.panics += 1;
                println!("{name}: PANIC");
            }
        }
    }
    let crates = match out {
        Some(out) => {
            let (all, equal) = crates_equal(&files, &out)?;
            format!("crates {all} crate_equal {equal} ")
        }
        None => String::new(),
    };
    let own = registry::functions()
        .into_iter()
        .filter(|f| f.path().starts_with("fx_torch::"));
    let (least, part) = SHARE;
    let enough = counts
        .shares
        .iter()
        .filter(|share| **share >= least)
        .count();
    println!(
        "compiled_share {enough} of {} at least {least} (bar {part})",
        counts.shares.len()
    );
    println!(
        "exported {} loaded {} equal {} equal_second_size {} compiled_equal {} {crates}rules {} new_functions {} opaque {} panics {}",
        files.len(),
        counts.loaded,
        counts.equal[0],
        counts.equal[1],
        counts.compiled,
        fx_torch::operators().len(),
        own.count(),
        counts.opaque,
        counts.panics
    );
    Ok(())
}
