//! Functions of two floats that candle lacks: angles, signs, truncated remainders, and logarithms.

use candle_core::{CpuStorage, CustomOp2, Layout, Result, Shape, Tensor, bail};

use super::choice::where_cond;
use super::comparison;
use super::elementary::Elementary;
use super::expand::{self, broadcast_dims};
use super::special::Special;
use super::widen::widened;
use crate::{gammas, incomplete};

/// A function of two numbers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Couple {
    /// The angle of the point (b, a).
    Atan2,
    /// `sqrt(a² + b²)`, without overflow.
    Hypot,
    /// The remainder of `a / b` with the sign of `a`.
    Fmod,
    /// `a` with the sign of `b`.
    Copysign,
    /// `a log(b)`, 0 where `a` is 0.
    Xlogy,
    /// `a log(1 + b)`, 0 where `a` is 0.
    Xlog1py,
    /// The part of the integral of the gamma function of `a` below `b`.
    GammaBelow,
    /// The part above `b`.
    GammaAbove,
    /// Hurwitz's zeta function of `a` from `b` on.
    Zeta,
    /// `log(exp(a) + exp(b))`.
    LogAddExp,
    /// `log2(2^a + 2^b)`.
    LogAddExp2,
}

impl Couple {
    /// The function of each pair of elements; `a` and `b` are floats of one dtype, shapes
    /// broadcast.
    ///
    /// # Errors
    /// Returns an error if the shapes do not broadcast, or the dtype is not floating point.
    pub fn of(self, a: &Tensor, b: &Tensor) -> Result<Tensor> {
        widened(a, (a, b), |(a, b)| {
            let dims = broadcast_dims(self.name(), &a, &b)?;
            let (a, b) = (expand::to(&a, &dims)?, expand::to(&b, &dims)?);
            a.contiguous()?.apply_op2(&b.contiguous()?, self)
        })
    }

    /// In `f64`, from which `f32` is rounded once.
    fn number(self) -> fn(f64, f64) -> f64 {
        match self {
            Couple::Atan2 => f64::atan2,
            Couple::Hypot => f64::hypot,
            Couple::Fmod => |a, b| a % b,
            Couple::Copysign => f64::copysign,
            Couple::Xlogy => |a, b| match a == 0.0 && !b.is_nan() {
                true => 0.0,
                false => a * b.ln(),
            },
            Couple::Xlog1py => |a, b| match a == 0.0 && !b.is_nan() {
                true => 0.0,
                false => a * b.ln_1p(),
            },
            Couple::GammaBelow => incomplete::lower,
            Couple::GammaAbove => incomplete::upper,
            Couple::Zeta => gammas::zeta,
            Couple::LogAddExp => log_add_exp,
            Couple::LogAddExp2 => |a, b| match a == b && a.is_infinite() {
                true => a,
                false => {
                    let more = (-(a - b).abs()).exp2().ln_1p();
                    a.max(b) + more * std::f64::consts::LOG2_E
                }
            },
        }
    }
}

/// `log(exp(a) + exp(b))` without overflow.
pub fn log_add_exp(a: f64, b: f64) -> f64 {
    match a == b && a.is_infinite() {
        true => a,
        false => a.max(b) + (-(a - b).abs()).exp().ln_1p(),
    }
}

fn zip<T: Copy>(a: &[T], b: &[T], f: impl Fn(T, T) -> T) -> Vec<T> {
    a.iter().zip(b).map(|(a, b)| f(*a, *b)).collect()
}

/// `b^(a - 1) exp(-b) / Γ(a)`.
fn gamma_slope(a: &Tensor, b: &Tensor) -> Result<Tensor> {
    let log = a.affine(1.0, -1.0)?.mul(&b.log()?)?.sub(b)?;
    log.sub(&Special::Lgamma.of(a)?)?.exp()
}

impl CustomOp2 for Couple {
    fn name(&self) -> &'static str {
        match self {
            Couple::Atan2 => "atan2",
            Couple::Hypot => "hypot",
            Couple::Fmod => "fmod",
            Couple::Copysign => "copysign",
            Couple::Xlogy => "xlogy",
            Couple::Xlog1py => "xlog1py",
            Couple::GammaBelow => "gammainc",
            Couple::GammaAbove => "gammaincc",
            Couple::Zeta => "zeta",
            Couple::LogAddExp => "logaddexp",
            Couple::LogAddExp2 => "logaddexp2",
        }
    }

    fn cpu_fwd(
        &self,
        a: &CpuStorage,
        of_a: &Layout,
        b: &CpuStorage,
        of_b: &Layout,
    ) -> Result<(CpuStorage, Shape)> {
        let (Some((i, j)), Some((k, l))) = (of_a.contiguous_offsets(), of_b.contiguous_offsets())
        else {
            bail!("{}: a tensor is not contiguous", self.name())
        };
        let f = self.number();
        let y = match (a, b) {
            (CpuStorage::F32(a), CpuStorage::F32(b)) => {
                CpuStorage::F32(zip(&a[i..j], &b[k..l], |a, b| {
                    f(f64::from(a), f64::from(b)) as f32
                }))
            }
            (CpuStorage::F64(a), CpuStorage::F64(b)) => CpuStorage::F64(zip(&a[i..j], &b[k..l], f)),
            _ => bail!("{}: the dtypes are not both f32 or both f64", self.name()),
        };
        Ok((y, of_a.shape().clone()))
    }

    fn bwd(
        &self,
        a: &Tensor,
        b: &Tensor,
        y: &Tensor,
        grad: &Tensor,
    ) -> Result<(Option<Tensor>, Option<Tensor>)> {
        let (a, b, y) = (a.detach(), b.detach(), y.detach());
        let zero = grad.zeros_like()?;
        let (of_a, of_b) = match self {
            Couple::Atan2 => {
                let square = a.sqr()?.add(&b.sqr()?)?;
                let share = grad.div(&square)?;
                let share = where_cond(&comparison::eq(&square, &zero)?, &zero, &share)?;
                (share.mul(&b)?, share.mul(&a)?.neg()?)
            }
            Couple::Hypot => (grad.mul(&a.div(&y)?)?, grad.mul(&b.div(&y)?)?),
            Couple::Fmod => {
                let whole = Elementary::Trunc.of(&a.div(&b)?)?;
                (grad.clone(), grad.mul(&whole)?.neg()?)
            }
            Couple::Copysign => {
                let turned = grad.mul(&y.div(&a)?)?;
                (
                    where_cond(&comparison::eq(&a, &zero)?, &zero, &turned)?,
                    zero,
                )
            }
            Couple::Xlogy => {
                let is_nothing = comparison::eq(&a, &zero)?.mul(&comparison::le(&b, &zero)?)?;
                let of_a = grad.mul(&b.log()?)?;
                (
                    where_cond(&is_nothing, &zero, &of_a)?,
                    grad.mul(&a)?.div(&b)?,
                )
            }
            Couple::Xlog1py => {
                let least = b.ones_like()?.neg()?;
                let is_nothing = comparison::eq(&a, &zero)?.mul(&comparison::le(&b, &least)?)?;
                let of_a = grad.mul(&Elementary::Log1p.of(&b)?)?;
                (
                    where_cond(&is_nothing, &zero, &of_a)?,
                    grad.mul(&a)?.div(&b.affine(1.0, 1.0)?)?,
                )
            }
            // Of the first of both, no derivative is known.
            Couple::GammaBelow => (grad.affine(0.0, f64::NAN)?, gamma_slope(&a, &b)?.mul(grad)?),
            Couple::GammaAbove => (
                grad.affine(0.0, f64::NAN)?,
                gamma_slope(&a, &b)?.mul(grad)?.neg()?,
            ),
            Couple::Zeta => {
                let slope = Couple::Zeta.of(&a.affine(1.0, 1.0)?, &b)?.mul(&a)?.neg()?;
                (grad.affine(0.0, f64::NAN)?, slope.mul(grad)?)
            }
            Couple::LogAddExp => (
                grad.div(&b.sub(&a)?.exp()?.affine(1.0, 1.0)?)?,
                grad.div(&a.sub(&b)?.exp()?.affine(1.0, 1.0)?)?,
            ),
            Couple::LogAddExp2 => {
                let share = |x: Tensor| -> Result<Tensor> {
                    grad.div(&Elementary::Exp2.of(&x)?.affine(1.0, 1.0)?)
                };
                (share(b.sub(&a)?)?, share(a.sub(&b)?)?)
            }
        };
        Ok((Some(of_a), Some(of_b)))
    }
}
