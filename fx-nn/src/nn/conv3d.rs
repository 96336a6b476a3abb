//! `Conv3d`: a 3-d convolution.

use fx_core::{Error, Module, Result, trace};

use super::parameter;
use crate::ops;
use crate::tensor::{Tensor, Triple};

/// A 3-d convolution of `x` `[N, C, D, H, W]` (or `[C, D, H, W]`).
#[derive(Module, Clone, Debug)]
pub struct Conv3d {
    /// `[out_channels, in_channels / groups, kD, kH, kW]`.
    pub weight: Tensor,
    /// `[out_channels]`.
    pub bias: Option<Tensor>,
    /// Steps of the window.
    pub stride: Triple,
    /// Zeros added on each side.
    pub padding: Triple,
    /// Steps inside the window.
    pub dilation: Triple,
    /// Blocks of channels that do not see each other.
    pub groups: usize,
}

/// Options of [`Conv3d`], with PyTorch's defaults.
#[derive(Clone, Copy, Debug)]
pub struct Conv3dOptions {
    /// Steps of the window: 1.
    pub stride: Triple,
    /// Zeros added on each side: 0.
    pub padding: Triple,
    /// Steps inside the window: 1.
    pub dilation: Triple,
    /// Blocks of channels that do not see each other: 1.
    pub groups: usize,
    /// Whether there is a bias: yes.
    pub bias: bool,
}

impl Default for Conv3dOptions {
    fn default() -> Self {
        Conv3dOptions {
            stride: 1.into(),
            padding: 0.into(),
            dilation: 1.into(),
            groups: 1,
            bias: true,
        }
    }
}

impl Conv3d {
    /// A layer initialised as PyTorch's.
    ///
    /// # Errors
    /// When `groups` does not divide both channel counts.
    pub fn new(
        in_channels: usize,
        out_channels: usize,
        kernel_size: impl Into<Triple>,
        options: Conv3dOptions,
    ) -> Result<Self> {
        let Conv3dOptions {
            stride,
            padding,
            dilation,
            groups,
            bias,
        } = options;
        if groups == 0
            || !in_channels.is_multiple_of(groups)
            || !out_channels.is_multiple_of(groups)
        {
            return Err(Error::msg(format_args!(
                "conv3d: groups must divide in_channels and out_channels, and {groups} does not divide {in_channels} and {out_channels}"
            )));
        }
        let kernel = kernel_size.into();
        let bound = parameter::fan_in_bound(
            (in_channels / groups)
                .saturating_mul(kernel.0)
                .saturating_mul(kernel.1)
                .saturating_mul(kernel.2),
        );
        let shape = [
            out_channels,
            in_channels / groups,
            kernel.0,
            kernel.1,
            kernel.2,
        ];
        Ok(Conv3d {
            weight: parameter::uniform(&shape, bound)?,
            bias: bias
                .then(|| parameter::uniform(&[out_channels], bound))
                .transpose()?,
            stride,
            padding,
            dilation,
            groups,
        })
    }
}

#[trace(leaf, path = "fx_nn::nn::Conv3d")]
impl Conv3d {
    /// Applies the layer.
    ///
    /// # Errors
    /// When the channels of `x`, or the kernel and the padded input, do not fit.
    pub fn forward(&self, x: &Tensor) -> Result<Tensor> {
        ops::conv3d(
            x,
            &self.weight,
            self.bias.as_ref(),
            self.stride,
            self.padding,
            self.dilation,
            self.groups,
        )
    }
}
