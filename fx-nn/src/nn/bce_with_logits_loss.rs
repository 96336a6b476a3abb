//! `BCEWithLogitsLoss`: the cross entropy of scores.

use fx_core::{Module, Result, trace};

use super::options::options;
use crate::ops;
use crate::tensor::Tensor;

/// The cross entropy of scores and shares, without overflow.
///
/// ```
/// use fx_nn::prelude::*;
/// let x = Tensor::from_vec(vec![0.0f64, -1000.0], 2)?;
/// let is = Tensor::from_vec(vec![1.0f64, 0.0], 2)?;
/// assert_eq!(nn::BCEWithLogitsLoss::default().forward(&x, &is)?.item()?, 2f64.ln() / 2.0);
/// # Ok::<(), fx_nn::Error>(())
/// ```
#[derive(Module, Clone, Debug)]
pub struct BCEWithLogitsLoss {
    /// How much each element counts.
    #[module(buffer)]
    pub weight: Option<Tensor>,
    /// `"mean"`, `"sum"` or `"none"`.
    pub reduction: String,
    /// How much the positive ones of each class count.
    #[module(buffer)]
    pub pos_weight: Option<Tensor>,
}

impl Default for BCEWithLogitsLoss {
    fn default() -> Self {
        BCEWithLogitsLoss {
            weight: None,
            reduction: "mean".into(),
            pos_weight: None,
        }
    }
}

options!(BCEWithLogitsLoss { weight: impl Into<Option<Tensor>>, reduction: impl Into<String>, pos_weight: impl Into<Option<Tensor>> });

#[trace(leaf, path = "fx_nn::nn::BCEWithLogitsLoss")]
impl BCEWithLogitsLoss {
    /// The loss.
    ///
    /// # Errors
    /// Returns an error if the shapes differ, or the tensors are not float.
    pub fn forward(&self, input: &Tensor, target: &Tensor) -> Result<Tensor> {
        ops::binary_cross_entropy_with_logits(
            input,
            target,
            self.weight.as_ref(),
            &self.reduction,
            self.pos_weight.as_ref(),
        )
    }
}
