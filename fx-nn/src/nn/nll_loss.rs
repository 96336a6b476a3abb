//! `NLLLoss`: how unlikely classes are.

use fx_core::{Module, Result, trace};

use super::options::options;
use crate::ops;
use crate::tensor::Tensor;

/// Minus the log-probabilities `[N, C, ..]` of the classes `[N, ..]` (`int64`).
///
/// ```
/// use fx_nn::prelude::*;
/// let logs = Tensor::from_vec(vec![-0.5f32, -1.0, -2.0, -0.25], (2, 2))?;
/// let classes = Tensor::from_vec(vec![1i64, 1], 2)?;
/// assert_eq!(nn::NLLLoss::default().forward(&logs, &classes)?.item()?, 0.625);
/// # Ok::<(), fx_nn::Error>(())
/// ```
#[derive(Module, Clone, Debug)]
pub struct NLLLoss {
    /// How much each class counts, `[C]`.
    #[module(buffer)]
    pub weight: Option<Tensor>,
    /// The class that does not count: -100.
    pub ignore_index: i64,
    /// `"mean"`, `"sum"` or `"none"`.
    pub reduction: String,
}

impl Default for NLLLoss {
    fn default() -> Self {
        NLLLoss {
            weight: None,
            ignore_index: -100,
            reduction: "mean".into(),
        }
    }
}

options!(NLLLoss { weight: impl Into<Option<Tensor>>, ignore_index: i64, reduction: impl Into<String> });

#[trace(leaf, path = "fx_nn::nn::NLLLoss")]
impl NLLLoss {
    /// The loss.
    ///
    /// # Errors
    /// Returns an error if the shapes do not fit, or a target is not a class.
    pub fn forward(&self, input: &Tensor, target: &Tensor) -> Result<Tensor> {
        ops::nll_loss(
            input,
            target,
            self.weight.as_ref(),
            self.ignore_index,
            &self.reduction,
        )
    }
}
