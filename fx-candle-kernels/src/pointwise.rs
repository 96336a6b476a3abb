//! Element-wise operations of one tensor, and the mask of dropout.

use candle_core::{DType, Device, Result, Tensor, bail};

use super::choice::where_cond;
use super::comparison;
use super::gradient;
use super::scale::Scale;
use super::widen::widened;
use crate::dtype::dtype_name;
use crate::random;

/// `v` in the dtype of `x`, seen with the shape of `x`.
fn constant(v: f64, x: &Tensor) -> Result<Tensor> {
    Tensor::full(v, (), x.device())?
        .to_dtype(x.dtype())?
        .broadcast_as(x.dims())
}

/// `x` of any shape held within `min` and `max`; with `min > max` every value is `max`.
///
/// A NaN stays NaN, and a bound of NaN makes every value NaN. As in PyTorch the gradient is that of what lies between
/// the bounds: 0 at a bound, and of a NaN.
///
/// # Errors
/// Returns an error if neither bound is given.
pub fn clamp(x: &Tensor, min: Option<f64>, max: Option<f64>) -> Result<Tensor> {
    if min.is_none() && max.is_none() {
        bail!(
            "clamp: shape {:?} has neither a min nor a max, at least one is needed",
            x.dims()
        )
    }
    if x.elem_count() == 0 {
        return Ok(x.clone());
    }
    if [min, max].into_iter().flatten().any(f64::is_nan) && x.dtype().is_float() {
        return x.detach().affine(f64::NAN, f64::NAN);
    }
    let mut y = x.detach();
    if let Some(min) = min {
        y = y.maximum(&constant(min, &y)?)?;
    }
    if let Some(max) = max {
        y = y.minimum(&constant(max, &y)?)?;
    }
    let bound = |bound: Option<f64>| bound.map(|bound| constant(bound, x)).transpose();
    match x.track_op() {
        true => between(x, &y, bound(min)?.as_ref(), bound(max)?.as_ref()),
        false => Ok(y),
    }
}

/// `x` of any shape held within bounds of its type, of no dimensions; with `lower > upper` every value is `upper`.
///
/// A NaN stays NaN. The gradient is that of [`clamp`].
///
/// # Errors
/// Returns only candle's errors.
pub fn bounded(x: &Tensor, lower: Option<&Tensor>, upper: Option<&Tensor>) -> Result<Tensor> {
    let mut y = x.detach();
    if x.elem_count() == 0 {
        return Ok(x.clone());
    }
    let wide = |bound: Option<&Tensor>| bound.map(|b| b.broadcast_as(x.dims())).transpose();
    let (lower, upper) = (wide(lower)?, wide(upper)?);
    if let Some(lower) = &lower {
        y = where_cond(&comparison::lt(&y, lower)?, lower, &y)?;
    }
    if let Some(upper) = &upper {
        y = where_cond(&comparison::gt(&y, upper)?, upper, &y)?;
    }
    match x.track_op() {
        true => between(x, &y, lower.as_ref(), upper.as_ref()),
        false => Ok(y),
    }
}

/// `x` where it lies between bounds of its shape, `held`, through which no gradient runs, elsewhere.
fn between(
    x: &Tensor,
    held: &Tensor,
    lower: Option<&Tensor>,
    upper: Option<&Tensor>,
) -> Result<Tensor> {
    let own = x.detach();
    let above = lower.map(|lower| comparison::gt(&own, lower)).transpose()?;
    let below = upper.map(|upper| comparison::lt(&own, upper)).transpose()?;
    let inside = match (above, below) {
        (Some(above), Some(below)) => above.mul(&below)?,
        (Some(one), None) | (None, Some(one)) => one,
        (None, None) => return Ok(x.clone()),
    };
    where_cond(&inside, x, held)
}

/// `max(x, 0)` of any shape; a NaN stays NaN and the gradient at 0 is 0, as in PyTorch.
///
/// # Errors
/// Returns only candle's errors.
pub fn relu(x: &Tensor) -> Result<Tensor> {
    if x.elem_count() == 0 {
        return Ok(x.clone());
    }
    let zero = constant(0.0, x)?;
    if x.track_op() {
        // The same bits as without gradients, also for -0.0.
        let bounded = x.detach().maximum(&zero)?;
        where_cond(&comparison::le(x, &zero)?, &bounded, x)
    } else {
        x.maximum(&zero)
    }
}

/// `f` of `x` where it is not 0, and 0 without a gradient elsewhere.
///
/// # Errors
/// Returns the errors of `f`.
pub fn but_at_zero(x: &Tensor, f: impl FnOnce(&Tensor) -> Result<Tensor>) -> Result<Tensor> {
    if x.elem_count() == 0 {
        return f(x);
    }
    let zero = x.detach().zeros_like()?;
    let is_zero = comparison::eq(&x.detach(), &zero)?;
    let safe = where_cond(&is_zero, &x.detach().ones_like()?, x)?;
    where_cond(&is_zero, &zero, &f(&safe)?)
}

/// `|x|` of any shape, whose gradient at 0 and NaN is 0, as in PyTorch.
///
/// # Errors
/// Returns only candle's errors.
pub fn abs(x: &Tensor) -> Result<Tensor> {
    match x.track_op() {
        true => gradient::of_one("abs", x, Tensor::abs, |x, _, grad| {
            // Of 0 and NaN it is 0.
            let zero = grad.zeros_like()?;
            let low = where_cond(&comparison::lt(x, &x.zeros_like()?)?, &grad.neg()?, &zero)?;
            where_cond(&comparison::gt(x, &x.zeros_like()?)?, grad, &low)
        }),
        false => x.abs(),
    }
}

/// `1 / (1 + exp(-x))` of any shape.
///
/// # Errors
/// Returns an error if the dtype is not floating point.
pub fn sigmoid(x: &Tensor) -> Result<Tensor> {
    if !x.dtype().is_float() {
        bail!(
            "sigmoid: dtype {} is not floating point",
            dtype_name(x.dtype())
        )
    }
    widened(x, x, |x| {
        let of = |x: &Tensor| x.neg()?.exp()?.affine(1.0, 1.0)?.recip();
        // An infinite exponential would have the gradient 0 * inf.
        gradient::of_one("sigmoid", &x, of, |_, y, grad| {
            y.affine(-1.0, 1.0)?.mul(y)?.mul(grad)
        })
    })
}

/// `x * sigmoid(x)` of any shape.
///
/// # Errors
/// Returns an error if the dtype is not floating point.
pub fn silu(x: &Tensor) -> Result<Tensor> {
    if !x.dtype().is_float() {
        bail!(
            "silu: dtype {} is not floating point",
            dtype_name(x.dtype())
        )
    }
    widened(x, x, |x| x.mul(&sigmoid(&x)?))
}

/// `1 / sqrt(x)` of any shape.
///
/// # Errors
/// Returns only candle's errors.
pub fn rsqrt(x: &Tensor) -> Result<Tensor> {
    widened(x, x, |x| x.sqrt()?.recip())
}

/// `x * by` of any shape, where the number is not rounded to half precision first.
///
/// # Errors
/// Returns only candle's errors.
pub fn times(x: &Tensor, by: f64) -> Result<Tensor> {
    widened(x, x, |x| x.times(by))
}

/// A mask of `shape` that is 0 with probability `p` and `1 / (1 - p)` otherwise.
///
/// # Errors
/// Returns an error if `p` is outside `[0, 1]` or `dtype` is not floating point.
pub fn dropout_mask(shape: &[usize], p: f64, dtype: DType, device: &Device) -> Result<Tensor> {
    if !(0.0..=1.0).contains(&p) {
        bail!("dropout: probability {p} is outside [0, 1], for shape {shape:?}")
    }
    if !dtype.is_float() {
        bail!("dropout: dtype {dtype:?} is not floating point, for shape {shape:?}")
    }
    if p == 1.0 || shape.contains(&0) {
        return Tensor::zeros(shape, dtype, device);
    }
    if p == 0.0 {
        return Tensor::ones(shape, dtype, device);
    }
    let draw = random::uniform(shape, 0.0, 1.0)?.to_device(device)?;
    comparison::ge(&draw, &constant(p, &draw)?)?
        .to_dtype(dtype)?
        .times(1.0 / (1.0 - p))
}
