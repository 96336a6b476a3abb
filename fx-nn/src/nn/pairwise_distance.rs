//! `PairwiseDistance`: the distances of rows.

use fx_core::{Module, Result, trace};

use crate::ops;
use crate::tensor::Tensor;

/// The `norm`-norm of x1 - x2 + eps along the last dim.
///
/// ```
/// use fx_nn::prelude::*;
/// let (x, y) = (Tensor::from_vec(vec![3.0f64, 4.0], (1, 2))?, Tensor::from_vec(vec![0.0f64, 0.0], (1, 2))?);
/// let far = nn::PairwiseDistance::default().forward(&x, &y)?.item()?;
/// assert!((far - 5.0).abs() < 1e-5);
/// # Ok::<(), fx_nn::Error>(())
/// ```
#[derive(Module, Clone, Debug)]
pub struct PairwiseDistance {
    /// The norm: 2.
    pub norm: f64,
    /// What is added to differences: 1e-6.
    pub eps: f64,
    /// Whether the last dim stays, with size 1: false.
    pub keepdim: bool,
}

impl Default for PairwiseDistance {
    fn default() -> Self {
        PairwiseDistance {
            norm: 2.0,
            eps: 1e-6,
            keepdim: false,
        }
    }
}

#[trace(leaf, path = "fx_nn::nn::PairwiseDistance")]
impl PairwiseDistance {
    /// Applies the layer.
    ///
    /// # Errors
    /// When the shapes do not broadcast, or neither tensor is float.
    pub fn forward(&self, x1: &Tensor, x2: &Tensor) -> Result<Tensor> {
        ops::pairwise_distance(x1, x2, self.norm, self.eps, self.keepdim)
    }
}
