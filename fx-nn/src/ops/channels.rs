//! Normalisation of each sample's channels by themselves, and by their neighbours.

use crate::op;
use fx_core::Result;

use super::norms::{batch_norm, group_norm, move_towards};
use crate::error::{Fx, require, unfit};
use crate::kernels::avg_pool::avg_pool2d;
use crate::kernels::{binary, norm, pad, widen};
use crate::tensor::Tensor;

/// Normalises each channel of each sample of `x` `[N, C, ..]`: by its own statistics with `use_input_stats`, whose means
/// then move the running ones by `momentum`, else by the running ones.
///
/// # Errors
/// Returns an error if the shapes do not fit, a channel has only one element, or there are no
/// statistics to use.
#[op(norm, member, impure = use_input_stats, path = "fx_nn::ops::instance_norm")]
#[allow(clippy::too_many_arguments, reason = "PyTorch's parameters")]
pub fn instance_norm(
    x: &Tensor,
    running_mean: Option<&Tensor>,
    running_var: Option<&Tensor>,
    weight: Option<&Tensor>,
    bias: Option<&Tensor>,
    #[default(true)] use_input_stats: bool,
    #[default(0.1)] momentum: f64,
    #[default(1e-5)] eps: f64,
) -> Result<Tensor> {
    let op = "instance_norm";
    let data = x.data(op)?;
    let &[samples, channels, ref rest @ ..] = data.dims() else {
        return Err(unfit(op));
    };
    if !use_input_stats {
        return batch_norm(
            x,
            running_mean,
            running_var,
            weight,
            bias,
            false,
            momentum,
            eps,
        );
    }
    let each: usize = rest.iter().product();
    require(op, each > 1)?;
    let y = group_norm(x, channels.max(1), weight, bias, eps)?;
    if samples > 0
        && let (Some(mean), Some(var)) = (running_mean, running_var)
    {
        let rows = data
            .detach()
            .reshape((1, samples * channels, each))
            .and_then(|rows| norm::batch_stats(&rows));
        let (batch_mean, batch_var) = rows.fx()?;
        let average = |stats: &candle_core::Tensor| stats.reshape((samples, channels))?.mean(0);
        move_towards(op, mean.data(op)?, &average(&batch_mean).fx()?, momentum).fx()?;
        move_towards(op, var.data(op)?, &average(&batch_var).fx()?, momentum).fx()?;
    }
    Ok(y)
}

/// x / (k + `alpha` · the mean of the squares of `size` channels around it)^`beta`, for `x` `[N, C, ..]`.
///
/// # Errors
/// Returns an error if there are fewer than three dims, `size` is 0, or the tensor is not float.
#[op(norm, member, path = "fx_nn::ops::local_response_norm")]
pub fn local_response_norm(
    x: &Tensor,
    size: usize,
    #[default(1e-4)] alpha: f64,
    #[default(0.75)] beta: f64,
    #[default(1.0)] k: f64,
) -> Result<Tensor> {
    let op = "local_response_norm";
    let data = x.data(op)?;
    let &[n, c, ref rest @ ..] = data.dims() else {
        return Err(unfit(op));
    };
    require(op, !rest.is_empty() && size != 0 && data.dtype().is_float())?;
    if data.elem_count() == 0 {
        return Ok(x.clone());
    }
    let inner: usize = rest.iter().product();
    let around = [(0, 0), ((size / 2) as i64, ((size - 1) / 2) as i64)];
    widen::widened(data, data, |data| {
        let squares = data.sqr()?.reshape((n, 1, c, inner))?;
        let zero = candle_core::Tensor::zeros((), data.dtype(), data.device())?;
        let wide = pad::constant(op, &squares, &around, &zero)?;
        let means = avg_pool2d(&wide, (size, 1), (1, 1), (0, 0), false, true)?;
        let by = means.affine(alpha, k)?.powf(beta)?.reshape(data.dims())?;
        binary::div(&data, &by)
    })
    .map(Tensor::made)
    .fx()
}
