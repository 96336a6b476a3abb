//! `Conv2d`: a 2-d convolution.

use fx_core::{Error, Module, Result, trace};

use super::parameter;
use crate::ops;
use crate::tensor::{Pair, Tensor};

/// A 2-d convolution of `x` `[N, C, H, W]` (or `[C, H, W]`).
///
/// ```
/// use fx_nn::prelude::*;
/// let options = nn::Conv2dOptions { padding: 1.into(), ..Default::default() };
/// let mut layer = nn::Conv2d::new(3, 8, 3, options)?;
/// assert_eq!(layer.forward(&Tensor::ones((2, 3, 16, 16))?)?.dims()?, [2, 8, 16, 16]);
/// let options = nn::Conv2dOptions { bias: false, ..Default::default() };
/// layer = nn::Conv2d::new(1, 1, 2, options)?;
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
    /// Steps of the window.
    pub stride: Pair,
    /// Zeros added on each side.
    pub padding: Pair,
    /// Steps inside the window.
    pub dilation: Pair,
    /// Blocks of channels that do not see each other.
    pub groups: usize,
}

/// Options of [`Conv2d`], with PyTorch's defaults.
#[derive(Clone, Copy, Debug)]
pub struct Conv2dOptions {
    /// Steps of the window: 1.
    pub stride: Pair,
    /// Zeros added on each side: 0.
    pub padding: Pair,
    /// Steps inside the window: 1.
    pub dilation: Pair,
    /// Blocks of channels that do not see each other: 1.
    pub groups: usize,
    /// Whether there is a bias: yes.
    pub bias: bool,
}

impl Default for Conv2dOptions {
    fn default() -> Self {
        Conv2dOptions {
            stride: 1.into(),
            padding: 0.into(),
            dilation: 1.into(),
            groups: 1,
            bias: true,
        }
    }
}

impl Conv2d {
    /// A layer initialised as PyTorch's.
    ///
    /// # Errors
    /// When `groups` does not divide both channel counts.
    pub fn new(
        in_channels: usize,
        out_channels: usize,
        kernel_size: impl Into<Pair>,
        options: Conv2dOptions,
    ) -> Result<Self> {
        let Conv2dOptions {
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
                "conv2d: groups must divide in_channels and out_channels, and {groups} does not divide {in_channels} and {out_channels}"
            )));
        }
        let kernel = kernel_size.into();
        let bound = parameter::fan_in_bound(
            (in_channels / groups)
                .saturating_mul(kernel.0)
                .saturating_mul(kernel.1),
        );
        let shape = [out_channels, in_channels / groups, kernel.0, kernel.1];
        Ok(Conv2d {
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

#[trace(leaf, path = "fx_nn::nn::Conv2d")]
impl Conv2d {
    /// Applies the layer.
    ///
    /// # Errors
    /// When the channels of `x`, or the kernel and the padded input, do not fit.
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
