//! `GroupNorm`: groups of channels normalised by each sample's own statistics.

use fx_core::{Error, Module, Result, trace};

use super::options::{kept, options};
use super::parameter;
use crate::ops;
use crate::tensor::Tensor;

/// y = (x - mean) / sqrt(var + eps) · weight + bias, over each group of the channels of `x` `[N, C, ..]`.
///
/// ```
/// use fx_nn::prelude::*;
/// let x = Tensor::from_vec(vec![1.0f32, 3.0, 2.0, 6.0], (1, 4, 1))?;
/// let y = nn::GroupNorm::new(2, 4)?.forward(&x)?;
/// let expected = Tensor::from_vec(vec![-1.0f32, 1.0, -1.0, 1.0], (1, 4, 1))?;
/// assert!(fx_nn::allclose(&y, &expected, 0.0, 1e-5)?.close);
/// # Ok::<(), fx_nn::Error>(())
/// ```
#[derive(Module, Clone, Debug)]
pub struct GroupNorm {
    /// `[channels]`.
    pub weight: Option<Tensor>,
    /// `[channels]`.
    pub bias: Option<Tensor>,
    /// How many groups the channels are in.
    pub num_groups: usize,
    /// Added to the variance: 1e-5.
    pub eps: f64,
}

impl GroupNorm {
    /// A layer with weights of one and biases of zero: eps 1e-5.
    ///
    /// # Errors
    /// Returns an error if `num_groups` does not divide the channels.
    pub fn new(num_groups: usize, num_channels: usize) -> Result<Self> {
        if num_groups == 0 || !num_channels.is_multiple_of(num_groups) {
            return Err(Error::msg(format_args!(
                "group_norm: {num_groups} groups do not divide {num_channels} channels"
            )));
        }
        Ok(GroupNorm {
            weight: Some(parameter::constant(&[num_channels], 1.0)?),
            bias: Some(parameter::constant(&[num_channels], 0.0)?),
            num_groups,
            eps: 1e-5,
        })
    }
}

options!(GroupNorm { eps: f64 });
kept!(GroupNorm {
    affine: [weight, bias],
    bias: [bias]
});

#[trace(leaf, path = "fx_nn::nn::GroupNorm")]
impl GroupNorm {
    /// Applies the layer.
    ///
    /// # Errors
    /// Returns an error if `x` has a different number of channels.
    pub fn forward(&self, x: &Tensor) -> Result<Tensor> {
        ops::group_norm(
            x,
            self.num_groups,
            self.weight.as_ref(),
            self.bias.as_ref(),
            self.eps,
        )
    }
}
