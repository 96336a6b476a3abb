//! `HuberLoss`: squares near 0, straight lines beyond.

use fx_core::{Module, Result, trace};

use super::options::options;
use crate::ops;
use crate::tensor::Tensor;

/// Half the squared difference up to `delta`, a straight line of slope `delta` beyond it.
///
/// ```
/// use fx_nn::prelude::*;
/// let x = Tensor::from_vec(vec![0.5f32, 3.0], 2)?;
/// let y = Tensor::zeros(2)?;
/// assert_eq!(nn::HuberLoss::default().forward(&x, &y)?.item()?, 1.3125);
/// # Ok::<(), fx_nn::Error>(())
/// ```
#[derive(Module, Clone, Debug)]
pub struct HuberLoss {
    /// `"mean"`, `"sum"` or `"none"`.
    pub reduction: String,
    /// Where the line begins: 1.
    pub delta: f64,
}

impl Default for HuberLoss {
    fn default() -> Self {
        HuberLoss {
            reduction: "mean".into(),
            delta: 1.0,
        }
    }
}

options!(HuberLoss { reduction: impl Into<String>, delta: f64 });

#[trace(leaf, path = "fx_nn::nn::HuberLoss")]
impl HuberLoss {
    /// The loss.
    ///
    /// # Errors
    /// Returns an error if the shapes do not broadcast, or neither tensor is float.
    pub fn forward(&self, input: &Tensor, target: &Tensor) -> Result<Tensor> {
        ops::huber_loss(input, target, &self.reduction, self.delta)
    }
}
