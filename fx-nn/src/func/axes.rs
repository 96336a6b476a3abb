//! `Axes` and `Randomness`: where `vmap` finds the examples, and what random functions draw for them.

use fx_core::{Error, Result};

/// Which dim of each argument has the examples; an argument without one is the same for all.
#[derive(Debug, Clone, PartialEq)]
pub struct Axes(Kind);

#[derive(Debug, Clone, PartialEq)]
enum Kind {
    /// The same dim of all.
    All(Option<i64>),
    Each(Vec<Option<i64>>),
}

impl Axes {
    pub(super) fn of(&self, at: usize) -> Option<i64> {
        match &self.0 {
            Kind::All(axis) => *axis,
            Kind::Each(axes) => axes.get(at).copied().flatten(),
        }
    }

    pub(super) fn check(&self, count: usize, what: &str) -> Result<()> {
        match &self.0 {
            Kind::Each(axes) if axes.len() != count => Err(Error::msg(format_args!(
                "vmap: there are {} axes for {count} {what}",
                axes.len()
            ))),
            _ => Ok(()),
        }
    }
}

impl From<i64> for Axes {
    fn from(axis: i64) -> Self {
        Axes(Kind::All(Some(axis)))
    }
}

impl From<i32> for Axes {
    fn from(axis: i32) -> Self {
        Axes::from(i64::from(axis))
    }
}

impl<const N: usize> From<[i64; N]> for Axes {
    fn from(axes: [i64; N]) -> Self {
        Axes(Kind::Each(axes.into_iter().map(Some).collect()))
    }
}

impl<const N: usize> From<[Option<i64>; N]> for Axes {
    fn from(axes: [Option<i64>; N]) -> Self {
        Axes(Kind::Each(axes.to_vec()))
    }
}

impl From<Vec<Option<i64>>> for Axes {
    fn from(axes: Vec<Option<i64>>) -> Self {
        Axes(Kind::Each(axes))
    }
}

/// What random functions draw for the examples.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Randomness {
    /// They are refused.
    #[default]
    Error,
    /// The same numbers for all.
    Same,
    /// Numbers for each.
    Different,
}
