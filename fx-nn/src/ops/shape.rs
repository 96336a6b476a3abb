//! Dims made one, and tensors put together.

use crate::op;
use std::borrow::Borrow;

use fx_core::Result;

use crate::error::{Fx, unfit};
use crate::kernels::shape;
use crate::tensor::Tensor;

/// Dims `start_dim` to `end_dim` as one.
///
/// # Errors
/// Returns an error if there are no such dims, or `start_dim` comes after `end_dim`.
#[op(view, member, method, path = "fx_nn::ops::flatten")]
pub fn flatten(
    x: &Tensor,
    #[default(0)] start_dim: i64,
    #[default(-1)] end_dim: i64,
) -> Result<Tensor> {
    shape::flatten(x.elements("flatten")?, start_dim, end_dim)
        .map(|data| x.with_data(data))
        .fx()
}

impl Tensor {
    /// All dims from `start_dim` on as one: PyTorch's `x.flatten(1)`.
    ///
    /// ```
    /// use fx_nn::prelude::*;
    /// let x = Tensor::ones((2, 3, 4))?;
    /// assert_eq!(x.flatten_from(1)?.dims()?, [2, 12]);
    /// assert_eq!(x.flatten_all()?.dims()?, [24]);
    /// # Ok::<(), fx_nn::Error>(())
    /// ```
    ///
    /// # Errors
    /// Returns an error if there is no such dim.
    #[track_caller]
    pub fn flatten_from(&self, start_dim: i64) -> Result<Tensor> {
        self.flatten(start_dim, -1)
    }

    /// All dims as one: PyTorch's `x.flatten()`.
    ///
    /// # Errors
    /// Returns an error if the device fails.
    #[track_caller]
    pub fn flatten_all(&self) -> Result<Tensor> {
        self.flatten(0, -1)
    }
}

/// Tensors one after another along a dim that they have.
///
/// # Errors
/// Returns an error if there are no tensors, or their other sizes differ.
#[op(member, path = "fx_nn::ops::cat")]
pub fn cat(
    tensors: &[impl Borrow<Tensor>],
    #[kw]
    #[default(0)]
    dim: i64,
) -> Result<Tensor> {
    joined("cat", tensors, |data| shape::cat(data, dim))
}

/// Tensors of one shape along a new dim.
///
/// # Errors
/// Returns an error if there are no tensors, or their shapes differ.
#[op(path = "fx_nn::ops::stack")]
pub fn stack(
    tensors: &[impl Borrow<Tensor>],
    #[kw]
    #[default(0)]
    dim: i64,
) -> Result<Tensor> {
    joined("stack", tensors, |data| shape::stack(data, dim))
}

/// Tensors of their common type, joined.
pub(super) fn joined(
    what: &str,
    tensors: &[Tensor],
    join: impl FnOnce(&[candle_core::Tensor]) -> candle_core::Result<candle_core::Tensor>,
) -> Result<Tensor> {
    let common = tensors
        .iter()
        .map(Tensor::dtype)
        .reduce(|a, b| Ok(a?.promote(b?)));
    let Some(common) = common else {
        return Err(unfit(what));
    };
    let common = common?;
    let data = tensors
        .iter()
        .map(|t| t.cast(common)?.elements(what).cloned())
        .collect::<Result<Vec<_>>>()?;
    let result = join(&data).fx()?;
    Ok(Tensor::of_type(result, common))
}
