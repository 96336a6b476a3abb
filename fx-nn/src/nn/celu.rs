//! `CELU`: an exponential below 0, of one slope at 0.

use fx_core::{Module, Result, trace};

use super::options::options;
use crate::ops;
use crate::tensor::Tensor;

/// x where it is above 0, `alpha` · (exp(x / alpha) - 1) elsewhere.
///
/// ```
/// use fx_nn::prelude::*;
/// let x = Tensor::from_vec(vec![-2.0f64, 2.0], 2)?;
/// assert_eq!(nn::CELU { alpha: 2.0 }.forward(&x)?.to_vec()?, [2.0 * (-1f64).exp_m1(), 2.0]);
/// # Ok::<(), fx_nn::Error>(())
/// ```
#[derive(Module, Clone, Debug)]
pub struct CELU {
    /// How far below 0 it ends: 1.
    pub alpha: f64,
}

impl Default for CELU {
    /// PyTorch's numbers.
    fn default() -> Self {
        CELU { alpha: 1.0 }
    }
}

options!(CELU { alpha: f64 });

#[trace(leaf, path = "fx_nn::nn::CELU")]
impl CELU {
    /// Applies the layer to a tensor of any shape.
    ///
    /// # Errors
    /// Returns an error if the tensor is not float, or `alpha` is 0.
    pub fn forward(&self, x: &Tensor) -> Result<Tensor> {
        ops::celu(x, self.alpha)
    }
}
