//! `MultiLabelMarginLoss`: the margins of several classes.

use fx_core::{Module, Result, trace};

use super::options::options;
use crate::ops;
use crate::tensor::Tensor;

/// The mean over classes of `max(0, 1 - x[t] + x[i])` for all targets `t`, up to the first -1, and all other classes.
///
/// ```
/// use fx_nn::prelude::*;
/// let x = Tensor::from_vec(vec![0.0f32, 0.5], 2)?;
/// let classes = Tensor::from_vec(vec![1i64, -1], 2)?;
/// assert_eq!(nn::MultiLabelMarginLoss::default().forward(&x, &classes)?.item()?, 0.25);
/// # Ok::<(), fx_nn::Error>(())
/// ```
#[derive(Module, Clone, Debug)]
pub struct MultiLabelMarginLoss {
    /// `"mean"`, `"sum"` or `"none"`.
    pub reduction: String,
}

impl Default for MultiLabelMarginLoss {
    fn default() -> Self {
        MultiLabelMarginLoss {
            reduction: "mean".into(),
        }
    }
}

options!(MultiLabelMarginLoss { reduction: impl Into<String> });

#[trace(leaf, path = "fx_nn::nn::MultiLabelMarginLoss")]
impl MultiLabelMarginLoss {
    /// The loss.
    ///
    /// # Errors
    /// Returns an error if the shapes differ, a target is not a class, or the input is neither
    /// `float32` nor `float64`.
    pub fn forward(&self, input: &Tensor, target: &Tensor) -> Result<Tensor> {
        ops::multilabel_margin_loss(input, target, &self.reduction)
    }
}
