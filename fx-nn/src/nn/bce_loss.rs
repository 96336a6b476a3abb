//! `BCELoss`: the cross entropy of probabilities.

use fx_core::{Module, Result, trace};

use super::options::options;
use crate::ops;
use crate::tensor::Tensor;

/// The cross entropy of probabilities and shares, each in [0, 1].
///
/// ```
/// use fx_nn::prelude::*;
/// let p = Tensor::from_vec(vec![0.5f64, 0.5], 2)?;
/// let is = Tensor::from_vec(vec![1.0f64, 0.0], 2)?;
/// assert_eq!(nn::BCELoss::default().forward(&p, &is)?.item()?, 2f64.ln());
/// # Ok::<(), fx_nn::Error>(())
/// ```
#[derive(Module, Clone, Debug)]
pub struct BCELoss {
    /// How much each element counts.
    #[module(buffer)]
    pub weight: Option<Tensor>,
    /// `"mean"`, `"sum"` or `"none"`.
    pub reduction: String,
}

impl Default for BCELoss {
    fn default() -> Self {
        BCELoss {
            weight: None,
            reduction: "mean".into(),
        }
    }
}

options!(BCELoss { weight: impl Into<Option<Tensor>>, reduction: impl Into<String> });

#[trace(leaf, path = "fx_nn::nn::BCELoss")]
impl BCELoss {
    /// The loss.
    ///
    /// # Errors
    /// Returns an error if the shapes or types differ, or an element is not in [0, 1].
    pub fn forward(&self, input: &Tensor, target: &Tensor) -> Result<Tensor> {
        ops::binary_cross_entropy(input, target, self.weight.as_ref(), &self.reduction)
    }
}
