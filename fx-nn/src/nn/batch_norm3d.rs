//! `BatchNorm3d`: each channel of volumes normalised by its statistics.

use fx_core::{Error, Module, Result, trace};

use super::batch_norm2d::{count_batch, no_batches};
use super::options::{kept, options};
use super::parameter;
use crate::ops;
use crate::tensor::Tensor;

/// y = (x - mean) / sqrt(var + eps) * weight + bias, for each channel of `x` `[N, C, D, H, W]`.
///
/// In training the statistics are the batch's, and the running ones follow them in place; in
/// evaluation they are the running ones.
#[derive(Module, Clone, Debug)]
pub struct BatchNorm3d {
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

impl BatchNorm3d {
    /// A layer in training mode: eps 1e-5, momentum 0.1.
    ///
    /// # Errors
    /// Returns an error if it does not fit into memory.
    pub fn new(channels: usize) -> Result<Self> {
        let shape = [channels];
        Ok(BatchNorm3d {
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

options!(BatchNorm3d {
    eps: f64,
    momentum: f64
});
kept!(BatchNorm3d {
    affine: [weight, bias],
    bias: [bias],
    track_running_stats: [running_mean, running_var, num_batches_tracked]
});

#[trace(leaf, impure = updates_statistics, path = "fx_nn::nn::BatchNorm3d")]
impl BatchNorm3d {
    /// Applies the layer.
    ///
    /// # Errors
    /// Returns an error if the channels of `x` do not fit.
    pub fn forward(&self, x: &Tensor) -> Result<Tensor> {
        if x.known_rank().is_some_and(|rank| rank != 5) {
            return Err(Error::msg(format_args!(
                "batch_norm3d: expected an input of 5 dims, [N, C, D, H, W], found shape {:?}",
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
