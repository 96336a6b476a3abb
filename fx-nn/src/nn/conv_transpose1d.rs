//! `ConvTranspose1d`: a transposed 1-d convolution.

use fx_core::{Module, Result, trace};

use super::options::{kept, options};
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
    /// Steps of the window: 1.
    pub stride: usize,
    /// Pixels removed from each side: 0.
    pub padding: usize,
    /// Pixels added at the end: 0.
    pub output_padding: usize,
    /// Blocks of channels that do not see each other: 1.
    pub groups: usize,
    /// Steps inside the window: 1.
    pub dilation: usize,
}

impl ConvTranspose1d {
    /// A layer initialised as PyTorch's.
    ///
    /// # Errors
    /// Returns an error if it does not fit into memory.
    pub fn new(in_channels: usize, out_channels: usize, kernel_size: usize) -> Result<Self> {
        ConvTranspose1d::grouped(in_channels, out_channels, kernel_size, 1)
    }

    /// A layer of `groups` blocks of channels that do not see each other.
    ///
    /// # Errors
    /// Returns an error if `groups` does not divide both channel counts, or the parameters do not
    /// fit into memory.
    pub fn grouped(
        in_channels: usize,
        out_channels: usize,
        kernel_size: usize,
        groups: usize,
    ) -> Result<Self> {
        let channels = (in_channels, out_channels);
        let (weight, bias) = parameter::transposed_convolution(
            "conv_transpose1d",
            channels,
            &[kernel_size],
            groups,
        )?;
        Ok(ConvTranspose1d {
            weight,
            bias: Some(bias),
            stride: 1,
            padding: 0,
            output_padding: 0,
            dilation: 1,
            groups,
        })
    }
}

options!(ConvTranspose1d {
    stride: usize,
    padding: usize,
    output_padding: usize,
    dilation: usize
});
kept!(ConvTranspose1d { bias: [bias] });

#[trace(leaf, path = "fx_nn::nn::ConvTranspose1d")]
impl ConvTranspose1d {
    /// Applies the layer.
    ///
    /// # Errors
    /// Returns an error if the channels of `x` do not fit.
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
