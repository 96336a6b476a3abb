//! Implicit broadcasting of shapes, laid out so that its backward pass stays cheap.

use candle_core::{Result, Tensor, bail};

use super::view;
use crate::room;

/// The shape that `a` and `b` broadcast to, aligned at the last dimension.
///
/// # Errors
/// Returns an error if two aligned sizes differ and neither is 1; it names `op` and both shapes.
pub fn shape(op: &str, a: &[usize], b: &[usize]) -> Result<Vec<usize>> {
    let rank = a.len().max(b.len());
    let size = |dims: &[usize], i: usize| match (i + dims.len()).checked_sub(rank) {
        Some(at) => dims[at],
        None => 1,
    };
    let mut out = Vec::with_capacity(rank);
    for i in 0..rank {
        let (left, right) = (size(a, i), size(b, i));
        if left != right && left != 1 && right != 1 {
            bail!("{op}: shapes {a:?} and {b:?} do not broadcast")
        }
        out.push(if left == 1 { right } else { left });
    }
    Ok(out)
}

/// `x` seen with the shape `dims`, which its own shape must broadcast to; no data is copied.
///
/// The view is made in two steps, leading dimensions first: the backward pass then sums the
/// trailing dimensions, which candle does fast, before it touches the leading ones.
///
/// # Errors
/// Returns an error if `x` does not broadcast to `dims`, or results computed from it do not fit
/// into memory.
pub fn to(x: &Tensor, dims: &[usize]) -> Result<Tensor> {
    if x.dims() == dims {
        return Ok(x.clone());
    }
    // The view itself takes no memory, but results computed from it do.
    let count = room::of("expand", dims, x.dtype())?;
    if x.rank() > dims.len() {
        bail!(
            "expand: shape {:?} has more dimensions than {dims:?}",
            x.dims()
        )
    }
    let lead = dims.len() - x.rank();
    // Everything after the last dimension that is kept as it is.
    let tail = (0..x.rank())
        .rev()
        .find(|&i| x.dims()[i] == dims[lead + i] && dims[lead + i] != 1)
        .map_or(0, |i| lead + i + 1);
    let mut first = dims.to_vec();
    for (i, size) in first.iter_mut().enumerate().skip(tail) {
        *size = if i < lead { 1 } else { x.dims()[i - lead] };
    }
    let x = if x.dims() == first.as_slice() {
        x.clone()
    } else {
        x.broadcast_as(first)?
    };
    let x = if x.dims() == dims {
        x
    } else {
        x.broadcast_as(dims)?
    };
    Ok(if count == 0 { view::fresh(x) } else { x })
}

/// A per-channel vector `[c]` seen with the shape `dims`, whose dimension 1 is `c`.
///
/// # Errors
/// Returns an error if `v` is not of shape `[dims[1]]` or `dims` has fewer than 2 dimensions.
pub fn channel(op: &str, v: &Tensor, dims: &[usize]) -> Result<Tensor> {
    if dims.len() < 2 || v.dims() != &dims[1..2] {
        bail!(
            "{op}: shape {:?} is not one value a channel of {dims:?}",
            v.dims()
        )
    }
    let mut shape = vec![1; dims.len()];
    shape[1] = dims[1];
    to(&v.reshape(shape)?, dims)
}

/// Whether two tensors have the same shape. Ranks are small: an inline loop is cheaper than a call.
#[inline]
pub(crate) fn same_shape(a: &Tensor, b: &Tensor) -> bool {
    let (a, b) = (a.dims(), b.dims());
    a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a == b)
}

/// The broadcast shape of two tensors.
///
/// # Errors
/// Returns an error if they do not broadcast.
pub fn broadcast_dims(op: &str, a: &Tensor, b: &Tensor) -> Result<Vec<usize>> {
    shape(op, a.dims(), b.dims())
}

/// Both tensors in their broadcast shape.
#[inline(never)]
pub(crate) fn broadcast(op: &str, a: &Tensor, b: &Tensor) -> Result<(Tensor, Tensor)> {
    let dims = shape(op, a.dims(), b.dims())?;
    Ok((to(a, &dims)?, to(b, &dims)?))
}
