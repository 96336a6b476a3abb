//! Runs the quantized files that `tests/onnx_files.py` made beside ONNX Runtime's values: in reference form, in integers, and
//! as they are read without it.
//!
//! `cargo run --release -p fx-quant --example onnx_files -- DIR`
#![allow(clippy::print_stdout, reason = "an example shows what it does")]

#[path = "support/quantized_file.rs"]
mod quantized_file;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Instant;

use fx_nn::prelude::*;
use quantized_file::judged;

/// The least time of three runs, in milliseconds.
fn least(gm: &GraphModule, x: &Tensor) -> Result<f64> {
    let mut least = f64::INFINITY;
    for _ in 0..3 {
        let start = Instant::now();
        let _: Tensor = gm.forward(x)?;
        least = least.min(start.elapsed().as_secs_f64() * 1e3);
    }
    Ok(least)
}

fn main() -> Result<()> {
    let folder = std::env::args().nth(1);
    let folder = folder.ok_or_else(|| Error::msg("give the folder that onnx_files.py made"))?;
    let entries = std::fs::read_dir(&folder).map_err(Error::other)?;
    let mut files: Vec<PathBuf> = (entries.filter_map(|entry| Some(entry.ok()?.path())))
        .filter(|path| path.extension().is_some_and(|end| end == "quantized"))
        .collect();
    files.sort();
    let [mut right, mut integer, mut failed, mut left] = [0; 4];
    for path in &files {
        let file = judged(path)
            .map_err(|error| Error::msg(format_args!("{}: {error}", path.display())))?;
        right += usize::from(file.is_right());
        integer += file.calls;
        failed += file.failed.len();
        left += file.left.len();
        let (fast, slow) = (
            least(&file.integers, &file.x)?,
            least(&file.reference, &file.x)?,
        );
        println!(
            "{}: ms {fast:.2} reference_ms {slow:.2}  integer {} parts {} failed {} left {}  steps: integers {:.2} reference {:.2} read {:.2} onnxruntime {:.2}  sqnr_db fx {:.2} onnxruntime {:.2}{}",
            path.file_name().unwrap_or_default().display(),
            file.calls,
            file.parts,
            file.failed.len(),
            file.left.len(),
            file.in_integers,
            file.in_reference,
            file.as_read,
            file.own,
            file.sqnr[0],
            file.sqnr[1],
            if file.is_right() { "" } else { "  WRONG" },
        );
        for error in &file.failed {
            println!("    failed {error}");
        }
        let mut reasons: BTreeMap<&str, usize> = BTreeMap::new();
        for call in &file.left {
            *reasons
                .entry(call.split_once(": ").map_or("", |(_, why)| why))
                .or_default() += 1;
        }
        for (reason, count) in reasons {
            println!("    left {count}: {reason}");
        }
    }
    let wrong = files.len() - right;
    println!(
        "files {} right {right} wrong {wrong} integer {integer} failed {failed} left_float_by_plan {left}",
        files.len()
    );
    match wrong + failed {
        0 => Ok(()),
        _ => Err(Error::msg("a file is wrong, or has no code of integers")),
    }
}
