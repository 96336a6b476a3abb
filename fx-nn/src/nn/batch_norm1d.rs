//! `BatchNorm1d`: each channel of vectors or rows normalised by its statistics.

use fx_core::{Error, Module, Result, trace};

use super::batch_norm2d::{count_batch, no_batches};
use super::options::{kept, options};
use super::parameter;
use crate::ops;
use crate::tensor::Tensor;

/// y = (x - mean) / sqrt(var + eps) * weight + bias, for each channel of `x` `[N, C]` or `[N, C, L]`.
///
/// In training the statistics are the batch's, and the running ones follow them in place; in
/// evaluation they are the running ones.
///
/// ```
/// use fx_nn::prelude::*;
/// let mut layer = nn::BatchNorm1d::new(2)?;
/// let x = Tensor::from_vec(vec![1.0f32, 2.0, 3.0, 6.0], (2, 2))?;
/// // In training it normalises by the batch, and moves its statistics a tenth of the way.
/// let y = layer.forward(&x)?;
/// let expected = Tensor::from_vec(vec![-1.0f32, -1.0, 1.0, 1.0], (2, 2))?;
/// assert!(fx_nn::allclose(&y, &expected, 0.0, 1e-5)?.close);
/// // In evaluation it normalises by them: means 0.2 and 0.4, variances 1.1 and 1.7.
/// layer.eval();
/// let y = layer.forward(&x)?;
/// let expected = Tensor::from_vec(vec![0.762767f32, 1.227140, 2.669683, 4.294991], (2, 2))?;
/// assert!(fx_nn::allclose(&y, &expected, 0.0, 1e-5)?.close);
/// # Ok::<(), fx_nn::Error>(())
/// ```
#[derive(Module, Clone, Debug)]
pub struct BatchNorm1d {
    /// `[channels]`.
    pub weight: Option<Tensor>,
    /// `[channels]`.
    pub bias: Option<Tensor>,
    /// `[channels]`.
    #[module(buffer)]
    pub running_mean: Option<Tensor>,
    /// `[channels]`.
    #[module(buffer)]
    pub running_var: Option<Tensor>,
    /// How many batches the running statistics have seen: one `int64`.
    #[module(buffer)]
    pub num_batches_tracked: Option<Tensor>,
    /// Added to the variance: 1e-5.
    pub eps: f64,
    /// How far the running statistics move towards a batch's: 0.1.
    pub momentum: f64,
    /// Whether the batch's own statistics are used.
    pub training: bool,
}

impl BatchNorm1d {
    /// A layer in training mode: eps 1e-5, momentum 0.1.
    ///
    /// # Errors
    /// Returns an error if it does not fit into memory.
    pub fn new(channels: usize) -> Result<Self> {
        let shape = [channels];
        Ok(BatchNorm1d {
            weight: Some(parameter::constant(&shape, 1.0)?),
            bias: Some(parameter::constant(&shape, 0.0)?),
            running_mean: Some(Tensor::zeros(channels)?),
            running_var: Some(Tensor::ones(channels)?),
            num_batches_tracked: Some(no_batches()?),
            eps: 1e-5,
            momentum: 0.1,
            training: true,
        })
    }

    fn updates_statistics(&self) -> bool {
        self.training && self.running_mean.is_some()
    }
}

options!(BatchNorm1d {
    eps: f64,
    momentum: f64
});
kept!(BatchNorm1d {
    affine: [weight, bias],
    bias: [bias],
    track_running_stats: [running_mean, running_var, num_batches_tracked]
});

#[trace(leaf, impure = updates_statistics, path = "fx_nn::nn::BatchNorm1d")]
impl BatchNorm1d {
    /// Applies the layer.
    ///
    /// # Errors
    /// Returns an error if the channels of `x` do not fit.
    pub fn forward(&self, x: &Tensor) -> Result<Tensor> {
        if x.known_rank().is_some_and(|rank| !matches!(rank, 2 | 3)) {
            return Err(Error::msg(format_args!(
                "batch_norm1d: expected an input of 2 or 3 dims, [N, C] or [N, C, L], found shape {:?}",
                x.dims()?
            )));
        }
        let batch_statistics = self.training || self.running_mean.is_none();
        let y = ops::batch_norm(
            x,
            self.running_mean.as_ref(),
            self.running_var.as_ref(),
            self.weight.as_ref(),
            self.bias.as_ref(),
            batch_statistics,
            self.momentum,
            self.eps,
        )?;
        if self.updates_statistics() {
            count_batch(self.num_batches_tracked.as_ref())?;
        }
        Ok(y)
    }
}
