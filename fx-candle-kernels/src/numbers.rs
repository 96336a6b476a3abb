//! Functions of two floats that candle lacks: division with a remainder, by Python's rules (the
//! remainder has the sign of the divisor), and powers.

use candle_core::{CpuStorage, CustomOp2, Layout, Result, Shape, Tensor, bail};

use super::choice::where_cond;
use super::comparison;
use super::expand::{self, broadcast_dims};
use super::widen::widened;

/// `a % b`, exactly: `a - b * floor(a / b)` without its rounding.
///
/// `a` and `b` are floats of one dtype; shapes broadcast.
///
/// # Errors
/// Returns an error if the shapes do not broadcast.
pub fn remainder(a: &Tensor, b: &Tensor) -> Result<Tensor> {
    widened(a, (a, b), |(a, b)| apply(Pairs::Rest, &a, &b))
}

/// The quotient `a // b` rounded down.
///
/// `a` and `b` are floats of one dtype; shapes broadcast.
///
/// # Errors
/// Returns an error if the shapes do not broadcast.
pub fn floor_divide(a: &Tensor, b: &Tensor) -> Result<Tensor> {
    widened(a, (a, b), |(a, b)| apply(Pairs::Whole, &a, &b))
}

/// The quotient `x // divisor` rounded down, where the number is not rounded to half precision first.
///
/// # Errors
/// Returns only candle's errors.
pub fn floor_divide_by(x: &Tensor, divisor: f64) -> Result<Tensor> {
    widened(x, x, |x| {
        let divisor = Tensor::new(divisor, x.device())?.to_dtype(x.dtype())?;
        apply(Pairs::Whole, &x, &divisor)
    })
}

/// `a` to the power `b`.
///
/// `a` and `b` are floats of one dtype; shapes broadcast. Where `a` is 0 and `b` is not below 0, the gradient of `b` is 0.
///
/// # Errors
/// Returns an error if the shapes do not broadcast.
pub fn power(a: &Tensor, b: &Tensor) -> Result<Tensor> {
    widened(a, (a, b), |(a, b)| apply(Pairs::Power, &a, &b))
}

fn apply(op: Pairs, a: &Tensor, b: &Tensor) -> Result<Tensor> {
    let dims = broadcast_dims(op.name(), a, b)?;
    let (a, b) = (expand::to(a, &dims)?, expand::to(b, &dims)?);
    a.contiguous()?.apply_op2(&b.contiguous()?, op)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Pairs {
    Rest,
    Whole,
    Power,
}

macro_rules! divided {
    ($op:expr, $a:expr, $b:expr, $zip:ident) => {
        match $op {
            Pairs::Rest => $zip($a, $b, |a, b| {
                let rest = a % b;
                if rest != 0.0 && (rest < 0.0) != (b < 0.0) {
                    rest + b
                } else {
                    rest
                }
            }),
            Pairs::Power => $zip($a, $b, |a, b| a.powf(b)),
            Pairs::Whole => $zip($a, $b, |a, b| {
                if b == 0.0 {
                    return a / b;
                }
                let rest = a % b;
                let mut quotient = (a - rest) / b;
                if rest != 0.0 && (rest < 0.0) != (b < 0.0) {
                    quotient -= 1.0;
                }
                if quotient == 0.0 {
                    return quotient.abs().copysign(a / b);
                }
                // The division is off by less than one.
                quotient.round()
            }),
        }
    };
}

fn zip<T: Copy>(a: &[T], b: &[T], f: impl Fn(T, T) -> T) -> Vec<T> {
    a.iter().zip(b).map(|(a, b)| f(*a, *b)).collect()
}

impl CustomOp2 for Pairs {
    fn name(&self) -> &'static str {
        match self {
            Pairs::Rest => "%",
            Pairs::Whole => "//",
            Pairs::Power => "pow",
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
        let y = match (a, b) {
            (CpuStorage::F32(a), CpuStorage::F32(b)) => {
                CpuStorage::F32(divided!(self, &a[i..j], &b[k..l], zip))
            }
            (CpuStorage::F64(a), CpuStorage::F64(b)) => {
                CpuStorage::F64(divided!(self, &a[i..j], &b[k..l], zip))
            }
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
        let zero = grad.zeros_like()?;
        Ok(match self {
            Pairs::Power => {
                let (a, b) = (a.detach(), b.detach());
                let is_flat = comparison::eq(&b, &zero)?;
                let of_a = power(&a, &b.affine(1.0, -1.0)?)?.mul(&b)?.mul(grad)?;
                let of_b = y.mul(&a.log()?)?.mul(grad)?;
                let at_zero = comparison::eq(&a, &zero)?.mul(&comparison::ge(&b, &zero)?)?;
                (
                    Some(where_cond(&is_flat, &zero, &of_a)?),
                    Some(where_cond(&at_zero, &zero, &of_b)?),
                )
            }
            Pairs::Rest => {
                let whole = floor_divide(&a.detach(), &b.detach())?;
                (Some(grad.clone()), Some(grad.mul(&whole)?.neg()?))
            }
            // It is flat between its steps.
            Pairs::Whole => (Some(zero.clone()), Some(zero)),
        })
    }
}
