//! Losses of each element, of distances and of margins between scores.

use candle_core::{DType, Result, Tensor, bail};

use super::binary::{add, div, maximum, mul, sub};
use super::comparison;
use super::elementary::Elementary;
use super::gradient;
use super::pointwise::{abs, clamp};
use super::reduce;
use super::scale::Scale;
use super::select::{choose, gather};

/// A number as a tensor without dimensions beside `x`.
fn number(x: &Tensor, value: f64) -> Result<Tensor> {
    Tensor::new(value, x.device())?.to_dtype(x.dtype())
}

/// Where the target is 1 or -1.
fn is_sign(target: &Tensor, sign: f64) -> Result<Tensor> {
    comparison::eq(&target.detach(), &number(target, sign)?)
}

/// `max(x, low)`.
fn at_least(x: &Tensor, low: f64) -> Result<Tensor> {
    clamp(x, Some(low), None)
}

/// `x² / 2` up to `edge`, a straight line of slope `edge` beyond it.
///
/// # Errors
/// Returns only candle's errors.
pub fn huber(difference: &Tensor, edge: f64) -> Result<Tensor> {
    curve_and_line("huber_loss", difference, edge, edge)
}

/// A parabola up to `edge`, and the straight line of slope `slope` that touches it there beyond.
fn curve_and_line(op: &'static str, difference: &Tensor, edge: f64, slope: f64) -> Result<Tensor> {
    let of = |difference: &Tensor| {
        let far = abs(difference)?;
        let line = far.affine(slope, -0.5 * edge * slope)?;
        let is_near = comparison::lt(&far, &number(&far, edge)?)?;
        let curve = difference.sqr()?.times(0.5 * slope / edge)?;
        choose(op, &is_near, &curve, &line)
    };
    gradient::of_one(op, difference, of, move |difference, _, grad| {
        let steep = difference.times(slope / edge)?;
        grad.mul(&clamp(&steep, Some(-slope), Some(slope))?)
    })
}

/// `x² / (2 edge)` up to `edge`, a straight line of slope 1 beyond it.
///
/// # Errors
/// Returns only candle's errors.
pub fn smooth_l1(difference: &Tensor, edge: f64) -> Result<Tensor> {
    match edge == 0.0 {
        true => abs(difference),
        false => curve_and_line("smooth_l1_loss", difference, edge, 1.0),
    }
}

/// What keeps a divisor from 0: PyTorch's, of this type.
const SMALL: f32 = 1e-12;

/// The cross entropy of probabilities and shares of one shape, in which no logarithm is below -100.
///
/// The gradient is that of the logarithms without that bound, except that no probability counts as nearer to 0 or 1 than
/// 1e-12, as in PyTorch: it is 0 where a probability is its share, and large where it is the opposite.
///
/// # Errors
/// Returns an error if the shapes differ.
pub fn binary_cross_entropy(p: &Tensor, share: &Tensor) -> Result<Tensor> {
    let losses = |p: &Tensor, share: &Tensor| {
        let held = |x: Tensor| at_least(&x, -100.0);
        let yes = held(p.log()?)?;
        let no = held(Elementary::Log1p.of(&p.neg()?)?)?;
        // (share - 1) log(1 - p) - share log(p).
        sub(&mul(&share.affine(1.0, -1.0)?, &no)?, &mul(share, &yes)?)
    };
    gradient::of_two(
        "binary_cross_entropy",
        p,
        share,
        losses,
        |[p, share], grad| {
            let spread = at_least(&p.affine(-1.0, 1.0)?.mul(p)?, f64::from(SMALL))?;
            let odds = Elementary::Log1p.of(&p.neg()?)?.sub(&p.log()?)?;
            Ok([grad.mul(&p.sub(share)?)?.div(&spread)?, grad.mul(&odds)?])
        },
    )
}

/// The cross entropy of scores and shares; `weight` is how much the positive ones count.
///
/// # Errors
/// Returns an error if the shapes do not broadcast.
pub fn binary_cross_entropy_of_scores(
    x: &Tensor,
    share: &Tensor,
    weight: Option<&Tensor>,
) -> Result<Tensor> {
    // (1 - share) x - (1 + (weight - 1) share) log(sigmoid(x)).
    let logs = Elementary::LogSigmoid.of(x)?;
    let logs = match weight {
        None => logs,
        Some(weight) => {
            let counts = mul(&weight.affine(1.0, -1.0)?, share)?.affine(1.0, 1.0)?;
            mul(&counts, &logs)?
        }
    };
    sub(&mul(&share.affine(-1.0, 1.0)?, x)?, &logs)
}

/// `target (log(target) - x)`, 0 where the target is 0.
///
/// # Errors
/// Returns an error if the shapes do not broadcast.
pub fn divergence(x: &Tensor, target: &Tensor) -> Result<Tensor> {
    let entropy = mul(target, &target.log()?)?;
    let zero = target.detach().zeros_like()?;
    let is_zero = comparison::eq(&target.detach(), &zero)?;
    // There is no slope at 0, as PyTorch's `xlogy(t, t)` has none.
    let entropy = choose("kl_div", &is_zero, &zero, &entropy)?;
    sub(&entropy, &mul(target, x)?)
}

/// The likelihood of counts under a rate: `exp(x) - target x`, or of the rate itself; `full` adds Stirling's terms.
///
/// # Errors
/// Returns an error if the shapes do not broadcast.
pub fn poisson(x: &Tensor, target: &Tensor, is_log: bool, full: bool, eps: f64) -> Result<Tensor> {
    let loss = match is_log {
        true => sub(&x.exp()?, &mul(target, x)?)?,
        false => sub(x, &mul(target, &x.affine(1.0, eps)?.log()?)?)?,
    };
    if !full {
        return Ok(loss);
    }
    let one = number(target, 1.0)?.broadcast_as(target.dims())?;
    let is_large = comparison::gt(&target.detach(), &one)?;
    let safe = choose("poisson_nll_loss", &is_large, target, &one)?;
    let turn = safe.times(2.0 * std::f64::consts::PI)?.log()?.times(0.5)?;
    let more = add(&sub(&mul(&safe, &safe.log()?)?, &safe)?, &turn)?;
    let more = choose("poisson_nll_loss", &is_large, &more, &target.zeros_like()?)?;
    add(&loss, &more)
}

/// The likelihood of `target` under normal distributions; variances are at least `eps`.
///
/// # Errors
/// Returns an error if the shapes do not broadcast.
pub fn gaussian(x: &Tensor, target: &Tensor, var: &Tensor, full: bool, eps: f64) -> Result<Tensor> {
    // PyTorch clamps the variances outside of autograd: their gradient ignores the clamp.
    let moved = |var: &Tensor| at_least(var, eps);
    let var = gradient::of_one("clamp", var, moved, |_, _, grad| Ok(grad.clone()))?;
    let distance = div(&sub(x, target)?.sqr()?, &var)?;
    let loss = add(&var.log()?, &distance)?.times(0.5)?;
    match full {
        true => loss.affine(1.0, 0.5 * (2.0 * std::f64::consts::PI).ln()),
        false => Ok(loss),
    }
}

/// `x` where the target is 1, `max(0, margin - x)` where it is -1.
///
/// # Errors
/// Returns an error if the shapes do not broadcast.
pub fn hinge_embedding(x: &Tensor, target: &Tensor, margin: f64) -> Result<Tensor> {
    let op = "hinge_embedding_loss";
    let zero = x.zeros_like()?;
    let far = at_least(&x.affine(-1.0, margin)?, 0.0)?;
    add(
        &choose(op, &is_sign(target, 1.0)?, &zero, &far)?,
        &choose(op, &is_sign(target, -1.0)?, &zero, x)?,
    )
}

/// `max(0, margin - target (a - b))`.
///
/// # Errors
/// Returns an error if the shapes do not broadcast.
pub fn margin_ranking(a: &Tensor, b: &Tensor, target: &Tensor, margin: f64) -> Result<Tensor> {
    at_least(&mul(target, &sub(a, b)?)?.affine(-1.0, margin)?, 0.0)
}

/// `log(1 + exp(-target x))`.
///
/// # Errors
/// Returns an error if the shapes do not broadcast.
pub fn soft_margin(x: &Tensor, target: &Tensor) -> Result<Tensor> {
    Elementary::Log1p.of(&mul(target, x)?.neg()?.exp()?)
}

/// Scores `[n, c]` as rows; one row without the first dimension.
fn rows(op: &str, x: &Tensor) -> Result<Tensor> {
    match x.dims() {
        [_, classes] if *classes > 0 => Ok(x.clone()),
        [classes] if *classes > 0 => x.unsqueeze(0),
        [] => x.reshape((1, 1)),
        dims => bail!("{op}: scores {dims:?} are [n, c] or [c], of one class at least"),
    }
}

/// The mean over classes of `max(0, margin - x[target] + x[i])^p` for all but the target, one loss
/// per row.
///
/// # Errors
/// Returns an error if the shapes do not fit, a target is not a class, or `p` is neither 1 nor 2.
pub fn multi_margin(
    x: &Tensor,
    target: &Tensor,
    p: i64,
    margin: f64,
    weight: Option<&Tensor>,
) -> Result<Tensor> {
    let op = "multi_margin_loss";
    if !matches!(p, 1 | 2) {
        bail!("{op}: p is 1 or 2, not {p}")
    }
    let x = rows(op, x)?;
    let (count, classes) = x.dims2()?;
    if target.rank() > 1 || target.elem_count() != count || target.dtype() != DType::I64 {
        bail!(
            "{op}: target {:?} is one class (int64) of each of {count} rows",
            target.dims()
        )
    }
    if let Some(weight) = weight
        && weight.dims() != [classes]
    {
        bail!("{op}: weight {:?} must be [{classes}]", weight.dims())
    }
    let at = target.reshape((count, 1))?;
    let own = gather(&x, 1, &at)?;
    // In PyTorch's order, which decides at the bound.
    let mut losses = at_least(&add(&own.affine(-1.0, margin)?, &x)?, 0.0)?;
    if p == 2 {
        losses = losses.sqr()?;
    }
    if let Some(weight) = weight {
        losses = mul(&losses, &gather(&weight.unsqueeze(0)?, 1, &at.t()?)?.t()?)?;
    }
    let places = Tensor::arange(0i64, classes as i64, x.device())?.unsqueeze(0)?;
    let is_own = comparison::eq(&at, &places)?;
    let losses = choose(op, &is_own, &losses.zeros_like()?, &losses)?;
    reduce::sum(&losses, &[1], false)?.times(1.0 / classes as f64)
}

/// The mean over classes of `max(0, 1 - x[t] + x[i])` for all targets `t`, up to the first -1, and
/// all others `i`; one loss per row.
///
/// # Errors
/// Returns an error if the shapes differ, or a target is not a class.
pub fn multilabel_margin(x: &Tensor, target: &Tensor) -> Result<Tensor> {
    let op = "multilabel_margin_loss";
    if x.dims() != target.dims() || target.dtype() != DType::I64 {
        bail!(
            "{op}: target {:?} is of int64 and of the shape of input {:?}",
            target.dims(),
            x.dims()
        )
    }
    let (x, target) = (rows(op, x)?, rows(op, target)?);
    let (count, classes) = x.dims2()?;
    let mut is_target = vec![0u8; count * classes];
    let mut is_unused = vec![1u8; count * classes];
    let mut places = vec![0i64; count * classes];
    for (row, targets) in target.to_vec2::<i64>()?.into_iter().enumerate() {
        if let Some(other) = targets.iter().find(|t| **t < -1 || **t >= classes as i64) {
            bail!("{op}: target {other} is not one of {classes} classes")
        }
        for (at, t) in targets.into_iter().take_while(|t| *t >= 0).enumerate() {
            // In range, as checked above.
            is_target[row * classes + t as usize] = 1;
            is_unused[row * classes + at] = 0;
            places[row * classes + at] = t;
        }
    }
    let of = |mask: Vec<u8>| Tensor::from_vec(mask, (count, classes), x.device());
    let places = Tensor::from_vec(places, (count, classes), x.device())?;
    let own = gather(&x, 1, &places)?.unsqueeze(2)?;
    // In PyTorch's order, which decides at the bound.
    let losses = at_least(&add(&own.affine(-1.0, 1.0)?, &x.unsqueeze(1)?)?, 0.0)?;
    let spread = |mask: Tensor| mask.broadcast_as(losses.dims())?.contiguous();
    let is_left_out = maximum(
        &spread(of(is_target)?.unsqueeze(1)?)?,
        &spread(of(is_unused)?.unsqueeze(2)?)?,
    )?;
    let losses = choose(op, &is_left_out, &losses.zeros_like()?, &losses)?;
    reduce::sum(&losses, &[1, 2], false)?.times(1.0 / classes as f64)
}

/// `max(0, margin + near - away)`, of the distances to an example of the same kind and to one of another.
///
/// # Errors
/// Returns an error if the shapes do not broadcast.
pub fn triplet(near: &Tensor, away: &Tensor, margin: f64) -> Result<Tensor> {
    at_least(&sub(&near.affine(1.0, margin)?, away)?, 0.0)
}

/// `1 - cos` where the target is 1, `max(0, cos - margin)` where it is -1, of the cosines of rows.
///
/// # Errors
/// Returns an error if the shapes do not broadcast.
pub fn cosine_embedding(a: &Tensor, b: &Tensor, target: &Tensor, margin: f64) -> Result<Tensor> {
    let op = "cosine_embedding_loss";
    let last = a.rank().max(b.rank()) - 1;
    let product = |a: &Tensor, b: &Tensor| reduce::sum(&mul(a, b)?, &[last], false);
    let length = |x: &Tensor| product(x, x)?.affine(1.0, f64::from(SMALL));
    let cos = div(&product(a, b)?, &mul(&length(a)?, &length(b)?)?.sqrt()?)?;
    let zero = cos.zeros_like()?;
    let near = choose(op, &is_sign(target, 1.0)?, &cos.affine(-1.0, 1.0)?, &zero)?;
    let far = choose(
        op,
        &is_sign(target, -1.0)?,
        &at_least(&cos.affine(1.0, -margin)?, 0.0)?,
        &zero,
    )?;
    add(&near, &far)
}
