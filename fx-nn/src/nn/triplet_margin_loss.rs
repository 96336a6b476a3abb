//! `TripletMarginLoss`: distances to a positive and to a negative sample.

use fx_core::{Module, Result, trace};

use super::options::options;
use crate::ops;
use crate::tensor::Tensor;

/// max(0, margin + |anchor - positive| - |anchor - negative|), of `p`-norms along the last dim.
///
/// ```
/// use fx_nn::prelude::*;
/// let (a, far) = (Tensor::zeros((1, 1))?, Tensor::from_vec(vec![0.75f32], (1, 1))?);
/// let loss = nn::TripletMarginLoss::default().forward(&a, &a, &far)?.item()?;
/// assert!((loss - 0.25).abs() < 1e-5);
/// # Ok::<(), fx_nn::Error>(())
/// ```
#[derive(Module, Clone, Debug)]
pub struct TripletMarginLoss {
    /// How much farther the negative is to be: 1.
    pub margin: f64,
    /// The norm: 2.
    pub p: f64,
    /// The number added to differences: 1e-6.
    pub eps: f64,
    /// Whether the negative's distance is from the nearer of both: false.
    pub swap: bool,
    /// `"mean"`, `"sum"` or `"none"`.
    pub reduction: String,
}

impl Default for TripletMarginLoss {
    fn default() -> Self {
        TripletMarginLoss {
            margin: 1.0,
            p: 2.0,
            eps: 1e-6,
            swap: false,
            reduction: "mean".into(),
        }
    }
}

options!(TripletMarginLoss { margin: f64, p: f64, eps: f64, swap: bool, reduction: impl Into<String> });

#[trace(leaf, path = "fx_nn::nn::TripletMarginLoss")]
impl TripletMarginLoss {
    /// The loss.
    ///
    /// # Errors
    /// Returns an error if the tensors have different numbers of dims, the shapes do not broadcast,
    /// or none is float.
    pub fn forward(&self, anchor: &Tensor, positive: &Tensor, negative: &Tensor) -> Result<Tensor> {
        ops::triplet_margin_loss(
            anchor,
            positive,
            negative,
            self.margin,
            self.p,
            self.eps,
            self.swap,
            &self.reduction,
        )
    }
}
