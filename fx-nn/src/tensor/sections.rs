//! How a tensor is split: into a number of pieces, or at places.

use fx_core::tensor::Param;
use fx_core::trace::FromValue;
use fx_core::value::{IntoValue, Value};
use fx_core::{Error, Result};

use super::args::from_tuples;

/// A number of pieces, `3`, or the places between them, `[2, 5]`.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Sections {
    /// So many pieces.
    Count(i64),
    /// Pieces that end at these places, and a last one to the end.
    At(Vec<i64>),
}

impl From<i64> for Sections {
    fn from(count: i64) -> Self {
        Sections::Count(count)
    }
}

impl<const N: usize> From<[i64; N]> for Sections {
    fn from(places: [i64; N]) -> Self {
        Sections::At(places.to_vec())
    }
}

impl From<Vec<i64>> for Sections {
    fn from(places: Vec<i64>) -> Self {
        Sections::At(places)
    }
}

from_tuples!(Sections of i64);

impl IntoValue for Sections {
    fn into_value(self) -> Value {
        match self {
            Sections::Count(count) => Value::Int(count),
            Sections::At(places) => places.into_value(),
        }
    }
}

impl<'v> Param<'v> for Sections {
    type Guard = Sections;
    const SYMBOLIC: bool = false;

    fn guard(value: &'v Value) -> Result<Sections> {
        match value {
            Value::Int(count) => Ok(Sections::Count(*count)),
            Value::List(_) | Value::Tuple(_) => Ok(Sections::At(Vec::from_value(value.clone())?)),
            other => Err(Error::expected(
                "a number of pieces or a list of places",
                other.describe(),
            )),
        }
    }

    fn lend(guard: &'v Sections) -> Sections {
        guard.clone()
    }

    fn to_value(&self) -> Value {
        self.clone().into_value()
    }
}

impl FromValue for Sections {
    fn from_value(value: Value) -> Result<Sections> {
        <Sections as Param<'_>>::guard(&value)
    }
}
