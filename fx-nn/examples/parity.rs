//! Every golden that PyTorch made with numbers: traced, run, and compared with PyTorch's graph and
//! float64 numbers. With `--compiled` each is compiled too, with and without Winograd's algorithm,
//! and compared with the traced run.
//!
//! Names as arguments select goldens. It reads this repository's goldens.
#![allow(clippy::print_stdout, reason = "an example shows what it does")]

use fx_goldens::cases::compiled::Compiled;
use fx_goldens::cases::{CASES, MISSING};
use fx_nn::prelude::*;

fn main() -> Result<()> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let is_compiled = words.iter().any(|word| word == "--compiled");
    let names: Vec<&String> = words.iter().filter(|w| !w.starts_with("--")).collect();
    let chosen = |name: &str| names.is_empty() || names.iter().any(|n| *n == name);
    let (mut passed, mut total) = (0, 0);
    for case in CASES.iter().filter(|case| chosen(case.name)) {
        total += 1;
        let (line, is_right) = match (case.run)(case.name) {
            Ok(row) if is_compiled => {
                let compiled = Compiled::of(case.name, &row.made)?;
                (compiled.to_string(), compiled.passed())
            }
            Ok(row) => (row.to_string(), row.passed()),
            Err(error) => (format!("{:<34} {error}", case.name), false),
        };
        passed += usize::from(is_right);
        println!("{line}");
    }
    for (name, reason) in MISSING.iter().filter(|(name, _)| chosen(name)) {
        total += usize::from(!is_compiled);
        println!("{name:<34} missing: {reason}");
    }
    println!("passed {passed} of {total}");
    Ok(())
}
