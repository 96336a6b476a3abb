//! Sizes before anything is allocated: the one place that counts a shape's elements and checks
//! their memory.

use candle_core::{DType, Device, Result, Tensor, bail};

/// Smaller allocations are not checked first.
const LARGE: usize = 1 << 30;

/// The number of elements of a shape.
///
/// # Errors
/// Returns an error if it, or the product of the sizes that are not 0, overflows: strides are such
/// products.
pub fn count(op: &str, dims: &[usize]) -> Result<usize> {
    let nonzero = dims
        .iter()
        .filter(|n| **n != 0)
        .try_fold(1usize, |product, n| product.checked_mul(*n))
        .filter(|product| isize::try_from(*product).is_ok());
    match nonzero {
        Some(_) if dims.contains(&0) => Ok(0),
        Some(product) => Ok(product),
        None => bail!("{op}: shape {dims:?} has more elements than can be counted"),
    }
}

/// The number of elements of a shape that fits into memory.
///
/// # Errors
/// Returns an error if the number of their bytes overflows, or they do not fit into memory.
pub fn of(op: &str, dims: &[usize], dtype: DType) -> Result<usize> {
    let elements = count(op, dims)?;
    let bytes = elements
        .checked_mul(dtype.size_in_bytes())
        .filter(|bytes| isize::try_from(*bytes).is_ok());
    // A failed allocation aborts the process: a large one is first tried where it may fail.
    match bytes {
        Some(bytes) if bytes <= LARGE || Vec::<u8>::new().try_reserve_exact(bytes).is_ok() => {
            Ok(elements)
        }
        _ => bail!(
            "{op}: there is not enough memory for a tensor of shape {dims:?} and type {dtype:?}"
        ),
    }
}

/// Zeros of a shape on a device.
///
/// # Errors
/// Returns an error if they do not fit into memory.
pub fn zeros(op: &str, dims: &[usize], dtype: DType, device: &Device) -> Result<Tensor> {
    of(op, dims, dtype)?;
    Tensor::zeros(dims, dtype, device)
}

/// One number in a shape, on its device; `number` has no dimensions.
///
/// # Errors
/// Returns an error if it does not fit into memory.
pub fn full(op: &str, dims: &[usize], number: &Tensor) -> Result<Tensor> {
    of(op, dims, number.dtype())?;
    // An empty one would keep strides of 0.
    if dims.contains(&0) {
        return Tensor::zeros(dims, number.dtype(), number.device());
    }
    number.broadcast_as(dims)?.contiguous()
}
