//! `ConvTranspose3d`: a transposed 3-d convolution.

use fx_core::{Error, Module, Result, trace};

use super::parameter;
use crate::ops;
use crate::tensor::{Tensor, Triple};

/// A transposed 3-d convolution of `x` `[N, C, D, H, W]` (or `[C, D, H, W]`), as used to enlarge volumes.
#[derive(Module, Clone, Debug)]
pub struct ConvTranspose3d {
    /// `[in_channels, out_channels / groups, kD, kH, kW]`.
    pub weight: Tensor,
    /// `[out_channels]`.
    pub bias: Option<Tensor>,
    /// Steps of the window.
    pub stride: Triple,
    /// Pixels taken off each side.
    pub padding: Triple,
    /// Pixels added at the end.
    pub output_padding: Triple,
    /// Blocks of channels that do not see each other.
    pub groups: usize,
    /// Steps inside the window.
    pub dilation: Triple,
}

/// Options of [`ConvTranspose3d`], with PyTorch's defaults.
#[derive(Clone, Copy, Debug)]
pub struct ConvTranspose3dOptions {
    /// Steps of the window: 1.
    pub stride: Triple,
    /// Pixels taken off each side: 0.
    pub padding: Triple,
    /// Pixels added at the end: 0.
    pub output_padding: Triple,
    /// Blocks of channels that do not see each other: 1.
    pub groups: usize,
    /// Steps inside the window: 1.
    pub dilation: Triple,
    /// Whether there is a bias: yes.
    pub bias: bool,
}

impl Default for ConvTranspose3dOptions {
    fn default() -> Self {
        ConvTranspose3dOptions {
            stride: 1.into(),
            padding: 0.into(),
            output_padding: 0.into(),
            groups: 1,
            dilation: 1.into(),
            bias: true,
        }
    }
}

impl ConvTranspose3d {
    /// A layer initialised as PyTorch's.
    ///
    /// # Errors
    /// When `groups` does not divide both channel counts.
    pub fn new(
        in_channels: usize,
        out_channels: usize,
        kernel_size: impl Into<Triple>,
        options: ConvTranspose3dOptions,
    ) -> Result<Self> {
        let groups = options.groups;
        if groups == 0
            || !in_channels.is_multiple_of(groups)
            || !out_channels.is_multiple_of(groups)
        {
            return Err(Error::msg(format_args!(
                "conv_transpose3d: groups must divide in_channels and out_channels, and {groups} does not divide {in_channels} and {out_channels}"
            )));
        }
        let kernel = kernel_size.into();
        let shape = [
            in_channels,
            out_channels / groups,
            kernel.0,
            kernel.1,
            kernel.2,
        ];
        let bound = parameter::fan_in_bound(
            shape[1]
                .saturating_mul(kernel.0)
                .saturating_mul(kernel.1)
                .saturating_mul(kernel.2),
        );
        let bias = options
            .bias
            .then(|| parameter::uniform(&[out_channels], bound));
        Ok(ConvTranspose3d {
            weight: parameter::uniform(&shape, bound)?,
            bias: bias.transpose()?,
            stride: options.stride,
            padding: options.padding,
            output_padding: options.output_padding,
            groups,
            dilation: options.dilation,
        })
    }
}

#[trace(leaf, path = "fx_nn::nn::ConvTranspose3d")]
impl ConvTranspose3d {
    /// Applies the layer.
    ///
    /// # Errors
    /// When the channels of `x` do not fit.
    pub fn forward(&self, x: &Tensor) -> Result<Tensor> {
        ops::conv_transpose3d(
            x,
            &self.weight,
            self.bias.as_ref(),
            self.stride,
            self.padding,
            self.output_padding,
            self.groups,
            self.dilation,
        )
    }
}
