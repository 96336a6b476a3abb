//! `MSELoss`: the mean squared difference.

use fx_core::{Module, Result, trace};

use crate::ops;
use crate::tensor::Tensor;

/// The squared differences of two tensors of one shape, or their mean or sum.
///
/// ```
/// use fx_nn::prelude::*;
/// let (x, y) = (Tensor::zeros(4)?, Tensor::full(4, 3.0, DType::F32)?);
/// assert_eq!(nn::MSELoss::default().forward(&x, &y)?.item()?, 9.0);
/// # Ok::<(), fx_nn::Error>(())
/// ```
#[derive(Module, Clone, Debug)]
pub struct MSELoss {
    /// `"mean"`, `"sum"` or `"none"`.
    pub reduction: String,
}

impl Default for MSELoss {
    fn default() -> Self {
        MSELoss {
            reduction: "mean".into(),
        }
    }
}

#[trace(leaf, path = "fx_nn::nn::MSELoss")]
impl MSELoss {
    /// The loss.
    ///
    /// # Errors
    /// When the shapes differ.
    pub fn forward(&self, input: &Tensor, target: &Tensor) -> Result<Tensor> {
        ops::mse_loss(input, target, &self.reduction)
    }
}
