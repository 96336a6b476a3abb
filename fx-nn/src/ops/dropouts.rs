//! Dropping whole channels, samples, and elements towards the lowest value of an activation.

use crate::op;
use fx_core::Result;

use crate::error::{Fx, require, unfit};
use crate::kernels::pointwise::dropout_mask;
use crate::kernels::scale::Scale;
use crate::kernels::{binary, widen};
use crate::tensor::Tensor;

/// Refuses what is not a probability.
fn probability(op: &str, p: f64) -> Result<()> {
    require(op, (0.0..=1.0).contains(&p))
}

/// The tensor times a mask of the first `kept` dims.
fn masked(op: &str, x: &Tensor, p: f64, kept: usize) -> Result<Tensor> {
    let data = x.data(op)?;
    let mut shape = vec![1; data.rank()];
    shape[..kept].copy_from_slice(&data.dims()[..kept]);
    dropout_mask(&shape, p, data.dtype(), data.device())
        .and_then(|mask| binary::mul(data, &mask))
        .map(Tensor::made)
        .fx()
}

fn channels(op: &str, x: &Tensor, p: f64, training: bool) -> Result<Tensor> {
    probability(op, p)?;
    if !training || (p == 0.0 && !x.dtype()?.is_floating_point()) {
        return Ok(x.clone());
    }
    require(op, x.dims()?.len() >= 2)?;
    masked(op, x, p, 2)
}

/// Zeroes whole channels of `x` `[N, C, L]` (or `[C, L]`) with probability `p` and scales the rest by 1 / (1 - p); the
/// identity outside training.
///
/// # Errors
/// Returns an error if `p` is not in [0, 1], or the tensor has a different number of dims.
#[op(draw, member, random = training, path = "fx_nn::ops::dropout1d")]
pub fn dropout1d(
    x: &Tensor,
    #[kw]
    #[default(0.5)]
    p: f64,
    #[kw]
    #[default(true)]
    training: bool,
) -> Result<Tensor> {
    let op = "dropout1d";
    probability(op, p)?;
    match x.dims()?.len() {
        3 => channels(op, x, p, training),
        2 => channels(op, &x.unsqueeze(0)?, p, training)?.squeeze(0),
        _ => Err(unfit(op)),
    }
}

/// Zeroes whole channels of `x` `[N, C, H, W]` with probability `p` and scales the rest by 1 / (1 - p); the identity
/// outside training. The first two dims are samples and channels, however many follow.
///
/// # Errors
/// Returns an error if `p` is not in [0, 1], or there are fewer than two dims.
#[op(draw, member, random = training, path = "fx_nn::ops::dropout2d")]
pub fn dropout2d(
    x: &Tensor,
    #[kw]
    #[default(0.5)]
    p: f64,
    #[kw]
    #[default(true)]
    training: bool,
) -> Result<Tensor> {
    channels("dropout2d", x, p, training)
}

/// Zeroes whole channels of `x` `[N, C, D, H, W]`, otherwise as [`dropout2d`].
///
/// # Errors
/// Returns an error if `p` is not in [0, 1], or there are fewer than two dims.
#[op(draw, member, random = training, path = "fx_nn::ops::dropout3d")]
pub fn dropout3d(
    x: &Tensor,
    #[kw]
    #[default(0.5)]
    p: f64,
    #[kw]
    #[default(true)]
    training: bool,
) -> Result<Tensor> {
    channels("dropout3d", x, p, training)
}

/// Elements, or whole channels, at the lowest value of SELU, and all moved so that mean and variance stay.
fn alpha(op: &str, x: &Tensor, p: f64, training: bool, kept: Option<usize>) -> Result<Tensor> {
    const LOWEST: f64 = -1.758_099_340_847_376_6;
    probability(op, p)?;
    if !training || p == 0.0 {
        return Ok(x.clone());
    }
    let data = x.data(op)?;
    let kept = kept.unwrap_or(data.rank());
    require(op, kept <= data.rank() && data.dtype().is_float())?;
    if p == 1.0 {
        return data.zeros_like().map(Tensor::made).fx();
    }
    let scale = 1.0 / ((LOWEST * LOWEST * p + 1.0) * (1.0 - p)).sqrt();
    let mut shape = vec![1; data.rank()];
    shape[..kept].copy_from_slice(&data.dims()[..kept]);
    widen::widened(data, data, |data| {
        // Of a mask of 0 and 1: x where it is 1, the lowest value where it is 0.
        let mask = dropout_mask(&shape, p, data.dtype(), data.device())?.times(1.0 - p)?;
        let low = mask.affine(-LOWEST * scale, LOWEST * scale - LOWEST * scale * p)?;
        binary::add(&binary::mul(&data, &mask.times(scale)?)?, &low)
    })
    .map(Tensor::made)
    .fx()
}

/// Puts elements at the lowest value of SELU with probability `p`, and moves all so that mean and variance stay as they
/// are; the identity outside training.
///
/// # Errors
/// Returns an error if `p` is not in [0, 1], or the tensor is not float.
#[op(draw, member, random = training, path = "fx_nn::ops::alpha_dropout")]
pub fn alpha_dropout(
    x: &Tensor,
    #[kw]
    #[default(0.5)]
    p: f64,
    #[kw]
    #[default(false)]
    training: bool,
) -> Result<Tensor> {
    alpha("alpha_dropout", x, p, training, None)
}

/// [`alpha_dropout`] of whole channels of `x` `[N, C, ..]`.
///
/// # Errors
/// Returns an error if `p` is not in [0, 1], the tensor is not float, or there are fewer than two
/// dims.
#[op(draw, member, random = training, path = "fx_nn::ops::feature_alpha_dropout")]
pub fn feature_alpha_dropout(
    x: &Tensor,
    #[kw]
    #[default(0.5)]
    p: f64,
    #[kw]
    #[default(false)]
    training: bool,
) -> Result<Tensor> {
    alpha("feature_alpha_dropout", x, p, training, Some(2))
}

/// Zeroes the whole tensor (`mode` `"batch"`) or whole samples (`"row"`) with probability `p` and scales the rest by
/// 1 / (1 - p): torchvision's, for the branches of residual networks. The identity outside training.
///
/// # Errors
/// Returns an error if `p` is not in [0, 1], or `mode` is unknown.
#[op(draw, member, random = training, path = "fx_nn::ops::stochastic_depth")]
pub fn stochastic_depth(
    x: &Tensor,
    p: f64,
    mode: &str,
    #[default(true)] training: bool,
) -> Result<Tensor> {
    let op = "stochastic_depth";
    probability(op, p)?;
    let kept = match mode {
        "batch" => 0,
        "row" => 1,
        _ => return Err(unfit(op)),
    };
    if !training || p == 0.0 {
        return Ok(x.clone());
    }
    masked(op, x, p, kept.min(x.dims()?.len()))
}
