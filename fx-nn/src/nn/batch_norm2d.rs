//! `BatchNorm2d`: each channel normalised by its statistics.

use candle_core::Var;
use fx_core::{Error, Module, Result, trace};

use super::options::{kept, options};
use super::parameter;
use crate::device;
use crate::error::Fx;
use crate::ops;
use crate::tensor::Tensor;
use crate::tensor::writes::written;

/// y = (x - mean) / sqrt(var + eps) * weight + bias, for each channel of `x` `[N, C, H, W]`.
///
/// In training the statistics are the batch's, and the running ones follow them in place; in
/// evaluation they are the running ones.
///
/// ```
/// use fx_nn::prelude::*;
/// let mut layer = nn::BatchNorm2d::new(2)?;
/// let x = Tensor::from_vec(vec![1.0f32, 3.0, 2.0, 6.0], (1, 2, 2, 1))?;
/// // In training it normalises by the batch, and moves its statistics a tenth of the way.
/// let y = layer.forward(&x)?;
/// let expected = Tensor::from_vec(vec![-1.0f32, 1.0, -1.0, 1.0], (1, 2, 2, 1))?;
/// assert!(fx_nn::allclose(&y, &expected, 0.0, 1e-5)?.close);
/// // In evaluation it normalises by them: means 0.2 and 0.4, variances 1.1 and 1.7.
/// layer.eval();
/// let y = layer.forward(&x)?;
/// let expected = Tensor::from_vec(vec![0.762767f32, 2.669683, 1.227140, 4.294991], (1, 2, 2, 1))?;
/// assert!(fx_nn::allclose(&y, &expected, 0.0, 1e-5)?.close);
/// # Ok::<(), fx_nn::Error>(())
/// ```
#[derive(Module, Clone, Debug)]
pub struct BatchNorm2d {
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

impl BatchNorm2d {
    /// A layer in training mode: eps 1e-5, momentum 0.1.
    ///
    /// # Errors
    /// Returns an error if it does not fit into memory.
    pub fn new(channels: usize) -> Result<Self> {
        let shape = [channels];
        Ok(BatchNorm2d {
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

/// The count of a layer that has seen no batch.
pub(super) fn no_batches() -> Result<Tensor> {
    // A variable, because a tensor without dims can only be changed in place through one.
    let count = Var::new(0i64, &device::current()).fx()?;
    Ok(count.as_tensor().clone().into())
}

/// One batch more was seen, where that is counted and no trace runs.
pub(super) fn count_batch(count: Option<&Tensor>) -> Result<()> {
    let Some(count) = count else {
        return Ok(());
    };
    let Ok(count) = count.candle() else {
        return Ok(());
    };
    if count.is_variable() && !fx_core::trace::is_recording() {
        let next = count.ones_like().and_then(|one| count.add(&one)).fx()?;
        Var::from_tensor(count)
            .and_then(|var| var.set(&next.detach()))
            .fx()?;
        written(count);
    }
    Ok(())
}

options!(BatchNorm2d {
    eps: f64,
    momentum: f64
});
kept!(BatchNorm2d {
    affine: [weight, bias],
    bias: [bias],
    track_running_stats: [running_mean, running_var, num_batches_tracked]
});

#[trace(leaf, impure = updates_statistics, path = "fx_nn::nn::BatchNorm2d")]
impl BatchNorm2d {
    /// Applies the layer.
    ///
    /// # Errors
    /// Returns an error if the channels of `x` do not fit.
    pub fn forward(&self, x: &Tensor) -> Result<Tensor> {
        if x.known_rank().is_some_and(|rank| rank != 4) {
            return Err(Error::msg(format_args!(
                "batch_norm2d: expected an input of 4 dims [N, C, H, W], found shape {:?}",
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
