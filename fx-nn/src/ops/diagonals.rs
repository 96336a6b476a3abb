//! Diagonals of matrices, and matrices of diagonals.

use crate::op;
use fx_core::Result;

use crate::error::{Fx, require, unfit};
use crate::kernels::{diagonal as kernels, reduce};
use crate::tensor::Tensor;

/// A diagonal of the matrices that two dims are, along a new last dim; `offset` columns to the right of the main one.
///
/// ```
/// use fx_nn::prelude::*;
/// let x = Tensor::arange(0, 6)?.reshape((2, 3))?;
/// assert_eq!(x.diagonal(0, 0, 1)?.to_vec()?, [0.0, 4.0]);
/// assert_eq!(x.diagonal(1, 0, 1)?.to_vec()?, [1.0, 5.0]);
/// # Ok::<(), fx_nn::Error>(())
/// ```
///
/// # Errors
/// Returns an error if the two dims are the same, or there are no such dims.
#[op(view, member, method, path = "fx_nn::ops::diagonal")]
pub fn diagonal(
    x: &Tensor,
    #[default(0)] offset: i64,
    #[default(0)] dim1: i64,
    #[default(1)] dim2: i64,
) -> Result<Tensor> {
    kernels::diagonal("diagonal", x.elements("diagonal")?, offset, dim1, dim2)
        .map(|data| x.with_data(data))
        .fx()
}

/// Matrices of zeros with the last dim of `x` as a diagonal, in the dims `dim1` and `dim2` of the result.
///
/// # Errors
/// Returns an error if the two dims are the same, or there are no such dims.
#[op(view, member, method, path = "fx_nn::ops::diag_embed")]
pub fn diag_embed(
    x: &Tensor,
    #[default(0)] offset: i64,
    #[default(-2)] dim1: i64,
    #[default(-1)] dim2: i64,
) -> Result<Tensor> {
    kernels::embed("diag_embed", x.elements("diag_embed")?, offset, dim1, dim2)
        .map(|data| x.with_data(data))
        .fx()
}

/// The matrix with the diagonal `x` of a vector, the diagonal of a matrix.
///
/// ```
/// use fx_nn::prelude::*;
/// let x = Tensor::from_vec(vec![1.0f32, 2.0], 2)?;
/// assert_eq!(x.diag(0)?.to_vec()?, [1.0, 0.0, 0.0, 2.0]);
/// assert_eq!(x.diag(0)?.diag(0)?.to_vec()?, [1.0, 2.0]);
/// # Ok::<(), fx_nn::Error>(())
/// ```
///
/// # Errors
/// Returns an error if there are neither one nor two dims.
#[op(view, member, method, path = "fx_nn::ops::diag")]
pub fn diag(x: &Tensor, #[default(0)] diagonal: i64) -> Result<Tensor> {
    let data = x.elements("diag")?;
    match data.rank() {
        1 => kernels::embed("diag", data, diagonal, 0, 1).fx(),
        2 => kernels::diagonal("diag", data, diagonal, 0, 1).fx(),
        _ => Err(unfit("diag")),
    }
    .map(|data| x.with_data(data))
}

/// The matrix whose diagonal is the flattened `x`.
///
/// # Errors
/// Returns an error if it does not fit into memory.
#[op(view, method, path = "fx_nn::ops::diagflat")]
pub fn diagflat(x: &Tensor, #[default(0)] offset: i64) -> Result<Tensor> {
    let flat = x.elements("diagflat")?.flatten_all();
    flat.and_then(|flat| kernels::embed("diagflat", &flat, offset, 0, 1))
        .map(|data| x.with_data(data))
        .fx()
}

/// The sum of the diagonal of a matrix; of integers as `int64`.
///
/// # Errors
/// Returns an error if there are not two dims, or the tensor is of truth values.
#[op(method, path = "fx_nn::ops::trace")]
pub fn trace(x: &Tensor) -> Result<Tensor> {
    let data = x.data("trace")?;
    require("trace", data.rank() == 2 && !x.is_bool())?;
    kernels::diagonal("trace", data, 0, 0, 1)
        .and_then(|diagonal| reduce::sum(&diagonal, &[0], false))
        .map(Tensor::made)
        .fx()
}
