//! Parts of tensors, and the one rule of empty ones: a tensor without elements starts where its storage does.

use candle_core::{Result, Tensor};

/// `x` with `len` of the positions of `dim`, from `start` on; empty parts are new tensors.
///
/// # Errors
/// Returns an error if the positions are not all in the dimension.
pub fn narrow(x: &Tensor, dim: usize, start: usize, len: usize) -> Result<Tensor> {
    x.narrow(dim, start, len).map(|part| {
        if part.dims().contains(&0) {
            fresh(part)
        } else {
            part
        }
    })
}

/// A tensor without elements, replaced by a new one if it is a view.
///
/// Candle reads the storage from a view's offset, which for an empty one may be past the end.
#[cold]
pub fn fresh(empty: Tensor) -> Tensor {
    if empty.layout().start_offset() == 0 && empty.is_contiguous() {
        return empty;
    }
    // No element is allocated, so that memory cannot run out; if candle still refuses, the view is
    // as good.
    Tensor::zeros(empty.dims(), empty.dtype(), empty.device()).unwrap_or(empty)
}
