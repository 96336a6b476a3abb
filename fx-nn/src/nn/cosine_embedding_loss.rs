//! `CosineEmbeddingLoss`: the angles of rows.

use fx_core::{Module, Result, trace};

use super::options::options;
use crate::ops;
use crate::tensor::Tensor;

/// 1 - cos where the target is 1, max(0, cos - margin) where it is -1.
///
/// ```
/// use fx_nn::prelude::*;
/// let x = Tensor::from_vec(vec![1.0f64, 0.0], (1, 2))?;
/// let y = Tensor::from_vec(vec![0.0f64, 1.0], (1, 2))?;
/// let near = Tensor::from_vec(vec![1.0f64], 1)?;
/// assert_eq!(nn::CosineEmbeddingLoss::default().forward(&x, &y, &near)?.item()?, 1.0);
/// # Ok::<(), fx_nn::Error>(())
/// ```
#[derive(Module, Clone, Debug)]
pub struct CosineEmbeddingLoss {
    /// The cosine that others may have: 0.
    pub margin: f64,
    /// `"mean"`, `"sum"` or `"none"`.
    pub reduction: String,
}

impl Default for CosineEmbeddingLoss {
    fn default() -> Self {
        CosineEmbeddingLoss {
            margin: 0.0,
            reduction: "mean".into(),
        }
    }
}

options!(CosineEmbeddingLoss { margin: f64, reduction: impl Into<String> });

#[trace(leaf, path = "fx_nn::nn::CosineEmbeddingLoss")]
impl CosineEmbeddingLoss {
    /// The loss.
    ///
    /// # Errors
    /// Returns an error if the shapes do not fit, or no tensor is float.
    pub fn forward(&self, input1: &Tensor, input2: &Tensor, target: &Tensor) -> Result<Tensor> {
        ops::cosine_embedding_loss(input1, input2, target, self.margin, &self.reduction)
    }
}
