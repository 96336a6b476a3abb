//! `Hardtanh`: elements held between two numbers.

use fx_core::{Module, Result, trace};

use super::options::options;
use crate::ops;
use crate::tensor::Tensor;

/// Each element held between `min_val` and `max_val`.
///
/// ```
/// use fx_nn::prelude::*;
/// let x = Tensor::from_vec(vec![-2.0f32, 0.5, 2.0], 3)?;
/// assert_eq!(nn::Hardtanh::default().forward(&x)?.to_vec()?, [-1.0, 0.5, 1.0]);
/// # Ok::<(), fx_nn::Error>(())
/// ```
#[derive(Module, Clone, Debug)]
pub struct Hardtanh {
    /// The least result: -1.
    pub min_val: f64,
    /// The largest result: 1.
    pub max_val: f64,
}

impl Default for Hardtanh {
    /// PyTorch's numbers.
    fn default() -> Self {
        Hardtanh {
            min_val: -1.0,
            max_val: 1.0,
        }
    }
}

options!(Hardtanh {
    min_val: f64,
    max_val: f64
});

#[trace(leaf, path = "fx_nn::nn::Hardtanh")]
impl Hardtanh {
    /// Applies the layer to a tensor of any shape.
    ///
    /// # Errors
    /// Returns an error for bool tensors, and if `min_val` is above `max_val`.
    pub fn forward(&self, x: &Tensor) -> Result<Tensor> {
        ops::hardtanh(x, self.min_val, self.max_val)
    }
}
