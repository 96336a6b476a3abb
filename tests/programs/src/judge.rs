//! Judging a case: its eager run, then every path, each compared with it.
//!
//! Invariant: a refusal of one path has a rule in `refusals`, or is a fault.

use std::cell::OnceCell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;

use fx_nn::module::ComponentExt;
use fx_nn::prelude::*;
use fx_nn::{Error, GraphModule, Result};

use crate::compare::{Given, Tolerance, compare};
use crate::engines::Engines;
use crate::expected::{Compared, Expected, expected};
use crate::generate::Case;
use crate::paths::{Path, Paths};
use crate::plants::Plant;
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

    /// The graph of the case.
    ///
    /// # Errors
    /// Returns an error if it cannot be traced.
    pub fn traced(&self) -> Result<&GraphModule> {
        if let Some(gm) = self.traced.get() {
            return Ok(gm);
        }
        let gm = traced(&self.plant.planted(self.case))?;
        Ok(self.traced.get_or_init(|| gm))
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
        let mut run = || {
            if self.case.layers.is_empty() {
                return path.run(&mut paths, self.traced()?);
            }
            // A layer that is trained changes: each path has its own.
            let mut gm = traced(&self.plant.planted(self.case))?;
            if matches!(path.compared, Compared::Evaluated | Compared::InFile) {
                gm.eval();
            }
            path.run(&mut paths, &gm)
        };
        let mut found = None;
        let kept = || {
            let given = run()?;
            found = Some(given.clone());
            Ok(given)
        };
        match compared(path.name, path.compared, &self.expected, kept) {
            Verdict::Wrong(text) => match self.excuse(path, &text, found.as_deref()) {
                Some(rule) => Verdict::Refused(rule, text),
                None => Verdict::Wrong(text),
            },
            other => other,
        }
    }

    /// The rule by which a path gives another value.
    fn excuse(&self, path: &Path, text: &str, found: Option<&[Given]>) -> Option<&'static str> {
        if let Some(rule) = refusals::difference(path.name, self.case, text) {
            return Some(rule);
        }
        let (Ok(expected), Some(found)) = (&*self.expected, found) else {
            return None;
        };
        let runs = expected.of(path.compared)?;
        if let Some(rule) = refusals::unchecked(path.name, runs.may_be_refused, text) {
            return Some(rule);
        }
        let rules = refusals::own_rules(path.name, self.case);
        let first = rules.first()?;
        // Nothing can be said of it where shapes follow from such calls.
        let Some(open) = expected.open(path.compared, &rules) else {
            return Some(first.why);
        };
        match all_alike(&open, found) {
            Ok(_) => Some(first.why),
            // What is left may have another rule.
            Err(error) => refusals::difference(path.name, self.case, &error.to_string()),
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
        (Ok(expected), found) => match (expected.of(compared), found) {
            // Noise decides it, or eager code refuses that mode.
            (None, _) => Verdict::RefusedByAll,
            (Some(runs), Err(error)) => refused(path, runs.may_be_refused, &error),
            (Some(runs), Ok(found)) => match all_alike(&runs.given, &found) {
                Ok(count) => Verdict::Same(count),
                Err(error) => Verdict::Wrong(error.to_string()),
            },
        },
    }
}

fn refused(path: &str, is_by_noise: bool, error: &Error) -> Verdict {
    let text = error.to_string();
    if text.starts_with("unread: ") {
        return Verdict::Unread;
    }
    match refusals::rule(path, &text) {
        Some(rule) => Verdict::Refused(rule, text),
        None if is_by_noise => Verdict::RefusedByAll,
        None => Verdict::Wrong(format!("refused: {text}")),
    }
}

/// How many values of all bindings were compared.
fn all_alike(expected: &[(Given, Tolerance)], found: &[Given]) -> Result<usize> {
    let mut count = 0;
    for (at, ((given, tolerance), found)) in expected.iter().zip(found).enumerate() {
        count += compare(given, tolerance, found)
            .map_err(|error| Error::msg(format!("binding {at}: {error}")))?;
    }
    Ok(count)
}
