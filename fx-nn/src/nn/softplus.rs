//! `Softplus`: a ReLU without its corner.

use fx_core::{Module, Result, trace};

use super::options::options;
use crate::ops;
use crate::tensor::Tensor;

/// log(1 + exp(beta · x)) / beta, and x where beta · x is above `threshold`.
///
/// ```
/// use fx_nn::prelude::*;
/// let x = Tensor::from_vec(vec![0.0f64, 30.0], 2)?;
/// assert_eq!(nn::Softplus::default().forward(&x)?.to_vec()?, [2f64.ln(), 30.0]);
/// # Ok::<(), fx_nn::Error>(())
/// ```
#[derive(Module, Clone, Debug)]
pub struct Softplus {
    /// How sharp the corner is: 1.
    pub beta: f64,
    /// Where the straight line begins: 20.
    pub threshold: f64,
}

impl Default for Softplus {
    /// PyTorch's numbers.
    fn default() -> Self {
        Softplus {
            beta: 1.0,
            threshold: 20.0,
        }
    }
}

options!(Softplus {
    beta: f64,
    threshold: f64
});

#[trace(leaf, path = "fx_nn::nn::Softplus")]
impl Softplus {
    /// Applies the layer to a tensor of any shape.
    ///
    /// # Errors
    /// Returns an error if the tensor is not float.
    pub fn forward(&self, x: &Tensor) -> Result<Tensor> {
        ops::softplus(x, self.beta, self.threshold)
    }
}
