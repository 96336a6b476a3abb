//! `Threshold`: replaces elements that are not above a threshold.

use fx_core::{Module, Result, trace};

use crate::ops;
use crate::tensor::Tensor;

/// x where it is above `threshold`, `value` elsewhere.
///
/// ```
/// use fx_nn::prelude::*;
/// let x = Tensor::from_vec(vec![0.0f32, 1.0, 2.0], 3)?;
/// assert_eq!(nn::Threshold::new(1.0, -5.0).forward(&x)?.to_vec()?, [-5.0, -5.0, 2.0]);
/// # Ok::<(), fx_nn::Error>(())
/// ```
#[derive(Module, Clone, Debug)]
pub struct Threshold {
    /// The threshold.
    pub threshold: f64,
    /// The replacement.
    pub value: f64,
}

impl Threshold {
    /// A layer for two numbers.
    pub fn new(threshold: f64, value: f64) -> Self {
        Threshold { threshold, value }
    }
}

#[trace(leaf, path = "fx_nn::nn::Threshold")]
impl Threshold {
    /// Applies the layer to a tensor of any shape.
    ///
    /// # Errors
    /// Returns an error for bool tensors.
    pub fn forward(&self, x: &Tensor) -> Result<Tensor> {
        ops::threshold(x, self.threshold, self.value)
    }
}
