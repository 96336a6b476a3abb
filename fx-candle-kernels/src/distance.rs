//! Distances between vectors, row by row and of all pairs.

use candle_core::{DType, Result, Tensor, bail};

use super::binary::sub;
use super::matmul::matmul;
use super::norms::norm;
use super::pointwise::{but_at_zero, clamp};
use super::scale::Scale;
use super::{expand, reduce};
use crate::room;

/// Above this number of rows on a side, Euclidean distances are computed from products.
const ROWS: usize = 25;

/// The distance of each row of `a [.., p, m]` from each of `b [.., r, m]`: `[.., p, r]`.
///
/// # Errors
/// Returns an error if a rank is below 2, the widths differ, or the batches do not broadcast.
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
    norm(op, &a.sub(&b)?, p, &[full.len() - 1], false)
}

/// Euclidean distances: `|a|² + |b|² - 2 a·b`, and its root.
fn euclid(a: &Tensor, b: &Tensor) -> Result<Tensor> {
    let last = a.rank() - 1;
    let own = reduce::sum(&a.sqr()?, &[last], true)?;
    let other = reduce::sum(&b.sqr()?, &[last], true)?;
    let products = matmul(&a.times(-2.0)?, &b.t()?)?;
    let dims = products.dims().to_vec();
    let squares = products
        .add(&expand::to(&own, &dims)?)?
        .add(&expand::to(&other.t()?, &dims)?)?;
    let squares = clamp(&squares, Some(0.0), None)?;
    but_at_zero(&squares, Tensor::sqrt)
}

/// The `p`-norm of `a - b + eps` along the last dimension.
///
/// # Errors
/// Returns an error if the shapes do not broadcast, or there is no dimension.
pub fn along_rows(
    op: &str,
    a: &Tensor,
    b: &Tensor,
    p: f64,
    eps: f64,
    keepdim: bool,
) -> Result<Tensor> {
    let way = sub(a, b)?.affine(1.0, eps)?;
    let Some(last) = way.rank().checked_sub(1) else {
        bail!("{op}: points have a dimension at least")
    };
    norm(op, &way, p, &[last], keepdim)
}

/// Refuses tensors that are not floating point.
///
/// # Errors
/// Returns an error if `x` is not floating point.
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
    use crate::testing::{check, f64s, near, strided, varied};
    use candle_core::{Device, Var};

    #[test]
    fn small_numbers() -> Result<()> {
        let x = Tensor::new(&[[3f64, -4.], [0., 2.]], &Device::Cpu)?;
        near(&norm("norm", &x, 2.0, &[1], false)?, &[5., 2.])?;
        near(&norm("norm", &x, 1.0, &[0], true)?, &[3., 6.])?;
        near(&norm("norm", &x, f64::INFINITY, &[1], false)?, &[4., 2.])?;
        near(
            &norm("norm", &x, f64::NEG_INFINITY, &[1], false)?,
            &[3., 0.],
        )?;
        near(&norm("norm", &x, 0.0, &[1], false)?, &[2., 1.])?;
        near(
            &norm("norm", &x, 3.0, &[1], false)?,
            &[91f64.powf(1. / 3.), 2.],
        )?;
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
        for p in [0.7, 1.0, 1.5, 2.0, 3.0] {
            check(&x[..1], |v| norm("norm", &v[0], p, &[1], false))?;
            check(&x, |v| pairs("cdist", &v[0], &v[1], p, Some(true)))?;
        }
        // Rows whose differences are never equal, so that each has one largest.
        let x = [x[0].clone(), x[1].affine(0.7, 0.0)?];
        check(&x, |v| pairs("cdist", &v[0], &v[1], f64::INFINITY, None))?;
        let zero = Var::zeros((1, 2), DType::F64, &Device::Cpu)?;
        let y = pairs("cdist", zero.as_tensor(), zero.as_tensor(), 2.0, None)?;
        near(
            y.sum_all()?.backward()?.get(&zero).expect("a gradient"),
            &[0., 0.],
        )
    }
}
