//! Norms with running statistics, and losses of classes.

use fx_nn::lowering::OpCall;
use fx_nn::prelude::*;

use super::picks::along;
use super::reduce::moments;
use super::{given, rules};
use crate::out::cx::{Array, Cx};

rules! {
    batch_norm => |cx, call| {
        let x = cx.tensor(call, "x")?;
        let wide = cx.single(&x);
        let running = (cx.optional(call, "running_mean")?, cx.optional(call, "running_var")?);
        let training = call.flag("training")?;
        // How the running statistics move, which are no results of a program.
        call.needs_no(&["momentum"]);
        let (mean, variance) = match running {
            (Some(mean), Some(variance)) if !training => (mean, variance),
            _ => {
                let dims: Vec<i64> = (0..x.rank() as i64).filter(|dim| *dim != 1).collect();
                moments(cx, &wide, &dims)?
            }
        };
        let y = normalized(cx, call, &wide, &mean, &variance, &[1])?;
        Ok(cx.convert(&y, x.dtype).into())
    },
    instance_norm => |cx, call| {
        let x = cx.tensor(call, "x")?;
        let wide = cx.single(&x);
        let running = (cx.optional(call, "running_mean")?, cx.optional(call, "running_var")?);
        call.needs_no(&["momentum"]);
        if !call.flag("use_input_stats")?
            && let (Some(mean), Some(variance)) = running
        {
            let y = normalized(cx, call, &wide, &mean, &variance, &[1])?;
            return Ok(cx.convert(&y, x.dtype).into());
        }
        let dims: Vec<i64> = (2..x.rank() as i64).collect();
        let (mean, variance) = moments(cx, &wide, &dims)?;
        let y = normalized(cx, call, &wide, &mean, &variance, &[0, 1])?;
        Ok(cx.convert(&y, x.dtype).into())
    },
    cross_entropy => |cx, call| {
        let x = cx.tensor(call, "x")?;
        let x = cx.single(&x);
        let dim = i64::from(x.rank() > 1);
        let most = cx.reduce("maximum", &x, f64::NEG_INFINITY, &[dim]);
        let most = spread(cx, &most, dim, &x.shape)?;
        let apart = cx.binary("subtract", &x, &most);
        let powers = cx.unary("exponential", &apart);
        let sum = cx.reduce("add", &powers, 0.0, &[dim]);
        let log = cx.unary("log", &sum);
        let log = spread(cx, &log, dim, &x.shape)?;
        let logs = cx.binary("subtract", &apart, &log);
        let target = cx.tensor(call, "target")?;
        let smoothing = call.float("label_smoothing")?;
        let loss = match target.dtype.is_floating_point() {
            true => of_chances(cx, call, &logs, &target, smoothing, dim)?,
            false => of_classes(cx, call, &logs, &target, smoothing, dim)?,
        };
        given(cx, call, &loss)
    },
    nll_loss => |cx, call| {
        let (x, target) = (cx.tensor(call, "x")?, cx.tensor(call, "target")?);
        let x = cx.single(&x);
        let dim = i64::from(x.rank() > 1);
        let loss = of_classes(cx, call, &x, &target, 0.0, dim)?;
        given(cx, call, &loss)
    },
}

/// `(x - mean) / sqrt(variance + eps) * weight + bias`, with statistics at those dims.
fn normalized(
    cx: &mut Cx,
    call: &OpCall<'_>,
    x: &Array,
    mean: &Array,
    variance: &Array,
    dims: &[i64],
) -> Result<Array> {
    let (mean, variance) = (cx.convert(mean, x.dtype), cx.convert(variance, x.dtype));
    let raised = cx.with_number("add", &variance, call.float("eps")?);
    let by = cx.unary("rsqrt", &raised);
    let (mean, by) = (
        cx.broadcast(&mean, dims, &x.shape),
        cx.broadcast(&by, dims, &x.shape),
    );
    let apart = cx.binary("subtract", x, &mean);
    let mut y = cx.binary("multiply", &apart, &by);
    for (name, op) in [("weight", "multiply"), ("bias", "add")] {
        if let Some(of) = cx.optional(call, name)? {
            let of = cx.convert(&of, y.dtype);
            let of = cx.broadcast(&of, &[1], &y.shape);
            y = cx.binary(op, &y, &of);
        }
    }
    Ok(y)
}

/// A reduction along a dim, back in the shape that it had.
fn spread(cx: &mut Cx, x: &Array, dim: i64, shape: &[i64]) -> Result<Array> {
    let kept = cx.keeping(x, &[dim], shape);
    cx.expand(&kept, shape)
}

fn all_dims(x: &Array) -> Vec<i64> {
    (0..x.rank() as i64).collect()
}

/// The loss of chances for each class.
fn of_chances(
    cx: &mut Cx,
    call: &OpCall<'_>,
    logs: &Array,
    target: &Array,
    smoothing: f64,
    dim: i64,
) -> Result<Array> {
    let classes = logs.shape[dim as usize] as f64;
    let mut target = cx.convert(target, logs.dtype);
    if smoothing != 0.0 {
        target = cx.with_number("multiply", &target, 1.0 - smoothing);
        target = cx.with_number("add", &target, smoothing / classes);
    }
    if let Some(weight) = cx.optional(call, "weight")? {
        let weight = cx.convert(&weight, logs.dtype);
        let weight = cx.broadcast(&weight, &[dim], &logs.shape);
        target = cx.binary("multiply", &target, &weight);
    }
    let product = cx.binary("multiply", logs, &target);
    let losses = cx.reduce("add", &product, 0.0, &[dim]);
    let losses = cx.unary("negate", &losses);
    Ok(match &*call.text("reduction")? {
        "none" => losses,
        reduction => {
            let sum = cx.reduce("add", &losses, 0.0, &all_dims(&losses));
            let count = losses.count().max(1) as f64;
            if reduction == "mean" {
                cx.with_number("divide", &sum, count)
            } else {
                sum
            }
        }
    })
}

/// The loss of a class each.
fn of_classes(
    cx: &mut Cx,
    call: &OpCall<'_>,
    logs: &Array,
    target: &Array,
    smoothing: f64,
    dim: i64,
) -> Result<Array> {
    let ignored = call.int("ignore_index")?;
    let kept = cx.compare_number("NE", target, ignored as f64);
    let zero = cx.splat(0.0, target.dtype, &target.shape);
    let class = cx.select(&kept, target, &zero);
    let kept = cx.convert(&kept, logs.dtype);
    let one = cx.keeping(&class, &[dim], &one_class(logs, dim));
    let picked = along(cx, logs, dim as usize, &one);
    let picked = cx.reshape(&picked, &target.shape);
    let weight = cx.optional(call, "weight")?;
    let weight = weight.map(|weight| cx.convert(&weight, logs.dtype));
    let by = match &weight {
        Some(weight) => {
            let by = super::picks::take(cx, weight, 0, &class);
            cx.binary("multiply", &by, &kept)
        }
        None => kept.clone(),
    };
    let mut losses = cx.binary("multiply", &picked, &by);
    losses = cx.unary("negate", &losses);
    let mut smooth = None;
    if smoothing != 0.0 {
        let weighted = match &weight {
            Some(weight) => {
                let weight = cx.broadcast(weight, &[dim], &logs.shape);
                cx.binary("multiply", logs, &weight)
            }
            None => logs.clone(),
        };
        let sum = cx.reduce("add", &weighted, 0.0, &[dim]);
        let sum = cx.unary("negate", &sum);
        smooth = Some(cx.binary("multiply", &sum, &kept));
    }
    let classes = logs.shape[dim as usize] as f64;
    let joined = |cx: &mut Cx, loss: &Array, smooth: &Array| {
        let loss = cx.with_number("multiply", loss, 1.0 - smoothing);
        let smooth = cx.with_number("multiply", smooth, smoothing / classes);
        cx.binary("add", &loss, &smooth)
    };
    let reduction = call.text("reduction")?;
    if reduction == "none" {
        return Ok(match smooth {
            Some(smooth) => joined(cx, &losses, &smooth),
            None => losses,
        });
    }
    let dims = all_dims(&losses);
    let sum = cx.reduce("add", &losses, 0.0, &dims);
    let smooth = smooth.map(|smooth| cx.reduce("add", &smooth, 0.0, &dims));
    let whole = match smooth {
        Some(smooth) => joined(cx, &sum, &smooth),
        None => sum,
    };
    if reduction == "sum" {
        return Ok(whole);
    }
    let count = cx.reduce("add", &by, 0.0, &dims);
    Ok(cx.binary("divide", &whole, &count))
}

/// The shape with one class.
fn one_class(logs: &Array, dim: i64) -> Vec<i64> {
    let mut shape = logs.shape.clone();
    shape[dim as usize] = 1;
    shape
}
