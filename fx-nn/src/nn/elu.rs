//! `ELU`: an exponential below 0.

use fx_core::{Module, Result, trace};

use super::options::options;
use crate::ops;
use crate::tensor::Tensor;

/// x where it is above 0, `alpha` · (exp(x) - 1) elsewhere.
///
/// ```
/// use fx_nn::prelude::*;
/// let x = Tensor::from_vec(vec![-1.0f64, 2.0], 2)?;
/// assert_eq!(nn::ELU::default().forward(&x)?.to_vec()?, [(-1f64).exp_m1(), 2.0]);
/// # Ok::<(), fx_nn::Error>(())
/// ```
#[derive(Module, Clone, Debug)]
pub struct ELU {
    /// How far below 0 it ends: 1.
    pub alpha: f64,
}

impl Default for ELU {
    /// PyTorch's numbers.
    fn default() -> Self {
        ELU { alpha: 1.0 }
    }
}

options!(ELU { alpha: f64 });

#[trace(leaf, path = "fx_nn::nn::ELU")]
impl ELU {
    /// Applies the layer to a tensor of any shape.
    ///
    /// # Errors
    /// Returns an error if the tensor is not float.
    pub fn forward(&self, x: &Tensor) -> Result<Tensor> {
        ops::elu(x, self.alpha)
    }
}
