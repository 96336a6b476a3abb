//! Activation functions, with PyTorch's values and gradients at their corners.

use candle_core::{Result, Tensor, bail};

use super::choice::where_cond;
use super::comparison;
use super::curve::Curve;
use super::gradient;
use super::scale::Scale;
use super::widen::widened;

pub(super) fn floating(op: &str, x: &Tensor) -> Result<()> {
    if !x.dtype().is_float() {
        bail!(
            "{op}: input {:?} of dtype {:?} must be floating point",
            x.dims(),
            x.dtype()
        )
    }
    Ok(())
}

/// `value` everywhere, like `x`.
pub(super) fn like(x: &Tensor, value: f64) -> Result<Tensor> {
    Tensor::full(value, (), x.device())?
        .to_dtype(x.dtype())?
        .broadcast_as(x.dims())
}

/// `x` where it is above 0, `slope * x` elsewhere.
///
/// # Errors
/// Returns an error if `x` is not floating point.
pub fn leaky_relu(x: &Tensor, slope: f64) -> Result<Tensor> {
    floating("leaky_relu", x)?;
    if x.elem_count() == 0 {
        return Ok(x.clone());
    }
    widened(x, x, |x| {
        let above = comparison::gt(&x, &like(&x, 0.0)?)?;
        where_cond(&above, &x, &x.times(slope)?)
    })
}

type Compare = fn(&Tensor, &Tensor) -> Result<Tensor>;

/// `x` held between `min` and `max`; the gradient at either bound is 0, unlike that of a clamp.
///
/// # Errors
/// Returns an error if `min` is above `max`.
pub fn hardtanh(op: &str, x: &Tensor, min: f64, max: f64) -> Result<Tensor> {
    if min > max {
        bail!("{op}: min {min} is above max {max}")
    }
    if x.elem_count() == 0 {
        return Ok(x.clone());
    }
    let (low, high) = (like(x, min)?, like(x, max)?);
    // A bound has no slope, and a zero at one keeps its sign.
    let held = |bound: Tensor, value: f64, is_beyond: Compare| -> Result<Tensor> {
        match value == 0.0 {
            true => where_cond(&is_beyond(&x.detach(), &bound)?, &bound, &x.detach()),
            false => Ok(bound),
        }
    };
    let (is_low, is_high) = (comparison::le(x, &low)?, comparison::ge(x, &high)?);
    let low = held(low, min, comparison::lt)?;
    let high = held(high, max, comparison::gt)?;
    where_cond(&is_high, &high, &where_cond(&is_low, &low, x)?)
}

/// A straight line above 0 and an exponential below, which end at `-bottom`.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Bend {
    /// The slope above 0.
    pub slope: f64,
    /// How far below 0 the exponential ends.
    pub bottom: f64,
    /// How fast it ends there.
    pub rate: f64,
}

/// `slope * x` above 0, `bottom * (exp(rate * x) - 1)` elsewhere.
///
/// # Errors
/// Returns an error if `x` is not floating point.
pub fn bent(op: &str, x: &Tensor, bend: Bend) -> Result<Tensor> {
    floating(op, x)?;
    if x.elem_count() == 0 {
        return Ok(x.clone());
    }
    widened(x, x, |x| {
        let zero = like(&x, 0.0)?;
        // A NaN has the straight line's slope, as in PyTorch.
        let is_low = comparison::le(&x, &zero)?;
        // The exponential of elements above 0 is not used: 0 instead of them keeps it, and its
        // gradient, finite.
        let low = where_cond(&is_low, &x, &zero)?;
        let low = match bend.rate == 1.0 {
            true => low,
            false => low.times(bend.rate)?,
        };
        let high = match bend.slope == 1.0 {
            true => x,
            false => x.times(bend.slope)?,
        };
        let low = Curve::ExpMinusOne.of(&low)?.times(bend.bottom)?;
        where_cond(&is_low, &low, &high)
    })
}

/// `log(1 + exp(beta * x)) / beta`, without overflow: `x` where `beta * x` is above `threshold`, as in PyTorch.
///
/// # Errors
/// Returns an error if `x` is not floating point.
pub fn softplus(x: &Tensor, beta: f64, threshold: f64) -> Result<Tensor> {
    floating("softplus", x)?;
    widened(x, x, |x| {
        if beta == 1.0 {
            return Curve::Softplus(threshold).of(&x);
        }
        let of = move |x: &Tensor| {
            let scaled = x.times(beta)?;
            let curve = Curve::Softplus(f64::INFINITY)
                .of(&scaled)?
                .times(1.0 / beta)?;
            where_cond(&comparison::gt(&scaled, &like(x, threshold)?)?, x, &curve)
        };
        // The curve's slope does not depend on what it is divided by.
        gradient::of_one("softplus", &x, of, move |x, _, grad| {
            let scaled = x.times(beta)?;
            let share = scaled.neg()?.exp()?.affine(1.0, 1.0)?.recip()?;
            let is_line = comparison::gt(&scaled, &like(x, threshold)?)?;
            where_cond(&is_line, grad, &grad.mul(&share)?)
        })
    })
}

/// `x tanh(log(1 + exp(x)))`.
///
/// # Errors
/// Returns an error if `x` is not floating point.
pub fn mish(x: &Tensor) -> Result<Tensor> {
    floating("mish", x)?;
    widened(x, x, |x| x.mul(&Curve::Softplus(20.0).of(&x)?.tanh()?))
}

/// `x` times the probability that a normal variable is below it; `tanh` takes the usual approximation.
///
/// # Errors
/// Returns an error if `x` is not floating point.
pub fn gelu(x: &Tensor, tanh: bool) -> Result<Tensor> {
    floating("gelu", x)?;
    widened(x, x, |x| gelu_of(&x, tanh))
}

fn gelu_of(x: &Tensor, tanh: bool) -> Result<Tensor> {
    if tanh {
        let cube = x.sqr()?.mul(x)?;
        let inner = x.add(&cube.times(0.044715)?)?;
        let factor = (2.0 / std::f64::consts::PI).sqrt();
        let tanh = inner.times(factor)?.tanh()?;
        return x.times(0.5)?.mul(&tanh.affine(1.0, 1.0)?);
    }
    let erf = x.times(std::f64::consts::FRAC_1_SQRT_2)?.erf()?;
    x.times(0.5)?.mul(&erf.affine(1.0, 1.0)?)
}
