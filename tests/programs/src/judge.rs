//! Judging a case: its eager run, then every path, each compared with it.
//!
//! Invariant: a refusal of one path has a rule in `refusals`, or is a fault.

use std::cell::OnceCell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;

use fx_nn::module::ComponentExt;
use fx_nn::prelude::*;
use fx_nn::{Error, GraphModule, Result, no_grad};
use rand::SeedableRng;
use rand::rngs::StdRng;

use crate::compare::{Given, Tolerance, compare};
use crate::engines::Engines;
use crate::generate::{Binding, Case};
use crate::gradients;
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

/// What eager runs of a case give; each kind is run when a path first asks for it.
pub struct Expected<'c> {
    case: &'c Case,
    own: Runs,
    trained: OnceCell<Option<Runs>>,
    evaluated: OnceCell<Option<Runs>>,
    gradients: OnceCell<Option<Runs>>,
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

/// What of a path is compared with eager runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Compared {
    /// Its values, each layer in its own mode.
    Values,
    /// Its values, all layers in training.
    Trained,
    /// Its values, all layers in evaluation.
    Evaluated,
    /// Its gradients, each layer in its own mode.
    Gradients,
}

/// Runs on each binding, one after another: what a layer that is trained keeps goes from one to the next.
fn runs(case: &Case, compared: Compared, noise: Option<u64>) -> Result<Vec<Given>> {
    let mut program = case.fresh()?;
    match compared {
        Compared::Values | Compared::Gradients => {}
        Compared::Trained => program.train(),
        Compared::Evaluated => program.eval(),
    }
    let one = |binding: &Binding| {
        let (inputs, k) = binding;
        let mut run = Run::new(inputs.clone(), Int::from(*k));
        if let Some(seed) = noise {
            run = run.with_noise(StdRng::seed_from_u64(seed));
        }
        run.steps(&program, &program.steps)?;
        run.results(&program.results)
    };
    let all = case.bindings.iter().map(|binding| match compared {
        Compared::Gradients => {
            let binding = gradients::learning(binding)?;
            gradients::of(&binding, &one(&binding)?)
        }
        _ => Given::of(&no_grad(|| one(binding))?),
    });
    all.collect()
}

fn measured(case: &Case, compared: Compared) -> Result<Option<Runs>> {
    let own = runs(case, compared, None)?;
    // A run that noise makes impossible says nothing.
    let moved: Vec<Vec<Given>> = (0..3)
        .filter_map(|seed| runs(case, compared, Some(seed)).ok())
        .collect();
    let mut measured = Vec::new();
    for (at, given) in own.into_iter().enumerate() {
        let moved: Vec<Given> = moved.iter().map(|all| all[at].clone()).collect();
        if moved.len() < 3 || Tolerance::is_unstable(&given, &moved) {
            return Ok(None);
        }
        let tolerance = Tolerance::of(&given, &moved);
        let tolerance = match compared {
            Compared::Gradients => {
                let half = case.has_halves().then_some(DType::F16);
                tolerance.of_sums(&given, half.unwrap_or(DType::F32))
            }
            _ => tolerance,
        };
        measured.push((given, tolerance));
    }
    Ok(Some(measured))
}

/// What eager runs of a case give; nothing where noise decides it.
///
/// # Errors
/// Returns an error if the program is refused.
pub fn expected(case: &Case) -> Result<Option<Expected<'_>>> {
    let own = measured(case, Compared::Values)?;
    Ok(own.map(|own| Expected {
        case,
        own,
        trained: OnceCell::new(),
        evaluated: OnceCell::new(),
        gradients: OnceCell::new(),
    }))
}

impl Expected<'_> {
    /// What a path is compared with; nothing where noise decides it, or a mode refuses the program.
    fn of(&self, compared: Compared) -> Option<&Runs> {
        let cell = match compared {
            Compared::Trained if !self.case.layers.is_empty() => &self.trained,
            Compared::Evaluated if !self.case.layers.is_empty() => &self.evaluated,
            Compared::Gradients => &self.gradients,
            _ => return Some(&self.own),
        };
        cell.get_or_init(|| measured(self.case, compared).ok().flatten())
            .as_ref()
    }
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

/// A case with what is expected of it.
pub struct Judge<'c> {
    case: &'c Case,
    plant: &'c Plant,
    expected: Rc<Result<Expected<'c>>>,
    /// The graph that all paths share: a program without layers leaves nothing in it.
    traced: OnceCell<GraphModule>,
}

impl<'c> Judge<'c> {
    /// The judge of a case; nothing where noise decides what it gives.
    pub fn new(case: &'c Case, plant: &'c Plant) -> Option<Self> {
        Some(Judge {
            case,
            plant,
            expected: Rc::new(expected(case).transpose()?),
            traced: OnceCell::new(),
        })
    }

    /// A judge of the same case with a fault.
    #[must_use]
    pub fn planted(&self, plant: &'c Plant) -> Self {
        Judge {
            case: self.case,
            plant,
            expected: Rc::clone(&self.expected),
            traced: OnceCell::new(),
        }
    }

    /// Whether eager code refuses the case.
    pub fn is_refused(&self) -> bool {
        self.expected.is_err()
    }

    /// What becomes of the case where a path refuses it.
    pub fn refused(&self, path: &str, error: Error) -> Verdict {
        compared(path, Compared::Values, &self.expected, || Err(error))
    }

    /// What becomes of the case on a path.
    pub fn verdict(&self, path: &Path, engines: Option<&mut Engines>) -> Verdict {
        let mut paths = Paths {
            case: self.case,
            engines,
            plant: self.plant,
        };
        let run = || {
            let traced = || traced(&self.plant.planted(self.case));
            if !self.case.layers.is_empty() {
                // A layer that is trained changes: each path has its own.
                let mut gm = traced()?;
                if path.compared == Compared::Evaluated {
                    gm.eval();
                }
                return path.run(&mut paths, &gm);
            }
            let gm = match self.traced.get() {
                Some(gm) => gm,
                None => {
                    let gm = traced()?;
                    self.traced.get_or_init(|| gm)
                }
            };
            path.run(&mut paths, gm)
        };
        let verdict = compared(path.name, path.compared, &self.expected, run);
        match verdict {
            Verdict::Wrong(text) => match refusals::difference(path.name, self.case, &text) {
                Some(rule) => Verdict::Refused(rule, text),
                None => Verdict::Wrong(text),
            },
            other => other,
        }
    }
}

/// Compares what a path gives with what is expected.
pub fn compared(
    path: &str,
    compared: Compared,
    expected: &Result<Expected<'_>>,
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
        // Noise decides it, or eager code refuses that mode.
        (Ok(expected), _) if expected.of(compared).is_none() => Verdict::RefusedByAll,
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
            let runs = expected.of(compared).into_iter().flatten();
            let mut count = 0;
            for (at, ((given, tolerance), found)) in runs.zip(&found).enumerate() {
                match compare(given, tolerance, found) {
                    Ok(values) => count += values,
                    Err(error) => return Verdict::Wrong(format!("binding {at}: {error}")),
                }
            }
            Verdict::Same(count)
        }
    }
}
