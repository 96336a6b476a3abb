//! `L1Loss`: the absolute differences.

use fx_core::{Module, Result, trace};

use super::options::options;
use crate::ops;
use crate::tensor::Tensor;

/// The absolute differences of two tensors, or their mean or sum.
///
/// ```
/// use fx_nn::prelude::*;
/// let x = Tensor::from_vec(vec![1.0f32, 2.0], 2)?;
/// let y = Tensor::from_vec(vec![4.0f32, 1.0], 2)?;
/// assert_eq!(nn::L1Loss::default().forward(&x, &y)?.item()?, 2.0);
/// # Ok::<(), fx_nn::Error>(())
/// ```
#[derive(Module, Clone, Debug)]
pub struct L1Loss {
    /// `"mean"`, `"sum"` or `"none"`.
    pub reduction: String,
}

impl Default for L1Loss {
    fn default() -> Self {
        L1Loss {
            reduction: "mean".into(),
        }
    }
}

options!(L1Loss { reduction: impl Into<String> });

#[trace(leaf, path = "fx_nn::nn::L1Loss")]
impl L1Loss {
    /// The loss.
    ///
    /// # Errors
    /// Returns an error if the shapes do not broadcast.
    pub fn forward(&self, input: &Tensor, target: &Tensor) -> Result<Tensor> {
        ops::l1_loss(input, target, &self.reduction)
    }
}
