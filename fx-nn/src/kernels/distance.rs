//! Lengths of vectors by any power, and distances of them.

use candle_core::{DType, Result, Tensor, bail};

use super::matmul::matmul;
use super::pointwise::clamp;
use super::widen::widened;
use super::{expand, reduce};
use crate::room;

/// Zeros where `at_zero` holds, whatever `f` gives of the ones that stand there instead; no gradient runs there.
fn guarded(
    x: &Tensor,
    at_zero: &Tensor,
    f: impl FnOnce(&Tensor) -> Result<Tensor>,
) -> Result<Tensor> {
    let y = f(&at_zero.where_cond(&x.ones_like()?, x)?)?;
    at_zero.where_cond(&y.zeros_like()?, &y)
}

/// `|x|`, whose gradient at 0 is 0.
fn magnitude(x: &Tensor) -> Result<Tensor> {
    if x.elem_count() == 0 {
        return x.abs();
    }
    let fixed = x.detach();
    let at_zero = fixed.eq(&fixed.zeros_like()?)?;
    guarded(&x.abs()?, &at_zero, |x| Ok(x.clone()))
}

/// The length of the vectors of a floating point `x` along `dim`: the sum of `|x|ᵖ`, to the power `1 / p`; the largest or
/// smallest magnitude where `p` is infinite, the count of what is not 0 where it is 0.
///
/// The gradient of a length of 0 is 0.
///
/// # Errors
/// When `dim` is not a dimension of `x`, or it has no largest element.
pub fn length(x: &Tensor, p: f64, dim: usize, keepdim: bool) -> Result<Tensor> {
    widened(x, x, |x| {
        if x.rank() == 0 {
            return match p {
                0.0 => x.ne(&x.zeros_like()?)?.to_dtype(x.dtype()),
                _ => magnitude(&x),
            };
        }
        let dims = [dim];
        if p == f64::INFINITY {
            return reduce::max(&magnitude(&x)?, &dims, keepdim);
        }
        if p == f64::NEG_INFINITY {
            return reduce::min(&magnitude(&x)?, &dims, keepdim);
        }
        let zero = x.detach().zeros_like()?;
        if p == 0.0 {
            let used = x.detach().ne(&zero)?.to_dtype(x.dtype())?;
            return reduce::sum(&used, &dims, keepdim);
        }
        if p == 1.0 {
            return reduce::sum(&magnitude(&x)?, &dims, keepdim);
        }
        let total = match p {
            2.0 => reduce::sum(&x.sqr()?, &dims, keepdim)?,
            _ if p > 0.0 => {
                let powers = guarded(&x.abs()?, &x.detach().eq(&zero)?, |x| x.powf(p))?;
                reduce::sum(&powers, &dims, keepdim)?
            }
            _ => reduce::sum(&x.abs()?.powf(p)?, &dims, keepdim)?,
        };
        if total.elem_count() == 0 {
            return Ok(total);
        }
        let none = total.detach().eq(&total.detach().zeros_like()?)?;
        guarded(&total, &none, |total| match p {
            2.0 => total.sqrt(),
            _ => total.powf(1.0 / p),
        })
    })
}

/// More rows than this on a side are compared by their products, where the distance is Euclid's.
const ROWS: usize = 25;

/// The distance of each row of `a [.., p, m]` from each of `b [.., r, m]`: `[.., p, r]`.
///
/// # Errors
/// When a rank is below 2, the widths differ, or the batches do not broadcast.
pub fn pairs(op: &str, a: &Tensor, b: &Tensor, p: f64, products: Option<bool>) -> Result<Tensor> {
    let (&[ref first @ .., rows, width], &[ref second @ .., others, other]) = (a.dims(), b.dims())
    else {
        bail!(
            "{op}: inputs {:?} and {:?} must be [.., rows, width]",
            a.dims(),
            b.dims()
        )
    };
    if width != other {
        bail!(
            "{op}: rows of {:?} and {:?} are not of one width",
            a.dims(),
            b.dims()
        )
    }
    let batch = expand::shape(op, first, second)?;
    let with = |tail: &[usize]| [batch.as_slice(), tail].concat();
    let shape = with(&[rows, others]);
    let count = room::of(op, &shape, a.dtype())?;
    if count == 0 || width == 0 {
        return Tensor::zeros(shape, a.dtype(), a.device());
    }
    if p == 2.0 && products.unwrap_or(rows > ROWS || others > ROWS) {
        return euclid(
            &expand::to(a, &with(&[rows, width]))?,
            &expand::to(b, &with(&[others, width]))?,
        );
    }
    let full = with(&[rows, others, width]);
    room::of(op, &full, a.dtype())?;
    let a = expand::to(&a.unsqueeze(a.rank() - 1)?, &full)?;
    let b = expand::to(&b.unsqueeze(b.rank() - 2)?, &full)?;
    length(&a.sub(&b)?, p, full.len() - 1, false)
}

/// Euclid's distances: `|a|² + |b|² - 2 a·b`, and its root.
fn euclid(a: &Tensor, b: &Tensor) -> Result<Tensor> {
    let last = a.rank() - 1;
    let own = reduce::sum(&a.sqr()?, &[last], true)?;
    let other = reduce::sum(&b.sqr()?, &[last], true)?;
    let products = matmul(&a.affine(-2.0, 0.0)?, &b.t()?)?;
    let dims = products.dims().to_vec();
    let squares = products
        .add(&expand::to(&own, &dims)?)?
        .add(&expand::to(&other.t()?, &dims)?)?;
    let squares = clamp(&squares, Some(0.0), None)?;
    let none = squares.detach().eq(&squares.detach().zeros_like()?)?;
    guarded(&squares, &none, Tensor::sqrt)
}

/// Refuses what has no lengths.
///
/// # Errors
/// When `x` is not floating point.
pub fn floats(op: &str, x: &Tensor) -> Result<()> {
    match x.dtype() {
        dtype if dtype.is_float() => Ok(()),
        DType::U8 | DType::U32 | DType::I16 | DType::I32 | DType::I64 => bail!(
            "{op}: dtype {:?} is not floating point: convert the tensor with to_dtype",
            x.dtype()
        ),
        other => bail!("{op}: dtype {other:?} is not supported"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernels::testing::{check, f64s, near, strided, varied};
    use candle_core::{Device, Var};

    #[test]
    fn small_numbers() -> Result<()> {
        let x = Tensor::new(&[[3f64, -4.], [0., 2.]], &Device::Cpu)?;
        near(&length(&x, 2.0, 1, false)?, &[5., 2.])?;
        near(&length(&x, 1.0, 0, true)?, &[3., 6.])?;
        near(&length(&x, f64::INFINITY, 1, false)?, &[4., 2.])?;
        near(&length(&x, f64::NEG_INFINITY, 1, false)?, &[3., 0.])?;
        near(&length(&x, 0.0, 1, false)?, &[2., 1.])?;
        near(&length(&x, 3.0, 1, false)?, &[91f64.powf(1. / 3.), 2.])?;
        let near_and_far = pairs("cdist", &x, &x, 2.0, None)?;
        near(&near_and_far, &[0., 45f64.sqrt(), 45f64.sqrt(), 0.])?;
        let (a, b) = (varied(&[2, 30, 3])?, varied(&[4, 3])?);
        let slow = f64s(&pairs("cdist", &a, &b, 2.0, Some(false))?)?;
        for (a, b) in f64s(&pairs("cdist", &a, &b, 2.0, None)?)?.iter().zip(slow) {
            assert!((a - b).abs() < 1e-7, "{a} {b}");
        }
        Ok(())
    }

    #[test]
    fn gradients_match() -> Result<()> {
        let x = [strided(&varied(&[2, 3, 4])?)?, varied(&[5, 4])?];
        for p in [0.7, 1.0, 1.5, 2.0, 3.0, f64::INFINITY] {
            check(&x[..1], |v| length(&v[0], p, 1, false))?;
            check(&x, |v| pairs("cdist", &v[0], &v[1], p, Some(true)))?;
        }
        let zero = Var::zeros((1, 2), DType::F64, &Device::Cpu)?;
        let y = pairs("cdist", zero.as_tensor(), zero.as_tensor(), 2.0, None)?;
        near(
            y.sum_all()?.backward()?.get(&zero).expect("a gradient"),
            &[0., 0.],
        )
    }
}
