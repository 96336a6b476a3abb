//! `MultiLabelSoftMarginLoss`: the cross entropies of several classes.

use fx_core::{Module, Result, trace};

use super::options::options;
use crate::ops;
use crate::tensor::Tensor;

/// The mean over classes of the cross entropy of scores `[.., C]` and shares.
///
/// ```
/// use fx_nn::prelude::*;
/// let x = Tensor::zeros((2, 2))?;
/// let is = Tensor::ones((2, 2))?;
/// let loss = nn::MultiLabelSoftMarginLoss::default().forward(&x, &is)?.item()?;
/// assert!((loss - 2f64.ln()).abs() < 1e-6);
/// # Ok::<(), fx_nn::Error>(())
/// ```
#[derive(Module, Clone, Debug)]
pub struct MultiLabelSoftMarginLoss {
    /// How much each class counts, `[C]`.
    #[module(buffer)]
    pub weight: Option<Tensor>,
    /// `"mean"`, `"sum"` or `"none"`.
    pub reduction: String,
}

impl Default for MultiLabelSoftMarginLoss {
    fn default() -> Self {
        MultiLabelSoftMarginLoss {
            weight: None,
            reduction: "mean".into(),
        }
    }
}

options!(MultiLabelSoftMarginLoss { weight: impl Into<Option<Tensor>>, reduction: impl Into<String> });

#[trace(leaf, path = "fx_nn::nn::MultiLabelSoftMarginLoss")]
impl MultiLabelSoftMarginLoss {
    /// The loss.
    ///
    /// # Errors
    /// Returns an error if the shapes do not broadcast, or the input is not float.
    pub fn forward(&self, input: &Tensor, target: &Tensor) -> Result<Tensor> {
        ops::multilabel_soft_margin_loss(input, target, self.weight.as_ref(), &self.reduction)
    }
}
