//! Programs as Rust source: each is a crate with its weights, and is judged once `programs.py` has compiled it.

use std::path::{Path, PathBuf};

use fx_nn::Result;
use fx_nn::graph_module::Folder;
use fx_nn::module::Module;
use fx_nn::prelude::*;
use fx_nn::value::Value;

use crate::calls::Calls;
use crate::compare::Given;
use crate::expected::{Compared, expected};
use crate::generate::{Case, Generator};
use crate::judge;
use crate::paths::arguments;
use crate::report::Counts;

/// The path of what is written, compiled and run.
pub const EMITTED: &str = "emitted as Rust";
/// The path of what is written, compiled and traced again.
const TRACED: &str = "emitted as Rust, traced again";

/// Reads the weights of a program into its module.
pub type Load = fn(&Path) -> Result<Box<dyn Module>>;

/// Whether a case is written.
pub fn takes(case: &Case) -> bool {
    !case.refused
}

fn folder_of(folder: &Path, seed: u64) -> PathBuf {
    folder.join(format!("program_{seed}"))
}

/// Writes the crate of a case into a folder.
///
/// # Errors
/// Returns an error if it has no form in source.
pub fn write(folder: &Path, case: &Case) -> Result<()> {
    let gm = judge::traced(case)?;
    Folder::new("Program").write(&gm, folder_of(folder, case.seed))
}

fn runs(case: &Case, mut one: impl FnMut(usize) -> Result<Value>) -> Result<Vec<Given>> {
    let all = (0..case.bindings.len()).map(|at| Given::of(&one(at)?));
    all.collect()
}

/// Judges programs that were compiled, by their numbers.
///
/// # Errors
/// Returns an error if the recorded calls cannot be read.
pub fn judge(folder: &Path, programs: &[(u64, Load)]) -> Result<(Counts, Vec<String>)> {
    let calls = Calls::parse(&fx_differential::recorded()?)?;
    let mut counts = Counts::new(std::iter::empty());
    let mut generator = Generator::new(&calls);
    let mut wrong = Vec::new();
    for (seed, load) in programs {
        let case = generator.case(*seed)?;
        let Ok(Some(expected)) = expected(&case) else {
            continue;
        };
        let expected = Ok(expected);
        let weights = folder_of(folder, *seed).join("weights.safetensors");
        let eager = || {
            let module = load(&weights)?;
            runs(&case, |at| module.forward(arguments(&case, at)))
        };
        let traced = || {
            let gm = symbolic_trace(&*load(&weights)?)?;
            runs(&case, |at| gm.forward(arguments(&case, at)))
        };
        let verdict =
            fx_nn::no_grad(|| judge::compared(EMITTED, Compared::Values, &expected, eager));
        wrong.extend(counts.verdict(EMITTED, *seed, &verdict));
        let verdict =
            fx_nn::no_grad(|| judge::compared(TRACED, Compared::Values, &expected, traced));
        wrong.extend(counts.verdict(TRACED, *seed, &verdict));
    }
    Ok((counts, wrong))
}
