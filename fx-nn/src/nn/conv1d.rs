//! `Conv1d`: a 1-d convolution.

use fx_core::{Error, Module, Result, trace};

use super::parameter;
use crate::ops;
use crate::tensor::Tensor;

/// A 1-d convolution of `x` `[N, C, L]` (or `[C, L]`).
///
/// ```
/// use fx_nn::prelude::*;
/// let options = nn::Conv1dOptions { padding: 1, ..Default::default() };
/// let mut layer = nn::Conv1d::new(1, 1, 3, options)?;
/// layer.weight = Tensor::from_vec(vec![1.0f32, 2.0, 3.0], (1, 1, 3))?;
/// layer.bias = Some(Tensor::from_vec(vec![10.0f32], 1)?);
/// let y = layer.forward(&Tensor::from_vec(vec![1.0f32, 2.0, 4.0], (1, 1, 3))?)?;
/// assert_eq!(y.to_vec()?, [18.0, 27.0, 20.0]);
/// # Ok::<(), fx_nn::Error>(())
/// ```
#[derive(Module, Clone, Debug)]
pub struct Conv1d {
    /// `[out_channels, in_channels / groups, k]`.
    pub weight: Tensor,
    /// `[out_channels]`.
    pub bias: Option<Tensor>,
    /// Steps of the window.
    pub stride: usize,
    /// Zeros added on each side.
    pub padding: usize,
    /// Steps inside the window.
    pub dilation: usize,
    /// Blocks of channels that do not see each other.
    pub groups: usize,
}

/// Options of [`Conv1d`], with PyTorch's defaults.
#[derive(Clone, Copy, Debug)]
pub struct Conv1dOptions {
    /// Steps of the window: 1.
    pub stride: usize,
    /// Zeros added on each side: 0.
    pub padding: usize,
    /// Steps inside the window: 1.
    pub dilation: usize,
    /// Blocks of channels that do not see each other: 1.
    pub groups: usize,
    /// Whether there is a bias: yes.
    pub bias: bool,
}

impl Default for Conv1dOptions {
    fn default() -> Self {
        Conv1dOptions {
            stride: 1,
            padding: 0,
            dilation: 1,
            groups: 1,
            bias: true,
        }
    }
}

impl Conv1d {
    /// A layer initialised as PyTorch's.
    ///
    /// # Errors
    /// When `groups` does not divide both channel counts.
    pub fn new(
        in_channels: usize,
        out_channels: usize,
        kernel_size: usize,
        options: Conv1dOptions,
    ) -> Result<Self> {
        let groups = options.groups;
        if groups == 0
            || !in_channels.is_multiple_of(groups)
            || !out_channels.is_multiple_of(groups)
        {
            return Err(Error::msg(format_args!(
                "conv1d: groups must divide in_channels and out_channels, and {groups} does not divide {in_channels} and {out_channels}"
            )));
        }
        let bound = parameter::fan_in_bound((in_channels / groups).saturating_mul(kernel_size));
        let bias = options
            .bias
            .then(|| parameter::uniform(&[out_channels], bound));
        Ok(Conv1d {
            weight: parameter::uniform(&[out_channels, in_channels / groups, kernel_size], bound)?,
            bias: bias.transpose()?,
            stride: options.stride,
            padding: options.padding,
            dilation: options.dilation,
            groups,
        })
    }
}

#[trace(leaf, path = "fx_nn::nn::Conv1d")]
impl Conv1d {
    /// Applies the layer.
    ///
    /// # Errors
    /// When the channels of `x`, or the kernel and the padded input, do not fit.
    pub fn forward(&self, x: &Tensor) -> Result<Tensor> {
        ops::conv1d(
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
