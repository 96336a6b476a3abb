//! Judges programs that were written as Rust; `programs.py` compiles it with them, and it writes what it counts.
#![allow(clippy::print_stdout, reason = "a program of the command line")]

use std::path::Path;

use fx_nn::{Error, Result};

// `PROGRAMS`, and the module of each of them.
include!(concat!(env!("FX_EMITTED"), "/programs.rs"));

fn main() -> Result<()> {
    let folder = Path::new(env!("FX_EMITTED"));
    let (counts, wrong) = fx_programs::emitted::judge(folder, PROGRAMS)?;
    for line in wrong {
        println!("{line}");
    }
    std::fs::write(folder.join("report.json"), counts.report().to_string()).map_err(Error::other)
}
