//! `Conv1d`: a 1-d convolution.

use fx_core::{Module, Result, trace};

use super::options::{kept, options};
use super::parameter;
use crate::ops;
use crate::tensor::Tensor;

/// A 1-d convolution of `x` `[N, C, L]` (or `[C, L]`).
///
/// ```
/// use fx_nn::prelude::*;
/// let mut layer = nn::Conv1d::new(1, 1, 3)?.padding(1);
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
    /// Steps of the window: 1.
    pub stride: usize,
    /// Zeros added on each side: 0.
    pub padding: usize,
    /// Steps inside the window: 1.
    pub dilation: usize,
    /// Blocks of channels that do not see each other: 1.
    pub groups: usize,
}

impl Conv1d {
    /// A layer initialised as PyTorch's.
    ///
    /// # Errors
    /// Returns an error if it does not fit into memory.
    pub fn new(in_channels: usize, out_channels: usize, kernel_size: usize) -> Result<Self> {
        Conv1d::grouped(in_channels, out_channels, kernel_size, 1)
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
        let (weight, bias) = parameter::convolution("conv1d", channels, &[kernel_size], groups)?;
        Ok(Conv1d {
            weight,
            bias: Some(bias),
            stride: 1,
            padding: 0,
            dilation: 1,
            groups,
        })
    }
}

options!(Conv1d {
    stride: usize,
    padding: usize,
    dilation: usize
});
kept!(Conv1d { bias: [bias] });

#[trace(leaf, path = "fx_nn::nn::Conv1d")]
impl Conv1d {
    /// Applies the layer.
    ///
    /// # Errors
    /// Returns an error if the channels of `x`, or the kernel and the padded input, do not fit.
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
