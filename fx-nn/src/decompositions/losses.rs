//! Losses: elementwise functions, and their mean or sum.

use std::f64::consts::PI;

use fx_core::passes::DecomposedCall;
use fx_core::{Error, Result};

use super::{Wide, alike, decompose, rank_of, reduced};
use crate::ops;
use crate::tensor::Tensor;

decompose! {
    ops::mse_loss(x: Tensor, target: Tensor, reduction: String) |call| =>
        of_differences(call, &x, &target, &reduction, squared);
    ops::l1_loss(x: Tensor, target: Tensor, reduction: String) |call| =>
        of_differences(call, &x, &target, &reduction, Tensor::abs);
    ops::smooth_l1_loss(x: Tensor, target: Tensor, reduction: String, beta: f64) |call| =>
        of_differences(call, &x, &target, &reduction, |x| smooth_l1(x, beta));
    ops::huber_loss(x: Tensor, target: Tensor, reduction: String, delta: f64) |call| =>
        of_differences(call, &x, &target, &reduction, |x| curve_and_line(x, delta, delta));
    ops::binary_cross_entropy_with_logits(
        x: Tensor, target: Tensor, weight: Option<Tensor>, reduction: String, pos_weight: Option<Tensor>
    ) |call| => {
        of_wide(call, &["x", "target", "weight", "pos_weight"], &reduction, |wide| {
            let [weight, pos_weight] = [weight, pos_weight].map(|of| of.map(|of| wide.up(&of)).transpose());
            let losses = cross_entropy_of_logits(&wide.up(&x)?, &wide.up(&target)?, pos_weight?.as_ref());
            weighted(losses, weight?.as_ref())
        })
    };
    ops::kl_div(x: Tensor, target: Tensor, reduction: String, log_target: bool) |call| => {
        let is_batched = reduction == "batchmean";
        let reduction = if is_batched { "sum" } else { &*reduction };
        let y = of_wide(call, &["x", "target"], reduction, |wide| {
            kl_div(&wide.up(&x)?, &wide.up(&target)?, log_target)
        })?;
        // One number is a batch of itself.
        match (is_batched, rank_of(call, "x")) {
            (false, _) | (_, Some(0)) => Ok(y),
            (true, Some(_)) => y / ops::size(&x, 0)?,
            (true, None) => y / ops::size(&ops::atleast_1d(&x)?, 0)?,
        }
    };
    ops::poisson_nll_loss(
        x: Tensor, target: Tensor, log_input: bool, full: bool, eps: f64, reduction: String
    ) |call| => {
        of_wide(call, &["x", "target"], &reduction, |wide| {
            poisson(&wide.up(&x)?, &wide.up(&target)?, log_input, full, eps)
        })
    };
    ops::margin_ranking_loss(x1: Tensor, x2: Tensor, target: Tensor, margin: f64, reduction: String) |call| => {
        of_wide(call, &["x1", "x2", "target"], &reduction, |wide| {
            ranked(&(wide.up(&x1)? - wide.up(&x2)?)?, &wide.up(&target)?, margin)
        })
    };
    ops::hinge_embedding_loss(x: Tensor, target: Tensor, margin: f64, reduction: String) |call| => {
        of_wide(call, &["x", "target"], &reduction, |wide| hinge(&wide.up(&x)?, &wide.up(&target)?, margin))
    };
    ops::cosine_embedding_loss(x1: Tensor, x2: Tensor, target: Tensor, margin: f64, reduction: String) =>
        reduced(cosine(&x1, &x2, &target, margin), &reduction);
    ops::soft_margin_loss(x: Tensor, target: Tensor, reduction: String) =>
        reduced(ops::log1p(&(-(&target * &x)?)?.exp()?), &reduction);
    ops::multilabel_soft_margin_loss(x: Tensor, target: Tensor, weight: Option<Tensor>, reduction: String) |call| => {
        of_wide(call, &["x", "target", "weight"], &reduction, |wide| {
            let weight = weight.map(|of| wide.up(&of)).transpose()?;
            soft_margins(&wide.up(&x)?, &wide.up(&target)?, weight.as_ref(), rank_of(call, "x"))
        })
    };
    ops::triplet_margin_loss(
        anchor: Tensor, positive: Tensor, negative: Tensor, margin: f64, p: f64, eps: f64, swap: bool, reduction: String
    ) |call| => {
        of_wide(call, &["anchor", "positive", "negative"], &reduction, |wide| {
            let of = [&wide.up(&anchor)?, &wide.up(&positive)?, &wide.up(&negative)?];
            triplet(of, margin, p, eps, swap)
        })
    };
}

/// Losses and their reduction, in `f32` where all floats among these arguments are of one half type.
fn of_wide(
    call: &DecomposedCall<'_>,
    names: &[&str],
    reduction: &str,
    losses: impl FnOnce(Wide) -> Result<Tensor>,
) -> Result<Tensor> {
    let wide = Wide::of(call, names);
    wide.down(&reduced(losses(wide), reduction)?)
}

/// The losses of differences, and their reduction.
fn of_differences(
    call: &DecomposedCall<'_>,
    x: &Tensor,
    target: &Tensor,
    reduction: &str,
    losses: impl FnOnce(&Tensor) -> Result<Tensor>,
) -> Result<Tensor> {
    let [x, target] = alike(call, ("x", x), ("target", target))?;
    of_wide(call, &["x", "target"], reduction, |wide| {
        losses(&(wide.up(&x)? - wide.up(&target)?)?)
    })
}

fn squared(x: &Tensor) -> Result<Tensor> {
    x * x
}

fn weighted(losses: Result<Tensor>, weight: Option<&Tensor>) -> Result<Tensor> {
    match weight {
        None => losses,
        Some(weight) => losses? * weight,
    }
}

/// A parabola up to `edge`, and the line of slope `slope` that touches it there.
fn curve_and_line(difference: &Tensor, edge: f64, slope: f64) -> Result<Tensor> {
    let far = difference.abs()?;
    let is_near = far.lt(edge)?;
    let line = ((far - 0.5 * edge)? * slope)?;
    // Of 0 where it is not used, so that no slope is infinite.
    let near = ops::r#where(&is_near, difference, 0)?;
    let curve = (squared(&near)? * (0.5 * slope / edge))?;
    ops::r#where(&is_near, &curve, &line)
}

fn smooth_l1(difference: &Tensor, beta: f64) -> Result<Tensor> {
    match beta == 0.0 {
        true => difference.abs(),
        false => curve_and_line(difference, beta, 1.0),
    }
}

fn cross_entropy_of_logits(
    x: &Tensor,
    target: &Tensor,
    pos_weight: Option<&Tensor>,
) -> Result<Tensor> {
    let logs = ops::logsigmoid(x)?;
    let logs = match pos_weight {
        None => logs,
        Some(weight) => ((((weight - 1.0)? * target)? + 1.0)? * logs)?,
    };
    ((1.0 - target)? * x)? - logs
}

fn kl_div(x: &Tensor, target: &Tensor, log_target: bool) -> Result<Tensor> {
    match log_target {
        true => target.exp()? * (target - x)?,
        false => ops::xlogy(target, target)? - (target * x)?,
    }
}

fn poisson(x: &Tensor, target: &Tensor, log_input: bool, full: bool, eps: f64) -> Result<Tensor> {
    let loss = match log_input {
        true => (x.exp()? - (target * x)?)?,
        false => (x - (target * (x + eps)?.log()?)?)?,
    };
    if !full {
        return Ok(loss);
    }
    // Stirling's terms, of targets above 1.
    let is_large = target.gt(1)?;
    let safe = ops::r#where(&is_large, target, 1.0)?;
    let turns = ((&safe * (2.0 * PI))?.log()? * 0.5)?;
    let more = (((&safe * safe.log()?)? - &safe)? + turns)?;
    loss + ops::r#where(&is_large, &more, 0.0)?
}

fn ranked(difference: &Tensor, target: &Tensor, margin: f64) -> Result<Tensor> {
    let gap = (margin - (target * difference)?)?;
    ops::clamp(&gap, 0, None)
}

/// `near` where the target is 1, `far` where it is -1, added up.
fn by_sign(target: &Tensor, near: &Tensor, far: &Tensor) -> Result<Tensor> {
    ops::r#where(&target.eq(1)?, near, 0)? + ops::r#where(&target.eq(-1)?, far, 0)?
}

fn hinge(x: &Tensor, target: &Tensor, margin: f64) -> Result<Tensor> {
    let far = ops::clamp(&(margin - x)?, 0, None)?;
    ops::r#where(&target.ne(1)?, &far, 0)? + ops::r#where(&target.ne(-1)?, x, 0)?
}

fn cosine(x1: &Tensor, x2: &Tensor, target: &Tensor, margin: f64) -> Result<Tensor> {
    let product = |a: &Tensor, b: &Tensor| ops::sum(&(a * b)?, -1, false);
    let length = |x: &Tensor| product(x, x)? + f64::from(1e-12f32);
    let cos = (product(x1, x2)? / (length(x1)? * length(x2)?)?.sqrt()?)?;
    let far = ops::clamp(&(&cos - margin)?, 0, None)?;
    by_sign(target, &(1.0 - &cos)?, &far)
}

/// The mean over the classes, which are the last dim of x, also where the targets have more dims.
fn soft_margins(
    x: &Tensor,
    target: &Tensor,
    weight: Option<&Tensor>,
    rank: Option<usize>,
) -> Result<Tensor> {
    let losses = weighted(cross_entropy_of_logits(x, target, None), weight)?;
    let Some(last) = rank.and_then(|rank| rank.checked_sub(1)) else {
        return ops::mean(&losses, -1, false);
    };
    let sum = ops::sum(&losses, i64::try_from(last).unwrap_or(-1), false)?;
    sum / ops::size(x, -1)?
}

fn triplet(of: [&Tensor; 3], margin: f64, p: f64, eps: f64, swap: bool) -> Result<Tensor> {
    let [anchor, positive, negative] = of;
    if margin.is_nan() || margin <= 0.0 {
        return Err(Error::msg(format_args!("margin is above 0, not {margin}")));
    }
    let near = ops::pairwise_distance(anchor, positive, p, eps, false)?;
    let mut away = ops::pairwise_distance(anchor, negative, p, eps, false)?;
    if swap {
        away = ops::minimum(
            &away,
            &ops::pairwise_distance(positive, negative, p, eps, false)?,
        )?;
    }
    ops::clamp(&((near + margin)? - away)?, 0, None)
}
