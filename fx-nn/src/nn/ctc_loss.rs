//! `CTCLoss`: the loss of sequences whose alignment is not known.

use fx_core::{Module, Result, trace};

use super::options::options;
use crate::ops;
use crate::tensor::{Sizes, Tensor};

/// How unlikely targets are over all their alignments; [`ops::ctc_loss`] has the formula.
///
/// ```
/// use fx_nn::prelude::*;
/// let half = Tensor::full((2, 1, 2), 0.5f64.ln(), DType::F32)?;
/// let target = Tensor::from_vec(vec![1i64], (1, 1))?;
/// let loss = nn::CTCLoss::default().reduction("sum").forward(&half, &target, [2], [1])?;
/// assert!((loss.item()? + 0.75f64.ln()).abs() < 1e-6);
/// # Ok::<(), fx_nn::Error>(())
/// ```
#[derive(Module, Clone, Debug)]
pub struct CTCLoss {
    /// The blank class, which separates others: 0.
    pub blank: i64,
    /// `"mean"`, `"sum"` or `"none"`: `"mean"`.
    pub reduction: String,
    /// Whether a loss is 0 where no alignment fits: no.
    pub zero_infinity: bool,
}

impl Default for CTCLoss {
    fn default() -> Self {
        CTCLoss {
            blank: 0,
            reduction: "mean".into(),
            zero_infinity: false,
        }
    }
}

options!(CTCLoss { blank: i64, reduction: impl Into<String>, zero_infinity: bool });

#[trace(leaf, path = "fx_nn::nn::CTCLoss")]
impl CTCLoss {
    /// The loss of `log_probs` `[T, N, C]` (or `[T, C]`) and `targets` `[N, S]` (or `[S]`), which are as long as the lengths
    /// say.
    ///
    /// # Errors
    /// Returns the errors of [`ops::ctc_loss`].
    pub fn forward(
        &self,
        log_probs: &Tensor,
        targets: &Tensor,
        input_lengths: impl Into<Sizes>,
        target_lengths: impl Into<Sizes>,
    ) -> Result<Tensor> {
        ops::ctc_loss(
            log_probs,
            targets,
            input_lengths,
            target_lengths,
            self.blank,
            &self.reduction,
            self.zero_infinity,
        )
    }
}
