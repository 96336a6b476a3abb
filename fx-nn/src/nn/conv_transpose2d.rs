//! `ConvTranspose2d`: a transposed 2-d convolution.

use fx_core::{Error, Module, Result, trace};

use super::parameter;
use crate::ops;
use crate::tensor::{Pair, Tensor};

/// A transposed 2-d convolution of `x` `[N, C, H, W]` (or `[C, H, W]`), as used to enlarge images.
///
/// Along each axis the result has (h - 1) · stride - 2 · padding + dilation · (k - 1) + output_padding + 1 pixels.
///
/// ```
/// use fx_nn::prelude::*;
/// let options = nn::ConvTranspose2dOptions { stride: 2.into(), bias: false, ..Default::default() };
/// let mut layer = nn::ConvTranspose2d::new(1, 1, 2, options)?;
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
    /// Steps of the window.
    pub stride: Pair,
    /// Pixels taken off each side.
    pub padding: Pair,
    /// Pixels added at the end.
    pub output_padding: Pair,
    /// Blocks of channels that do not see each other.
    pub groups: usize,
    /// Steps inside the window.
    pub dilation: Pair,
}

/// Options of [`ConvTranspose2d`], with PyTorch's defaults.
#[derive(Clone, Copy, Debug)]
pub struct ConvTranspose2dOptions {
    /// Steps of the window: 1.
    pub stride: Pair,
    /// Pixels taken off each side: 0.
    pub padding: Pair,
    /// Pixels added at the end: 0.
    pub output_padding: Pair,
    /// Blocks of channels that do not see each other: 1.
    pub groups: usize,
    /// Steps inside the window: 1.
    pub dilation: Pair,
    /// Whether there is a bias: yes.
    pub bias: bool,
}

impl Default for ConvTranspose2dOptions {
    fn default() -> Self {
        ConvTranspose2dOptions {
            stride: 1.into(),
            padding: 0.into(),
            output_padding: 0.into(),
            groups: 1,
            dilation: 1.into(),
            bias: true,
        }
    }
}

impl ConvTranspose2d {
    /// A layer initialised as PyTorch's.
    ///
    /// # Errors
    /// When `groups` does not divide both channel counts.
    pub fn new(
        in_channels: usize,
        out_channels: usize,
        kernel_size: impl Into<Pair>,
        options: ConvTranspose2dOptions,
    ) -> Result<Self> {
        let groups = options.groups;
        if groups == 0
            || !in_channels.is_multiple_of(groups)
            || !out_channels.is_multiple_of(groups)
        {
            return Err(Error::msg(format_args!(
                "conv_transpose2d: groups must divide in_channels and out_channels, and {groups} does not divide {in_channels} and {out_channels}"
            )));
        }
        let kernel = kernel_size.into();
        let shape = [in_channels, out_channels / groups, kernel.0, kernel.1];
        let bound =
            parameter::fan_in_bound(shape[1].saturating_mul(kernel.0).saturating_mul(kernel.1));
        let bias = options
            .bias
            .then(|| parameter::uniform(&[out_channels], bound));
        Ok(ConvTranspose2d {
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

#[trace(leaf, path = "fx_nn::nn::ConvTranspose2d")]
impl ConvTranspose2d {
    /// Applies the layer.
    ///
    /// # Errors
    /// When the channels of `x` do not fit.
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
