//! `SmoothL1Loss`: squares near 0, straight lines beyond.

use fx_core::{Module, Result, trace};

use super::options::options;
use crate::ops;
use crate::tensor::Tensor;

/// Half the squared difference over `beta` up to `beta`, a straight line beyond it.
///
/// ```
/// use fx_nn::prelude::*;
/// let x = Tensor::from_vec(vec![0.5f32, 3.0], 2)?;
/// let y = Tensor::zeros(2)?;
/// assert_eq!(nn::SmoothL1Loss::default().forward(&x, &y)?.item()?, 1.3125);
/// # Ok::<(), fx_nn::Error>(())
/// ```
#[derive(Module, Clone, Debug)]
pub struct SmoothL1Loss {
    /// `"mean"`, `"sum"` or `"none"`.
    pub reduction: String,
    /// Where the line begins: 1.
    pub beta: f64,
}

impl Default for SmoothL1Loss {
    fn default() -> Self {
        SmoothL1Loss {
            reduction: "mean".into(),
            beta: 1.0,
        }
    }
}

options!(SmoothL1Loss { reduction: impl Into<String>, beta: f64 });

#[trace(leaf, path = "fx_nn::nn::SmoothL1Loss")]
impl SmoothL1Loss {
    /// The loss.
    ///
    /// # Errors
    /// Returns an error if the shapes do not broadcast, or neither tensor is float.
    pub fn forward(&self, input: &Tensor, target: &Tensor) -> Result<Tensor> {
        ops::smooth_l1_loss(input, target, &self.reduction, self.beta)
    }
}
