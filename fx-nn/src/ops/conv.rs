//! Convolutions.

use super::cost;
use crate::op;
use fx_core::Result;

use crate::error::{Fx, require};
use crate::kernels;
use crate::tensor::{Pair, Tensor};

/// A 2-d convolution of `x` `[N, C, H, W]` (or `[C, H, W]`) by `weight` `[O, C / groups, kH, kW]`.
///
/// # Errors
/// Returns an error if the shapes, or the kernel and the padded input, do not fit.
#[op(conv, member, cost = cost::conv, path = "fx_nn::ops::conv2d")]
#[allow(clippy::too_many_arguments, reason = "PyTorch's parameters")]
pub fn conv2d(
    x: &Tensor,
    weight: &Tensor,
    bias: Option<&Tensor>,
    #[default(1)] stride: impl Into<Pair>,
    #[default(0)] padding: impl Into<Pair>,
    #[default(1)] dilation: impl Into<Pair>,
    #[default(1)] groups: usize,
) -> Result<Tensor> {
    let bias = bias.map(|b| b.data("conv2d")).transpose()?;
    kernels::conv::conv2d(
        x.data("conv2d")?,
        weight.data("conv2d")?,
        bias,
        stride.tuple(),
        padding.tuple(),
        dilation.tuple(),
        groups,
    )
    .map(Tensor::made)
    .fx()
}

/// A 1-d convolution of `x` `[N, C, L]` (or `[C, L]`) by `weight` `[O, C / groups, k]`.
///
/// # Errors
/// Returns an error if the shapes, or the kernel and the padded input, do not fit.
#[op(conv, member, cost = cost::conv, path = "fx_nn::ops::conv1d")]
#[allow(clippy::too_many_arguments, reason = "PyTorch's parameters")]
pub fn conv1d(
    x: &Tensor,
    weight: &Tensor,
    bias: Option<&Tensor>,
    #[default(1)] stride: usize,
    #[default(0)] padding: usize,
    #[default(1)] dilation: usize,
    #[default(1)] groups: usize,
) -> Result<Tensor> {
    let (data, kernel) = (x.data("conv1d")?, weight.data("conv1d")?);
    require("conv1d", matches!(data.rank(), 2 | 3) && kernel.rank() == 3)?;
    let bias = bias.map(|b| b.data("conv1d")).transpose()?;
    // A row is an image of height 1.
    let row = data.unsqueeze(data.rank() - 1).fx()?;
    let y = kernels::conv::conv2d(
        &row,
        &kernel.unsqueeze(2).fx()?,
        bias,
        (1, stride),
        (0, padding),
        (1, dilation),
        groups,
    )
    .fx()?;
    y.squeeze(y.rank() - 2).map(Tensor::made).fx()
}

/// A transposed 2-d convolution of `x` `[N, C, H, W]` (or `[C, H, W]`) by `weight` `[C, O / groups, kH, kW]`.
///
/// # Errors
/// Returns an error if the shapes do not fit, or nothing is left of the result.
#[op(conv, member, cost = cost::conv_transpose, path = "fx_nn::ops::conv_transpose2d")]
#[allow(clippy::too_many_arguments, reason = "PyTorch's parameters")]
pub fn conv_transpose2d(
    x: &Tensor,
    weight: &Tensor,
    bias: Option<&Tensor>,
    #[default(1)] stride: impl Into<Pair>,
    #[default(0)] padding: impl Into<Pair>,
    #[default(0)] output_padding: impl Into<Pair>,
    #[default(1)] groups: usize,
    #[default(1)] dilation: impl Into<Pair>,
) -> Result<Tensor> {
    let bias = bias.map(|b| b.data("conv_transpose2d")).transpose()?;
    kernels::conv_transpose::conv_transpose2d(
        x.data("conv_transpose2d")?,
        weight.data("conv_transpose2d")?,
        bias,
        stride.tuple(),
        padding.tuple(),
        output_padding.tuple(),
        groups,
        dilation.tuple(),
    )
    .map(Tensor::made)
    .fx()
}
