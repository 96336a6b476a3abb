//! `PoissonNLLLoss`: how unlikely counts are.

use fx_core::{Module, Result, trace};

use super::options::options;
use crate::ops;
use crate::tensor::Tensor;

/// The likelihood of counts under rates, or under their logarithms.
///
/// ```
/// use fx_nn::prelude::*;
/// let (x, n) = (Tensor::zeros(2)?, Tensor::ones(2)?);
/// assert_eq!(nn::PoissonNLLLoss::default().forward(&x, &n)?.item()?, 1.0);
/// # Ok::<(), fx_nn::Error>(())
/// ```
#[derive(Module, Clone, Debug)]
pub struct PoissonNLLLoss {
    /// Whether the input is of logarithms: true.
    pub log_input: bool,
    /// Whether Stirling's terms are added: false.
    pub full: bool,
    /// The number added to rates before their logarithm: 1e-8.
    pub eps: f64,
    /// `"mean"`, `"sum"` or `"none"`.
    pub reduction: String,
}

impl Default for PoissonNLLLoss {
    fn default() -> Self {
        PoissonNLLLoss {
            log_input: true,
            full: false,
            eps: 1e-8,
            reduction: "mean".into(),
        }
    }
}

options!(PoissonNLLLoss { log_input: bool, full: bool, eps: f64, reduction: impl Into<String> });

#[trace(leaf, path = "fx_nn::nn::PoissonNLLLoss")]
impl PoissonNLLLoss {
    /// The loss.
    ///
    /// # Errors
    /// Returns an error if the shapes do not broadcast, or neither tensor is float.
    pub fn forward(&self, input: &Tensor, target: &Tensor) -> Result<Tensor> {
        ops::poisson_nll_loss(
            input,
            target,
            self.log_input,
            self.full,
            self.eps,
            &self.reduction,
        )
    }
}
