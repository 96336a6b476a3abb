//! Exported programs as crates beside PyTorch: `crates DIR OUT` reads every eighth `NAME.pt2` of DIR by the hash of its name,
//! and five whose lengths are open, and writes each to OUT as a crate with a struct for each class, with a program
//! that runs them all on the inputs of `NAME_0.npz` and `NAME_1.npz`: `cargo run --release --manifest-path OUT/Cargo.toml`.
#![allow(clippy::print_stdout, reason = "an example prints")]

#[path = "support/crates.rs"]
mod crates;
#[allow(dead_code, reason = "the judge uses the rest")]
mod support;

use std::path::Path;

use fx_nn::prelude::*;

fn main() -> Result<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [folder, out] = args.as_slice() else {
        return Err(Error::msg("crates DIR OUT"));
    };
    let done = crates::write(&support::programs(folder, "")?, Path::new(out))?;
    for refused in &done.refused {
        println!("{refused}");
    }
    println!("crates {} refused {}", done.written, done.refused.len());
    Ok(())
}
