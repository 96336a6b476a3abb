//! `Conv2d`: a 2-d convolution.

use fx_core::{Module, Result, trace};

use super::options::{kept, options};
use super::parameter;
use crate::ops;
use crate::tensor::{Pair, Tensor};

/// A 2-d convolution of `x` `[N, C, H, W]` (or `[C, H, W]`).
///
/// ```
/// use fx_nn::prelude::*;
/// let mut layer = nn::Conv2d::new(3, 8, 3)?.padding(1);
/// assert_eq!(layer.forward(&Tensor::ones((2, 3, 16, 16))?)?.dims()?, [2, 8, 16, 16]);
/// layer = nn::Conv2d::new(1, 1, 2)?.bias(false);
/// layer.weight = Tensor::from_vec(vec![1.0f32, 2.0, 3.0, 4.0], (1, 1, 2, 2))?;
/// let x = Tensor::from_vec(vec![1.0f32, 10.0, 100.0, 1000.0], (1, 1, 2, 2))?;
/// assert_eq!(layer.forward(&x)?.item()?, 4321.0);
/// # Ok::<(), fx_nn::Error>(())
/// ```
#[derive(Module, Clone, Debug)]
pub struct Conv2d {
    /// `[out_channels, in_channels / groups, kH, kW]`.
    pub weight: Tensor,
    /// `[out_channels]`.
    pub bias: Option<Tensor>,
    /// Steps of the window: 1.
    pub stride: Pair,
    /// Zeros added on each side: 0.
    pub padding: Pair,
    /// Steps inside the window: 1.
    pub dilation: Pair,
    /// Blocks of channels that do not see each other: 1.
    pub groups: usize,
}

impl Conv2d {
    /// A layer initialised as PyTorch's.
    ///
    /// # Errors
    /// Returns an error if it does not fit into memory.
    pub fn new(
        in_channels: usize,
        out_channels: usize,
        kernel_size: impl Into<Pair>,
    ) -> Result<Self> {
        Conv2d::grouped(in_channels, out_channels, kernel_size, 1)
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
        let (weight, bias) =
            parameter::convolution("conv2d", channels, &[kernel.0, kernel.1], groups)?;
        Ok(Conv2d {
            weight,
            bias: Some(bias),
            stride: 1.into(),
            padding: 0.into(),
            dilation: 1.into(),
            groups,
        })
    }
}

options!(Conv2d { stride: impl Into<Pair>, padding: impl Into<Pair>, dilation: impl Into<Pair> });
kept!(Conv2d { bias: [bias] });

#[trace(leaf, path = "fx_nn::nn::Conv2d")]
impl Conv2d {
    /// Applies the layer.
    ///
    /// # Errors
    /// Returns an error if the channels of `x`, or the kernel and the padded input, do not fit.
    pub fn forward(&self, x: &Tensor) -> Result<Tensor> {
        ops::conv2d(
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
