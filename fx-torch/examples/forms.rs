//! Forms of exported programs beside PyTorch: `forms DIR` reads each `NAME.pt2` that `tests/forms.py` wrote there, runs it on the
//! inputs of `NAME_0.npz` and `NAME_1.npz`, as read, compiled, and saved and loaded, each time from a fresh file, and compares the
//! results and what the run has written. `forms DIR flat` has no layers, `forms DIR modules` the modules of PyTorch.
#![allow(clippy::print_stdout, reason = "an example prints")]

#[path = "support/forms.rs"]
mod checks;
#[allow(dead_code, reason = "the judge uses the rest")]
mod support;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

use checks::{call_of, run_off};
use fx_nn::cpu::Cpu;
use fx_nn::ir::{Effects, Op};
use fx_nn::passes::backend::Compile;
use fx_nn::prelude::*;
use fx_torch::{Hierarchy, Loader};
use support::{arrays, of_kind};

/// What came of a form.
enum Came {
    /// Whether it is equal as read, compiled and saved.
    Run([Result<f64>; 3]),
    /// It draws random numbers, and runs.
    Random,
    Refused(Error),
}

fn read(path: &Path, training: bool) -> Result<GraphModule> {
    let hierarchy = match std::env::args().nth(2).as_deref() {
        Some("flat") => Hierarchy::Flat,
        Some("modules") => Hierarchy::Modules,
        _ => Hierarchy::Layers,
    };
    Loader::new()
        .trainable(training)
        .hierarchy(hierarchy)
        .load(path)
}

fn is_random(gm: &GraphModule) -> Result<bool> {
    let types = gm.named_modules();
    for node in gm.graph().nodes() {
        let effects = gm.call(node)?.effects();
        // What writes has every effect, such as norms, and draws nothing; layers that draw have every effect too.
        let draws = match node.op() {
            Op::CallFunction(_) => !effects.contains(Effects::WRITES),
            Op::CallModule(path) => types
                .get(&**path)
                .is_some_and(|name| !name.contains("Norm")),
            _ => false,
        };
        if draws && effects.contains(Effects::RANDOM) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// How far a path of a program is off at both sizes, over what is allowed.
fn judged(
    path: &Path,
    stem: &Path,
    training: bool,
    way: impl Fn(GraphModule, &Path) -> Result<GraphModule>,
) -> Result<f64> {
    let mut worst = 0f64;
    for at in 0..2 {
        let file = PathBuf::from(format!("{}_{at}.npz", stem.display()));
        let first = PathBuf::from(format!("{}_0.npz", stem.display()));
        let gm = way(read(path, training)?, &first)?;
        worst = worst.max(run_off(&gm, &read(path, training)?, &file)?);
    }
    Ok(worst)
}

fn compiled(gm: GraphModule, first: &Path) -> Result<GraphModule> {
    let like = call_of(&gm, of_kind(&arrays(first)?, "in_"))?;
    gm.compile(Compile::new(Cpu::new()).like(like))
}

fn form(path: &Path) -> Result<Came> {
    let stem = path.with_extension("");
    let name = stem.to_string_lossy().into_owned();
    let training = name.contains(".train");
    let gm = match read(path, training) {
        Ok(gm) => gm,
        Err(error) => return Ok(Came::Refused(error)),
    };
    // In evaluation it is the program that was exported there.
    let plain = PathBuf::from(name.replace(".train", ""));
    if training && is_random(&gm)? {
        let inputs = of_kind(&arrays(&PathBuf::from(format!("{name}_0.npz")))?, "in_");
        let _: Value = gm.forward(call_of(&gm, inputs)?)?;
        if is_random(&read(path, false)?)? {
            // What the model draws by itself in training has no evaluation.
            return Ok(Came::Random);
        }
        let off = judged(path, &plain, false, |gm, _| Ok(gm))?;
        return match off <= 1.0 {
            true => Ok(Came::Random),
            false => Err(Error::msg(format_args!("off by {off:.1e} in evaluation"))),
        };
    }
    let as_read = judged(path, &stem, training, |gm, _| Ok(gm));
    let as_read = match (as_read, training) {
        (Ok(off), true) => judged(path, &plain, false, |gm, _| Ok(gm))
            .map(|other| off.max(other))
            .map_err(|e| Error::msg(format_args!("in evaluation: {e}"))),
        (as_read, _) => as_read,
    };
    Ok(Came::Run([
        as_read,
        judged(path, &stem, training, compiled),
        judged(path, &stem, training, |gm, _| {
            GraphModule::from_bytes(&gm.to_bytes()?)
        }),
    ]))
}

fn main() -> Result<()> {
    let folder = std::env::args()
        .nth(1)
        .ok_or_else(|| Error::msg("forms DIR"))?;
    let files = support::programs(&folder, "")?;
    let (mut equal, mut refused, mut random, mut wrong, mut panics) = ([0; 3], 0, 0, 0, 0);
    for path in &files {
        let name = path.file_stem().unwrap_or_default().to_string_lossy();
        match catch_unwind(AssertUnwindSafe(|| form(path))) {
            Ok(Ok(Came::Run(ways))) => {
                let mut line = String::new();
                let mut is_wrong = false;
                for ((way, off), equal) in ["read", "compiled", "saved"]
                    .iter()
                    .zip(ways)
                    .zip(&mut equal)
                {
                    let shown = match off {
                        Ok(off) if off <= 1.0 => {
                            *equal += 1;
                            format!("{off:.1e}")
                        }
                        Ok(off) => {
                            is_wrong = true;
                            format!("WRONG {off:.1e}")
                        }
                        Err(error) => {
                            is_wrong = true;
                            format!("WRONG {error}")
                        }
                    };
                    line.push_str(&format!(" {way} {shown}"));
                }
                wrong += usize::from(is_wrong);
                println!("{name}:{line}");
            }
            Ok(Ok(Came::Random)) => {
                random += 1;
                println!("{name}: random");
            }
            Ok(Ok(Came::Refused(error))) => {
                refused += 1;
                println!("{name}: REFUSED {error}");
            }
            Ok(Err(error)) => {
                wrong += 1;
                println!("{name}: WRONG {error}");
            }
            Err(_) => {
                panics += 1;
                println!("{name}: PANIC");
            }
        }
    }
    let [read, compiled, saved] = equal;
    println!(
        "forms {} loaded {} equal {read} compiled_equal {compiled} saved_equal {saved} refused {refused} wrong {wrong} panics {panics} random {random}",
        files.len(),
        files.len() - refused - panics,
    );
    Ok(())
}
