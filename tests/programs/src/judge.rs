//! Judging a case: its eager run, then every path, each compared with it.
//!
//! Invariant: a refusal of one path has a rule in `refusals`, or is a fault.

use std::panic::{AssertUnwindSafe, catch_unwind};

use fx_nn::module::ComponentExt;
use fx_nn::prelude::*;
use fx_nn::{GraphModule, Result};
use rand::SeedableRng;
use rand::rngs::StdRng;

use crate::compare::{Given, Tolerance, compare};
use crate::engines::Engines;
use crate::generate::Case;
use crate::paths::{Path, Paths};
use crate::plants::Plant;
use crate::program::Run;
use crate::refusals;

/// What became of a case on a path.
#[derive(Debug, Clone)]
pub enum Verdict {
    /// So many values were compared.
    Same(usize),
    /// The path and eager code refuse it.
    RefusedByAll,
    /// The path refuses it, by a rule.
    Refused(&'static str, String),
    /// fx cannot read the file that it wrote.
    Unread,
    /// Another value, or a refusal without a rule.
    Wrong(String),
    /// A panic.
    Panic(String),
}

/// What eager runs give, of a program as it is, trained and in evaluation; nothing where noise decides it.
pub struct Expected {
    own: Runs,
    trained: Option<Runs>,
    evaluated: Option<Runs>,
}

type Runs = Vec<(Given, Tolerance)>;

/// Runs, catching a panic.
///
/// # Errors
/// Returns an error as the function does, or the text of a panic.
pub fn caught<T>(f: impl FnOnce() -> T) -> std::result::Result<T, String> {
    catch_unwind(AssertUnwindSafe(f)).map_err(|panic| {
        let text = panic.downcast_ref::<String>().map(String::as_str);
        let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
        text.unwrap_or("a panic").to_string()
    })
}

/// In which mode layers are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// Each in its own.
    Own,
    /// All are trained.
    Train,
    /// All are evaluated.
    Eval,
}

impl Mode {
    /// That of a path.
    fn of(path: &Path) -> Self {
        match path.name {
            name if name.contains("train()") => Mode::Train,
            name if [
                "onnx",
                "stablehlo",
                "xla",
                "sharded",
                "pass FuseBatchNorm",
                "pass RemoveDropout",
            ]
            .iter()
            .any(|of| name.starts_with(of)) =>
            {
                Mode::Eval
            }
            _ => Mode::Own,
        }
    }

    fn set(self, module: &mut impl ComponentExt) {
        match self {
            Mode::Own => {}
            Mode::Train => module.train(),
            Mode::Eval => module.eval(),
        }
    }
}

/// Runs on each binding, one after another: what a layer that is trained keeps goes from one to the next.
fn runs(case: &Case, mode: Mode, noise: Option<u64>) -> Result<Vec<Given>> {
    let mut program = case.fresh()?;
    mode.set(&mut program);
    let all = case.bindings.iter().map(|(inputs, k)| {
        let mut run = Run::new(inputs.clone(), Int::from(*k));
        if let Some(seed) = noise {
            run = run.with_noise(StdRng::seed_from_u64(seed));
        }
        run.steps(&program, &program.steps)?;
        Given::of(&run.results(&program.results)?)
    });
    all.collect()
}

fn measured(case: &Case, mode: Mode) -> Result<Option<Runs>> {
    let own = runs(case, mode, None)?;
    // A run that noise makes impossible says nothing.
    let moved: Vec<Vec<Given>> = (0..3)
        .filter_map(|seed| runs(case, mode, Some(seed)).ok())
        .collect();
    let mut measured = Vec::new();
    for (at, given) in own.into_iter().enumerate() {
        let moved: Vec<Given> = moved.iter().map(|all| all[at].clone()).collect();
        if moved.len() < 3 || Tolerance::is_unstable(&given, &moved) {
            return Ok(None);
        }
        let tolerance = Tolerance::of(&given, &moved);
        measured.push((given, tolerance));
    }
    Ok(Some(measured))
}

/// What eager runs of a case give; nothing where noise decides it.
///
/// # Errors
/// Returns an error if the program is refused.
pub fn expected(case: &Case) -> Result<Option<Expected>> {
    fx_nn::no_grad(|| {
        let Some(own) = measured(case, Mode::Own)? else {
            return Ok(None);
        };
        let other = |mode| {
            let is_other = !case.layers.is_empty();
            if is_other {
                measured(case, mode).ok().flatten()
            } else {
                Some(own.clone())
            }
        };
        let (trained, evaluated) = (other(Mode::Train), other(Mode::Eval));
        Ok(Some(Expected {
            own,
            trained,
            evaluated,
        }))
    })
}

/// The case as a graph module.
///
/// # Errors
/// Returns an error if it cannot be traced.
pub fn traced(case: &Case) -> Result<GraphModule> {
    let mut gm = symbolic_trace(&case.fresh()?)?;
    gm.lint()?;
    // What cannot be inferred runs without.
    let mut shaped = gm.clone();
    if shaped.infer_shapes(&case.specs).is_ok() {
        gm = shaped;
    }
    Ok(gm)
}

/// Judges a case on a path.
pub fn judge(
    case: &Case,
    expected: &Result<Expected>,
    path: &Path,
    engines: Option<&mut Engines>,
    plant: &Plant,
) -> Verdict {
    let mut paths = Paths {
        case,
        engines,
        plant: plant.clone(),
    };
    // A layer that is trained changes: each path has its own.
    let run = || {
        let mut gm = traced(&plant.planted(case))?;
        if Mode::of(path) == Mode::Eval {
            gm.eval();
        }
        path.run(&mut paths, &gm)
    };
    let verdict = compared(path.name, Mode::of(path), expected, run);
    match verdict {
        Verdict::Wrong(text) => match refusals::difference(path.name, case, &text) {
            Some(rule) => Verdict::Refused(rule, text),
            None => Verdict::Wrong(text),
        },
        other => other,
    }
}

/// Compares what a path gives with what is expected.
pub fn compared(
    path: &str,
    mode: Mode,
    expected: &Result<Expected>,
    run: impl FnOnce() -> Result<Vec<Given>>,
) -> Verdict {
    let found = match caught(run) {
        Ok(found) => found,
        Err(panic) => return Verdict::Panic(panic),
    };
    match (expected, found) {
        (Err(_), Err(_)) => Verdict::RefusedByAll,
        (Err(error), Ok(_)) => Verdict::Wrong(format!(
            "eager code refuses it ({error}), and the path gives a value"
        )),
        (Ok(_), Err(error)) => {
            let text = error.to_string();
            if text.starts_with("unread: ") {
                return Verdict::Unread;
            }
            match refusals::rule(path, &text) {
                Some(rule) => Verdict::Refused(rule, text),
                None => Verdict::Wrong(format!("refused: {text}")),
            }
        }
        (Ok(expected), Ok(found)) => {
            let runs = match mode {
                Mode::Own => Some(&expected.own),
                Mode::Train => expected.trained.as_ref(),
                Mode::Eval => expected.evaluated.as_ref(),
            };
            let Some(runs) = runs else {
                return Verdict::Same(0);
            };
            let mut compared = 0;
            for (at, ((given, tolerance), found)) in runs.iter().zip(&found).enumerate() {
                match compare(given, tolerance, found) {
                    Ok(count) => compared += count,
                    Err(error) => return Verdict::Wrong(format!("binding {at}: {error}")),
                }
            }
            Verdict::Same(compared)
        }
    }
}
