//! `GaussianNLLLoss`: how unlikely numbers are.

use fx_core::{Module, Result, trace};

use super::options::options;
use crate::ops;
use crate::tensor::Tensor;

/// The likelihood of `target` under normal distributions of means `input` and variances `var`.
///
/// ```
/// use fx_nn::prelude::*;
/// let (x, y, var) = (Tensor::zeros(2)?, Tensor::ones(2)?, Tensor::ones(2)?);
/// assert_eq!(nn::GaussianNLLLoss::default().forward(&x, &y, &var)?.item()?, 0.5);
/// # Ok::<(), fx_nn::Error>(())
/// ```
#[derive(Module, Clone, Debug)]
pub struct GaussianNLLLoss {
    /// Whether the constant term is added: false.
    pub full: bool,
    /// The least variance; smaller ones are raised to it: 1e-6.
    pub eps: f64,
    /// `"mean"`, `"sum"` or `"none"`.
    pub reduction: String,
}

impl Default for GaussianNLLLoss {
    fn default() -> Self {
        GaussianNLLLoss {
            full: false,
            eps: 1e-6,
            reduction: "mean".into(),
        }
    }
}

options!(GaussianNLLLoss { full: bool, eps: f64, reduction: impl Into<String> });

#[trace(leaf, path = "fx_nn::nn::GaussianNLLLoss")]
impl GaussianNLLLoss {
    /// The loss.
    ///
    /// # Errors
    /// Returns an error if the shapes do not broadcast, a variance is below 0, or no tensor is
    /// float.
    pub fn forward(&self, input: &Tensor, target: &Tensor, var: &Tensor) -> Result<Tensor> {
        ops::gaussian_nll_loss(input, target, var, self.full, self.eps, &self.reduction)
    }
}
