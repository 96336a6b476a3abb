//! Element-wise operations of two tensors, with PyTorch's implicit broadcasting.

use candle_core::{DType, Result, Tensor};

use super::choice::where_cond;
use super::comparison;
use super::expand::{broadcast, same_shape};
use super::gradient;
use super::numbers::power;
use super::pointwise::rsqrt;
use super::reduce::has_nan;
use super::scale::Scale;
use super::widen::{is_half, widened};

fn both(op: &str, a: &Tensor, b: &Tensor) -> Result<Option<(Tensor, Tensor)>> {
    if same_shape(a, b) {
        return Ok(None);
    }
    broadcast(op, a, b).map(Some)
}

macro_rules! broadcast {
    ($($(#[$doc:meta])* $name:ident => $method:ident;)*) => {$(
        $(#[$doc])*
        ///
        /// `a` and `b` have the same dtype; the result has their broadcast shape.
        ///
        /// # Errors
        /// Returns an error if the shapes do not broadcast or the dtypes differ.
        #[inline]
        pub fn $name(a: &Tensor, b: &Tensor) -> Result<Tensor> {
            if same_shape(a, b) {
                return a.$method(b);
            }
            let (a, b) = broadcast(stringify!($name), a, b)?;
            a.$method(&b)
        }
    )*};
}

broadcast! {
    /// `a + b`.
    add => add;
    /// `a - b`.
    sub => sub;
    /// `a * b`.
    mul => mul;
}

/// `a / b`; integers divide towards zero, so promote them first. The gradient squares no divisor, whose square may be
/// too large or too small for its type.
///
/// `a` and `b` have the same dtype; the result has their broadcast shape.
///
/// # Errors
/// Returns an error if the shapes do not broadcast or the dtypes differ.
#[inline]
pub fn div(a: &Tensor, b: &Tensor) -> Result<Tensor> {
    if same_shape(a, b) {
        return quotient(a, b);
    }
    let (a, b) = broadcast("div", a, b)?;
    quotient(&a, &b)
}

#[inline]
fn quotient(a: &Tensor, b: &Tensor) -> Result<Tensor> {
    if !b.track_op() {
        return a.div(b);
    }
    gradient::of_two("div", a, b, Tensor::div, |[a, b], grad| {
        Ok([grad.div(b)?, grad.mul(&a.div(b)?.div(b)?)?.neg()?])
    })
}

/// The larger of `a` and `b`; a NaN on either side gives NaN. Equal values share the gradient, and beside a NaN each has
/// the whole, as in PyTorch.
///
/// `a` and `b` have the same dtype; the result has their broadcast shape.
///
/// # Errors
/// Returns an error if the shapes do not broadcast or the dtypes differ.
pub fn maximum(a: &Tensor, b: &Tensor) -> Result<Tensor> {
    let (a, b) = both("maximum", a, b)?.unwrap_or_else(|| (a.clone(), b.clone()));
    let largest = |a: &Tensor, b: &Tensor| keep_nan(a.maximum(b)?, b);
    gradient::of_two("maximum", &a, &b, largest, |[a, b], grad| {
        let grad = shared(a, b, grad)?;
        Ok([
            but_where(&comparison::lt(a, b)?, &grad)?,
            but_where(&comparison::gt(a, b)?, &grad)?,
        ])
    })
}

/// The smaller of `a` and `b`, with the gradient of [`maximum`].
///
/// `a` and `b` have the same dtype; the result has their broadcast shape.
///
/// # Errors
/// Returns an error if the shapes do not broadcast or the dtypes differ.
pub fn minimum(a: &Tensor, b: &Tensor) -> Result<Tensor> {
    let (a, b) = both("minimum", a, b)?.unwrap_or_else(|| (a.clone(), b.clone()));
    let least = |a: &Tensor, b: &Tensor| keep_nan(a.minimum(b)?, b);
    gradient::of_two("minimum", &a, &b, least, |[a, b], grad| {
        let grad = shared(a, b, grad)?;
        Ok([
            but_where(&comparison::gt(a, b)?, &grad)?,
            but_where(&comparison::lt(a, b)?, &grad)?,
        ])
    })
}

/// The larger (or smaller) of `a` and `b`; of a NaN and a number, the number, which has the gradient. Equal values share
/// it; of two NaN the first has it.
///
/// `a` and `b` have the same dtype; the result has their broadcast shape.
///
/// # Errors
/// Returns an error if the shapes do not broadcast or the dtypes differ.
pub fn extreme_number(op: &'static str, a: &Tensor, b: &Tensor, largest: bool) -> Result<Tensor> {
    let (a, b) = both(op, a, b)?.unwrap_or_else(|| (a.clone(), b.clone()));
    let is_first = move |a: &Tensor, b: &Tensor| -> Result<Tensor> {
        let leads = match largest {
            true => comparison::ge(a, b)?,
            false => comparison::le(a, b)?,
        };
        leads.maximum(&comparison::ne(b, b)?)
    };
    let chosen = |a: &Tensor, b: &Tensor| where_cond(&is_first(a, b)?, a, b);
    gradient::of_two(op, &a, &b, chosen, move |[a, b], grad| {
        let (first, equal) = (is_first(a, b)?, comparison::eq(a, b)?);
        let zero = grad.zeros_like()?;
        let grad = shared(a, b, grad)?;
        let of_b = where_cond(&first, &zero, &grad)?;
        Ok([
            where_cond(&first, &grad, &zero)?,
            where_cond(&equal, &grad, &of_b)?,
        ])
    })
}

/// Half of a gradient where two elements are equal.
fn shared(a: &Tensor, b: &Tensor, grad: &Tensor) -> Result<Tensor> {
    where_cond(&comparison::eq(a, b)?, &grad.times(0.5)?, grad)
}

/// A gradient, 0 where a condition holds.
fn but_where(condition: &Tensor, grad: &Tensor) -> Result<Tensor> {
    where_cond(condition, &grad.zeros_like()?, grad)
}

/// Candle keeps a NaN of the left side only.
fn keep_nan(y: Tensor, b: &Tensor) -> Result<Tensor> {
    if has_nan(b)? {
        where_cond(&comparison::ne(b, b)?, b, &y)
    } else {
        Ok(y)
    }
}

/// `x` to the constant power `e`, of any shape; the gradient is right at 0 too for `e` of 0, 1
/// and 2.
///
/// # Errors
/// Returns an error if the dtype is not floating point, or `float16` has no number as large as `e`.
pub fn powf(x: &Tensor, e: f64) -> Result<Tensor> {
    if x.dtype() == DType::F16 && e.is_finite() && e.abs() > 65504.0 {
        candle_core::bail!("pow: the exponent {e} is out of the range of float16")
    }
    // PyTorch rounds the exponent to the type of a half-precision base.
    let e = match is_half(x.dtype()) {
        true => Tensor::new(e, x.device())?
            .to_dtype(x.dtype())?
            .to_dtype(DType::F64)?
            .to_scalar::<f64>()?,
        false => e,
    };
    if e == 0.0 {
        x.ones_like()
    } else if e == 1.0 {
        Ok(x.clone())
    } else if e == 2.0 {
        x.sqr()
    } else if e.abs() == 0.5 && x.dtype() != DType::F16 {
        // PyTorch's roots have NaN for minus infinity, its powers of `float16` have not.
        match e > 0.0 {
            true => x.sqrt(),
            false => gradient::of_one("pow", x, rsqrt, |x, _, grad| {
                powf(x, -1.5)?.times(-0.5)?.mul(grad)
            }),
        }
    } else if e.is_nan() {
        power(x, &x.ones_like()?.times(e)?)
    } else if x.dtype() == DType::F32 && f64::from(e as f32) != e {
        // PyTorch does not round the exponent to the type of a base of `float32`.
        x.to_dtype(DType::F64)?.powf(e)?.to_dtype(DType::F32)
    } else {
        widened(x, x, |x| x.powf(e))
    }
}

/// `a` to the power `b`, both floating point and of one dtype.
///
/// Negative bases take whole exponents, and where both are 0 the gradient is 0, as in PyTorch.
///
/// # Errors
/// Returns an error if the shapes do not broadcast or the dtypes differ.
pub fn pow(a: &Tensor, b: &Tensor) -> Result<Tensor> {
    let dtype = a.dtype();
    if dtype != b.dtype() || !dtype.is_float() {
        candle_core::bail!(
            "pow: dtypes {dtype:?} and {:?} are not one floating point dtype",
            b.dtype()
        )
    }
    power(a, b)
}
