//! `Number` and `Bound`: scalar arguments of operations, held in their own kind: no integer goes
//! through a float.

use candle_core::Tensor as Data;
use fx_core::tensor::Param;
use fx_core::trace::FromValue;
use fx_core::value::{DType, IntoValue, Value};
use fx_core::{Error, Result};

use super::{candle_dtype, narrowed};
use crate::device::PROCESSOR;
use crate::error::Fx;

/// A truth value, an integer or a float, where PyTorch takes any of them: `1`, `1.0` and `true` convert into it.
///
/// ```
/// use fx_nn::prelude::*;
/// let x = Tensor::from_vec(vec![1i64, 2], 2)?;
/// let big = (1i64 << 53) + 1;
/// assert_eq!(x.masked_fill(&x.gt(1)?, big)?.i(1)?.number()?, fx_nn::Number::Int(big));
/// # Ok::<(), fx_nn::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub enum Number {
    /// A truth value.
    Bool(bool),
    /// An integer.
    Int(i64),
    /// A float.
    Float(f64),
}

impl From<f64> for Number {
    fn from(x: f64) -> Self {
        Number::Float(x)
    }
}

// The only type of integers here, so that literals have it: any other would make `1 << 40` an
// `i32`.
impl From<i64> for Number {
    fn from(n: i64) -> Self {
        Number::Int(n)
    }
}

impl From<bool> for Number {
    fn from(b: bool) -> Self {
        Number::Bool(b)
    }
}

impl Number {
    /// As a float.
    pub(crate) fn as_f64(self) -> f64 {
        match self {
            Number::Bool(b) => f64::from(u8::from(b)),
            Number::Int(n) => n as f64,
            Number::Float(x) => x,
        }
    }

    /// Without its fraction.
    pub(crate) fn whole(self) -> Number {
        match self {
            Number::Float(x) if x.is_finite() => Number::Int(x as i64),
            number => number,
        }
    }

    pub(crate) fn is_nan(self) -> bool {
        matches!(self, Number::Float(x) if x.is_nan())
    }

    /// The type of the result of an operation on a tensor of type `own` and this number: the number
    /// decides only if it is of a higher kind.
    pub(crate) fn beside(self, own: DType) -> DType {
        match self {
            Number::Int(_) if own == DType::Bool => DType::I64,
            Number::Float(_) if !own.is_floating_point() => DType::F32,
            _ => own,
        }
    }

    /// As one element of a type; integers wrap around, as in PyTorch's operators.
    pub(crate) fn wrapped(self, dtype: DType) -> Result<Data> {
        let one = match (self, dtype) {
            (number, DType::Bool) => Data::new(u8::from(number.as_f64() != 0.0), &PROCESSOR),
            (Number::Bool(b), dtype) => {
                let one = Data::new(u8::from(b), &PROCESSOR).fx()?;
                one.to_dtype(candle_dtype(dtype)?)
            }
            // Rounded once.
            (Number::Int(n), DType::F32) => Data::new(n as f32, &PROCESSOR),
            (Number::Int(n), DType::F16 | DType::BF16) => {
                let one = Data::new(n as f32, &PROCESSOR).fx()?;
                one.to_dtype(candle_dtype(dtype)?)
            }
            (Number::Float(x), DType::U64) if x >= 0.0 => {
                Data::new((x as u64).cast_signed(), &PROCESSOR)
            }
            (Number::Int(n), dtype) => {
                let one = Data::new(narrowed(n, dtype), &PROCESSOR).fx()?;
                one.to_dtype(candle_dtype(dtype)?)
            }
            (Number::Float(x), dtype) => {
                let one = Data::new(x, &PROCESSOR).fx()?;
                one.to_dtype(candle_dtype(dtype)?)
            }
        };
        one.fx()
    }

    /// The least and the largest number of a type; `None` for truth values, which every number converts to.
    pub(crate) fn limits(dtype: DType) -> Option<(f64, f64, i64, i64)> {
        let float = |max: f64| Some((-max, max, i64::MIN, i64::MAX));
        let whole = |min: i64, max: i64| Some((min as f64, max as f64, min, max));
        match dtype {
            DType::Bool => None,
            DType::U8 => whole(0, u8::MAX.into()),
            DType::U16 => whole(0, u16::MAX.into()),
            DType::U32 => whole(0, u32::MAX.into()),
            DType::U64 => Some((0.0, u64::MAX as f64, 0, i64::MAX)),
            DType::I8 => whole(i8::MIN.into(), i8::MAX.into()),
            DType::I16 => whole(i16::MIN.into(), i16::MAX.into()),
            DType::I32 => whole(i32::MIN.into(), i32::MAX.into()),
            DType::I64 => whole(i64::MIN, i64::MAX),
            DType::F16 => float(65504.0),
            DType::BF16 => float(f64::from(f32::from_bits(0x7f7f_0000))),
            DType::F32 => float(f32::MAX.into()),
            DType::F64 => float(f64::MAX),
            // Candle has no other type, and the conversion reports it.
            _ => None,
        }
    }

    /// Whether a type can hold the number, apart from its fraction; a negative integer may stand
    /// for the unsigned one that it wraps to.
    fn fits(self, dtype: DType) -> bool {
        let Some((low, high, least, most)) = Number::limits(dtype) else {
            return true;
        };
        match self {
            Number::Bool(_) => true,
            Number::Int(n) if dtype.is_floating_point() => (low..=high).contains(&(n as f64)),
            Number::Int(n) if least == 0 => n.unsigned_abs() <= most.unsigned_abs(),
            Number::Int(n) => (least..=most).contains(&n),
            Number::Float(x) if dtype.is_floating_point() => {
                !x.is_finite() || (low..=high).contains(&x)
            }
            Number::Float(x) => (low..=high).contains(&x),
        }
    }

    /// As one element of a type that can hold it; a fraction is cut off for integers, as in
    /// PyTorch.
    ///
    /// # Errors
    /// Returns an error if the number is beyond the type.
    pub(crate) fn checked(self, op: &str, dtype: DType) -> Result<Data> {
        self.check(op, dtype)?;
        self.wrapped(dtype)
    }

    /// # Errors
    /// Returns an error if the number is beyond the type.
    pub(crate) fn check(self, op: &str, dtype: DType) -> Result<()> {
        match self.fits(dtype) {
            true => Ok(()),
            false => Err(Error::msg(format_args!(
                "{op}: {self} is beyond what a tensor of {dtype} holds"
            ))),
        }
    }

    /// As one element of a type, as a lower or an upper bound: beyond the type's integers it
    /// becomes the last of them.
    ///
    /// # Errors
    /// Returns an error if the bound excludes every integer of the type, or if a finite number is
    /// beyond a floating point type.
    pub(crate) fn bound(self, op: &str, dtype: DType, lower: bool) -> Result<Data> {
        match (self, Number::limits(dtype)) {
            (Number::Int(n), Some((_, _, least, most))) if !dtype.is_floating_point() => {
                if if lower { n > most } else { n < least } {
                    return Err(Error::msg(format_args!(
                        "{op}: no element of a tensor of {dtype} is on that side of {n}"
                    )));
                }
                Number::Int(n.clamp(least, most)).wrapped(dtype)
            }
            _ => self.checked(op, dtype),
        }
    }
}

impl std::fmt::Display for Number {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Number::Bool(b) => b.fmt(f),
            Number::Int(n) => n.fmt(f),
            Number::Float(x) => write!(f, "{x:?}"),
        }
    }
}

impl IntoValue for Number {
    fn into_value(self) -> Value {
        match self {
            Number::Bool(b) => Value::Bool(b),
            Number::Int(n) => Value::Int(n),
            Number::Float(x) => Value::Float(x),
        }
    }
}

impl FromValue for Number {
    fn from_value(value: Value) -> Result<Self> {
        match value {
            Value::Bool(b) => Ok(Number::Bool(b)),
            Value::Int(n) => Ok(Number::Int(n)),
            Value::Float(x) => Ok(Number::Float(x)),
            // The error names its origin.
            proxy @ Value::Proxy(_) => f64::from_value(proxy).map(Number::Float),
            other => Err(Error::expected("a number", other.describe())),
        }
    }
}

/// A bound of [`clamp`](crate::ops::clamp): a number, or `None` where that side is open.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bound(pub Option<Number>);

impl From<f64> for Bound {
    fn from(x: f64) -> Self {
        Bound(Some(x.into()))
    }
}

impl From<i64> for Bound {
    fn from(n: i64) -> Self {
        Bound(Some(n.into()))
    }
}

impl From<Number> for Bound {
    fn from(number: Number) -> Self {
        Bound(Some(number))
    }
}

// The only type of options here, so that a bare `None` has it.
impl From<Option<f64>> for Bound {
    fn from(bound: Option<f64>) -> Self {
        Bound(bound.map(Number::Float))
    }
}

impl IntoValue for Bound {
    fn into_value(self) -> Value {
        self.0.map_or(Value::None, Number::into_value)
    }
}

impl FromValue for Bound {
    fn from_value(value: Value) -> Result<Self> {
        match value {
            Value::None => Ok(Bound(None)),
            value => Number::from_value(value).map(|number| Bound(Some(number))),
        }
    }
}

macro_rules! plain_param {
    ($($t:ty),*) => {$(
        impl<'v> Param<'v> for $t {
            type Guard = $t;
            const SYMBOLIC: bool = false;

            fn guard(value: &'v Value) -> Result<$t> {
                if let Value::Proxy(_) = value {
                    // The error says how to make the value known.
                    <f64 as Param<'_>>::guard(value)?;
                }
                <$t>::from_value(value.clone())
            }

            fn lend(guard: &'v $t) -> $t {
                *guard
            }

            fn to_value(&self) -> Value {
                (*self).into_value()
            }
        }
    )*};
}
plain_param!(Number, Bound);
