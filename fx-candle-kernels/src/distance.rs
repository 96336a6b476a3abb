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
