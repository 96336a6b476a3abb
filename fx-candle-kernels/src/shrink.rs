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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{check, f64s, near, varied};
    use candle_core::{Device, Var};

    #[test]
    fn small_numbers() -> Result<()> {
        let x = Tensor::new(&[-4f64, -3., -0.5, 0., 1., 3., 4.], &Device::Cpu)?;
        near(&hardswish(&x)?, &[0., 0., -1.25 / 6., 0., 4. / 6., 3., 4.])?;
        near(&hardsigmoid(&x)?, &[0., 0., 2.5 / 6., 0.5, 4. / 6., 1., 1.])?;
        near(&hardshrink(&x, 0.5)?, &[-4., -3., 0., 0., 1., 3., 4.])?;
        near(&softshrink(&x, 0.5)?, &[-3.5, -2.5, 0., 0., 0.5, 2.5, 3.5])?;
        let (one, ten) = (
            Tensor::new(1f64, x.device())?,
            Tensor::new(10f64, x.device())?,
        );
        near(
            &threshold(&x, &one, &ten)?,
            &[10., 10., 10., 10., 10., 3., 4.],
        )?;
        near(
            &prelu(&x, &one.affine(0.5, 0.)?)?,
            &[-2., -1.5, -0.25, 0., 1., 3., 4.],
        )?;
        assert!(softshrink(&x, -1.).is_err());
        let nan = Tensor::new(&[f64::NAN], &Device::Cpu)?;
        for y in [
            hardswish(&nan)?,
            hardsigmoid(&nan)?,
            hardshrink(&nan, 1.)?,
            softshrink(&nan, 1.)?,
        ] {
            assert!(f64s(&y)?[0].is_nan());
        }
        Ok(())
    }

    #[test]
    fn gradients_match() -> Result<()> {
        let x = [varied(&[3, 4])?.affine(5.0, 0.0)?];
        check(&x, |v| hardswish(&v[0]))?;
        check(&x, |v| hardsigmoid(&v[0]))?;
        check(&x, |v| hardshrink(&v[0], 0.5))?;
        check(&x, |v| softshrink(&v[0], 0.5))?;
        check(&[varied(&[3, 4])?, varied(&[4])?], |v| prelu(&v[0], &v[1]))
    }

    #[test]
    fn gradients_at_corners_are_pytorchs() -> Result<()> {
        let x = Var::new(&[-3f64, 3., -0.5, 0.5], &Device::Cpu)?;
        let slope = |y: Tensor| -> Result<Vec<f64>> {
            f64s(y.sum_all()?.backward()?.get(&x).expect("a gradient"))
        };
        assert_eq!(slope(hardswish(x.as_tensor())?)?[..2], [0., 1.]);
        assert_eq!(slope(hardsigmoid(x.as_tensor())?)?[..2], [0., 0.]);
        assert_eq!(slope(hardshrink(x.as_tensor(), 0.5)?)?[2..], [0., 0.]);
        assert_eq!(slope(softshrink(x.as_tensor(), 0.5)?)?[2..], [0., 0.]);
        Ok(())
    }
}
