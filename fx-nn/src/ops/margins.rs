//! Losses of each element, of distances and of margins between scores; `reduction` is `"mean"`, `"sum"` or `"none"`.

use crate::op;
use candle_core::Tensor as Data;
use fx_core::value::DType;
use fx_core::{Error, Result};

use super::elementary::floating;
use crate::error::{Fx, require, unfit};
use crate::kernels::loss::Reduction;
use crate::kernels::widen::widened;
use crate::kernels::{binary, distance, expand, margins, reduce};
use crate::tensor::{Tensor, TensorOrNumber, common_of};

fn word(op: &str, reduction: &str) -> Result<Reduction> {
    Reduction::parse(op, reduction).fx()
}

fn wrong(op: &str, why: impl std::fmt::Display) -> Error {
    Error::msg(format_args!("{op}: {why}"))
}

/// The floats of tensors, as they are promoted.
fn floats<const N: usize>(op: &str, tensors: [&Tensor; N]) -> Result<[Data; N]> {
    let common = common_of(&tensors)?;
    require(op, common.is_floating_point())?;
    let mut all = Vec::with_capacity(N);
    for tensor in tensors {
        all.push(tensor.cast(common)?.data(op)?.clone());
    }
    <[Data; N]>::try_from(all).map_err(|_| unfit(op))
}

/// What `of` makes of floats, as they are promoted, and what becomes of all of it.
pub(super) fn of_floats<const N: usize>(
    op: &str,
    tensors: [&Tensor; N],
    reduction: Reduction,
    of: impl FnOnce([Data; N]) -> candle_core::Result<Data>,
) -> Result<Tensor> {
    let all = floats(op, tensors)?;
    let Some(first) = all.first().cloned() else {
        return Err(unfit(op));
    };
    widened(&first, all.as_slice(), |all| {
        let all = <[Data; N]>::try_from(all)
            .map_err(|_| candle_core::Error::Msg("as many tensors as were given".into()))?;
        reduction.of(&of(all)?)
    })
    .map(Tensor::made)
    .fx()
}

/// As [`of_floats`] of a loss that PyTorch computes step by step: in a half type, each step is rounded.
fn of_steps<const N: usize>(
    op: &str,
    tensors: [&Tensor; N],
    reduction: Reduction,
    of: impl FnOnce([Data; N]) -> candle_core::Result<Data>,
) -> Result<Tensor> {
    let losses = of(floats(op, tensors)?).fx()?;
    widened(&losses, &losses, |losses| reduction.of(&losses))
        .map(Tensor::made)
        .fx()
}

/// Half the squared difference over `beta` up to `beta`, a straight line beyond it; shapes broadcast.
///
/// # Errors
/// Returns an error if the shapes do not broadcast, neither tensor is float, or `beta` is below 0.
#[op(loss, path = "fx_nn::ops::smooth_l1_loss")]
pub fn smooth_l1_loss(
    x: &Tensor,
    target: &Tensor,
    #[kw]
    #[default("mean")]
    reduction: &str,
    #[kw]
    #[default(1.0)]
    beta: f64,
) -> Result<Tensor> {
    let op = "smooth_l1_loss";
    require(op, beta >= 0.0)?;
    let dtype = x.dtype()?.promote(target.dtype()?);
    let (x, target) = (x.cast(dtype)?, target.cast(dtype)?);
    of_floats(op, [&x, &target], word(op, reduction)?, |[x, target]| {
        margins::smooth_l1(&binary::sub(&x, &target)?, beta)
    })
}

/// Half the squared difference up to `delta`, a straight line of slope `delta` beyond it; shapes broadcast.
///
/// ```
/// use fx_nn::prelude::*;
/// let x = Tensor::from_vec(vec![0.5f32, 3.0], 2)?;
/// let y = Tensor::from_vec(vec![0.0f32, 0.0], 2)?;
/// assert_eq!(ops::huber_loss(&x, &y, "none", 1.0)?.to_vec()?, [0.125, 2.5]);
/// # Ok::<(), fx_nn::Error>(())
/// ```
///
/// # Errors
/// Returns an error if the shapes do not broadcast, neither tensor is float, or `delta` is not
/// above 0.
#[op(loss, path = "fx_nn::ops::huber_loss")]
pub fn huber_loss(
    x: &Tensor,
    target: &Tensor,
    #[kw]
    #[default("mean")]
    reduction: &str,
    #[kw]
    #[default(1.0)]
    delta: f64,
) -> Result<Tensor> {
    let op = "huber_loss";
    require(op, delta > 0.0)?;
    let dtype = x.dtype()?.promote(target.dtype()?);
    let (x, target) = (x.cast(dtype)?, target.cast(dtype)?);
    of_floats(op, [&x, &target], word(op, reduction)?, |[x, target]| {
        margins::huber(&binary::sub(&x, &target)?, delta)
    })
}

/// The cross entropy of probabilities x and shares `target`, each in [0, 1]; no logarithm is below -100.
///
/// ```
/// use fx_nn::prelude::*;
/// let p = Tensor::from_vec(vec![0.25f64, 0.5], 2)?;
/// let is = Tensor::from_vec(vec![1.0f64, 0.0], 2)?;
/// let loss = ops::binary_cross_entropy(&p, &is, None, "sum")?.item()?;
/// assert!((loss - 8f64.ln()).abs() < 1e-12);
/// # Ok::<(), fx_nn::Error>(())
/// ```
///
/// # Errors
/// Returns an error if the shapes or types differ, or an element is not in [0, 1].
#[op(loss, member, path = "fx_nn::ops::binary_cross_entropy")]
pub fn binary_cross_entropy(
    x: &Tensor,
    target: &Tensor,
    #[kw] weight: Option<&Tensor>,
    #[kw]
    #[default("mean")]
    reduction: &str,
) -> Result<Tensor> {
    let op = "binary_cross_entropy";
    let reduction = word(op, reduction)?;
    floating(op, x)?;
    let (dims, dtype) = (target.dims()?, target.dtype()?);
    require(op, x.dims()? == dims && x.dtype()? == dtype)?;
    for (what, tensor) in [("input", x), ("target", target)] {
        if let Some(p) = tensor
            .to_vec()?
            .into_iter()
            .find(|p| !(0.0..=1.0).contains(p))
        {
            return Err(wrong(op, format_args!("{what} {p} is not in [0, 1]")));
        }
    }
    let weight = weighing(op, x, weight)?;
    of_floats(
        op,
        [x, target, &weight],
        reduction,
        |[x, target, weight]| binary::mul(&margins::binary_cross_entropy(&x, &target)?, &weight),
    )
}

/// The weights, of the type of `x`: ones where there are none.
fn weighing(op: &str, x: &Tensor, weight: Option<&Tensor>) -> Result<Tensor> {
    match weight {
        Some(weight) => {
            let (dims, own) = (x.dims()?, weight.dims()?);
            require(op, expand::shape(op, dims, own).fx()? == dims)?;
            weight.cast(x.dtype()?)
        }
        None => super::create::ones((), Some(x.dtype()?)),
    }
}

/// The cross entropy of scores x and shares `target`, without overflow; `pos_weight` is how much positive ones count.
///
/// # Errors
/// Returns an error if the shapes differ, or the tensors are not float.
#[op(loss, path = "fx_nn::ops::binary_cross_entropy_with_logits")]
pub fn binary_cross_entropy_with_logits(
    x: &Tensor,
    target: &Tensor,
    #[kw] weight: Option<&Tensor>,
    #[kw]
    #[default("mean")]
    reduction: &str,
    #[kw] pos_weight: Option<&Tensor>,
) -> Result<Tensor> {
    let op = "binary_cross_entropy_with_logits";
    let reduction = word(op, reduction)?;
    floating(op, x)?;
    floating(op, target)?;
    require(op, x.dims()? == target.dims()?)?;
    let weight = weighing(op, x, weight)?;
    let positive = weighing(op, x, pos_weight)?;
    let all = [x, target, &weight, &positive];
    of_floats(op, all, reduction, |[x, target, weight, positive]| {
        let positive = pos_weight.map(|_| &positive);
        let losses = margins::binary_cross_entropy_of_scores(&x, &target, positive)?;
        binary::mul(&losses, &weight)
    })
}

/// The divergence of logarithms of probabilities x from probabilities `target`, or their logarithms (`log_target`);
/// `reduction` may be `"batchmean"` too, the sum over the first size.
///
/// # Errors
/// Returns an error if the shapes do not broadcast, or a tensor is not float.
#[op(loss, path = "fx_nn::ops::kl_div")]
pub fn kl_div(
    x: &Tensor,
    target: &Tensor,
    #[kw]
    #[default("mean")]
    reduction: &str,
    #[kw]
    #[default(false)]
    log_target: bool,
) -> Result<Tensor> {
    let op = "kl_div";
    let is_batch = reduction == "batchmean";
    let reduction = word(op, if is_batch { "sum" } else { reduction })?;
    floating(op, x)?;
    floating(op, target)?;
    let loss = of_floats(op, [x, target], reduction, |[x, target]| match log_target {
        true => binary::mul(&target.exp()?, &binary::sub(&target, &x)?),
        false => margins::divergence(&x, &target),
    })?;
    match (is_batch, x.dims()?.first()) {
        (true, Some(count)) => loss / i64::try_from(*count).unwrap_or(i64::MAX),
        _ => Ok(loss),
    }
}

/// The likelihood of counts `target` under rates x, or their logarithms (`log_input`); `full` adds Stirling's terms.
///
/// # Errors
/// Returns an error if the shapes do not broadcast, or neither tensor is float.
#[op(loss, path = "fx_nn::ops::poisson_nll_loss")]
pub fn poisson_nll_loss(
    x: &Tensor,
    target: &Tensor,
    #[kw]
    #[default(true)]
    log_input: bool,
    #[kw]
    #[default(false)]
    full: bool,
    #[kw]
    #[default(1e-8)]
    eps: f64,
    #[kw]
    #[default("mean")]
    reduction: &str,
) -> Result<Tensor> {
    let op = "poisson_nll_loss";
    of_floats(op, [x, target], word(op, reduction)?, |[x, target]| {
        margins::poisson(&x, &target, log_input, full, eps)
    })
}

/// The likelihood of `target` under normal distributions of means x and variances `var`, which are held above `eps`;
/// `full` adds the constant term.
///
/// # Errors
/// Returns an error if the shapes do not broadcast, a variance is below 0, or no tensor is float.
#[op(loss, member, path = "fx_nn::ops::gaussian_nll_loss")]
pub fn gaussian_nll_loss(
    x: &Tensor,
    target: &Tensor,
    var: impl Into<TensorOrNumber>,
    #[kw]
    #[default(false)]
    full: bool,
    #[kw]
    #[default(1e-6)]
    eps: f64,
    #[kw]
    #[default("mean")]
    reduction: &str,
) -> Result<Tensor> {
    let op = "gaussian_nll_loss";
    let reduction = word(op, reduction)?;
    let is_number = matches!(var, TensorOrNumber::Number(_));
    let mut var = var.beside(x.dtype()?)?;
    let (own, dims) = (var.dims()?.to_vec(), x.dims()?);
    if own.as_slice() != dims && own.len() + 1 == dims.len() && dims.starts_with(&own) {
        var = super::views::unsqueeze(&var, -1)?;
    } else if !is_number && own.as_slice() != dims {
        // One dim may have one variance for all.
        let pairs = own.iter().zip(dims).filter(|(a, b)| a != b);
        require(
            op,
            own.len() == dims.len() && pairs.map(|(a, _)| a).sum::<usize>() == 1,
        )?;
    }
    if let Some(least) = var.to_vec()?.into_iter().find(|v| *v < 0.0) {
        return Err(wrong(
            op,
            format_args!("a variance is not below 0: {least}"),
        ));
    }
    of_floats(op, [x, target, &var], reduction, |[x, target, var]| {
        margins::gaussian(&x, &target, &var, full, eps)
    })
}

/// x where `target` is 1, max(0, margin - x) where it is -1.
///
/// # Errors
/// Returns an error if the shapes do not broadcast, or x is not float.
#[op(loss, path = "fx_nn::ops::hinge_embedding_loss")]
pub fn hinge_embedding_loss(
    x: &Tensor,
    target: &Tensor,
    #[kw]
    #[default(1.0)]
    margin: f64,
    #[kw]
    #[default("mean")]
    reduction: &str,
) -> Result<Tensor> {
    let op = "hinge_embedding_loss";
    let reduction = word(op, reduction)?;
    floating(op, x)?;
    let target = target.cast(x.dtype()?)?;
    of_floats(op, [x, &target], reduction, |[x, target]| {
        margins::hinge_embedding(&x, &target, margin)
    })
}

/// max(0, margin - target · (x1 - x2)): `target` is 1 where x1 has to be larger, -1 where x2 has.
///
/// # Errors
/// Returns an error if the tensors have different numbers of dims, the shapes do not broadcast, or
/// none is float.
#[op(loss, path = "fx_nn::ops::margin_ranking_loss")]
pub fn margin_ranking_loss(
    x1: &Tensor,
    x2: &Tensor,
    target: &Tensor,
    #[kw]
    #[default(0.0)]
    margin: f64,
    #[kw]
    #[default("mean")]
    reduction: &str,
) -> Result<Tensor> {
    let op = "margin_ranking_loss";
    let reduction = word(op, reduction)?;
    let rank = target.dims()?.len();
    require(op, x1.dims()?.len() == rank && x2.dims()?.len() == rank)?;
    of_floats(op, [x1, x2, target], reduction, |[a, b, target]| {
        margins::margin_ranking(&a, &b, &target, margin)
    })
}

/// log(1 + exp(-target · x)), for targets of 1 and -1.
///
/// # Errors
/// Returns an error if the shapes do not broadcast, or neither tensor is float.
#[op(loss, path = "fx_nn::ops::soft_margin_loss")]
pub fn soft_margin_loss(
    x: &Tensor,
    target: &Tensor,
    #[kw]
    #[default("mean")]
    reduction: &str,
) -> Result<Tensor> {
    let op = "soft_margin_loss";
    of_steps(op, [x, target], word(op, reduction)?, |[x, target]| {
        margins::soft_margin(&x, &target)
    })
}

/// A loss a row, reduced; a single row without `reduction` is a number.
fn of_rows(x: &Tensor, losses: &Data, reduction: Reduction, keeps: bool) -> Result<Tensor> {
    let reduced = reduction.of(losses).fx()?;
    match reduction == Reduction::None && x.dims()?.len() < 2 && !keeps {
        true => reduced.reshape(()).map(Tensor::made).fx(),
        false => Ok(Tensor::made(reduced)),
    }
}

/// The mean over classes of `max(0, margin - x[target] + x[i])^p` for all `i` but the target, of scores x `[N, C]` (or
/// `[C]`) and classes `target` `[N]` (`int64`); `weight` is how much each class counts.
///
/// ```
/// use fx_nn::prelude::*;
/// let x = Tensor::from_vec(vec![0.1f32, 0.2, 0.4, 0.8], (1, 4))?;
/// let loss = ops::multi_margin_loss(&x, &Tensor::from_vec(vec![3i64], 1)?, 1, 1.0, None, "mean")?;
/// assert!((loss.item()? - 0.325).abs() < 1e-6);
/// # Ok::<(), fx_nn::Error>(())
/// ```
///
/// # Errors
/// Returns an error if the shapes do not fit, a target is not a class, `p` is neither 1 nor 2, or x
/// is neither `float32` nor `float64`.
#[op(loss, member, path = "fx_nn::ops::multi_margin_loss")]
pub fn multi_margin_loss(
    x: &Tensor,
    target: &Tensor,
    #[kw]
    #[default(1)]
    p: i64,
    #[kw]
    #[default(1.0)]
    margin: f64,
    #[kw] weight: Option<&Tensor>,
    #[kw]
    #[default("mean")]
    reduction: &str,
) -> Result<Tensor> {
    let op = "multi_margin_loss";
    let reduction = word(op, reduction)?;
    single(op, x)?;
    let weight = weight.map(|w| w.data(op)).transpose()?;
    let losses = margins::multi_margin(x.data(op)?, target.data(op)?, p, margin, weight).fx()?;
    of_rows(x, &losses, reduction, !target.dims()?.is_empty())
}

/// Refuses half precision, for which PyTorch has no such loss.
fn single(op: &str, x: &Tensor) -> Result<()> {
    require(op, matches!(x.dtype()?, DType::F32 | DType::F64))
}

/// The mean over classes of `max(0, 1 - x[t] + x[i])` for all targets `t` and all other classes `i`, of scores x `[N, C]`
/// (or `[C]`) and targets of that shape (`int64`), of which those before the first -1 count.
///
/// # Errors
/// Returns an error if the shapes differ, a target is not a class, or x is neither `float32` nor
/// `float64`.
#[op(loss, member, path = "fx_nn::ops::multilabel_margin_loss")]
pub fn multilabel_margin_loss(
    x: &Tensor,
    target: &Tensor,
    #[kw]
    #[default("mean")]
    reduction: &str,
) -> Result<Tensor> {
    let op = "multilabel_margin_loss";
    let reduction = word(op, reduction)?;
    single(op, x)?;
    let losses = margins::multilabel_margin(x.data(op)?, target.data(op)?).fx()?;
    of_rows(x, &losses, reduction, false)
}

/// The mean over classes of the cross entropy of scores x `[.., C]` and shares `target`.
///
/// # Errors
/// Returns an error if the shapes do not broadcast, x has no dims, or is not float.
#[op(loss, path = "fx_nn::ops::multilabel_soft_margin_loss")]
pub fn multilabel_soft_margin_loss(
    x: &Tensor,
    target: &Tensor,
    #[kw] weight: Option<&Tensor>,
    #[kw]
    #[default("mean")]
    reduction: &str,
) -> Result<Tensor> {
    let op = "multilabel_soft_margin_loss";
    let reduction = word(op, reduction)?;
    floating(op, x)?;
    let [.., classes] = *x.dims()? else {
        return Err(unfit(op));
    };
    let last = x.dims()?.len() - 1;
    require(op, !target.is_bool())?;
    let weight = weighing(op, x, weight)?;
    of_floats(
        op,
        [x, target, &weight],
        reduction,
        |[x, target, weight]| {
            let losses = margins::binary_cross_entropy_of_scores(&x, &target, None)?;
            // By the classes of x, also where the targets have more: PyTorch's mean over the dim of that place.
            let sum = reduce::sum(&binary::mul(&losses, &weight)?, &[last], false)?;
            sum.affine(1.0 / classes as f64, 0.0)
        },
    )
}

/// max(0, margin + |anchor - positive| - |anchor - negative|), of `p`-norms along the last dim; with `swap` the negative's
/// distance is from the nearer of anchor and positive.
///
/// # Errors
/// Returns an error if the tensors have different numbers of dims, the shapes do not broadcast,
/// `margin` is not above 0, or no tensor is float.
#[allow(clippy::too_many_arguments, reason = "PyTorch's parameters")]
#[op(loss, path = "fx_nn::ops::triplet_margin_loss")]
pub fn triplet_margin_loss(
    anchor: &Tensor,
    positive: &Tensor,
    negative: &Tensor,
    #[kw]
    #[default(1.0)]
    margin: f64,
    #[kw]
    #[default(2.0)]
    p: f64,
    #[kw]
    #[default(1e-6)]
    eps: f64,
    #[kw]
    #[default(false)]
    swap: bool,
    #[kw]
    #[default("mean")]
    reduction: &str,
) -> Result<Tensor> {
    let op = "triplet_margin_loss";
    let reduction = word(op, reduction)?;
    let rank = anchor.dims()?.len();
    require(
        op,
        positive.dims()?.len() == rank && negative.dims()?.len() == rank,
    )?;
    require(op, margin > 0.0)?;
    of_floats(
        op,
        [anchor, positive, negative],
        reduction,
        |[anchor, positive, negative]| {
            let far = |a: &Data, b: &Data| distance::along_rows(op, a, b, p, eps, false);
            let near = far(&anchor, &positive)?;
            let mut away = far(&anchor, &negative)?;
            if swap {
                away = binary::minimum(&away, &far(&positive, &negative)?)?;
            }
            margins::triplet(&near, &away, margin)
        },
    )
}

/// 1 - cos where `target` is 1, max(0, cos - margin) where it is -1, of the cosines of rows x1 and x2.
///
/// # Errors
/// Returns an error if the shapes do not fit, or no tensor is float.
#[op(loss, path = "fx_nn::ops::cosine_embedding_loss")]
pub fn cosine_embedding_loss(
    x1: &Tensor,
    x2: &Tensor,
    target: &Tensor,
    #[kw]
    #[default(0.0)]
    margin: f64,
    #[kw]
    #[default("mean")]
    reduction: &str,
) -> Result<Tensor> {
    let op = "cosine_embedding_loss";
    let reduction = word(op, reduction)?;
    let rank = target.dims()?.len();
    require(
        op,
        rank <= 1 && x1.dims()?.len() == rank + 1 && x2.dims()?.len() == rank + 1,
    )?;
    let common = common_of(&[x1, x2])?;
    let target = target.cast(common)?;
    of_steps(op, [x1, x2, &target], reduction, |[a, b, target]| {
        margins::cosine_embedding(&a, &b, &target, margin)
    })
}
