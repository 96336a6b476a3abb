//! `Wrt`: what gradients are of.

use fx_core::ir::ParamSpec;
use fx_core::{Error, Result};

/// What a gradient is of: arguments, by position or by name, parameters by patterns of their paths, or both.
///
/// ```
/// use fx_nn::func::{Wrt, parameters};
/// let _: Wrt = 0.into();
/// let _: Wrt = ["w", "b"].into();
/// let _: Wrt = parameters("layers.*.weight").and(0);
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Wrt {
    pub(crate) inputs: Vec<Input>,
    /// Whether the gradient is of one argument, and not of a list of one.
    pub(crate) is_one: bool,
    pub(crate) parameters: Vec<String>,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Input {
    /// From the end if it is negative.
    At(i64),
    Named(String),
}

/// The parameters whose paths fit a pattern: `*` stands for one part of a path, `**` for any number of parts.
pub fn parameters(pattern: impl Into<String>) -> Wrt {
    Wrt {
        inputs: Vec::new(),
        is_one: false,
        parameters: vec![pattern.into()],
    }
}

impl Wrt {
    /// This and others.
    #[must_use]
    pub fn and(mut self, others: impl Into<Wrt>) -> Wrt {
        let others = others.into();
        self.is_one =
            self.inputs.is_empty() && others.is_one || others.inputs.is_empty() && self.is_one;
        self.inputs.extend(others.inputs);
        self.parameters.extend(others.parameters);
        self
    }

    fn of_inputs(inputs: Vec<Input>, is_one: bool) -> Self {
        Wrt {
            inputs,
            is_one,
            parameters: Vec::new(),
        }
    }

    /// Arguments by position.
    pub(crate) fn of(places: Vec<usize>) -> Wrt {
        Wrt::of_inputs(places.into_iter().map(position).collect(), false)
    }

    /// All of some arguments.
    pub(crate) fn all(count: usize) -> Wrt {
        Wrt::of_inputs(
            (0..count).map(|at| Input::At(at as i64)).collect(),
            count == 1,
        )
    }

    /// The positions of the arguments.
    pub(crate) fn places(&self, params: &[ParamSpec]) -> Result<Vec<usize>> {
        if self.inputs.is_empty() && self.parameters.is_empty() {
            return Err(Error::msg(
                "there is nothing that the gradient is of: name an argument, or parameters",
            ));
        }
        let mut places = Vec::with_capacity(self.inputs.len());
        for input in &self.inputs {
            let found = match input {
                Input::At(at) => {
                    let from = if *at < 0 { params.len() as i64 } else { 0 };
                    let at = usize::try_from(at.saturating_add(from)).ok();
                    at.filter(|at| *at < params.len())
                }
                Input::Named(name) => params.iter().position(|param| param.name == name.as_str()),
            };
            let at = found.ok_or_else(|| {
                let names: Vec<&str> = params.iter().map(|param| &*param.name).collect();
                let wanted = match input {
                    Input::At(at) => at.to_string(),
                    Input::Named(name) => format!("`{name}`"),
                };
                Error::msg(format_args!(
                    "there is no argument {wanted}: there are {}",
                    names.join(", ")
                ))
            })?;
            if places.contains(&at) {
                return Err(Error::msg(format_args!(
                    "argument `{}` is named twice as what the gradient is of",
                    params[at].name
                )));
            }
            places.push(at);
        }
        Ok(places)
    }
}

/// A position as it is given.
fn position(at: usize) -> Input {
    Input::At(i64::try_from(at).unwrap_or(i64::MAX))
}

impl From<usize> for Wrt {
    fn from(at: usize) -> Self {
        Wrt::of_inputs(vec![position(at)], true)
    }
}

impl From<i32> for Wrt {
    /// A negative position counts from the end.
    fn from(at: i32) -> Self {
        Wrt::of_inputs(vec![Input::At(at.into())], true)
    }
}

impl From<&str> for Wrt {
    fn from(name: &str) -> Self {
        Wrt::of_inputs(vec![Input::Named(name.to_string())], true)
    }
}

impl<const N: usize> From<[usize; N]> for Wrt {
    fn from(all: [usize; N]) -> Self {
        Wrt::of_inputs(all.into_iter().map(position).collect(), false)
    }
}

impl<const N: usize> From<[i32; N]> for Wrt {
    fn from(all: [i32; N]) -> Self {
        let all = all.into_iter().map(|at| Input::At(at.into()));
        Wrt::of_inputs(all.collect(), false)
    }
}

impl<const N: usize> From<[&str; N]> for Wrt {
    fn from(all: [&str; N]) -> Self {
        Wrt::of_inputs(
            all.into_iter()
                .map(|name| Input::Named(name.to_string()))
                .collect(),
            false,
        )
    }
}

impl From<Vec<usize>> for Wrt {
    fn from(all: Vec<usize>) -> Self {
        Wrt::of_inputs(all.into_iter().map(position).collect(), false)
    }
}
