//! `CosineSimilarity`: the cosines of rows.

use fx_core::{Module, Result, trace};

use crate::ops;
use crate::tensor::Tensor;

/// The cosines of the angles between vectors along `dim`.
///
/// ```
/// use fx_nn::prelude::*;
/// let x = Tensor::from_vec(vec![3.0f64, 4.0], (1, 2))?;
/// let y = Tensor::from_vec(vec![4.0f64, 3.0], (1, 2))?;
/// let cos = nn::CosineSimilarity::default().forward(&x, &y)?.item()?;
/// assert!((cos - 0.96).abs() < 1e-12);
/// # Ok::<(), fx_nn::Error>(())
/// ```
#[derive(Module, Clone, Debug)]
pub struct CosineSimilarity {
    /// The dim of the vectors: 1.
    pub dim: i64,
    /// The least product of lengths: 1e-8.
    pub eps: f64,
}

impl Default for CosineSimilarity {
    fn default() -> Self {
        CosineSimilarity { dim: 1, eps: 1e-8 }
    }
}

#[trace(leaf, path = "fx_nn::nn::CosineSimilarity")]
impl CosineSimilarity {
    /// Applies the layer.
    ///
    /// # Errors
    /// When the shapes do not broadcast, or there is no such dim.
    pub fn forward(&self, x1: &Tensor, x2: &Tensor) -> Result<Tensor> {
        ops::cosine_similarity(x1, x2, self.dim, self.eps)
    }
}
