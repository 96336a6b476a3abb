//! Every golden that PyTorch made with numbers: traced, run, and compared with PyTorch's graph and
//! float64 numbers.
//!
//! Names as arguments select goldens.
#![allow(clippy::print_stdout, reason = "an example shows what it does")]

use fx_goldens::cases::{CASES, MISSING};
use fx_nn::prelude::*;

fn main() -> Result<()> {
    let wanted: Vec<String> = std::env::args().skip(1).collect();
    let chosen = |name: &str| wanted.is_empty() || wanted.iter().any(|w| w == name);
    let (mut passed, mut total) = (0, 0);
    for case in CASES.iter().filter(|case| chosen(case.name)) {
        total += 1;
        match (case.run)(case.name) {
            Ok(row) => {
                passed += usize::from(row.passed());
                println!("{row}");
            }
            Err(error) => println!("{:<34} {error}", case.name),
        }
    }
    for (name, reason) in MISSING.iter().filter(|(name, _)| chosen(name)) {
        total += 1;
        println!("{name:<34} missing: {reason}");
    }
    println!("passed {passed} of {total}");
    Ok(())
}
