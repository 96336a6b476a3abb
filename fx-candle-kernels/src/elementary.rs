//! Functions of each element alone that candle lacks, with their derivatives.

use candle_core::{CpuStorage, CustomOp1, Layout, Result, Shape, Tensor, bail};

use super::choice::where_cond;
use super::comparison;
use super::curve::Curve;
use super::pointwise::clamp;
use super::scale::Scale;
use super::widen::widened;

/// `f` of each element; `f32` is computed in `f64` and rounded once, unless there is a function for
/// it.
pub(super) fn each(
    name: &str,
    storage: &CpuStorage,
    layout: &Layout,
    f: impl Fn(f64) -> f64,
    single: Option<fn(f32) -> f32>,
) -> Result<(CpuStorage, Shape)> {
    let Some((from, to)) = layout.contiguous_offsets() else {
        bail!("{name}: the tensor is not contiguous")
    };
    let y = match storage {
        CpuStorage::F32(x) => CpuStorage::F32(match single {
            Some(single) => x[from..to].iter().map(|x| single(*x)).collect(),
            None => x[from..to]
                .iter()
                .map(|x| f(f64::from(*x)) as f32)
                .collect(),
        }),
        CpuStorage::F64(x) => CpuStorage::F64(x[from..to].iter().map(|x| f(*x)).collect()),
        _ => bail!("{name}: the dtype is neither f32 nor f64"),
    };
    Ok((y, layout.shape().clone()))
}

macro_rules! functions {
    ($($(#[$doc:meta])* $variant:ident $name:literal ($of:expr, $slope:expr);)*) => {
        /// A function of one number.
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        pub enum Elementary {
            $($(#[$doc])* $variant,)*
        }

        impl CustomOp1 for Elementary {
            fn name(&self) -> &'static str {
                match self {
                    $(Elementary::$variant => $name,)*
                }
            }

            fn cpu_fwd(&self, storage: &CpuStorage, layout: &Layout) -> Result<(CpuStorage, Shape)> {
                match self {
                    $(Elementary::$variant => each($name, storage, layout, $of, self.single()),)*
                }
            }

            fn bwd(&self, x: &Tensor, y: &Tensor, grad: &Tensor) -> Result<Option<Tensor>> {
                let slope: fn(&Tensor, &Tensor) -> Result<Tensor> = match self {
                    $(Elementary::$variant => $slope,)*
                };
                let (x, y) = (x.detach(), y.detach());
                grad.mul(&slope(&x, &y)?).map(Some)
            }
        }
    };
}

/// The slope of a flat function, where it has one.
fn flat(x: &Tensor, _: &Tensor) -> Result<Tensor> {
    x.zeros_like()
}

/// `1 / sqrt(1 - x²)`.
fn arc(x: &Tensor) -> Result<Tensor> {
    x.sqr()?.affine(-1.0, 1.0)?.sqrt()?.recip()
}

functions! {
    /// The tangent.
    Tan "tan" (f64::tan, |_, y| y.sqr()?.affine(1.0, 1.0));
    /// The arc sine.
    Asin "asin" (f64::asin, |x, _| arc(x));
    /// The arc cosine.
    Acos "acos" (f64::acos, |x, _| arc(x)?.neg());
    /// The arc tangent.
    Atan "atan" (f64::atan, |x, _| x.sqr()?.affine(1.0, 1.0)?.recip());
    /// The hyperbolic sine.
    Sinh "sinh" (f64::sinh, |x, _| Elementary::Cosh.of(x));
    /// The hyperbolic cosine.
    Cosh "cosh" (f64::cosh, |x, _| Elementary::Sinh.of(x));
    /// The inverse of the hyperbolic sine.
    Asinh "asinh" (f64::asinh, |x, _| x.sqr()?.affine(1.0, 1.0)?.sqrt()?.recip());
    /// The inverse of the hyperbolic cosine.
    Acosh "acosh" (f64::acosh, |x, _| x.sqr()?.affine(1.0, -1.0)?.sqrt()?.recip());
    /// The inverse of the hyperbolic tangent.
    Atanh "atanh" (|x: f64| x.abs().atanh().copysign(x), |x, _| x.sqr()?.affine(-1.0, 1.0)?.recip());
    /// `log(1 + x)`, also where x is small.
    Log1p "log1p" (f64::ln_1p, |x, _| x.affine(1.0, 1.0)?.recip());
    /// The logarithm to the base 2.
    Log2 "log2" (f64::log2, |x, _| x.times(std::f64::consts::LN_2)?.recip());
    /// The logarithm to the base 10.
    Log10 "log10" (f64::log10, |x, _| x.times(std::f64::consts::LN_10)?.recip());
    /// 2 to the power of x.
    Exp2 "exp2" (f64::exp2, |_, y| y.times(std::f64::consts::LN_2));
    /// `1 - erf(x)`, also where x is large.
    Erfc "erfc" (candle_core::cpu::erf::erfc_f64, |x, _| {
        x.sqr()?.neg()?.exp()?.times(-std::f64::consts::FRAC_2_SQRT_PI)
    });
    /// The inverse of the error function.
    Erfinv "erfinv" (erfinv, |_, y| {
        y.sqr()?.exp()?.times(1.0 / std::f64::consts::FRAC_2_SQRT_PI)
    });
    /// `log(x / (1 - x))`.
    Logit "logit" (|x: f64| (x / (1.0 - x)).ln(), |x, y| {
        let slope = x.sub(&x.sqr()?)?.recip()?;
        where_cond(&comparison::ne(y, y)?, y, &slope)
    });
    /// `sin(πx) / πx`, 1 at 0.
    Sinc "sinc" (sinc, |x, y| {
        let turn = x.times(std::f64::consts::PI)?;
        let square = turn.sqr()?;
        // Near 0 by the series, where the quotient is a difference of equal numbers.
        let mut series = square.affine(1.0 / 45360.0, -1.0 / 840.0)?;
        for term in [1.0 / 30.0, -1.0 / 3.0] {
            series = series.mul(&square)?.affine(1.0, term)?;
        }
        let near = series.mul(&turn)?.times(std::f64::consts::PI)?;
        let is_near = comparison::lt(&turn.abs()?, &x.ones_like()?.times(0.1)?)?;
        where_cond(&is_near, &near, &turn.cos()?.sub(y)?.div(x)?)
    });
    /// The whole number at or below x.
    Floor "floor" (f64::floor, flat);
    /// The whole number at or above x.
    Ceil "ceil" (f64::ceil, flat);
    /// The whole number at x or towards 0.
    Trunc "trunc" (f64::trunc, flat);
    /// The nearest whole number, of two the even one.
    Round "round" (f64::round_ties_even, flat);
    /// x without its whole part, with its sign.
    Frac "frac" (|x: f64| x - x.trunc(), |x, _| x.ones_like());
    /// 1 above 0, -1 below it, else 0.
    Sign "sign" (sign, flat);
    /// `x - tanh(x)`.
    Tanhshrink "tanhshrink" (|x: f64| x - x.tanh(), |x, _| x.tanh()?.sqr());
    /// `log(sigmoid(x))`.
    LogSigmoid "logsigmoid" (|x: f64| x.min(0.0) - (-x.abs()).exp().ln_1p(), |x, _| {
        x.exp()?.affine(1.0, 1.0)?.recip()
    });
}

fn sign(x: f64) -> f64 {
    // A NaN has the sign 0, as in PyTorch.
    f64::from(u8::from(x > 0.0)) - f64::from(u8::from(x < 0.0))
}

fn sinc(x: f64) -> f64 {
    match x * std::f64::consts::PI {
        _ if x == 0.0 => 1.0,
        turn => turn.sin() / turn,
    }
}

/// Rounds πx as PyTorch does: whole numbers are not quite zeros.
fn single_sinc(x: f32) -> f32 {
    match x * std::f32::consts::PI {
        _ if x == 0.0 => 1.0,
        turn => turn.sin() / turn,
    }
}

/// The inverse of the error function, by Newton's steps from candle's.
fn erfinv(x: f64) -> f64 {
    if x.is_nan() || x.abs() > 1.0 {
        return f64::NAN;
    }
    if x.abs() == 1.0 {
        return x * f64::INFINITY;
    }
    let mut y = candle_core::cpu::erf::erf_inv(x);
    for _ in 0..2 {
        // Near 1 the complement keeps the digits that the function itself loses.
        let miss = match x.abs() > 0.5 {
            true => {
                let side = 1f64.copysign(x);
                -side * (candle_core::cpu::erf::erfc_f64(side * y) - (1.0 - x.abs()))
            }
            false => candle_core::cpu::erf::erf_f64(y) - x,
        };
        y -= miss / (std::f64::consts::FRAC_2_SQRT_PI * (-y * y).exp());
    }
    y
}

impl Elementary {
    /// The function of `f32`, if that differs from the one of `f64`.
    fn single(self) -> Option<fn(f32) -> f32> {
        match self {
            Elementary::Sinc => Some(single_sinc),
            _ => None,
        }
    }

    /// The function of each element of `x`, of any shape.
    ///
    /// # Errors
    /// Returns an error if the dtype is not floating point.
    pub fn of(self, x: &Tensor) -> Result<Tensor> {
        widened(x, x, |x| x.contiguous()?.apply_op1(self))
    }
}

/// `x` rounded to `decimals` places, which may be below 0.
///
/// # Errors
/// Returns an error if the dtype is not floating point.
pub fn round_to(x: &Tensor, decimals: i64) -> Result<Tensor> {
    if decimals == 0 {
        return Elementary::Round.of(x);
    }
    let tens = 10f64.powi(i32::try_from(decimals.unsigned_abs()).unwrap_or(i32::MAX));
    widened(x, x, |x| {
        let tens = Tensor::new(tens, x.device())?.to_dtype(x.dtype())?;
        let tens = tens.broadcast_as(x.dims())?;
        match decimals > 0 {
            true => Elementary::Round.of(&x.mul(&tens)?)?.div(&tens),
            false => Elementary::Round.of(&x.div(&tens)?)?.mul(&tens),
        }
    })
}

/// `exp(x) - 1`, also where x is small.
///
/// # Errors
/// Returns an error if the dtype is not floating point.
pub fn expm1(x: &Tensor) -> Result<Tensor> {
    widened(x, x, |x| Curve::ExpMinusOne.of(&x))
}

/// `log(x / (1 - x))`, of x clamped to `[eps, 1 - eps]` if `eps` is given.
///
/// # Errors
/// Returns an error if the dtype is not floating point.
pub fn logit(x: &Tensor, eps: Option<f64>) -> Result<Tensor> {
    // The bounds have the type of `x`: in half precision 1 - eps may be 1.
    match eps {
        Some(eps) => Elementary::Logit.of(&clamp(x, Some(eps), Some(1.0 - eps))?),
        None => Elementary::Logit.of(x),
    }
}
