//! Diagonals of matrices: read and written.

use candle_core::{Result, Tensor, bail};

use super::dim::dim;
use super::places::{self, NOWHERE};
use crate::room;

/// A diagonal of the matrices in two dims of a shape: its places in a row-major tensor.
pub struct Diagonal {
    /// The sizes of the other dims, and the diagonal's length.
    pub dims: Vec<usize>,
    /// The place of each of its elements.
    pub places: Vec<i64>,
}

impl Diagonal {
    /// The diagonal of the dims `dim1` and `dim2`, `offset` columns to the right of the main one.
    ///
    /// # Errors
    /// Returns an error if the two dims are the same, or there are no such dims.
    pub fn of(op: &str, dims: &[usize], offset: i64, dim1: i64, dim2: i64) -> Result<Self> {
        let (a, b) = (dim(op, dim1, dims.len())?, dim(op, dim2, dims.len())?);
        if a == b || dims.len() < 2 {
            bail!("{op}: dims {dim1} and {dim2} of shape {dims:?} are not two")
        }
        let strides = places::strides(dims);
        let down = usize::try_from(offset.saturating_neg()).unwrap_or(0);
        let right = usize::try_from(offset).unwrap_or(0);
        let length = dims[a]
            .saturating_sub(down)
            .min(dims[b].saturating_sub(right));
        let start = match length {
            0 => 0,
            _ => down * strides[a] + right * strides[b],
        };
        let others = |all: &[usize], last: usize| -> Vec<usize> {
            let kept = (0..dims.len()).filter(|d| *d != a && *d != b);
            kept.map(|d| all[d]).chain([last]).collect()
        };
        let own = others(dims, length);
        let steps = others(&strides, strides[a] + strides[b]);
        let places = places::view(op, start, &own, &steps)?;
        Ok(Diagonal { dims: own, places })
    }
}

/// The elements of a diagonal of `x`, along a new last dim.
///
/// # Errors
/// Returns the errors of [`Diagonal::of`].
pub fn diagonal(op: &str, x: &Tensor, offset: i64, dim1: i64, dim2: i64) -> Result<Tensor> {
    let of = Diagonal::of(op, x.dims(), offset, dim1, dim2)?;
    places::pick(op, x, of.places, &of.dims)
}

/// Zeros, except for a diagonal of the dims `dim1` and `dim2` of the result, which holds the rows
/// of `x`.
///
/// # Errors
/// Returns an error if there are no such dims.
pub fn embed(op: &str, x: &Tensor, offset: i64, dim1: i64, dim2: i64) -> Result<Tensor> {
    let rank = x.rank() + 1;
    let (a, b) = (dim(op, dim1, rank)?, dim(op, dim2, rank)?);
    let Some((length, others)) = x.dims().split_last() else {
        bail!("{op}: a tensor without dims is not a diagonal")
    };
    if a == b {
        bail!("{op}: dims {dim1} and {dim2} of the result are not two")
    }
    let side = usize::try_from(offset.unsigned_abs())
        .unwrap_or(usize::MAX)
        .saturating_add(*length);
    let mut others = others.iter();
    let dims: Vec<usize> = (0..rank)
        .map(|d| match d == a || d == b {
            true => side,
            false => others.next().copied().unwrap_or(1),
        })
        .collect();
    let count = room::of(op, &dims, candle_core::DType::I64)?;
    let mut from = vec![NOWHERE; count];
    let of = Diagonal::of(op, &dims, offset, a as i64, b as i64)?;
    for (at, place) in of.places.iter().enumerate() {
        from[*place as usize] = at as i64;
    }
    places::pick(op, x, from, &dims)
}
