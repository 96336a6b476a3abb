//! Matrix products.

use fx_core::{Operator, Result, Traced, wrap};

use crate::error::Fx;
use crate::kernels;
use crate::tensor::Tensor;

/// The matrix product, with PyTorch's rules: vectors, matrices, and batches that broadcast.
///
/// # Errors
/// When the inner sizes differ or the batches do not broadcast.
#[wrap(method, path = "fx_nn::ops::matmul")]
pub fn matmul(x: &Tensor, other: &Tensor) -> Result<Tensor> {
    Tensor::apply(
        Operator::Matmul,
        &[fx_core::Operand::lend(x), fx_core::Operand::lend(other)],
    )
}

/// x Wᵀ + b, for `x` of shape `[.., in]`, `weight` `[out, in]` and `bias` `[out]`.
///
/// # Errors
/// When the sizes do not fit.
#[wrap(path = "fx_nn::ops::linear")]
pub fn linear(x: &Tensor, weight: &Tensor, bias: Option<&Tensor>) -> Result<Tensor> {
    let bias = bias.map(|b| b.data("linear")).transpose()?;
    kernels::matmul::linear(x.data("linear")?, weight.data("linear")?, bias)
        .map(Tensor::from)
        .fx()
}

/// Einstein's summation: sums of products over dims named by letters, `...` for dims that broadcast.
///
/// ```
/// use fx_nn::prelude::*;
/// let (q, k) = (Tensor::rand((2, 5, 3, 4))?, Tensor::rand((2, 6, 3, 4))?);
/// assert_eq!(ops::einsum("bqhd,bkhd->bhqk", &[q, k])?.dims()?, [2, 3, 5, 6]);
/// # Ok::<(), fx_nn::Error>(())
/// ```
///
/// # Errors
/// When the equation is malformed, or does not fit the shapes.
#[wrap(path = "fx_nn::ops::einsum")]
pub fn einsum(equation: &str, operands: &[Tensor]) -> Result<Tensor> {
    let data = operands
        .iter()
        .map(|x| x.data("einsum").cloned())
        .collect::<Result<Vec<_>>>()?;
    kernels::einsum::einsum(equation, &data)
        .map(Tensor::from)
        .fx()
}
