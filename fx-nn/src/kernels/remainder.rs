//! Floats divided with a rest, by Python's rules: the rest has the sign of the divisor.

use candle_core::{CpuStorage, CustomOp2, Layout, Result, Shape, Tensor, bail};

use super::binary::{self, broadcast_dims};
use super::expand;
use super::widen::widened;

/// `a % b`, exactly: `a - b * floor(a / b)` without its rounding.
///
/// `a` and `b` are floats of one dtype; shapes broadcast.
///
/// # Errors
/// When the shapes do not broadcast.
pub fn remainder(a: &Tensor, b: &Tensor) -> Result<Tensor> {
    widened(a, (a, b), |(a, b)| apply(Division::Rest, &a, &b))
}

/// The quotient `a // b` rounded down.
///
/// `a` and `b` are floats of one dtype; shapes broadcast.
///
/// # Errors
/// When the shapes do not broadcast.
pub fn floor_divide(a: &Tensor, b: &Tensor) -> Result<Tensor> {
    widened(a, (a, b), |(a, b)| apply(Division::Whole, &a, &b))
}

fn apply(op: Division, a: &Tensor, b: &Tensor) -> Result<Tensor> {
    let dims = broadcast_dims(op.name(), a, b)?;
    let (a, b) = (expand::to(a, &dims)?, expand::to(b, &dims)?);
    a.contiguous()?.apply_op2(&b.contiguous()?, op)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Division {
    Rest,
    Whole,
}

macro_rules! divided {
    ($op:expr, $a:expr, $b:expr, $zip:ident) => {
        match $op {
            Division::Rest => $zip($a, $b, |a, b| {
                let rest = a % b;
                if rest != 0.0 && (rest < 0.0) != (b < 0.0) {
                    rest + b
                } else {
                    rest
                }
            }),
            Division::Whole => $zip($a, $b, |a, b| {
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

impl CustomOp2 for Division {
    fn name(&self) -> &'static str {
        match self {
            Division::Rest => "%",
            Division::Whole => "//",
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
        _: &Tensor,
        grad: &Tensor,
    ) -> Result<(Option<Tensor>, Option<Tensor>)> {
        Ok(match self {
            Division::Rest => {
                let whole = floor_divide(&a.detach(), &b.detach())?;
                (Some(grad.clone()), Some(binary::mul(grad, &whole)?.neg()?))
            }
            Division::Whole => (None, None),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernels::testing::{check, f64s, near, varied};
    use candle_core::Device;

    #[test]
    fn by_pythons_rules() -> Result<()> {
        let inf = f32::INFINITY;
        let a = Tensor::new(&[5f32, -5., 5., 1e8, 7., -7., 5., 1.], &Device::Cpu)?;
        let b = Tensor::new(&[inf, inf, -inf, 0.3, -2., 2., 2., -inf], &Device::Cpu)?;
        let rest = f64s(&remainder(&a, &b)?)?;
        let inf = f64::INFINITY;
        assert_eq!(rest[..3], [5., inf, -inf]);
        assert!((rest[3] - 0.026_357).abs() < 1e-6, "{rest:?}");
        assert_eq!(rest[4..], [-1., 1., 1., -inf]);
        near(
            &floor_divide(&a, &b)?,
            &[0., -1., -1., 333_333_312., -4., -4., 2., -1.],
        )
    }

    #[test]
    fn gradients_match() -> Result<()> {
        let inputs = [
            varied(&[2, 3])?.affine(9., 0.3)?,
            varied(&[3])?.affine(1., 2.)?,
        ];
        check(&inputs, |v| remainder(&v[0], &v[1]))
    }
}
