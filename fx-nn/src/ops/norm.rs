//! Normalisation: softmax over a dim, batch norm over channels.

use fx_core::{Error, Result, wrap};

use crate::error::Fx;
use crate::kernels::{dim, norm, softmax as kernels};
use crate::tensor::Tensor;

/// exp(x) over its sum along `dim`.
///
/// # Errors
/// When there is no such dim.
#[wrap(method, path = "fx_nn::ops::softmax")]
pub fn softmax(x: &Tensor, #[kw] dim: i64) -> Result<Tensor> {
    let data = x.data("softmax")?;
    dim::dim("softmax", dim, data.rank())
        .and_then(|dim| kernels::softmax(data, dim))
        .map(Tensor::from)
        .fx()
}

/// The logarithm of [`softmax`], computed stably.
///
/// # Errors
/// When there is no such dim.
#[wrap(method, path = "fx_nn::ops::log_softmax")]
pub fn log_softmax(x: &Tensor, #[kw] dim: i64) -> Result<Tensor> {
    let data = x.data("log_softmax")?;
    dim::dim("log_softmax", dim, data.rank())
        .and_then(|dim| kernels::log_softmax(data, dim))
        .map(Tensor::from)
        .fx()
}

/// Normalises each channel (dim 1) of `x`: by the batch's statistics in training, which then move the
/// running ones by `momentum`, else by the running ones.
///
/// # Errors
/// When the shapes do not fit, or there are no statistics to use.
#[wrap(impure, path = "fx_nn::ops::batch_norm")]
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
    if !training {
        return norm::batch_norm(
            data,
            mean.as_ref(),
            var.as_ref(),
            weight.as_ref(),
            bias.as_ref(),
            false,
            eps,
        )
        .map(Tensor::from)
        .fx();
    }
    let channels = data.dims().get(1).copied().unwrap_or(1);
    let count = data.elem_count() / channels.max(1);
    if count < 2 {
        return Err(Error::msg(format_args!(
            "batch_norm: training needs more than one value per channel, and an input of shape {:?} has {count}",
            data.dims()
        )));
    }
    for (name, held) in [
        ("running_mean", &mean),
        ("running_var", &var),
        ("weight", &weight),
        ("bias", &bias),
    ] {
        if let Some(held) = held
            && held.dims() != [channels]
        {
            return Err(Error::msg(format_args!(
                "batch_norm: {name} {:?} does not fit input {:?}, it must be [{channels}]",
                held.dims(),
                data.dims()
            )));
        }
    }
    let (batch_mean, batch_var) = norm::batch_stats(data).fx()?;
    if let (Some(mean), Some(var)) = (&mean, &var) {
        // PyTorch keeps the unbiased variance, though it normalises by the biased one.
        let unbiased = count as f64 / (count as f64 - 1.0).max(1.0);
        move_towards(mean, &batch_mean.detach(), momentum).fx()?;
        move_towards(
            var,
            &batch_var.detach().affine(unbiased, 0.0).fx()?,
            momentum,
        )
        .fx()?;
    }
    norm::normalize(
        data,
        &batch_mean,
        &batch_var,
        weight.as_ref(),
        bias.as_ref(),
        eps,
    )
    .map(Tensor::from)
    .fx()
}

/// running = (1 - momentum) running + momentum batch, in place.
fn move_towards(
    running: &candle_core::Tensor,
    batch: &candle_core::Tensor,
    momentum: f64,
) -> candle_core::Result<()> {
    let moved = (running.affine(1.0 - momentum, 0.0)? + batch.affine(momentum, 0.0)?)?;
    running.slice_set(&moved, 0, 0)
}
