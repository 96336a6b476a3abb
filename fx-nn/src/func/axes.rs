//! `Axes` and `Randomness`: where `vmap` finds the examples, and what random functions draw for them.

use fx_core::value::{Tree, Value};
use fx_core::{Error, Result};

/// Which dim of each argument has the examples; an argument without one is the same for all.
///
/// One number is of all, a list has one for each, and a `tree!` follows structures: an axis in it is that of all tensors
/// that stand at its place.
///
/// ```
/// use fx_nn::IndexMap;
/// use fx_nn::func::{Transform, vmap};
/// use fx_nn::prelude::*;
/// let scaled = traced!(|p: IndexMap<String, Tensor>, x: &Tensor| (x * &p["scale"])? + &p["shift"]);
/// let many = vmap(scaled).in_axes(tree!(({"scale": None, "shift": 0}, 0)));
/// let p = tree!({"scale": (Tensor::ones(2)?), "shift": (Tensor::ones((3, 2))?)});
/// let y: Tensor = many.call((p, Tensor::ones((3, 2))?))?;
/// assert_eq!(y.to_vec()?, [2.0; 6]);
/// # Ok::<(), Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Axes(Kind);

#[derive(Debug, Clone)]
enum Kind {
    /// The same dim of all.
    All(Option<i64>),
    Each(Vec<Option<i64>>),
    /// Of structures.
    Tree(Value),
}

impl Axes {
    /// The axes of the tensors of some values.
    pub(super) fn of(&self, all: &[Value], what: &str) -> Result<Vec<Vec<Option<i64>>>> {
        let differ = |count: usize| {
            Error::msg(format_args!(
                "vmap: there are {count} axes for {} {what}",
                all.len()
            ))
        };
        let repeated = |axis: Option<i64>, value| Ok(vec![axis; leaves(value)?]);
        match &self.0 {
            Kind::All(axis) => all.iter().map(|value| repeated(*axis, value)).collect(),
            Kind::Each(axes) if axes.len() == all.len() => {
                let pairs = axes.iter().zip(all);
                pairs.map(|(axis, value)| repeated(*axis, value)).collect()
            }
            Kind::Each(axes) => Err(differ(axes.len())),
            Kind::Tree(Value::Tuple(axes) | Value::List(axes)) if axes.len() != all.len() => {
                Err(differ(axes.len()))
            }
            Kind::Tree(axes) => {
                let each = |(at, value)| {
                    let mut found = Vec::new();
                    let axes = match axes {
                        Value::Tuple(axes) | Value::List(axes) => &axes[at],
                        one => one,
                    };
                    follow(axes, value, &mut found)?;
                    Ok(found)
                };
                all.iter().enumerate().map(each).collect()
            }
        }
    }

    /// The axes of the tensors of one value.
    pub(super) fn of_result(&self, result: &Value) -> Result<Vec<Option<i64>>> {
        match &self.0 {
            Kind::Tree(axes) => {
                let mut found = Vec::new();
                follow(axes, result, &mut found)?;
                Ok(found)
            }
            _ => {
                let all = Tree::of(result)?.flatten(result.clone())?;
                Ok(self.of(&all, "results")?.concat())
            }
        }
    }
}

/// How many values a structure has.
fn leaves(value: &Value) -> Result<usize> {
    Ok(Tree::of(value)?.flatten(value.clone())?.len())
}

/// The axes of a structure: an axis is that of all below its place.
fn follow(axes: &Value, value: &Value, found: &mut Vec<Option<i64>>) -> Result<()> {
    let differ = || {
        Error::msg(format_args!(
            "vmap: the axes {axes} are of another structure than {}",
            value.describe()
        ))
    };
    match (axes, value) {
        (Value::Int(axis), _) => found.extend(vec![Some(*axis); leaves(value)?]),
        (Value::None, _) => found.extend(vec![None; leaves(value)?]),
        (Value::Tuple(axes) | Value::List(axes), Value::Tuple(all) | Value::List(all)) => {
            if axes.len() != all.len() {
                return Err(differ());
            }
            for (axes, value) in axes.iter().zip(all.iter()) {
                follow(axes, value, found)?;
            }
        }
        (Value::Dict(axes), Value::Dict(all)) => {
            if axes.len() != all.len() {
                return Err(differ());
            }
            for (key, value) in all.iter() {
                follow(axes.get(key).ok_or_else(differ)?, value, found)?;
            }
        }
        _ => return Err(differ()),
    }
    Ok(())
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

impl From<Value> for Axes {
    /// A `tree!`: a tuple has one entry for each argument, or follows a result that is one.
    fn from(axes: Value) -> Self {
        Axes(Kind::Tree(axes))
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
