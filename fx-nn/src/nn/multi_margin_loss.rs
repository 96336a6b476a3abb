//! `MultiMarginLoss`: the margin of a class.

use fx_core::{Module, Result, trace};

use super::options::options;
use crate::ops;
use crate::tensor::Tensor;

/// The mean over classes of `max(0, margin - x[target] + x[i])^p` for all `i` but the target.
///
/// ```
/// use fx_nn::prelude::*;
/// let x = Tensor::from_vec(vec![0.0f32, 0.5, 0.0, 0.0], (1, 4))?;
/// let class = Tensor::from_vec(vec![1i64], 1)?;
/// assert_eq!(nn::MultiMarginLoss::default().forward(&x, &class)?.item()?, 0.375);
/// # Ok::<(), fx_nn::Error>(())
/// ```
#[derive(Module, Clone, Debug)]
pub struct MultiMarginLoss {
    /// The power, 1 or 2: 1.
    pub p: i64,
    /// How far behind others are to be: 1.
    pub margin: f64,
    /// How much each class counts, `[C]`.
    #[module(buffer)]
    pub weight: Option<Tensor>,
    /// `"mean"`, `"sum"` or `"none"`.
    pub reduction: String,
}

impl Default for MultiMarginLoss {
    fn default() -> Self {
        MultiMarginLoss {
            p: 1,
            margin: 1.0,
            weight: None,
            reduction: "mean".into(),
        }
    }
}

options!(MultiMarginLoss { p: i64, margin: f64, weight: impl Into<Option<Tensor>>, reduction: impl Into<String> });

#[trace(leaf, path = "fx_nn::nn::MultiMarginLoss")]
impl MultiMarginLoss {
    /// The loss.
    ///
    /// # Errors
    /// Returns an error if the shapes do not fit, a target is not a class, or the input is neither
    /// `float32` nor `float64`.
    pub fn forward(&self, input: &Tensor, target: &Tensor) -> Result<Tensor> {
        ops::multi_margin_loss(
            input,
            target,
            self.p,
            self.margin,
            self.weight.as_ref(),
            &self.reduction,
        )
    }
}
