//! `PReLU`: a slope below 0 that is learned.

use fx_core::{Module, Result, trace};

use super::parameter;
use crate::ops;
use crate::tensor::Tensor;

/// x where it is above 0, `weight` · x elsewhere, with one weight, or one for each channel (dim 1).
///
/// ```
/// use fx_nn::prelude::*;
/// let x = Tensor::from_vec(vec![-2.0f32, 4.0], 2)?;
/// assert_eq!(nn::PReLU::new()?.forward(&x)?.to_vec()?, [-0.5, 4.0]);
/// assert_eq!(nn::PReLU::with_channels(3, 0.1)?.weight.dims()?, [3]);
/// # Ok::<(), fx_nn::Error>(())
/// ```
#[derive(Module, Clone, Debug)]
pub struct PReLU {
    /// The slopes below 0, `[1]` or `[C]`.
    pub weight: Tensor,
}

impl PReLU {
    /// One slope for all channels, which starts at 0.25.
    ///
    /// # Errors
    /// Returns the errors of creating a tensor.
    pub fn new() -> Result<Self> {
        PReLU::with_channels(1, 0.25)
    }

    /// A slope for each of `num_parameters` channels, all of which start at `start`.
    ///
    /// # Errors
    /// Returns an error if so many do not fit into memory.
    pub fn with_channels(num_parameters: usize, start: f64) -> Result<Self> {
        Ok(PReLU {
            weight: parameter::constant(&[num_parameters], start as f32)?,
        })
    }
}

#[trace(leaf, path = "fx_nn::nn::PReLU")]
impl PReLU {
    /// Applies the layer to `[N, C, ..]`, or with one slope to a tensor of any shape.
    ///
    /// # Errors
    /// Returns an error if the types differ, or there is neither one slope nor one per channel.
    pub fn forward(&self, x: &Tensor) -> Result<Tensor> {
        ops::prelu(x, &self.weight)
    }
}
