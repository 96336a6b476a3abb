//! Losses; `reduction` is `"mean"`, `"sum"` or `"none"`.

use fx_core::{Error, Result, wrap};

use crate::error::Fx;
use crate::kernels::loss::{self, Reduction};
use crate::tensor::Tensor;

/// The cross entropy of scores `x` `[N, C, ..]` (or `[C]`) and classes `target` `[N, ..]` (`int64`), or
/// probabilities of the shape of `x`.
///
/// Classes of `ignore_index` do not count; `label_smoothing` is the share of a target spread over all classes.
///
/// ```
/// use fx_nn::prelude::*;
/// let scores = Tensor::zeros((2, 4))?;
/// let classes = Tensor::from_vec(vec![1i64, 3], 2)?;
/// let loss = ops::cross_entropy(&scores, &classes, None, -100, "mean", 0.0)?;
/// assert!((loss.item()? - 4f64.ln()).abs() < 1e-6);
/// # Ok::<(), fx_nn::Error>(())
/// ```
///
/// # Errors
/// When the shapes do not fit, or a target is no class.
#[wrap(path = "fx_nn::ops::cross_entropy")]
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
    .map(Tensor::from)
    .fx()
}

/// Minus the log-probabilities `x` `[N, C, ..]` of the classes `target` `[N, ..]` (`int64`).
///
/// # Errors
/// When the shapes do not fit, or a target is no class.
#[wrap(path = "fx_nn::ops::nll_loss")]
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
    .map(Tensor::from)
    .fx()
}

/// What `of` makes of the differences, which have to be between tensors of one shape.
fn differences(
    op: &str,
    x: &Tensor,
    target: &Tensor,
    reduction: &str,
    of: impl FnOnce(&candle_core::Tensor) -> candle_core::Result<candle_core::Tensor>,
) -> Result<Tensor> {
    if x.dims()? != target.dims()? {
        return Err(Error::msg(format_args!(
            "{op}: input {:?} and target {:?} must have one shape",
            x.dims()?,
            target.dims()?
        )));
    }
    let difference = (x.as_float()? - target.as_float()?)?;
    let reduction = Reduction::parse(op, reduction).fx()?;
    of(difference.data(op)?)
        .and_then(|losses| reduction.of(&losses))
        .map(Tensor::from)
        .fx()
}

/// The squared differences.
///
/// # Errors
/// When the shapes differ.
#[wrap(path = "fx_nn::ops::mse_loss")]
pub fn mse_loss(
    x: &Tensor,
    target: &Tensor,
    #[kw]
    #[default("mean")]
    reduction: &str,
) -> Result<Tensor> {
    differences("mse_loss", x, target, reduction, |d| d.sqr())
}

/// The absolute differences.
///
/// # Errors
/// When the shapes differ.
#[wrap(path = "fx_nn::ops::l1_loss")]
pub fn l1_loss(
    x: &Tensor,
    target: &Tensor,
    #[kw]
    #[default("mean")]
    reduction: &str,
) -> Result<Tensor> {
    differences("l1_loss", x, target, reduction, |d| d.abs())
}
