//! Sizes before anything is made of them: the one place that counts a shape's elements and asks for their room.

use candle_core::{DType, Device, Result, Tensor, bail};

/// What is less is taken without being asked for first.
const LARGE: usize = 1 << 30;

/// The number of elements of a shape.
///
/// # Errors
/// When it, or the product of the sizes that are not 0, does not fit: strides are such products.
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

/// The number of elements of a shape, for which there is room.
///
/// # Errors
/// When their bytes cannot be counted, or the machine has no room for them.
pub fn of(op: &str, dims: &[usize], dtype: DType) -> Result<usize> {
    let elements = count(op, dims)?;
    let bytes = elements
        .checked_mul(dtype.size_in_bytes())
        .filter(|bytes| isize::try_from(*bytes).is_ok());
    // An allocation that fails ends the process: a large one is asked for where it may fail.
    match bytes {
        Some(bytes) if bytes <= LARGE || Vec::<u8>::new().try_reserve_exact(bytes).is_ok() => {
            Ok(elements)
        }
        _ => bail!("{op}: there is no room for a tensor of shape {dims:?} and type {dtype:?}"),
    }
}

/// Zeros of a shape on a device.
///
/// # Errors
/// When there is no room for them.
pub fn zeros(op: &str, dims: &[usize], dtype: DType, device: &Device) -> Result<Tensor> {
    of(op, dims, dtype)?;
    Tensor::zeros(dims, dtype, device)
}

/// One number in a shape, on its device; `number` has no dimensions.
///
/// # Errors
/// When there is no room for it.
pub fn full(op: &str, dims: &[usize], number: &Tensor) -> Result<Tensor> {
    of(op, dims, number.dtype())?;
    // Strides of 0 would be left of an empty one.
    if dims.contains(&0) {
        return Tensor::zeros(dims, number.dtype(), number.device());
    }
    number.broadcast_as(dims)?.contiguous()
}
