//! The first checks of operations: dimension numbers, which may count from the end, and dtypes.

use candle_core::{DType, Result, Tensor, bail};

use super::widen::is_half;

/// The index that `d` names among `rank` dimensions, where `-1` is the last one.
///
/// A rank of 0 is read as 1, as PyTorch does for scalars, so `0` and `-1` are then allowed.
///
/// # Errors
/// Returns an error if `d` is outside `[-rank, rank - 1]`; it names `op` and that range.
pub fn dim(op: &str, d: i64, rank: usize) -> Result<usize> {
    let len = rank.max(1) as i64;
    if d < -len || d >= len {
        bail!(
            "{op}: dim {d} is out of range, a tensor of rank {rank} allows [{}, {}]",
            -len,
            len - 1
        )
    }
    Ok(if d < 0 { d + len } else { d } as usize)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_from_both_ends() -> Result<()> {
        assert_eq!(dim("sum", 1, 3)?, 1);
        assert_eq!(dim("sum", -1, 3)?, 2);
        assert_eq!(dim("sum", -3, 3)?, 0);
        assert_eq!(dim("sum", -1, 0)?, 0);
        Ok(())
    }

    #[test]
    fn names_the_range() {
        let text = dim("sum", 3, 3).unwrap_err().to_string();
        assert!(
            text.contains("sum: dim 3 is out of range") && text.contains("[-3, 2]"),
            "{text}"
        );
        assert!(dim("sum", -4, 3).is_err());
        assert!(dim("sum", i64::MIN, 3).is_err());
    }
}
