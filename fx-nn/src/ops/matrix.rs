//! Matrix products.

use super::cost;
use crate::op;
use std::borrow::Borrow;

use fx_core::Result;
use fx_core::tensor::Traced;
use fx_core::value::{DType, Operator};

use crate::error::{Fx, require};
use crate::kernels;
use crate::tensor::Tensor;

/// The matrix product, with PyTorch's rules: vectors, matrices, and batches that broadcast.
///
/// # Errors
/// Returns an error if the inner sizes differ, the batches do not broadcast, or the types differ:
/// they are not promoted.
#[op(member, cost = cost::rows_of_x, method, path = "fx_nn::ops::matmul")]
pub fn matmul(x: &Tensor, other: &Tensor) -> Result<Tensor> {
    <Tensor as Traced>::apply(
        Operator::Matmul,
        &[
            fx_core::tensor::Operand::lend(x),
            fx_core::tensor::Operand::lend(other),
        ],
    )
}

/// x Wᵀ + b, for `x` of shape `[.., in]`, `weight` `[out, in]` and `bias` `[out]`.
///
/// # Errors
/// Returns an error if the sizes do not fit.
#[op(member, cost = cost::rows_of_x, path = "fx_nn::ops::linear")]
pub fn linear(x: &Tensor, weight: &Tensor, bias: Option<&Tensor>) -> Result<Tensor> {
    require("linear", !x.is_bool() && !weight.is_bool())?;
    let bias = bias.map(|b| b.data("linear")).transpose()?;
    kernels::matmul::linear(x.data("linear")?, weight.data("linear")?, bias)
        .map(Tensor::made)
        .fx()
}

/// Einstein's summation: sums of products over dims named by letters, `...` for dims that broadcast.
///
/// ```
/// use fx_nn::prelude::*;
/// let (a, b) = (Tensor::from_vec(vec![1i64, 2, 3, 4], (2, 2))?, Tensor::from_vec(vec![1i64, 10], 2)?);
/// assert_eq!(ops::einsum("ij,j->i", &[a, b])?.to_vec()?, [21.0, 43.0]);
/// let (q, k) = (Tensor::rand((2, 5, 3, 4))?, Tensor::rand((2, 6, 3, 4))?);
/// assert_eq!(ops::einsum("bqhd,bkhd->bhqk", &[q, k])?.dims()?, [2, 3, 5, 6]);
/// # Ok::<(), fx_nn::Error>(())
/// ```
///
/// # Errors
/// Returns an error if the equation is malformed, does not fit the shapes, or sums products of
/// truth values.
#[op(member, cost = cost::einsum, path = "fx_nn::ops::einsum")]
pub fn einsum(equation: &str, operands: &[impl Borrow<Tensor>]) -> Result<Tensor> {
    let common = operands
        .iter()
        .map(Tensor::dtype)
        .reduce(|a, b| Ok(a?.promote(b?)))
        .unwrap_or(Ok(DType::F32))?;
    let sums = kernels::einsum::sums(equation);
    let one = operands.len() == 1;
    require("einsum", common != DType::Bool || !sums || one)?;
    // Integers are computed in 64 bits, and wrap around if they are narrower.
    let computed = if common.is_floating_point() {
        common
    } else {
        DType::I64
    };
    let data = operands
        .iter()
        .map(|x| x.cast(computed)?.data("einsum").cloned())
        .collect::<Result<Vec<_>>>()?;
    let result = kernels::einsum::einsum(equation, &data)
        .map(Tensor::made)
        .fx()?;
    // With one operand only a sum is left, so `sum` decides the type.
    if one && sums {
        return Ok(result);
    }
    result.cast(common)
}
