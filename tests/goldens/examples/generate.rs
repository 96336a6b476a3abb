//! Writes the generated source of every case into `tests/generated_source`, to be looked at, compiled and committed.
//!
//! With names as arguments, only those.
#![allow(clippy::print_stdout, reason = "an example shows what it does")]

use fx_core::{Error, Result};
use fx_goldens::cases::CASES;
use fx_goldens::generated::{file, source};

fn main() -> Result<()> {
    let wanted: Vec<String> = std::env::args().skip(1).collect();
    let chosen = |name: &str| wanted.is_empty() || wanted.iter().any(|w| w == name);
    for case in CASES.iter().filter(|case| chosen(case.name)) {
        let row = (case.run)(case.name)?;
        match source(&row.made) {
            Ok(source) => std::fs::write(file(case.name), source).map_err(Error::other)?,
            Err(error) => println!("{}: {error}", case.name),
        }
    }
    Ok(())
}
