//! `SoftMarginLoss`: a margin without a corner.

use fx_core::{Module, Result, trace};

use super::options::options;
use crate::ops;
use crate::tensor::Tensor;

/// log(1 + exp(-target · x)), for targets of 1 and -1.
///
/// ```
/// use fx_nn::prelude::*;
/// let x = Tensor::from_vec(vec![0.0f64], 1)?;
/// assert_eq!(nn::SoftMarginLoss::default().forward(&x, &x)?.item()?, 2f64.ln());
/// # Ok::<(), fx_nn::Error>(())
/// ```
#[derive(Module, Clone, Debug)]
pub struct SoftMarginLoss {
    /// `"mean"`, `"sum"` or `"none"`.
    pub reduction: String,
}

impl Default for SoftMarginLoss {
    fn default() -> Self {
        SoftMarginLoss {
            reduction: "mean".into(),
        }
    }
}

options!(SoftMarginLoss { reduction: impl Into<String> });

#[trace(leaf, path = "fx_nn::nn::SoftMarginLoss")]
impl SoftMarginLoss {
    /// The loss.
    ///
    /// # Errors
    /// Returns an error if the shapes do not broadcast, or neither tensor is float.
    pub fn forward(&self, input: &Tensor, target: &Tensor) -> Result<Tensor> {
        ops::soft_margin_loss(input, target, &self.reduction)
    }
}
