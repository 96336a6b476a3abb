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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{check, f64s, near, strided, varied};
    use candle_core::{Device, Var};

    const BEND: Bend = Bend {
        slope: 1.0,
        bottom: 2.0,
        rate: 1.0,
    };

    #[test]
    fn small_numbers() -> Result<()> {
        let x = Tensor::new(&[[-2f64, 0.], [0.5, 8.]], &Device::Cpu)?;
        let x = strided(&x)?;
        near(&leaky_relu(&x, 0.1)?, &[-0.2, 0., 0.5, 8.])?;
        near(&hardtanh("relu6", &x, 0., 6.)?, &[0., 0., 0.5, 6.])?;
        near(
            &bent("elu", &x, BEND)?,
            &[2. * ((-2f64).exp() - 1.), 0., 0.5, 8.],
        )?;
        let softplus_of = |x: f64| x.exp().ln_1p();
        near(
            &softplus(&x, 1., 20.)?,
            &[-2., 0., 0.5, 8.].map(softplus_of),
        )?;
        let large = Tensor::new(&[1000f64, -1000.], &Device::Cpu)?;
        near(&softplus(&large, 1., 20.)?, &[1000., 0.])?;
        near(&bent("elu", &large, BEND)?, &[1000., -2.])?;
        // PyTorch: gelu(0.5) and gelu(-2), exact and by tanh.
        let y = f64s(&gelu(&x, false)?)?;
        assert!((y[2] - 0.345_731_230_637_089_5).abs() < 1e-12, "{y:?}");
        assert!((y[0] + 0.045_500_263_896_358_42).abs() < 1e-12, "{y:?}");
        let y = f64s(&gelu(&x, true)?)?;
        assert!((y[2] - 0.345_714_009_825_143_9).abs() < 1e-12, "{y:?}");
        assert!(hardtanh("hardtanh", &x, 1., 0.).is_err());
        assert!(gelu(&Tensor::new(1i64, &Device::Cpu)?, false).is_err());
        Ok(())
    }

    #[test]
    fn gradients_match() -> Result<()> {
        let x = [strided(&varied(&[3, 4])?.affine(3.0, 0.0)?)?];
        check(&x, |v| leaky_relu(&v[0], 0.2))?;
        check(&x, |v| hardtanh("hardtanh", &v[0], -1., 1.5))?;
        check(&x, |v| bent("elu", &v[0], BEND))?;
        let bend = Bend {
            slope: 1.1,
            bottom: 0.7,
            rate: 0.5,
        };
        check(&x, |v| bent("elu", &v[0], bend))?;
        check(&x, |v| softplus(&v[0], 0.5, 20.))?;
        check(&x, |v| mish(&v[0]))?;
        check(&x, |v| softplus(&v[0], 1., 20.))?;
        check(&x, |v| gelu(&v[0], false))?;
        check(&x, |v| gelu(&v[0], true))
    }

    #[test]
    fn gradients_at_corners_are_pytorchs() -> Result<()> {
        let x = Var::new(&[0f64, 6.], &Device::Cpu)?;
        let slope = |y: Tensor| -> Result<Vec<f64>> {
            f64s(y.sum_all()?.backward()?.get(&x).expect("a gradient"))
        };
        assert_eq!(slope(hardtanh("relu6", x.as_tensor(), 0., 6.)?)?, [0., 0.]);
        assert_eq!(slope(leaky_relu(x.as_tensor(), 0.1)?)?, [0.1, 1.]);
        Ok(())
    }
}
