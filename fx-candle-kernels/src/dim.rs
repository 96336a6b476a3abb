//! The first checks of operations: dimension numbers, which may count from the end, and dtypes.

use candle_core::{DType, Result, Tensor, bail};

use super::widen::is_half;

/// The index that `d` names among `rank` dimensions, where `-1` is the last one.
///
/// A rank of 0 is read as 1, as PyTorch does for scalars, so `0` and `-1` are then allowed.
///
/// # Errors
/// Returns an error if `d` is outside `[-rank, rank - 1]`; it names `op` and that range.
#[inline]
pub fn dim(op: &str, d: i64, rank: usize) -> Result<usize> {
    let len = rank.max(1) as i64;
    if d < -len || d >= len {
        return out_of_range(op, d, rank);
    }
    Ok(if d < 0 { d + len } else { d } as usize)
}

#[cold]
fn out_of_range(op: &str, d: i64, rank: usize) -> Result<usize> {
    let len = rank.max(1) as i64;
    bail!(
        "{op}: dim {d} is out of range, a tensor of rank {rank} allows [{}, {}]",
        -len,
        len - 1
    )
}

/// Refuses a weight whose dtype differs from the input's.
///
/// # Errors
/// Returns an error if the dtypes differ; it names both.
pub fn same_dtype(op: &str, x: &Tensor, weight: &Tensor) -> Result<()> {
    let (input, held) = (x.dtype(), weight.dtype());
    if input != held {
        bail!("{op}: input is {input:?} and weight {held:?}: convert one with to_dtype")
    }
    Ok(())
}

/// Refuses parameters that do not all have one dtype: that of the input, or `f32` with half
/// precision.
///
/// # Errors
/// Returns an error if they are not; it names the dtypes.
pub fn parameters(op: &str, x: &Tensor, held: &[Option<&Tensor>]) -> Result<()> {
    let input = x.dtype();
    let mut held = held.iter().flatten().map(|t| t.dtype());
    let Some(first) = held.next() else {
        return Ok(());
    };
    let fits = first == input || is_half(input) && first == DType::F32;
    match held.find(|other| *other != first) {
        Some(other) => bail!(
            "{op}: parameters of {first:?} and {other:?} beside each other: convert one with to_dtype"
        ),
        None if fits => Ok(()),
        None => bail!("{op}: input is {input:?} and weight {first:?}: convert one with to_dtype"),
    }
}
