//! Element-wise operations of one tensor, and the mask of dropout.

use candle_core::{DType, Device, Result, Tensor, bail};

use super::choice::where_cond;
use super::comparison;
use super::widen::widened;
use crate::error::dtype_name;
use crate::random;

/// `v` in the dtype of `x`, seen with the shape of `x`.
fn constant(v: f64, x: &Tensor) -> Result<Tensor> {
    Tensor::full(v, (), x.device())?
        .to_dtype(x.dtype())?
        .broadcast_as(x.dims())
}

/// `x` of any shape held within `min` and `max`; with `min > max` every value is `max`.
///
/// A NaN stays NaN, and a bound of NaN makes every value NaN. As in PyTorch the gradient runs
/// through values that equal a bound.
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
    let mut y = x.clone();
    if x.elem_count() == 0 {
        return Ok(y);
    }
    if [min, max].into_iter().flatten().any(f64::is_nan) && x.dtype().is_float() {
        return x.detach().affine(f64::NAN, f64::NAN);
    }
    if let Some(min) = min {
        let bound = constant(min, &y)?;
        y = if y.track_op() {
            where_cond(&comparison::lt(&y, &bound)?, &bound, &y)?
        } else {
            y.maximum(&bound)?
        };
    }
    if let Some(max) = max {
        let bound = constant(max, &y)?;
        y = if y.track_op() {
            where_cond(&comparison::gt(&y, &bound)?, &bound, &y)?
        } else {
            y.minimum(&bound)?
        };
    }
    Ok(y)
}

/// `x` of any shape held within bounds of its type, of no dimensions; with `lower > upper` every value is `upper`.
///
/// A NaN stays NaN. As in PyTorch the gradient runs through values that equal a bound.
///
/// # Errors
/// Returns only candle's errors.
pub fn bounded(x: &Tensor, lower: Option<&Tensor>, upper: Option<&Tensor>) -> Result<Tensor> {
    let mut y = x.clone();
    if x.elem_count() == 0 {
        return Ok(y);
    }
    if let Some(lower) = lower {
        let lower = lower.broadcast_as(y.dims())?;
        y = where_cond(&comparison::lt(&y, &lower)?, &lower, &y)?;
    }
    if let Some(upper) = upper {
        let upper = upper.broadcast_as(y.dims())?;
        y = where_cond(&comparison::gt(&y, &upper)?, &upper, &y)?;
    }
    Ok(y)
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

/// `|x|` of any shape, whose gradient at 0 is 0, as in PyTorch.
///
/// # Errors
/// Returns only candle's errors.
pub fn abs(x: &Tensor) -> Result<Tensor> {
    match x.track_op() {
        true => but_at_zero(x, Tensor::abs),
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
        let mut e = x.neg()?;
        if e.track_op() {
            // An infinite exponential would have the gradient 0 * inf.
            let limit = match x.dtype() {
                DType::F64 => 709.0,
                _ => 88.0,
            };
            e = clamp(&e, None, Some(limit))?;
        }
        e.exp()?.affine(1.0, 1.0)?.recip()
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

/// `x * mul + add` of any shape, where the numbers are not rounded to half precision first.
///
/// # Errors
/// Returns only candle's errors.
pub fn affine(x: &Tensor, mul: f64, add: f64) -> Result<Tensor> {
    widened(x, x, |x| x.affine(mul, add))
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
        .affine(1.0 / (1.0 - p), 0.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernels::testing::{check, f64s, near, strided, varied};
    use candle_core::Var;

    #[test]
    fn small_numbers() -> Result<()> {
        let x = Tensor::new(&[[-2f32, 0.], [0.5, 3.]], &Device::Cpu)?;
        let x = strided(&x)?;
        near(&clamp(&x, Some(-1.), Some(1.))?, &[-1., 0., 0.5, 1.])?;
        near(&clamp(&x, None, Some(0.))?, &[-2., 0., 0., 0.])?;
        near(&clamp(&x, Some(2.), Some(1.))?, &[1.; 4])?;
        near(&relu(&x)?, &[0., 0., 0.5, 3.])?;
        assert!(clamp(&x, None, None).is_err());
        let big = Tensor::new(&[-1000f64, 0., 1000.], &Device::Cpu)?;
        near(&sigmoid(&big)?, &[0., 0.5, 1.])?;
        let nan = Tensor::new(&[f32::NAN], &Device::Cpu)?;
        assert!(f64s(&relu(&nan)?)?[0].is_nan());
        assert!(f64s(&clamp(&nan, Some(0.), Some(1.))?)?[0].is_nan());
        Ok(())
    }

    #[test]
    fn gradients_at_the_edges() -> Result<()> {
        let x = Var::new(&[-2f64, -1., 0., 1., 2.], &Device::Cpu)?;
        let of = |y: Tensor| -> Result<Vec<f64>> {
            f64s(y.sum_all()?.backward()?.get(&x).expect("a gradient"))
        };
        assert_eq!(of(clamp(&x, Some(-1.), Some(1.))?)?, [0., 1., 1., 1., 0.]);
        assert_eq!(of(relu(&x)?)?, [0., 0., 0., 1., 1.]);
        let far = Var::new(&[-1e4f32, 1e4], &Device::Cpu)?;
        let grads = sigmoid(far.as_tensor())?.sum_all()?.backward()?;
        near(grads.get(&far).expect("a gradient"), &[0., 0.])?;
        check(&[varied(&[2, 3])?], |v| sigmoid(&v[0]))?;
        check(&[varied(&[2, 3])?], |v| relu(&v[0]))
    }

    #[test]
    fn masks() -> Result<()> {
        let d = &Device::Cpu;
        near(&dropout_mask(&[2], 1.0, DType::F32, d)?, &[0., 0.])?;
        near(&dropout_mask(&[2], 0.0, DType::F64, d)?, &[1., 1.])?;
        let mask = f64s(&dropout_mask(&[100, 100], 0.2, DType::F64, d)?)?;
        assert!(mask.iter().all(|&v| v == 0.0 || v == 1.25));
        let mean = mask.iter().sum::<f64>() / 1e4;
        assert!((mean - 1.0).abs() < 0.05, "{mean}");
        assert!(dropout_mask(&[2], 1.5, DType::F32, d).is_err());
        assert!(dropout_mask(&[2], f64::NAN, DType::F32, d).is_err());
        Ok(())
    }
}
