//! `Conv3d`: a 3-d convolution.

use fx_core::{Module, Result, trace};

use super::options::{kept, options};
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
    /// Steps of the window: 1.
    pub stride: Triple,
    /// Zeros added on each side: 0.
    pub padding: Triple,
    /// Steps inside the window: 1.
    pub dilation: Triple,
    /// Blocks of channels that do not see each other: 1.
    pub groups: usize,
}

impl Conv3d {
    /// A layer initialised as PyTorch's.
    ///
    /// # Errors
    /// Returns an error if it does not fit into memory.
    pub fn new(
        in_channels: usize,
        out_channels: usize,
        kernel_size: impl Into<Triple>,
    ) -> Result<Self> {
        Conv3d::grouped(in_channels, out_channels, kernel_size, 1)
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
        let (weight, bias) =
            parameter::convolution("conv3d", channels, &[kernel.0, kernel.1, kernel.2], groups)?;
        Ok(Conv3d {
            weight,
            bias: Some(bias),
            stride: 1.into(),
            padding: 0.into(),
            dilation: 1.into(),
            groups,
        })
    }
}

options!(Conv3d { stride: impl Into<Triple>, padding: impl Into<Triple>, dilation: impl Into<Triple> });
kept!(Conv3d { bias: [bias] });

#[trace(leaf, path = "fx_nn::nn::Conv3d")]
impl Conv3d {
    /// Applies the layer.
    ///
    /// # Errors
    /// Returns an error if the channels of `x`, or the kernel and the padded input, do not fit.
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
