//! `TensorOrNumber`: an operand where PyTorch takes a tensor or a number.

use fx_core::tensor::{Param, Traced};
use fx_core::trace::FromValue;
use fx_core::value::{DType, IntoValue, Value};
use fx_core::{Error, Result};

use super::{Number, Tensor};

/// A tensor, or a number that does not decide the type beside a tensor: `&x`, `2`, `0.5` and `true`
/// convert into it.
///
/// ```
/// use fx_nn::prelude::*;
/// let x = Tensor::from_vec(vec![-7i64, 7], 2)?;
/// assert_eq!(x.fmod(4)?.to_vec()?, [-3.0, 3.0]);
/// assert_eq!(x.fmod(&x)?.to_vec()?, [0.0, 0.0]);
/// # Ok::<(), fx_nn::Error>(())
/// ```
#[derive(Debug, Clone)]
pub enum TensorOrNumber {
    /// A tensor.
    Tensor(Tensor),
    /// A number.
    Number(Number),
}

impl TensorOrNumber {
    /// As a tensor beside one of type `own`; a number becomes one without dims, of the type that
    /// PyTorch gives it there.
    pub(crate) fn beside(&self, own: DType) -> Result<Tensor> {
        match self {
            TensorOrNumber::Tensor(tensor) => Ok(tensor.clone()),
            TensorOrNumber::Number(number) => {
                let dtype = number.beside(own);
                Ok(Tensor::of_type(number.wrapped(dtype)?, dtype))
            }
        }
    }
}

impl TensorOrNumber {
    /// Both as tensors: a number beside a tensor has the type that PyTorch gives it there, two
    /// numbers have their own.
    ///
    /// # Errors
    /// Returns an error if a number is beyond the type that it has beside the tensor, but for half
    /// types.
    pub(crate) fn both(op: &str, a: &Self, b: &Self) -> Result<(Tensor, Tensor)> {
        for pair in [(a, b), (b, a)] {
            if let (TensorOrNumber::Number(number), TensorOrNumber::Tensor(tensor)) = pair {
                let dtype = number.beside(tensor.dtype()?);
                // Beyond the half types it is infinite, as in PyTorch.
                if !matches!(dtype, DType::F16 | DType::BF16) {
                    number.check(op, dtype)?;
                }
            }
        }
        let own = |x: &Self| match x {
            TensorOrNumber::Tensor(tensor) => tensor.dtype(),
            // The type of a number alone: beside truth values every other type decides.
            TensorOrNumber::Number(number) => Ok(number.beside(DType::Bool)),
        };
        Ok(match (a, b) {
            (TensorOrNumber::Number(_), TensorOrNumber::Tensor(_)) => {
                (a.beside(own(b)?)?, b.beside(own(b)?)?)
            }
            (TensorOrNumber::Tensor(_), _) => (a.beside(own(a)?)?, b.beside(own(a)?)?),
            _ => (a.beside(own(a)?)?, b.beside(own(b)?)?),
        })
    }

    /// As a tensor beside one of type `own` in a function of floats, where a number is not rounded
    /// to an integer type.
    pub(crate) fn float_beside(&self, own: DType) -> Result<Tensor> {
        match own.is_floating_point() {
            true => self.beside(own),
            false => self.beside(DType::F32),
        }
    }
}

impl From<&Tensor> for TensorOrNumber {
    fn from(tensor: &Tensor) -> Self {
        TensorOrNumber::Tensor(tensor.clone())
    }
}

impl From<Tensor> for TensorOrNumber {
    fn from(tensor: Tensor) -> Self {
        TensorOrNumber::Tensor(tensor)
    }
}

// The same types as `Number` takes, so that a literal has one.
macro_rules! from_number {
    ($($t:ty),*) => {$(
        impl From<$t> for TensorOrNumber {
            fn from(number: $t) -> Self {
                TensorOrNumber::Number(number.into())
            }
        }
    )*};
}
from_number!(bool, i64, f64, Number);

impl IntoValue for TensorOrNumber {
    fn into_value(self) -> Value {
        match self {
            TensorOrNumber::Tensor(tensor) => tensor.into_value(),
            TensorOrNumber::Number(number) => number.into_value(),
        }
    }
}

impl FromValue for TensorOrNumber {
    fn from_value(value: Value) -> Result<Self> {
        match value {
            Value::Bool(_) | Value::Int(_) | Value::Float(_) => {
                Number::from_value(value).map(TensorOrNumber::Number)
            }
            Value::Proxy(proxy) => Ok(TensorOrNumber::Tensor(Tensor::from_proxy(proxy))),
            Value::Object(_) => Tensor::from_value(value).map(TensorOrNumber::Tensor),
            other => Err(Error::expected("a tensor or a number", other.describe())),
        }
    }
}

impl<'v> Param<'v> for TensorOrNumber {
    type Guard = TensorOrNumber;

    fn guard(value: &'v Value) -> Result<TensorOrNumber> {
        TensorOrNumber::from_value(value.clone())
    }

    fn lend(guard: &'v TensorOrNumber) -> TensorOrNumber {
        guard.clone()
    }

    fn is_symbolic(&self) -> bool {
        match self {
            TensorOrNumber::Tensor(tensor) => tensor.has_no_data(),
            TensorOrNumber::Number(_) => false,
        }
    }

    fn to_value(&self) -> Value {
        self.clone().into_value()
    }
}
