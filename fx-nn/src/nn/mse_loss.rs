//! `MSELoss`: the mean squared difference.

use fx_core::{Module, Result, trace};

use super::options::options;
use crate::ops;
use crate::tensor::Tensor;

/// The squared differences of two tensors of one shape, or their mean or sum.
///
/// ```
/// use fx_nn::prelude::*;
/// let x = Tensor::from_vec(vec![1.0f32, 2.0], 2)?;
/// let y = Tensor::from_vec(vec![4.0f32, 1.0], 2)?;
/// assert_eq!(nn::MSELoss::default().forward(&x, &y)?.item()?, 5.0);
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

options!(MSELoss { reduction: impl Into<String> });

#[trace(leaf, path = "fx_nn::nn::MSELoss")]
impl MSELoss {
    /// The loss.
    ///
    /// # Errors
    /// Returns an error if the shapes differ.
    pub fn forward(&self, input: &Tensor, target: &Tensor) -> Result<Tensor> {
        ops::mse_loss(input, target, &self.reduction)
    }
}
