//! Piecewise activation functions, with PyTorch's values and gradients at their corners.

use candle_core::{Result, Tensor, bail};

use super::activation::{floating, like};
use super::choice::where_cond;
use super::comparison;
use super::gradient;
use super::scale::Scale;
use super::widen::widened;

/// 0 up to -3, `x` from 3 on, and `x (x + 3) / 6` between.
///
/// # Errors
/// Returns an error if `x` is not floating point.
pub fn hardswish(x: &Tensor) -> Result<Tensor> {
    floating("hardswish", x)?;
    if x.elem_count() == 0 {
        return Ok(x.clone());
    }
    widened(x, x, |x| {
        let of = |x: &Tensor| {
            let middle = x.mul(&x.affine(1.0, 3.0)?)?.times(1.0 / 6.0)?;
            // Minus infinity times 0 is NaN, as in PyTorch.
            let flat = x.affine(0.0, 0.0)?;
            let y = where_cond(&comparison::le(x, &like(x, -3.0)?)?, &flat, &middle)?;
            where_cond(&comparison::ge(x, &like(x, 3.0)?)?, x, &y)
        };
        gradient::of_one("hardswish", &x, of, |x, _, grad| {
            let middle = grad.mul(&x.affine(1.0 / 3.0, 0.5)?)?;
            let is_middle = comparison::lt(x, &like(x, 3.0)?)?;
            let slope = where_cond(&is_middle, &middle, grad)?;
            let is_low = comparison::le(x, &like(x, -3.0)?)?;
            where_cond(&is_low, &grad.zeros_like()?, &slope)
        })
    })
}

/// 0 up to -3, 1 from 3 on, and `x / 6 + 1 / 2` between.
///
/// # Errors
/// Returns an error if `x` is not floating point.
pub fn hardsigmoid(x: &Tensor) -> Result<Tensor> {
    floating("hardsigmoid", x)?;
    if x.elem_count() == 0 {
        return Ok(x.clone());
    }
    widened(x, x, |x| {
        let of = |x: &Tensor| {
            let middle = x.affine(1.0, 3.0)?.times(1.0 / 6.0)?;
            let is_low = comparison::le(x, &like(x, -3.0)?)?;
            let y = where_cond(&is_low, &like(x, 0.0)?, &middle)?;
            where_cond(&comparison::ge(x, &like(x, 3.0)?)?, &like(x, 1.0)?, &y)
        };
        // A NaN has no slope.
        gradient::of_one("hardsigmoid", &x, of, |x, _, grad| {
            let above = comparison::gt(x, &like(x, -3.0)?)?;
            let inside = above.mul(&comparison::lt(x, &like(x, 3.0)?)?)?;
            where_cond(&inside, &grad.times(1.0 / 6.0)?, &grad.zeros_like()?)
        })
    })
}

/// `x` outside of `[-lambda, lambda]`, 0 within.
///
/// # Errors
/// Returns an error if `x` is not floating point.
pub fn hardshrink(x: &Tensor, lambda: f64) -> Result<Tensor> {
    floating("hardshrink", x)?;
    if x.elem_count() == 0 {
        return Ok(x.clone());
    }
    let inside =
        comparison::ge(x, &like(x, -lambda)?)?.mul(&comparison::le(x, &like(x, lambda)?)?)?;
    where_cond(&inside, &like(x, 0.0)?, x)
}

/// `x` moved by `lambda` towards 0, and 0 within it.
///
/// # Errors
/// Returns an error if `x` is not floating point, or `lambda` is below 0.
pub fn softshrink(x: &Tensor, lambda: f64) -> Result<Tensor> {
    floating("softshrink", x)?;
    if !(lambda >= 0.0 && lambda.is_finite()) {
        bail!("softshrink: lambd is a number that is not below 0, not {lambda}")
    }
    if x.elem_count() == 0 {
        return Ok(x.clone());
    }
    widened(x, x, |x| {
        let above = comparison::gt(&x, &like(&x, lambda)?)?;
        let below = comparison::lt(&x, &like(&x, -lambda)?)?;
        // NaN times 0 stays NaN.
        let flat = x.detach().affine(0.0, 0.0)?;
        let y = where_cond(&below, &x.affine(1.0, lambda)?, &flat)?;
        where_cond(&above, &x.affine(1.0, -lambda)?, &y)
    })
}

/// `x` above `threshold`, `value` elsewhere; both are of the dtype of `x`, without dimensions.
///
/// # Errors
/// Returns only candle's errors.
pub fn threshold(x: &Tensor, threshold: &Tensor, value: &Tensor) -> Result<Tensor> {
    if x.elem_count() == 0 {
        return Ok(x.clone());
    }
    let (threshold, value) = (
        threshold.broadcast_as(x.dims())?,
        value.broadcast_as(x.dims())?,
    );
    where_cond(&comparison::le(x, &threshold)?, &value, x)
}

/// `x` above 0, elsewhere times `weight`, which broadcasts.
///
/// # Errors
/// Returns an error if the shapes do not broadcast.
pub fn prelu(x: &Tensor, weight: &Tensor) -> Result<Tensor> {
    if x.elem_count() == 0 {
        return Ok(x.clone());
    }
    widened(x, (x, weight), |(x, weight)| {
        let above = comparison::gt(&x, &like(&x, 0.0)?)?;
        // What is not used has no part in the gradient of the weight.
        let low = match weight.track_op() {
            true => where_cond(&above, &like(&x, 0.0)?, &x)?,
            false => x.clone(),
        };
        where_cond(&above, &x, &super::binary::mul(&low, &weight)?)
    })
}
