//! `ConvTranspose3d`: a transposed 3-d convolution.

use fx_core::{Module, Result, trace};

use super::options::{kept, options};
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
    /// Steps of the window: 1.
    pub stride: Triple,
    /// Pixels removed from each side: 0.
    pub padding: Triple,
    /// Pixels added at the end: 0.
    pub output_padding: Triple,
    /// Blocks of channels that do not see each other: 1.
    pub groups: usize,
    /// Steps inside the window: 1.
    pub dilation: Triple,
}

impl ConvTranspose3d {
    /// A layer initialised as PyTorch's.
    ///
    /// # Errors
    /// Returns an error if it does not fit into memory.
    pub fn new(
        in_channels: usize,
        out_channels: usize,
        kernel_size: impl Into<Triple>,
    ) -> Result<Self> {
        ConvTranspose3d::grouped(in_channels, out_channels, kernel_size, 1)
    }

    /// A layer of `groups` blocks of channels that do not see each other.
    ///
    /// # Errors
    /// Returns an error if `groups` does not divide both channel counts, or the parameters do not
    /// fit into memory.
    pub fn grouped(
        in_channels: usize,
        out_channels: usize,
        kernel_size: impl Into<Triple>,
        groups: usize,
    ) -> Result<Self> {
        let kernel = kernel_size.into();
        let channels = (in_channels, out_channels);
        let (weight, bias) = parameter::transposed_convolution(
            "conv_transpose3d",
            channels,
            &[kernel.0, kernel.1, kernel.2],
            groups,
        )?;
        Ok(ConvTranspose3d {
            weight,
            bias: Some(bias),
            stride: 1.into(),
            padding: 0.into(),
            output_padding: 0.into(),
            dilation: 1.into(),
            groups,
        })
    }
}

options!(ConvTranspose3d { stride: impl Into<Triple>, padding: impl Into<Triple>, output_padding: impl Into<Triple>, dilation: impl Into<Triple> });
kept!(ConvTranspose3d { bias: [bias] });

#[trace(leaf, path = "fx_nn::nn::ConvTranspose3d")]
impl ConvTranspose3d {
    /// Applies the layer.
    ///
    /// # Errors
    /// Returns an error if the channels of `x` do not fit.
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
