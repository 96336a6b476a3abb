//! How many times as large an image becomes.

use fx_core::file::{Json, Loader, Saver};
use fx_core::module::Component;
use fx_core::tensor::Param;
use fx_core::trace::FromValue;
use fx_core::value::{IntoValue, Value};
use fx_core::{Error, Result};

use super::args::from_tuples;

/// Factors of an image's sizes: one for all dims, one for each, or none.
///
/// ```
/// use fx_nn::prelude::*;
/// let x = Tensor::ones((1, 3, 4, 4))?;
/// assert_eq!(ops::interpolate(&x, None, 2.0, "nearest", None)?.dims()?, [1, 3, 8, 8]);
/// assert_eq!(ops::interpolate(&x, None, [2.0, 1.5], "nearest", None)?.dims()?, [1, 3, 8, 6]);
/// # Ok::<(), fx_nn::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Default)]
#[non_exhaustive]
pub enum Scales {
    /// None: the sizes are given.
    #[default]
    None,
    /// One for all dims.
    One(f64),
    /// One for each dim.
    Each(Vec<f64>),
}

macro_rules! from_number {
    ($($t:ty),*) => {$(
        impl From<$t> for Scales {
            fn from(factor: $t) -> Self {
                Scales::One(factor.into())
            }
        }
    )*};
}
from_number!(f64, f32, i32, u32);

// The only type of options here, so that a bare `None` has it.
impl From<Option<f64>> for Scales {
    fn from(factor: Option<f64>) -> Self {
        factor.map_or(Scales::None, Scales::One)
    }
}

impl From<Vec<f64>> for Scales {
    fn from(factors: Vec<f64>) -> Self {
        Scales::Each(factors)
    }
}

impl<const N: usize> From<[f64; N]> for Scales {
    fn from(factors: [f64; N]) -> Self {
        Scales::Each(factors.to_vec())
    }
}

from_tuples!(Scales of f64);

impl IntoValue for Scales {
    fn into_value(self) -> Value {
        match self {
            Scales::None => Value::None,
            Scales::One(factor) => Value::Float(factor),
            Scales::Each(factors) => factors.into_value(),
        }
    }
}

impl<'v> Param<'v> for Scales {
    type Guard = Scales;
    const SYMBOLIC: bool = false;

    fn guard(value: &'v Value) -> Result<Scales> {
        match value {
            Value::None => Ok(Scales::None),
            Value::List(_) | Value::Tuple(_) => Vec::from_value(value.clone()).map(Scales::Each),
            // Of a proxy, the error says how to make it known.
            one => f64::from_value(one.clone()).map(Scales::One),
        }
    }

    fn lend(guard: &'v Scales) -> Scales {
        guard.clone()
    }

    fn to_value(&self) -> Value {
        self.clone().into_value()
    }
}

impl FromValue for Scales {
    fn from_value(value: Value) -> Result<Scales> {
        <Scales as Param<'_>>::guard(&value)
    }
}

impl Component for Scales {
    fn is_plain() -> bool {
        true
    }

    fn duplicate(&self) -> Self {
        self.clone()
    }

    fn to_saved(&self, saver: &mut Saver) -> Result<Json> {
        match self {
            Scales::None => Ok(Json::Null),
            Scales::One(factor) => factor.to_saved(saver),
            Scales::Each(factors) => factors.to_saved(saver),
        }
    }

    fn from_saved(saved: &Json, loader: &mut Loader<'_>) -> Result<Self> {
        match saved {
            Json::Null => Ok(Scales::None),
            Json::Array(_) => Vec::from_saved(saved, loader).map(Scales::Each),
            one => f64::from_saved(one, loader).map(Scales::One),
        }
    }
}

impl Scales {
    /// A factor for each of so many dims; `None` if there is none.
    pub(crate) fn each(&self, dims: usize) -> Result<Option<Vec<f64>>> {
        let factors = match self {
            Scales::None => return Ok(None),
            Scales::One(factor) => vec![*factor; dims],
            Scales::Each(factors) if factors.len() == dims => factors.clone(),
            Scales::Each(factors) => {
                return Err(Error::msg(format_args!(
                    "scale_factor {factors:?} has one number, or one for each of the {dims} dims behind the channels"
                )));
            }
        };
        match factors
            .iter()
            .find(|factor| factor.is_nan() || **factor <= 0.0)
        {
            None => Ok(Some(factors)),
            Some(factor) => Err(Error::msg(format_args!(
                "scale_factor is above 0, not {factor}"
            ))),
        }
    }
}
