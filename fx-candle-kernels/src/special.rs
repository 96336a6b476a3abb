//! Special functions of each element alone, with their derivatives: `f32` is computed in `f64` and rounded once.

use std::f64::consts::{FRAC_1_SQRT_2, FRAC_2_SQRT_PI, PI};

use candle_core::{CpuStorage, CustomOp1, Layout, Result, Shape, Tensor};

use super::choice::where_cond;
use super::comparison;
use super::elementary::{Elementary, each};
use super::scale::Scale;
use super::widen::widened;
use crate::{bessel, gammas, normal};

/// A special function of one number.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Special {
    /// `log |Γ(x)|`.
    Lgamma,
    /// The slope of `log Γ(x)`.
    Digamma,
    /// The slope of that, taken so many times.
    Polygamma(u32),
    /// The share of a normal distribution below x.
    Ndtr,
    /// Its inverse.
    Ndtri,
    /// Its logarithm.
    LogNdtr,
    /// The modified Bessel function of order 0.
    I0,
    /// `exp(-|x|) I0(x)`.
    I0e,
    /// The modified Bessel function of order 1.
    I1,
    /// `exp(-|x|) I1(x)`.
    I1e,
    /// `-x log(x)`.
    Entr,
    /// `exp(x²) erfc(x)`.
    Erfcx,
}

impl Special {
    /// The function of each element of `x`, of any shape.
    ///
    /// # Errors
    /// Returns an error if the dtype is not floating point.
    pub fn of(self, x: &Tensor) -> Result<Tensor> {
        widened(x, x, |x| x.contiguous()?.apply_op1(self))
    }

    fn number(self, x: f64) -> f64 {
        match self {
            Special::Lgamma => gammas::lgamma(x),
            Special::Digamma => gammas::digamma(x),
            Special::Polygamma(n) => gammas::polygamma(n, x),
            Special::Ndtr => normal::ndtr(x),
            Special::Ndtri => normal::ndtri(x),
            Special::LogNdtr => normal::log_ndtr(x),
            Special::I0 => bessel::i0(x),
            Special::I0e => bessel::i0e(x),
            Special::I1 => bessel::i1(x),
            Special::I1e => bessel::i1e(x),
            Special::Entr => entr(x),
            Special::Erfcx => normal::erfcx(x),
        }
    }

    /// The derivative at `x`, where the function is `y`.
    fn slope(self, x: &Tensor, y: &Tensor) -> Result<Tensor> {
        match self {
            Special::Lgamma => Special::Digamma.of(x),
            Special::Digamma => Special::Polygamma(1).of(x),
            Special::Polygamma(n) => Special::Polygamma(n.saturating_add(1)).of(x),
            Special::Ndtr => {
                let bell = x.sqr()?.times(-0.5)?.exp()?;
                bell.times(FRAC_2_SQRT_PI * FRAC_1_SQRT_2 * 0.5)
            }
            Special::Ndtri => y.sqr()?.times(0.5)?.exp()?.times((2.0 * PI).sqrt()),
            Special::LogNdtr => {
                let scaled = Special::Erfcx.of(&x.times(-FRAC_1_SQRT_2)?)?;
                scaled.recip()?.times(FRAC_2_SQRT_PI * FRAC_1_SQRT_2)
            }
            Special::I0 => Special::I1.of(x),
            Special::I0e => {
                let turned = Elementary::Sign.of(x)?.mul(y)?;
                Special::I1e.of(x)?.sub(&turned)
            }
            Special::I1 => half_at_zero(x, |x| Special::I0.of(x)?.sub(&y.div(x)?)),
            Special::I1e => half_at_zero(x, |x| {
                let share = Elementary::Sign.of(x)?.add(&x.recip()?)?;
                Special::I0e.of(x)?.sub(&y.mul(&share)?)
            }),
            Special::Entr => x.log()?.affine(-1.0, -1.0),
            Special::Erfcx => x.mul(y)?.affine(2.0, -FRAC_2_SQRT_PI),
        }
    }
}

/// A slope that is 1/2 where x is nearly 0.
fn half_at_zero(x: &Tensor, slope: impl FnOnce(&Tensor) -> Result<Tensor>) -> Result<Tensor> {
    let step = match x.dtype() {
        candle_core::DType::F64 => f64::EPSILON,
        _ => f64::from(f32::EPSILON),
    };
    let step = x.ones_like()?.times(step)?;
    let is_away = comparison::gt(&x.abs()?, &step)?;
    let slope = slope(&where_cond(&is_away, x, &step)?)?;
    where_cond(&is_away, &slope, &x.ones_like()?.times(0.5)?)
}

fn entr(x: f64) -> f64 {
    match x {
        _ if x > 0.0 => -x * x.ln(),
        _ if x == 0.0 => 0.0,
        _ if x < 0.0 => f64::NEG_INFINITY,
        _ => x,
    }
}

impl CustomOp1 for Special {
    fn name(&self) -> &'static str {
        match self {
            Special::Lgamma => "lgamma",
            Special::Digamma => "digamma",
            Special::Polygamma(_) => "polygamma",
            Special::Ndtr => "ndtr",
            Special::Ndtri => "ndtri",
            Special::LogNdtr => "log_ndtr",
            Special::I0 => "i0",
            Special::I0e => "i0e",
            Special::I1 => "i1",
            Special::I1e => "i1e",
            Special::Entr => "entr",
            Special::Erfcx => "erfcx",
        }
    }

    fn cpu_fwd(&self, storage: &CpuStorage, layout: &Layout) -> Result<(CpuStorage, Shape)> {
        let single: Option<fn(f32) -> f32> = match self {
            Special::Polygamma(1) => Some(gammas::trigamma_single),
            _ => None,
        };
        each(self.name(), storage, layout, |x| self.number(x), single)
    }

    fn bwd(&self, x: &Tensor, y: &Tensor, grad: &Tensor) -> Result<Option<Tensor>> {
        grad.mul(&self.slope(&x.detach(), &y.detach())?).map(Some)
    }
}
