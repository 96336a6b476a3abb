//! `LeakyReLU`: a small slope below 0.

use fx_core::{Module, Result, trace};

use super::options::options;
use crate::ops;
use crate::tensor::Tensor;

/// x where it is above 0, `negative_slope` · x elsewhere.
///
/// ```
/// use fx_nn::prelude::*;
/// let x = Tensor::from_vec(vec![-2.0f32, 4.0], 2)?;
/// assert_eq!(nn::LeakyReLU { negative_slope: 0.5 }.forward(&x)?.to_vec()?, [-1.0, 4.0]);
/// # Ok::<(), fx_nn::Error>(())
/// ```
#[derive(Module, Clone, Debug)]
pub struct LeakyReLU {
    /// The slope below 0.
    pub negative_slope: f64,
}

impl Default for LeakyReLU {
    /// A slope of 0.01.
    fn default() -> Self {
        LeakyReLU {
            negative_slope: 0.01,
        }
    }
}

options!(LeakyReLU {
    negative_slope: f64
});

#[trace(leaf, path = "fx_nn::nn::LeakyReLU")]
impl LeakyReLU {
    /// Applies the layer to a tensor of any shape.
    ///
    /// # Errors
    /// Returns an error if the tensor is not float.
    pub fn forward(&self, x: &Tensor) -> Result<Tensor> {
        ops::leaky_relu(x, self.negative_slope)
    }
}
