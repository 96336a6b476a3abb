//! Functions of one number whose small results would be lost if they were composed of others.

use super::choice::where_cond;
use super::comparison;
use candle_core::{CpuStorage, CustomOp1, Layout, Result, Shape, Tensor, bail};

/// A function of each element of an `f32` or `f64` tensor.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Curve {
    /// `log(1 + exp(x))`, or `x` where it is above this number.
    Softplus(f64),
    /// `exp(x) - 1`.
    ExpMinusOne,
}

impl Curve {
    /// The function of each element of `x`.
    ///
    /// # Errors
    /// Returns an error if `x` is neither `f32` nor `f64`.
    pub fn of(self, x: &Tensor) -> Result<Tensor> {
        x.contiguous()?.apply_op1(self)
    }
}

/// `log(1 + exp(x))` to the precision of `f32`, in half the time that the exact logarithm takes.
fn softplus(x: f32, threshold: f64) -> f32 {
    let wide = f64::from(x);
    if wide > threshold {
        return x;
    }
    let e = wide.exp();
    let y = match e < 1e-4 {
        true => e * (1.0 - e * (0.5 - e / 3.0)),
        // If the exponential is beyond the type, adding 1 to it changes nothing.
        false if wide > 700.0 => wide,
        false => (1.0 + e).ln(),
    };
    y as f32
}

/// `exp(x) - 1` to the precision of `f32`.
fn exp_minus_one(x: f32) -> f32 {
    if x.abs() < 1e-3 {
        // Keeps the sign of zero.
        return x + x * x * (0.5 + x / 6.0);
    }
    (f64::from(x).exp() - 1.0) as f32
}

impl CustomOp1 for Curve {
    fn name(&self) -> &'static str {
        match self {
            Curve::Softplus(_) => "softplus",
            Curve::ExpMinusOne => "expm1",
        }
    }

    fn cpu_fwd(&self, storage: &CpuStorage, layout: &Layout) -> Result<(CpuStorage, Shape)> {
        let Some((from, to)) = layout.contiguous_offsets() else {
            bail!("{}: the tensor is not contiguous", self.name())
        };
        let result = match storage {
            CpuStorage::F32(x) => {
                let x = x[from..to].iter();
                CpuStorage::F32(match *self {
                    Curve::Softplus(threshold) => x.map(|x| softplus(*x, threshold)).collect(),
                    Curve::ExpMinusOne => x.map(|x| exp_minus_one(*x)).collect(),
                })
            }
            CpuStorage::F64(x) => {
                let of = |x: f64| match *self {
                    Curve::Softplus(threshold) if x > threshold || x > 700.0 => x,
                    Curve::Softplus(_) => x.exp().ln_1p(),
                    Curve::ExpMinusOne => x.exp_m1(),
                };
                CpuStorage::F64(x[from..to].iter().map(|x| of(*x)).collect())
            }
            _ => bail!("{}: the dtype is neither f32 nor f64", self.name()),
        };
        Ok((result, layout.shape().clone()))
    }

    fn bwd(&self, x: &Tensor, _: &Tensor, grad: &Tensor) -> Result<Option<Tensor>> {
        let slope = match self {
            // 1 / (1 + exp(-x)), and 1 above the threshold; an infinite exponential gives 0.
            Curve::Softplus(threshold) => {
                let slope = x.neg()?.exp()?.affine(1.0, 1.0)?.recip()?;
                let limit = Tensor::new(*threshold, x.device())?.to_dtype(x.dtype())?;
                let is_line = comparison::gt(x, &limit.broadcast_as(x.dims())?)?;
                where_cond(&is_line, &slope.ones_like()?, &slope)?
            }
            // One more than the result, without its rounding.
            Curve::ExpMinusOne => x.exp()?,
        };
        Ok(Some(grad.mul(&slope)?))
    }
}
