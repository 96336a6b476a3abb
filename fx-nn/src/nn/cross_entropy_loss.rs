//! `CrossEntropyLoss`: how far scores are from classes.

use fx_core::{Module, Result, trace};

use super::options::options;
use crate::ops;
use crate::tensor::Tensor;

/// The cross entropy of scores `[N, C, ..]` and classes `[N, ..]` (`int64`), or probabilities `[N, C, ..]`.
///
/// ```
/// use fx_nn::prelude::*;
/// // Probabilities of 1/4 and 3/4, twice: once the first is right, once the second.
/// let scores = Tensor::from_vec(vec![0.0, 3f32.ln(), 0.0, 3f32.ln()], (2, 2))?;
/// let classes = Tensor::from_vec(vec![0i64, 1], 2)?;
/// let loss = nn::CrossEntropyLoss::default().forward(&scores, &classes)?;
/// assert!((loss.item()? - (4f64.ln() + (4f64 / 3.0).ln()) / 2.0).abs() < 1e-6);
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

options!(CrossEntropyLoss { weight: impl Into<Option<Tensor>>, ignore_index: i64, reduction: impl Into<String>, label_smoothing: f64 });

#[trace(leaf, path = "fx_nn::nn::CrossEntropyLoss")]
impl CrossEntropyLoss {
    /// The loss.
    ///
    /// # Errors
    /// Returns an error if the shapes do not fit, or a target is not a class.
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
