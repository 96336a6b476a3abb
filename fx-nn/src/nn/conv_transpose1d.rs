//! `ConvTranspose1d`: a transposed 1-d convolution.

use fx_core::{Error, Module, Result, trace};

use super::parameter;
use crate::ops;
use crate::tensor::Tensor;

/// A transposed 1-d convolution of `x` `[N, C, L]` (or `[C, L]`), as used to lengthen rows.
#[derive(Module, Clone, Debug)]
pub struct ConvTranspose1d {
    /// `[in_channels, out_channels / groups, k]`.
    pub weight: Tensor,
    /// `[out_channels]`.
    pub bias: Option<Tensor>,
    /// Steps of the window.
    pub stride: usize,
    /// Pixels taken off each side.
    pub padding: usize,
    /// Pixels added at the end.
    pub output_padding: usize,
    /// Blocks of channels that do not see each other.
    pub groups: usize,
    /// Steps inside the window.
    pub dilation: usize,
}

/// Options of [`ConvTranspose1d`], with PyTorch's defaults.
#[derive(Clone, Copy, Debug)]
pub struct ConvTranspose1dOptions {
    /// Steps of the window: 1.
    pub stride: usize,
    /// Pixels taken off each side: 0.
    pub padding: usize,
    /// Pixels added at the end: 0.
    pub output_padding: usize,
    /// Blocks of channels that do not see each other: 1.
    pub groups: usize,
    /// Steps inside the window: 1.
    pub dilation: usize,
    /// Whether there is a bias: yes.
    pub bias: bool,
}

impl Default for ConvTranspose1dOptions {
    fn default() -> Self {
        ConvTranspose1dOptions {
            stride: 1,
            padding: 0,
            output_padding: 0,
            groups: 1,
            dilation: 1,
            bias: true,
        }
    }
}

impl ConvTranspose1d {
    /// A layer initialised as PyTorch's.
    ///
    /// # Errors
    /// When `groups` does not divide both channel counts.
    pub fn new(
        in_channels: usize,
        out_channels: usize,
        kernel_size: usize,
        options: ConvTranspose1dOptions,
    ) -> Result<Self> {
        let groups = options.groups;
        if groups == 0
            || !in_channels.is_multiple_of(groups)
            || !out_channels.is_multiple_of(groups)
        {
            return Err(Error::msg(format_args!(
                "conv_transpose1d: groups must divide in_channels and out_channels, and {groups} does not divide {in_channels} and {out_channels}"
            )));
        }
        let shape = [in_channels, out_channels / groups, kernel_size];
        let bound = parameter::fan_in_bound(shape[1].saturating_mul(kernel_size));
        let bias = options
            .bias
            .then(|| parameter::uniform(&[out_channels], bound));
        Ok(ConvTranspose1d {
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

#[trace(leaf, path = "fx_nn::nn::ConvTranspose1d")]
impl ConvTranspose1d {
    /// Applies the layer.
    ///
    /// # Errors
    /// When the channels of `x` do not fit.
    pub fn forward(&self, x: &Tensor) -> Result<Tensor> {
        ops::conv_transpose1d(
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
