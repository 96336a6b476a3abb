//! Losses; `reduction` is `"mean"`, `"sum"` or `"none"`.

use crate::op;
use fx_core::Result;

use crate::error::{Fx, require};
use crate::kernels::loss::{self, Reduction};
use crate::kernels::widen::widened;
use crate::kernels::{binary, pointwise};
use crate::tensor::Tensor;

/// The cross entropy of scores `x` `[N, C, ..]` (or `[C]`) and classes `target` `[N, ..]` (`int64`), or
/// probabilities of the shape of `x`.
///
/// Classes of `ignore_index` do not count; `label_smoothing` is the share of a target spread over all classes.
///
/// ```
/// use fx_nn::prelude::*;
/// // Probabilities of 1/4 and 3/4, twice: once the first is right, once the second.
/// let scores = Tensor::from_vec(vec![0.0, 3f32.ln(), 0.0, 3f32.ln()], (2, 2))?;
/// let classes = Tensor::from_vec(vec![0i64, 1], 2)?;
/// let loss = ops::cross_entropy(&scores, &classes, None, -100, "sum", 0.0)?;
/// assert!((loss.item()? - (4f64.ln() + (4f64 / 3.0).ln())).abs() < 1e-6);
/// # Ok::<(), fx_nn::Error>(())
/// ```
///
/// # Errors
/// Returns an error if the shapes do not fit, or a target is not a class.
#[op(loss, member, path = "fx_nn::ops::cross_entropy")]
pub fn cross_entropy(
    x: &Tensor,
    target: &Tensor,
    #[kw] weight: Option<&Tensor>,
    #[kw]
    #[default(-100)]
    ignore_index: i64,
    #[kw]
    #[default("mean")]
    reduction: &str,
    #[kw]
    #[default(0.0)]
    label_smoothing: f64,
) -> Result<Tensor> {
    let weight = weight.map(|w| w.data("cross_entropy")).transpose()?;
    loss::cross_entropy(
        x.data("cross_entropy")?,
        target.data("cross_entropy")?,
        weight,
        ignore_index,
        Reduction::parse("cross_entropy", reduction).fx()?,
        label_smoothing,
    )
    .map(Tensor::made)
    .fx()
}

/// Minus the log-probabilities `x` `[N, C, ..]` of the classes `target` `[N, ..]` (`int64`).
///
/// # Errors
/// Returns an error if the shapes do not fit, or a target is not a class.
#[op(loss, member, path = "fx_nn::ops::nll_loss")]
pub fn nll_loss(
    x: &Tensor,
    target: &Tensor,
    #[kw] weight: Option<&Tensor>,
    #[kw]
    #[default(-100)]
    ignore_index: i64,
    #[kw]
    #[default("mean")]
    reduction: &str,
) -> Result<Tensor> {
    let weight = weight.map(|w| w.data("nll_loss")).transpose()?;
    loss::nll_loss(
        "nll_loss",
        x.data("nll_loss")?,
        target.data("nll_loss")?,
        weight,
        ignore_index,
        Reduction::parse("nll_loss", reduction).fx()?,
    )
    .map(Tensor::made)
    .fx()
}

/// What `of` makes of the differences of floats; shapes broadcast and types are promoted.
fn differences(
    op: &str,
    x: &Tensor,
    target: &Tensor,
    reduction: Reduction,
    of: impl FnOnce(&candle_core::Tensor) -> candle_core::Result<candle_core::Tensor>,
) -> Result<Tensor> {
    let common = x.dtype()?.promote(target.dtype()?);
    require(op, common.is_floating_point())?;
    let (x, target) = (x.cast(common)?, target.cast(common)?);
    let (x, target) = (x.data(op)?, target.data(op)?);
    widened(x, (x, target), |(x, target)| {
        reduction.of(&of(&binary::sub(&x, &target)?)?)
    })
    .map(Tensor::made)
    .fx()
}

/// The squared differences; shapes broadcast.
///
/// # Errors
/// Returns an error if the shapes do not broadcast, or neither tensor is float.
#[op(loss, path = "fx_nn::ops::mse_loss")]
pub fn mse_loss(
    x: &Tensor,
    target: &Tensor,
    #[kw]
    #[default("mean")]
    reduction: &str,
) -> Result<Tensor> {
    let reduction = Reduction::parse("mse_loss", reduction).fx()?;
    differences("mse_loss", x, target, reduction, |d| d.sqr())
}

/// The absolute differences; shapes broadcast.
///
/// # Errors
/// Returns an error if the shapes do not broadcast, or the mean of integers is requested.
#[op(loss, path = "fx_nn::ops::l1_loss")]
pub fn l1_loss(
    x: &Tensor,
    target: &Tensor,
    #[kw]
    #[default("mean")]
    reduction: &str,
) -> Result<Tensor> {
    let reduction = Reduction::parse("l1_loss", reduction).fx()?;
    require("l1_loss", !x.is_bool() && !target.is_bool())?;
    let common = x.dtype()?.promote(target.dtype()?);
    if common.is_floating_point() {
        return differences("l1_loss", x, target, reduction, pointwise::abs);
    }
    // Integers wrap around and stay integers; they have no mean.
    let losses = (x.cast(common)? - target.cast(common)?)?.abs()?;
    reduction.of(losses.data("l1_loss")?).map(Tensor::made).fx()
}
