//! Convolutions of volumes, and transposed ones of rows and volumes.

use super::cost;
use crate::op;
use fx_core::Result;

use crate::error::{Fx, require};
use crate::kernels;
use crate::tensor::{Tensor, Triple};

/// A 3-d convolution of `x` `[N, C, D, H, W]` (or `[C, D, H, W]`) by `weight` `[O, C / groups, kD, kH, kW]`.
///
/// # Errors
/// Returns an error if the shapes, or the kernel and the padded input, do not fit.
#[op(conv, member, cost = cost::conv, path = "fx_nn::ops::conv3d")]
#[allow(clippy::too_many_arguments, reason = "PyTorch's parameters")]
pub fn conv3d(
    x: &Tensor,
    weight: &Tensor,
    bias: Option<&Tensor>,
    #[default(1)] stride: impl Into<Triple>,
    #[default(0)] padding: impl Into<Triple>,
    #[default(1)] dilation: impl Into<Triple>,
    #[default(1)] groups: usize,
) -> Result<Tensor> {
    let bias = bias.map(|b| b.data("conv3d")).transpose()?;
    kernels::conv3d::conv3d(
        x.data("conv3d")?,
        weight.data("conv3d")?,
        bias,
        stride.array(),
        padding.array(),
        dilation.array(),
        groups,
    )
    .map(Tensor::made)
    .fx()
}

/// A transposed 1-d convolution of `x` `[N, C, L]` (or `[C, L]`) by `weight` `[C, O / groups, k]`.
///
/// # Errors
/// Returns an error if the shapes do not fit, or nothing is left of the result.
#[op(conv, member, cost = cost::conv_transpose, path = "fx_nn::ops::conv_transpose1d")]
#[allow(clippy::too_many_arguments, reason = "PyTorch's parameters")]
pub fn conv_transpose1d(
    x: &Tensor,
    weight: &Tensor,
    bias: Option<&Tensor>,
    #[default(1)] stride: usize,
    #[default(0)] padding: usize,
    #[default(0)] output_padding: usize,
    #[default(1)] groups: usize,
    #[default(1)] dilation: usize,
) -> Result<Tensor> {
    let op = "conv_transpose1d";
    let (data, kernel) = (x.data(op)?, weight.data(op)?);
    require(op, matches!(data.rank(), 2 | 3) && kernel.rank() == 3)?;
    let bias = bias.map(|b| b.data(op)).transpose()?;
    // A row is an image of height 1.
    let row = data.unsqueeze(data.rank() - 1).fx()?;
    let y = kernels::conv_transpose::conv_transpose2d(
        &row,
        &kernel.unsqueeze(2).fx()?,
        bias,
        (1, stride),
        (0, padding),
        (0, output_padding),
        groups,
        (1, dilation),
    )
    .fx()?;
    y.squeeze(y.rank() - 2).map(Tensor::made).fx()
}

/// A transposed 3-d convolution of `x` `[N, C, D, H, W]` (or `[C, D, H, W]`) by `weight`
/// `[C, O / groups, kD, kH, kW]`.
///
/// # Errors
/// Returns an error if the shapes do not fit, or nothing is left of the result.
#[op(conv, member, cost = cost::conv_transpose, path = "fx_nn::ops::conv_transpose3d")]
#[allow(clippy::too_many_arguments, reason = "PyTorch's parameters")]
pub fn conv_transpose3d(
    x: &Tensor,
    weight: &Tensor,
    bias: Option<&Tensor>,
    #[default(1)] stride: impl Into<Triple>,
    #[default(0)] padding: impl Into<Triple>,
    #[default(0)] output_padding: impl Into<Triple>,
    #[default(1)] groups: usize,
    #[default(1)] dilation: impl Into<Triple>,
) -> Result<Tensor> {
    let op = "conv_transpose3d";
    let bias = bias.map(|b| b.data(op)).transpose()?;
    kernels::conv3d::conv_transpose3d(
        x.data(op)?,
        weight.data(op)?,
        bias,
        stride.array(),
        padding.array(),
        output_padding.array(),
        groups,
        dilation.array(),
    )
    .map(Tensor::made)
    .fx()
}
