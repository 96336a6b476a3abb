//! How many of PyTorch's functions and layers the differential test calls; `--missing` lists the others.
//!
//! `tests/differential/names.py` lists the names and documents what it leaves out;
//! `tests/differential/recorded.jsonl` holds the calls.
#![allow(clippy::print_stdout, reason = "an example shows what it does")]

use std::collections::BTreeSet;
use std::path::Path;

/// The name of a call, from its line of JSON.
fn name(line: &str) -> Option<&str> {
    line.split_once("\"name\":\"")?.1.split('"').next()
}

fn main() -> std::io::Result<()> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/differential");
    let names = std::fs::read_to_string(folder.join("names.txt"))?;
    let calls = std::fs::read_to_string(folder.join("recorded.jsonl"))?;
    let called: BTreeSet<&str> = calls.lines().filter_map(name).collect();
    let (found, missing): (Vec<&str>, Vec<&str>) = names
        .lines()
        .filter_map(|line| line.split(' ').next())
        .partition(|name| called.contains(name));
    if std::env::args().any(|argument| argument == "--missing") {
        for name in &missing {
            println!("{name}");
        }
    }
    let of = found.len() + missing.len();
    println!("torch_functions: {} of {of}", found.len());
    let share = found.len() as f64 / of as f64;
    println!("torch_functions_share: {share:.3}");
    Ok(())
}
