//! `x[i, a:b:c, None, ...]`: the basic indexing of PyTorch, on candle tensors.

use candle_core::{Result, Tensor, bail};

use super::view::narrow;

/// One part of an index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// One position, negative ones from the end: removes the dim.
    At(i64),
    /// Start, stop and step: ends outside the dim are clamped to it.
    Slice(Option<i64>, Option<i64>, i64),
    /// A new dim of size 1.
    NewAxis,
    /// All dims that the other parts do not name.
    Ellipsis,
}

/// `x` at an index.
///
/// # Errors
/// Returns an error if there are more parts than dims, two ellipses, a position outside its dim, or
/// a step that is not positive.
pub fn index(x: &Tensor, parts: &[Part]) -> Result<Tensor> {
    let used = parts
        .iter()
        .filter(|p| matches!(p, Part::At(_) | Part::Slice(..)))
        .count();
    if used > x.rank() {
        bail!(
            "getitem: {used} indices for a tensor of shape {:?}, which has {} dims",
            x.dims(),
            x.rank()
        )
    }
    if parts.iter().filter(|p| **p == Part::Ellipsis).count() > 1 {
        bail!("getitem: an index has at most one ellipsis")
    }
    let mut y = x.clone();
    let mut dim = 0;
    for part in parts {
        match *part {
            Part::At(i) => y = narrow(&y, dim, position(x, &y, dim, i)?, 1)?.squeeze(dim)?,
            Part::Slice(start, stop, step) => {
                y = slice(&y, dim, start, stop, step)?;
                dim += 1;
            }
            Part::NewAxis => {
                y = y.unsqueeze(dim)?;
                dim += 1;
            }
            Part::Ellipsis => dim += x.rank() - used,
        }
    }
    Ok(y)
}

fn position(x: &Tensor, y: &Tensor, dim: usize, i: i64) -> Result<usize> {
    let size = y.dims()[dim];
    let at = if i < 0 {
        i.checked_add_unsigned(size as u64)
    } else {
        Some(i)
    };
    match at.and_then(|at| usize::try_from(at).ok()) {
        Some(at) if at < size => Ok(at),
        _ => bail!(
            "getitem: index {i} is out of range for a dim of size {size} of shape {:?}",
            x.dims()
        ),
    }
}

fn slice(
    y: &Tensor,
    dim: usize,
    start: Option<i64>,
    stop: Option<i64>,
    step: i64,
) -> Result<Tensor> {
    let size = y.dims()[dim];
    let Some(step) = usize::try_from(step).ok().filter(|step| *step > 0) else {
        bail!("getitem: a slice's step is at least 1, found {step}")
    };
    let end = |given: Option<i64>, default: usize| match given {
        None => default,
        Some(i) if i < 0 => {
            let back = usize::try_from(i.unsigned_abs()).unwrap_or(usize::MAX);
            size.saturating_sub(back)
        }
        Some(i) => usize::try_from(i).unwrap_or(usize::MAX).min(size),
    };
    let (start, stop) = (end(start, 0), end(stop, size));
    let length = stop.saturating_sub(start);
    if start == 0 && length == size && step == 1 {
        return Ok(y.clone());
    }
    let part = narrow(y, dim, start.min(size), length)?;
    if step == 1 || length == 0 {
        return Ok(part);
    }
    let every: Vec<i64> = (0..length)
        .step_by(step)
        .map(|i| i64::try_from(i).unwrap_or(i64::MAX))
        .collect();
    let every = Tensor::new(every, y.device())?;
    if part.elem_count() == 0 {
        let mut shape = part.dims().to_vec();
        shape[dim] = every.elem_count();
        return Tensor::zeros(shape, part.dtype(), part.device());
    }
    part.contiguous()?.index_select(&every, dim)
}
