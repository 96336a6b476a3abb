//! `MarginRankingLoss`: which of two is larger.

use fx_core::{Module, Result, trace};

use super::options::options;
use crate::ops;
use crate::tensor::Tensor;

/// max(0, margin - target · (input1 - input2)).
///
/// ```
/// use fx_nn::prelude::*;
/// let (a, b) = (Tensor::ones(2)?, Tensor::zeros(2)?);
/// let y = Tensor::from_vec(vec![1.0f32, -1.0], 2)?;
/// assert_eq!(nn::MarginRankingLoss::default().forward(&a, &b, &y)?.item()?, 0.5);
/// # Ok::<(), fx_nn::Error>(())
/// ```
#[derive(Module, Clone, Debug)]
pub struct MarginRankingLoss {
    /// By how much it is to be larger: 0.
    pub margin: f64,
    /// `"mean"`, `"sum"` or `"none"`.
    pub reduction: String,
}

impl Default for MarginRankingLoss {
    fn default() -> Self {
        MarginRankingLoss {
            margin: 0.0,
            reduction: "mean".into(),
        }
    }
}

options!(MarginRankingLoss { margin: f64, reduction: impl Into<String> });

#[trace(leaf, path = "fx_nn::nn::MarginRankingLoss")]
impl MarginRankingLoss {
    /// The loss.
    ///
    /// # Errors
    /// Returns an error if the tensors have different numbers of dims, the shapes do not broadcast,
    /// or none is float.
    pub fn forward(&self, input1: &Tensor, input2: &Tensor, target: &Tensor) -> Result<Tensor> {
        ops::margin_ranking_loss(input1, input2, target, self.margin, &self.reduction)
    }
}
