//! `KLDivLoss`: the divergence of two distributions.

use fx_core::{Module, Result, trace};

use super::options::options;
use crate::ops;
use crate::tensor::Tensor;

/// The divergence of logarithms of probabilities from probabilities; `reduction` may be `"batchmean"` too.
///
/// ```
/// use fx_nn::prelude::*;
/// let x = Tensor::from_vec(vec![0.5f64, 0.5], 2)?;
/// assert_eq!(nn::KLDivLoss::default().forward(&x.log()?, &x)?.item()?, 0.0);
/// # Ok::<(), fx_nn::Error>(())
/// ```
#[derive(Module, Clone, Debug)]
pub struct KLDivLoss {
    /// `"mean"`, `"sum"` or `"none"`.
    pub reduction: String,
    /// Whether the target is of logarithms too: false.
    pub log_target: bool,
}

impl Default for KLDivLoss {
    fn default() -> Self {
        KLDivLoss {
            reduction: "mean".into(),
            log_target: false,
        }
    }
}

options!(KLDivLoss { reduction: impl Into<String>, log_target: bool });

#[trace(leaf, path = "fx_nn::nn::KLDivLoss")]
impl KLDivLoss {
    /// The loss.
    ///
    /// # Errors
    /// Returns an error if the shapes do not broadcast, or a tensor is not float.
    pub fn forward(&self, input: &Tensor, target: &Tensor) -> Result<Tensor> {
        ops::kl_div(input, target, &self.reduction, self.log_target)
    }
}
