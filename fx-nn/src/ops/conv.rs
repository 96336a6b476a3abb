//! Convolutions.

use fx_core::{Result, wrap};

use crate::error::Fx;
use crate::kernels;
use crate::tensor::{Pair, Tensor};

/// A 2-d convolution of `x` `[N, C, H, W]` (or `[C, H, W]`) by `weight` `[O, C / groups, kH, kW]`.
///
/// # Errors
/// When the shapes, or the kernel and the padded input, do not fit.
#[wrap(path = "fx_nn::ops::conv2d")]
#[allow(clippy::too_many_arguments, reason = "PyTorch's parameters")]
pub fn conv2d(
    x: &Tensor,
    weight: &Tensor,
    bias: Option<&Tensor>,
    stride: impl Into<Pair>,
    padding: impl Into<Pair>,
    dilation: impl Into<Pair>,
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
    .map(Tensor::from)
    .fx()
}
