//! `CrossEntropyLoss`: how far scores are from classes.

use fx_core::{Module, Result, trace};

use crate::ops;
use crate::tensor::Tensor;

/// The cross entropy of scores `[N, C, ..]` and classes `[N, ..]` (`int64`), or probabilities `[N, C, ..]`.
///
/// ```
/// use fx_nn::prelude::*;
/// let loss = nn::CrossEntropyLoss::default();
/// let y = loss.forward(&Tensor::zeros((2, 4))?, &Tensor::from_vec(vec![1i64, 3], 2)?)?;
/// assert!((y.item()? - 4f64.ln()).abs() < 1e-6);
/// # Ok::<(), fx_nn::Error>(())
/// ```
#[derive(Module, Clone, Debug)]
pub struct CrossEntropyLoss {
    /// How much each class counts, `[C]`.
    #[module(buffer)]
    pub weight: Option<Tensor>,
    /// The class that does not count: -100.
    pub ignore_index: i64,
    /// `"mean"`, `"sum"` or `"none"`.
    pub reduction: String,
    /// The share of each target that is spread over all classes: 0.
    pub label_smoothing: f64,
}

impl Default for CrossEntropyLoss {
    fn default() -> Self {
        CrossEntropyLoss {
            weight: None,
            ignore_index: -100,
            reduction: "mean".into(),
            label_smoothing: 0.0,
        }
    }
}

#[trace(leaf, path = "fx_nn::nn::CrossEntropyLoss")]
impl CrossEntropyLoss {
    /// The loss.
    ///
    /// # Errors
    /// When the shapes do not fit, or a target is no class.
    pub fn forward(&self, input: &Tensor, target: &Tensor) -> Result<Tensor> {
        ops::cross_entropy(
            input,
            target,
            self.weight.as_ref(),
            self.ignore_index,
            &self.reduction,
            self.label_smoothing,
        )
    }
}
