//! What eager runs of a case give, and how far what a path gives may be from it.
//!
//! Invariant: what a path is compared with comes from eager runs alone.

use std::cell::{OnceCell, RefCell};
use std::collections::BTreeSet;
use std::rc::Rc;

use fx_nn::module::ComponentExt;
use fx_nn::prelude::*;
use fx_nn::{Result, no_grad};
use rand::SeedableRng;
use rand::rngs::StdRng;

use crate::compare::{Given, Tolerance};
use crate::generate::{Binding, Case};
use crate::noise::Anything;
use crate::probe::{Limit, Probe};
use crate::program::{Run, Step};
use crate::refusals::OwnRule;
use crate::{gradients, noise};

/// What of a path is compared with eager runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Compared {
    /// Its values, each layer in its own mode.
    Values,
    /// Its values, all layers in training.
    Trained,
    /// Its values, all layers in evaluation.
    Evaluated,
    /// The same as a file's engines compute them: halves in `float32`, some of them rounded on the way.
    InFile,
    /// Its gradients, each layer in its own mode.
    Gradients,
}

/// What eager runs of a case give; each kind is run when a path first asks for it.
pub struct Expected<'c> {
    case: &'c Case,
    own: Runs,
    trained: OnceCell<Option<Runs>>,
    evaluated: OnceCell<Option<Runs>>,
    in_file: OnceCell<Option<Runs>>,
    gradients: OnceCell<Option<Runs>>,
}

/// What runs on the bindings give.
pub(crate) struct Runs {
    pub(crate) given: Vec<(Given, Tolerance)>,
    /// Whether a run with noise is refused: then noise decides whether a path refuses it.
    pub(crate) may_be_refused: bool,
}

/// Runs on each binding, one after another: what a layer that is trained keeps goes from one to the next.
fn runs(case: &Case, compared: Compared, probe: Option<Probe>) -> Result<Vec<Given>> {
    let mut program = case.fresh()?;
    match compared {
        Compared::Values | Compared::Gradients => {}
        Compared::Trained => program.train(),
        Compared::Evaluated | Compared::InFile => program.eval(),
    }
    if let Some(probe) = &probe {
        probe.prepare(&mut program.layers, &case.layers)?;
    }
    let one = |binding: &Binding| {
        let (inputs, k) = binding;
        let mut run = Run::new(inputs.clone(), Int::from(*k));
        if let Some(probe) = &probe {
            run = run.with(probe.clone());
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
    let noise = |seed: u64| {
        let random = Rc::new(RefCell::new(StdRng::seed_from_u64(seed)));
        match compared {
            Compared::InFile => Probe::FileNoise(random),
            _ => Probe::Noise(random),
        }
    };
    // Halves have few bits, and comparisons of them many ways to go.
    let count = if case.has_halves() { 8 } else { 3 };
    // A run that noise makes impossible says nothing.
    let mut moved: Vec<Vec<Given>> = (0..count)
        .filter_map(|seed| runs(case, compared, Some(noise(seed))).ok())
        .collect();
    if moved.len() < 3 {
        return Ok(None);
    }
    let may_be_refused = moved.len() < count as usize;
    if compared == Compared::InFile && case.has_halves() {
        // A program that cannot be run so has what it is rounded to.
        moved.extend(runs(case, compared, Some(Probe::Wide)).ok());
    }
    let mut measured = Vec::new();
    for (at, given) in own.into_iter().enumerate() {
        let moved: Vec<Given> = moved.iter().map(|all| all[at].clone()).collect();
        if Tolerance::is_unstable(&given, &moved) {
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
    Ok(Some(Runs {
        given: measured,
        may_be_refused,
    }))
}

/// Whether a file's engines round other numbers than eager runs: halves on the way, or what they approximate.
fn differs_in_files(case: &Case) -> bool {
    let steps = case.program.all_steps();
    let is_sigmoid =
        |step: &&Step| matches!(step, Step::Call { call, .. } if noise::is_sigmoid(call));
    case.has_halves() || steps.iter().any(is_sigmoid)
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
        in_file: OnceCell::new(),
        gradients: OnceCell::new(),
    }))
}

impl Expected<'_> {
    /// What a path is compared with; nothing where noise decides it, or a mode refuses the program.
    pub(crate) fn of(&self, compared: Compared) -> Option<&Runs> {
        let compared = match compared {
            Compared::InFile if !differs_in_files(self.case) => Compared::Evaluated,
            compared => compared,
        };
        let cell = match compared {
            Compared::InFile => &self.in_file,
            Compared::Trained if !self.case.layers.is_empty() => &self.trained,
            Compared::Evaluated if !self.case.layers.is_empty() => &self.evaluated,
            Compared::Gradients => &self.gradients,
            _ => return Some(&self.own),
        };
        cell.get_or_init(|| measured(self.case, compared).ok().flatten())
            .as_ref()
    }

    /// What a path is compared with where its engine has rules of its own: anything for what follows from calls that
    /// have them; nothing where shapes follow from them.
    pub(crate) fn open(
        &self,
        compared: Compared,
        rules: &[&'static OwnRule],
    ) -> Option<Vec<(Given, Tolerance)>> {
        let others = (0..OPEN_RUNS).map(|run| {
            let anything = Rc::new(RefCell::new(Anything::of_run(run)));
            let probe = Probe::Open(rules.to_vec(), anything);
            runs(self.case, compared, Some(probe)).ok()
        });
        // What refuses such numbers says nothing.
        let others: Vec<Vec<Given>> = others.flatten().collect();
        if others.is_empty() {
            return None;
        }
        let own = self.of(compared)?.given.iter().enumerate();
        let opened = own.map(|(at, (given, tolerance))| {
            let others: Vec<Given> = others.iter().map(|all| all[at].clone()).collect();
            if Tolerance::is_unstable(given, &others) {
                return None;
            }
            let open = tolerance.open_to(given, &others);
            let open = match compared {
                Compared::Gradients => open.open_at_limits(&self.case.bindings[at].0).ok()?,
                _ => open,
            };
            Some((given.clone(), open))
        });
        opened.collect()
    }
}

/// As many runs as find nearly all that follows from a number, truth values of it too.
const OPEN_RUNS: u64 = 24;

/// The functions of a case that are given what engines differ in, the layers in evaluation.
pub(crate) fn given_limits(case: &Case) -> BTreeSet<(String, Limit)> {
    let names = Rc::new(RefCell::new(BTreeSet::new()));
    // Where a run is refused, those until there are known.
    let _ = runs(
        case,
        Compared::Evaluated,
        Some(Probe::Limits(Rc::clone(&names))),
    );
    names.take()
}
