//! Flattening, concatenation and stacking.

use candle_core::{Result, Tensor, bail};

use super::dim::dim;
use crate::room;

/// `x` with the dimensions `start` to `end`, both included, made one; a scalar gives `[1]`.
///
/// # Errors
/// Returns an error if `start` or `end` is out of range or `start` comes after `end`.
pub fn flatten(x: &Tensor, start: i64, end: i64) -> Result<Tensor> {
    let (from, to) = (
        dim("flatten", start, x.rank())?,
        dim("flatten", end, x.rank())?,
    );
    if from > to {
        bail!(
            "flatten: start dim {start} comes after end dim {end} in shape {:?}",
            x.dims()
        )
    }
    if x.rank() == 0 {
        return x.reshape(1);
    }
    if from == to {
        return Ok(x.clone());
    }
    let mut shape = x.dims()[..from].to_vec();
    shape.push(x.dims()[from..=to].iter().product());
    shape.extend(&x.dims()[to + 1..]);
    x.reshape(shape)
}

/// The tensors `xs` one after another along `dim`; those of shape `[0]` are skipped.
///
/// # Errors
/// Returns an error if there are no tensors, `dim` is out of range, or two shapes differ elsewhere
/// than in `dim`.
pub fn cat(xs: &[Tensor], dim: i64) -> Result<Tensor> {
    let Some(first) = xs.first() else {
        bail!("cat: there are no tensors, at least one is needed")
    };
    let kept: Vec<&Tensor> = xs.iter().filter(|x| x.dims() != [0]).collect();
    let Some(head) = kept.first() else {
        return Ok(first.clone());
    };
    if let Some(i) = xs.iter().position(|x| x.rank() == 0) {
        bail!("cat: tensor {i} of shape [] is a scalar, which has no dim to join along")
    }
    let at = self::dim("cat", dim, head.rank())?;
    for (i, x) in kept.iter().enumerate() {
        let fits = x.rank() == head.rank()
            && (0..x.rank()).all(|d| d == at || x.dims()[d] == head.dims()[d]);
        if !fits {
            bail!(
                "cat: shapes {:?} and {:?} (tensor {i}) differ elsewhere than in dim {at}",
                head.dims(),
                x.dims()
            )
        }
    }
    let mut shape = head.dims().to_vec();
    shape[at] = kept
        .iter()
        .try_fold(0usize, |sum, x| sum.checked_add(x.dims()[at]))
        .unwrap_or(usize::MAX);
    room::of("cat", &shape, head.dtype())?;
    let parts = kept
        .iter()
        .filter(|x| x.elem_count() > 0)
        .map(|x| x.contiguous())
        .collect::<Result<Vec<_>>>()?;
    match parts.as_slice() {
        [] => Tensor::zeros(shape, head.dtype(), head.device()),
        [one] => Ok(one.clone()),
        parts => Tensor::cat(parts, at),
    }
}

/// The tensors `xs` of one shape side by side along a new dimension `dim`.
///
/// # Errors
/// Returns an error if there are no tensors, their shapes differ, or `dim` is out of range for the
/// result.
pub fn stack(xs: &[Tensor], dim: i64) -> Result<Tensor> {
    let Some(first) = xs.first() else {
        bail!("stack: there are no tensors, at least one is needed")
    };
    let at = self::dim("stack", dim, first.rank() + 1)?;
    if let Some((i, x)) = xs
        .iter()
        .enumerate()
        .find(|(_, x)| x.dims() != first.dims())
    {
        bail!(
            "stack: shapes {:?} and {:?} (tensor {i}) differ",
            first.dims(),
            x.dims()
        )
    }
    let mut shape = first.dims().to_vec();
    shape.insert(at, xs.len());
    room::of("stack", &shape, first.dtype())?;
    if first.elem_count() == 0 {
        return Tensor::zeros(shape, first.dtype(), first.device());
    }
    let parts = xs
        .iter()
        .map(|x| x.contiguous()?.unsqueeze(at))
        .collect::<Result<Vec<_>>>()?;
    Tensor::cat(&parts, at)
}
