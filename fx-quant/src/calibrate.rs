//! `Calibration`: scale and zero point of each value, from what a model gave for a user's inputs.
//!
//! Invariant: each value that a plan makes integers of has both, or a reason why it stays in floats.

use std::fmt;

use fx_core::trace::IntoArgs;
use fx_core::{Error, Result};
use indexmap::IndexMap;

use crate::observer::Observer;
use crate::plan::{Plan, Source};
use crate::run::{as_floats, watched};
use crate::scheme::{Params, Scheme};

/// Scale and zero point of each value that becomes integers, by its node's name: made by
/// [`Plan::calibrate`], printed as a table.
///
/// The default is empty: it is one of a plan whose scales each run decides ([`QConfig::dynamic`](crate::QConfig::dynamic)).
#[derive(Debug, Clone, Default)]
pub struct Calibration {
    pub(crate) params: IndexMap<String, (Scheme, Params)>,
    pub(crate) floats: IndexMap<String, String>,
    runs: usize,
}

impl Calibration {
    /// The integers of a value, and what they stand for.
    pub fn params(&self, name: &str) -> Option<(Scheme, Params)> {
        self.params.get(name).copied()
    }

    /// How many runs were seen.
    pub fn runs(&self) -> usize {
        self.runs
    }
}

/// What is seen of a value.
struct Seen {
    observer: Box<dyn Observer>,
    scheme: Scheme,
    /// Whether it is a tensor of floats; `None` if no run came to it.
    is_float: Option<bool>,
}

impl Plan {
    /// Runs the model on inputs, and gives each value a scale and a zero point by what its observer saw. The graph is not
    /// changed. An iterator with a progress bar shows how far it is.
    ///
    /// # Errors
    /// Returns an error if there are no inputs, a run fails, or no range follows from a value: the error names its node,
    /// line and module.
    pub fn calibrate<A: IntoArgs>(
        &self,
        inputs: impl IntoIterator<Item = A>,
    ) -> Result<Calibration> {
        let mut seen: IndexMap<&str, Seen> = IndexMap::new();
        for (name, value) in &self.values {
            if let Source::Seen(config) = &value.source {
                let observed = Seen {
                    observer: config.new_observer(),
                    scheme: config.activation,
                    is_float: None,
                };
                seen.insert(name, observed);
            }
        }
        let mut runs = 0;
        for args in inputs {
            runs += 1;
            watched(&self.gm, args, |node, value| {
                let Some(seen) = seen.get_mut(&*node.name().to_string()) else {
                    return Ok(());
                };
                let tensor = as_floats(value);
                seen.is_float = Some(tensor.is_some());
                match tensor {
                    Some(tensor) => seen.observer.observe(&tensor),
                    None => Ok(()),
                }
            })?;
        }
        if runs == 0 && !seen.is_empty() {
            return Err(Error::msg(
                "there are no inputs to calibrate with: give some that are like those of use",
            ));
        }
        let mut calibration = Calibration {
            params: IndexMap::new(),
            floats: IndexMap::new(),
            runs,
        };
        for (name, value) in &self.values {
            let found = match &value.source {
                Source::Seen(_) => self.params_of(name, &seen[&**name])?,
                Source::OfRun(_) => continue,
                Source::Of(from) => match calibration.params.get(from) {
                    Some(params) => Ok(*params),
                    None => Err(format!("%{from} is in floats")),
                },
            };
            match found {
                Ok(params) => drop(calibration.params.insert(name.clone(), params)),
                Err(reason) => drop(calibration.floats.insert(name.clone(), reason)),
            }
        }
        Ok(calibration)
    }

    /// The scale and the zero point of a value, or why it has none.
    fn params_of(
        &self,
        name: &str,
        seen: &Seen,
    ) -> Result<std::result::Result<(Scheme, Params), String>> {
        match seen.is_float {
            None => return Ok(Err("no run came to it".to_string())),
            Some(false) => return Ok(Err("it is no tensor of floats".to_string())),
            Some(true) => {}
        }
        let params = || -> Result<Option<Params>> {
            let range = seen.observer.range(&seen.scheme)?;
            range
                .map(|(min, max)| seen.scheme.params(min, max))
                .transpose()
        };
        let blamed = |error: Error| match self.gm.graph().find_name(name) {
            Some(node) => node.blame("calibrating", error),
            None => error,
        };
        Ok(match params().map_err(blamed)? {
            Some(params) => Ok((seen.scheme, params)),
            None => Err("no number was seen of it".to_string()),
        })
    }
}

impl fmt::Display for Calibration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (name, (scheme, params)) in &self.params {
            writeln!(
                f,
                "%{name}: {} scale {} zero_point {}",
                scheme.dtype, params.scale, params.zero_point
            )?;
        }
        for (name, reason) in &self.floats {
            writeln!(f, "%{name}: float: {reason}")?;
        }
        Ok(())
    }
}
