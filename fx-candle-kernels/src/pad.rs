//! Elements around a tensor: of one value, mirrored, repeated, or from its other end.

use candle_core::{Result, Tensor, bail};

use super::places::along;
use super::view::narrow;
use crate::room;

/// The elements outside of a tensor.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Edge {
    /// The elements in the other direction, without the one at the edge.
    Reflect,
    /// The element at the edge.
    Replicate,
    /// The elements at the other end.
    Circular,
}

/// Along one dim: how many elements are added before and after; negative numbers remove elements.
pub type Sides = (i64, i64);

/// The size with what is added.
fn grown(op: &str, size: usize, (before, after): Sides) -> Result<usize> {
    let size_then = i64::try_from(size)
        .ok()
        .and_then(|n| n.checked_add(before)?.checked_add(after))
        .and_then(|n| usize::try_from(n).ok());
    match size_then {
        Some(n) => Ok(n),
        None => {
            bail!("{op}: padding of {before} and {after} leaves nothing of a dim of size {size}")
        }
    }
}

/// `x` surrounded by `value`, which has its dtype; `sides` are of the last dims, the last first.
///
/// # Errors
/// Returns an error if there are more sides than dims, or nothing is left of a dim.
pub fn constant(op: &str, x: &Tensor, sides: &[Sides], value: &Tensor) -> Result<Tensor> {
    let mut y = x.clone();
    for (dim, sides) in (0..x.rank()).rev().zip(sides) {
        let size = grown(op, y.dims()[dim], *sides)?;
        let mut shape = y.dims().to_vec();
        shape[dim] = size;
        room::of(op, &shape, y.dtype())?;
        let cut = |n: i64| usize::try_from(n.saturating_neg()).unwrap_or(0);
        let first = cut(sides.0);
        let Some(own) = y.dims()[dim].checked_sub(first.saturating_add(cut(sides.1))) else {
            bail!(
                "{op}: padding of {} and {} takes off more than a dim of size {} of input {:?} has",
                sides.0,
                sides.1,
                y.dims()[dim],
                x.dims()
            )
        };
        if shape.contains(&0) {
            y = Tensor::zeros(shape, y.dtype(), y.device())?;
            continue;
        }
        let side = |n: i64| -> Result<Option<Tensor>> {
            let Some(n) = usize::try_from(n).ok().filter(|n| *n > 0) else {
                return Ok(None);
            };
            let mut shape = y.dims().to_vec();
            shape[dim] = n;
            value.broadcast_as(shape)?.contiguous().map(Some)
        };
        let inner = match own {
            0 => None,
            _ => Some(narrow(&y, dim, first, own)?.contiguous()?),
        };
        let parts = [side(sides.0)?, inner, side(sides.1)?];
        let parts: Vec<Tensor> = parts.into_iter().flatten().collect();
        y = match parts.as_slice() {
            [one] => one.clone(),
            parts => Tensor::cat(parts, dim)?,
        };
    }
    Ok(y)
}

/// `x` surrounded by its own elements, by the rule of the edge; `sides` are of the last dims, the
/// last first.
///
/// # Errors
/// Returns an error if a padding is larger than the rule allows, or nothing is left of a dim.
pub fn repeated(op: &str, x: &Tensor, sides: &[Sides], edge: Edge) -> Result<Tensor> {
    // Only the batch, where there is one, may be empty.
    let batch = usize::from(x.rank() == sides.len() + 2);
    if edge != Edge::Circular && x.dims().iter().skip(batch).any(|n| *n == 0) {
        bail!(
            "{op}: input {:?} has a dim of size 0 beside the batch",
            x.dims()
        )
    }
    let mut y = x.clone();
    for (dim, sides) in (0..x.rank()).rev().zip(sides) {
        if *sides == (0, 0) {
            continue;
        }
        let (size, mut sides) = (x.dims()[dim], *sides);
        let most = match edge {
            Edge::Reflect => size.saturating_sub(1),
            Edge::Replicate if size == 0 => 0,
            Edge::Replicate => usize::MAX >> 1,
            Edge::Circular => size,
        };
        let fits = |n: i64| usize::try_from(n).map_or(true, |n| n <= most);
        if !fits(sides.0) || !fits(sides.1) {
            bail!(
                "{op}: padding of {} and {} is more than a dim of size {size} of input {:?} allows",
                sides.0,
                sides.1,
                x.dims()
            )
        }
        let count = grown(op, size, sides)?;
        if count == 0 && edge != Edge::Circular {
            bail!(
                "{op}: padding of {} and {} leaves nothing of input {:?}",
                sides.0,
                sides.1,
                x.dims()
            )
        }
        let mut shape = y.dims().to_vec();
        shape[dim] = count;
        room::of(op, &shape, y.dtype())?;
        let mut size = size as i64;
        let mut first = 0;
        if edge == Edge::Circular {
            // Removed elements do not come back at the other end.
            first = -sides.0.min(0);
            size += sides.0.min(0) + sides.1.min(0);
            sides = (sides.0.max(0), sides.1.max(0));
        }
        let ids = (0..count as i64).map(|i| {
            let at = i - sides.0;
            let inside = match edge {
                Edge::Replicate => at.clamp(0, size - 1),
                Edge::Circular => first + at.rem_euclid(size.max(1)),
                Edge::Reflect if at < 0 => -at,
                Edge::Reflect if at >= size => 2 * (size - 1) - at,
                Edge::Reflect => at,
            };
            inside as u32
        });
        y = along(op, &y, dim, ids.collect())?;
    }
    Ok(y)
}
