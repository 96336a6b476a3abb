//! Normalisation: softmax over a dim, batch norm over channels, layer, group and RMS norm over each sample.

use crate::op;
use fx_core::Result;

use crate::error::{Fx, require};
use crate::kernels::scale::Scale;
use crate::kernels::{dim, layer_norm as sample, norm, softmax as kernels, write};
use crate::tensor::writes::written;
use crate::tensor::{Shape, Tensor};

/// exp(x) over its sum along `dim`.
///
/// # Errors
/// Returns an error if there is no such dim.
#[op(along, method, path = "fx_nn::ops::softmax")]
pub fn softmax(x: &Tensor, #[kw] dim: i64) -> Result<Tensor> {
    let data = x.data("softmax")?;
    dim::dim("softmax", dim, data.rank())
        .and_then(|dim| kernels::softmax(data, dim))
        .map(Tensor::made)
        .fx()
}

/// The logarithm of [`softmax`], computed stably.
///
/// # Errors
/// Returns an error if there is no such dim.
#[op(along, method, path = "fx_nn::ops::log_softmax")]
pub fn log_softmax(x: &Tensor, #[kw] dim: i64) -> Result<Tensor> {
    let data = x.data("log_softmax")?;
    dim::dim("log_softmax", dim, data.rank())
        .and_then(|dim| kernels::log_softmax(data, dim))
        .map(Tensor::made)
        .fx()
}

/// Normalises each channel (dim 1) of `x`: by the batch's statistics in training, which then move the
/// running ones by `momentum`, else by the running ones.
///
/// Half precision (`bfloat16`, `float16`) with parameters and statistics in `float32` is computed
/// in `float32`, and the result has the type of `x`.
///
/// # Errors
/// Returns an error if the shapes do not fit, or there are no statistics to use.
#[op(norm, member, impure = training, path = "fx_nn::ops::batch_norm")]
#[allow(clippy::too_many_arguments, reason = "PyTorch's parameters")]
pub fn batch_norm(
    x: &Tensor,
    running_mean: Option<&Tensor>,
    running_var: Option<&Tensor>,
    weight: Option<&Tensor>,
    bias: Option<&Tensor>,
    #[default(false)] training: bool,
    #[default(0.1)] momentum: f64,
    #[default(1e-5)] eps: f64,
) -> Result<Tensor> {
    let data = x.data("batch_norm")?;
    let optional = |t: Option<&Tensor>| -> Result<Option<candle_core::Tensor>> {
        t.map(|t| t.data("batch_norm").cloned()).transpose()
    };
    let (mean, var) = (optional(running_mean)?, optional(running_var)?);
    let (weight, bias) = (optional(weight)?, optional(bias)?);
    require("batch_norm", mean.is_some() == var.is_some())?;
    let y = norm::batch_norm(
        data,
        mean.as_ref(),
        var.as_ref(),
        weight.as_ref(),
        bias.as_ref(),
        training,
        eps,
    )
    .fx()?;
    if training
        && data.elem_count() > 0
        && let (Some(mean), Some(var)) = (&mean, &var)
    {
        // PyTorch keeps the unbiased variance, though it normalises by the biased one.
        let (batch_mean, batch_var) = norm::batch_stats(&data.detach()).fx()?;
        move_towards("batch_norm", mean, &batch_mean, momentum).fx()?;
        move_towards("batch_norm", var, &batch_var, momentum).fx()?;
    }
    Ok(y.into())
}

/// running = (1 - momentum) running + momentum batch, in place.
pub(super) fn move_towards(
    op: &str,
    running: &candle_core::Tensor,
    batch: &candle_core::Tensor,
    momentum: f64,
) -> candle_core::Result<()> {
    let before = running.to_dtype(batch.dtype())?;
    let moved = (before.times(1.0 - momentum)? + batch.times(momentum)?)?;
    write::write(op, running, &moved.to_dtype(running.dtype())?)?;
    written(running);
    Ok(())
}

/// (x - mean) / sqrt(var + eps) · weight + bias over the last dims, which are `normalized_shape`.
///
/// # Errors
/// Returns an error if the last dims of `x`, `weight` or `bias` differ.
#[op(norm, path = "fx_nn::ops::layer_norm")]
pub fn layer_norm(
    x: &Tensor,
    normalized_shape: impl Into<Shape>,
    weight: Option<&Tensor>,
    bias: Option<&Tensor>,
    #[default(1e-5)] eps: f64,
) -> Result<Tensor> {
    let weight = weight.map(|w| w.data("layer_norm")).transpose()?;
    let bias = bias.map(|b| b.data("layer_norm")).transpose()?;
    let mut params = [weight, bias].into_iter().flatten();
    require("layer_norm", params.all(|t| t.dims() == normalized_shape.0))?;
    sample::layer_norm(
        x.data("layer_norm")?,
        &normalized_shape.0,
        weight,
        bias,
        eps,
    )
    .map(Tensor::made)
    .fx()
}

/// x / sqrt(mean(x²) + eps) · weight over the last dims, which are `normalized_shape`.
///
/// # Errors
/// Returns an error if the last dims of `x` or `weight` differ.
#[op(norm, path = "fx_nn::ops::rms_norm")]
pub fn rms_norm(
    x: &Tensor,
    normalized_shape: impl Into<Shape>,
    weight: Option<&Tensor>,
    #[default(1e-6)] eps: f64,
) -> Result<Tensor> {
    let weight = weight.map(|w| w.data("rms_norm")).transpose()?;
    let fits = weight.is_none_or(|t| t.dims() == normalized_shape.0);
    require("rms_norm", fits)?;
    sample::rms_norm(x.data("rms_norm")?, &normalized_shape.0, weight, eps)
        .map(Tensor::made)
        .fx()
}

/// Layer norm over each of `num_groups` groups of the channels of `x` `[N, C, ..]`, then `weight` and `bias` `[C]`.
///
/// # Errors
/// Returns an error if `num_groups` does not divide the channels, or the shapes do not fit.
#[op(norm, path = "fx_nn::ops::group_norm")]
pub fn group_norm(
    x: &Tensor,
    num_groups: usize,
    weight: Option<&Tensor>,
    bias: Option<&Tensor>,
    #[default(1e-5)] eps: f64,
) -> Result<Tensor> {
    let weight = weight.map(|w| w.data("group_norm")).transpose()?;
    let bias = bias.map(|b| b.data("group_norm")).transpose()?;
    sample::group_norm(x.data("group_norm")?, num_groups, weight, bias, eps)
        .map(Tensor::made)
        .fx()
}
