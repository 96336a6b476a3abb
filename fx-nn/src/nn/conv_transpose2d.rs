//! `ConvTranspose2d`: a transposed 2-d convolution.

use fx_core::{Module, Result, trace};

use super::options::{kept, options};
use super::parameter;
use crate::ops;
use crate::tensor::{Pair, Tensor};

/// A transposed 2-d convolution of `x` `[N, C, H, W]` (or `[C, H, W]`), as used to enlarge images.
///
/// Along each axis the result has (h - 1) · stride - 2 · padding + dilation · (k - 1) + output_padding + 1 pixels.
///
/// ```
/// use fx_nn::prelude::*;
/// let mut layer = nn::ConvTranspose2d::new(1, 1, 2)?.stride(2).bias(false);
/// layer.weight = Tensor::from_vec(vec![1.0f32, 2.0, 3.0, 4.0], (1, 1, 2, 2))?;
/// let y = layer.forward(&Tensor::from_vec(vec![1.0f32, 10.0], (1, 1, 1, 2))?)?;
/// assert_eq!(y.dims()?, [1, 1, 2, 4]);
/// assert_eq!(y.to_vec()?, [1.0, 2.0, 10.0, 20.0, 3.0, 4.0, 30.0, 40.0]);
/// # Ok::<(), fx_nn::Error>(())
/// ```
#[derive(Module, Clone, Debug)]
pub struct ConvTranspose2d {
    /// `[in_channels, out_channels / groups, kH, kW]`.
    pub weight: Tensor,
    /// `[out_channels]`.
    pub bias: Option<Tensor>,
    /// Steps of the window: 1.
    pub stride: Pair,
    /// Pixels removed from each side: 0.
    pub padding: Pair,
    /// Pixels added at the end: 0.
    pub output_padding: Pair,
    /// Blocks of channels that do not see each other: 1.
    pub groups: usize,
    /// Steps inside the window: 1.
    pub dilation: Pair,
}

impl ConvTranspose2d {
    /// A layer initialised as PyTorch's.
    ///
    /// # Errors
    /// Returns an error if it does not fit into memory.
    pub fn new(
        in_channels: usize,
        out_channels: usize,
        kernel_size: impl Into<Pair>,
    ) -> Result<Self> {
        ConvTranspose2d::grouped(in_channels, out_channels, kernel_size, 1)
    }

    /// A layer of `groups` blocks of channels that do not see each other.
    ///
    /// # Errors
    /// Returns an error if `groups` does not divide both channel counts, or the parameters do not
    /// fit into memory.
    pub fn grouped(
        in_channels: usize,
        out_channels: usize,
        kernel_size: impl Into<Pair>,
        groups: usize,
    ) -> Result<Self> {
        let kernel = kernel_size.into();
        let channels = (in_channels, out_channels);
        let (weight, bias) = parameter::transposed_convolution(
            "conv_transpose2d",
            channels,
            &[kernel.0, kernel.1],
            groups,
        )?;
        Ok(ConvTranspose2d {
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

options!(ConvTranspose2d { stride: impl Into<Pair>, padding: impl Into<Pair>, output_padding: impl Into<Pair>, dilation: impl Into<Pair> });
kept!(ConvTranspose2d { bias: [bias] });

#[trace(leaf, path = "fx_nn::nn::ConvTranspose2d")]
impl ConvTranspose2d {
    /// Applies the layer.
    ///
    /// # Errors
    /// Returns an error if the channels of `x` do not fit.
    pub fn forward(&self, x: &Tensor) -> Result<Tensor> {
        ops::conv_transpose2d(
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
