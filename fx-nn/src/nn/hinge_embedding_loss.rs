//! `HingeEmbeddingLoss`: distances that are small or large.

use fx_core::{Module, Result, trace};

use super::options::options;
use crate::ops;
use crate::tensor::Tensor;

/// x where the target is 1, max(0, margin - x) where it is -1.
///
/// ```
/// use fx_nn::prelude::*;
/// let x = Tensor::from_vec(vec![0.5f32, 0.25], 2)?;
/// let y = Tensor::from_vec(vec![1.0f32, -1.0], 2)?;
/// assert_eq!(nn::HingeEmbeddingLoss::default().forward(&x, &y)?.item()?, 0.625);
/// # Ok::<(), fx_nn::Error>(())
/// ```
#[derive(Module, Clone, Debug)]
pub struct HingeEmbeddingLoss {
    /// How far apart others are to be: 1.
    pub margin: f64,
    /// `"mean"`, `"sum"` or `"none"`.
    pub reduction: String,
}

impl Default for HingeEmbeddingLoss {
    fn default() -> Self {
        HingeEmbeddingLoss {
            margin: 1.0,
            reduction: "mean".into(),
        }
    }
}

options!(HingeEmbeddingLoss { margin: f64, reduction: impl Into<String> });

#[trace(leaf, path = "fx_nn::nn::HingeEmbeddingLoss")]
impl HingeEmbeddingLoss {
    /// The loss.
    ///
    /// # Errors
    /// Returns an error if the shapes do not broadcast, or the input is not float.
    pub fn forward(&self, input: &Tensor, target: &Tensor) -> Result<Tensor> {
        ops::hinge_embedding_loss(input, target, self.margin, &self.reduction)
    }
}
