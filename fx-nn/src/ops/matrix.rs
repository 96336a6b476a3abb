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
