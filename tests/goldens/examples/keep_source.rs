//! Writes the generated source of every case, and of what `tests/emitted` has, into `tests/generated_source`, to be looked
//! at, compiled and committed.
//!
//! With names as arguments, only those.
#![allow(clippy::print_stdout, reason = "an example shows what it does")]

use fx_core::{Error, GraphModule, Result};
use fx_goldens::cases::CASES;
use fx_goldens::generated::{code_of_function, code_of_model, file, source};

#[allow(dead_code, unreachable_pub, reason = "the tests run them")]
#[path = "../tests/emitted/mod.rs"]
mod emitted;

use emitted::{Code, EMITTED};

fn main() -> Result<()> {
    let wanted: Vec<String> = std::env::args().skip(1).collect();
    let chosen = |name: &str| wanted.is_empty() || wanted.iter().any(|w| w == name);
    for case in CASES.iter().filter(|case| chosen(case.name)) {
        let row = (case.run)(case.name)?;
        write(case.name, &row.made.traced)?;
    }
    for (name, make, code) in EMITTED.iter().filter(|(name, ..)| chosen(name)) {
        let traced = make()?.traced;
        write(name, &traced)?;
        let code = match code {
            Code::Not => continue,
            Code::Function(imports) => code_of_function(&traced, imports),
            Code::Model(model) => code_of_model(&traced, model),
        };
        std::fs::write(file(&format!("code_{name}")), code).map_err(Error::other)?;
    }
    Ok(())
}

fn write(name: &str, gm: &GraphModule) -> Result<()> {
    match source(gm) {
        Ok(source) => std::fs::write(file(name), source).map_err(Error::other)?,
        Err(error) => println!("{name}: {error}"),
    }
    Ok(())
}
