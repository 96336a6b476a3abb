//! Factors of what is computed element by element, of reductions, and of what works along a dim.

use fx_nn::ir::{Argument, operator};
use fx_nn::{Result, function, function_table, ops};

use super::factors::{
    Factors, Reduction, ShardCall, ShardRule, ShardTensor, each, place, pointwise,
};

/// Rules by path in `ops`.
macro_rules! rules {
    ($($rule:expr => $($function:ident),+;)*) => {
        function_table! { ShardRule { $($(function!(ops::$function) => ShardRule($rule),)+)* } }
    };
}
pub(super) use rules;

fn dropout(call: &ShardCall<'_>) -> Result<Option<Factors>> {
    // What is drawn is drawn for the whole value.
    let is_idle = matches!(&*call.argument("p")?, Argument::Float(p) if *p == 0.0);
    match call.flag("training")? && !is_idle {
        true => Ok(None),
        false => pointwise(call),
    }
}

/// What keeps each dim of `x` but the named one, which is never shared.
fn along(call: &ShardCall<'_>) -> Result<Option<Factors>> {
    let x = call.tensor("x")?;
    let rank = x.shape.len();
    let Some(dim) = call.dim("dim", rank)? else {
        return Ok(None);
    };
    kept_but(call, &x, |at| at == dim)
}

/// What keeps the dims of `x` but those, which are never shared; dims that the result lacks are taken out.
pub(super) fn kept_but(
    call: &ShardCall<'_>,
    x: &ShardTensor,
    is_whole: impl Fn(usize) -> bool,
) -> Result<Option<Factors>> {
    let Some(result) = call.result() else {
        return Ok(None);
    };
    let mut factors = Factors::new();
    let mut dims = each(&mut factors, &x.shape);
    for (at, dim) in dims.iter_mut().enumerate() {
        if is_whole(at) {
            *dim = None;
        }
    }
    factors.operand(x, dims.iter().copied());
    if result.len() == dims.len() {
        factors.result(dims);
    } else {
        let kept = (0..dims.len()).filter(|at| !is_whole(*at));
        let kept: Vec<_> = kept.map(|at| dims[at]).collect();
        if kept.len() != result.len() {
            return Ok(None);
        }
        factors.result(kept);
    }
    Ok(Some(factors))
}

fn last_whole(call: &ShardCall<'_>, count: usize) -> Result<Option<Factors>> {
    let x = call.tensor("x")?;
    let rank = x.shape.len();
    kept_but(call, &x, |at| at + count >= rank)
}

fn reduced(call: &ShardCall<'_>, by: Option<Reduction>) -> Result<Option<Factors>> {
    let x = call.tensor("x")?;
    let rank = x.shape.len();
    let dims = match call.ints("dim")? {
        Some(dims) if !dims.is_empty() => dims.iter().map(|dim| place(*dim, rank)).collect(),
        _ => Some((0..rank).collect::<Vec<_>>()),
    };
    let Some(dims) = dims else {
        return Ok(None);
    };
    let keep = call.flag("keepdim")?;
    let mut factors = Factors::new();
    let (mut of_x, mut result) = (Vec::new(), Vec::new());
    for (at, size) in x.shape.iter().enumerate() {
        if !dims.contains(&at) {
            let factor = (*size > 1).then(|| factors.factor(*size));
            of_x.push(factor);
            result.push(factor);
            continue;
        }
        of_x.push(
            by.filter(|_| *size > 1)
                .map(|by| factors.contracted(*size, by)),
        );
        if keep {
            result.push(None);
        }
    }
    factors.operand(&x, of_x);
    factors.result(result);
    Ok(Some(factors))
}

/// Layer norms: the last dims are never shared.
fn normalized(call: &ShardCall<'_>) -> Result<Option<Factors>> {
    match call.ints("normalized_shape")? {
        Some(shape) => last_whole(call, shape.len()),
        None => Ok(None),
    }
}

fn group_norm(call: &ShardCall<'_>) -> Result<Option<Factors>> {
    let x = call.tensor("x")?;
    kept_but(call, &x, |at| at > 0)
}

/// Channels of the running statistics; all dims, for they are what a run knows.
fn batch_norm(call: &ShardCall<'_>) -> Result<Option<Factors>> {
    let x = call.tensor("x")?;
    if call.flag("training")?
        || x.shape.len() < 2
        || call.optional_tensor("running_mean")?.is_none()
    {
        return Ok(None);
    }
    let mut factors = Factors::new();
    let dims = each(&mut factors, &x.shape);
    factors.operand(&x, dims.iter().copied());
    for name in ["running_mean", "running_var", "weight", "bias"] {
        if let Some(operand) = call.optional_tensor(name)? {
            factors.operand(&operand, [dims[1]]);
        }
    }
    factors.result(dims);
    Ok(Some(factors))
}

/// A new tensor, of which each device takes its part.
fn made(call: &ShardCall<'_>) -> Result<Option<Factors>> {
    let Some(result) = call.result() else {
        return Ok(None);
    };
    let mut factors = Factors::new();
    let dims = each(&mut factors, &result);
    factors.result(dims);
    factors.computed_whole();
    Ok(Some(factors))
}

rules! {
    dropout => dropout;
    along => softmax, log_softmax, softmin, cumsum, cumprod, argmax, argmin, max, min, topk, sort;
    |call| reduced(call, Some(Reduction::Sum)) => sum;
    |call| reduced(call, Some(Reduction::Mean)) => mean;
    |call| reduced(call, Some(Reduction::Max)) => amax;
    |call| reduced(call, Some(Reduction::Min)) => amin;
    |call| reduced(call, None) => var, std, logsumexp;
    |call| last_whole(call, 1) => avg_pool1d, max_pool1d, adaptive_avg_pool1d, adaptive_max_pool1d;
    |call| last_whole(call, 2) => avg_pool2d, max_pool2d, adaptive_avg_pool2d, adaptive_max_pool2d, tril, triu;
    |call| last_whole(call, 3) => avg_pool3d, max_pool3d, adaptive_avg_pool3d, adaptive_max_pool3d;
    |call| kept_but(call, &call.tensor("x")?, |at| at > 1) => interpolate, interpolate_with;
    normalized => layer_norm, rms_norm;
    group_norm => group_norm;
    batch_norm => batch_norm;
    made => arange, full, linspace, eye;
}

function_table! { ShardRule {
    operator::add => ShardRule(pointwise),
    operator::sub => ShardRule(pointwise),
    operator::mul => ShardRule(pointwise),
    operator::truediv => ShardRule(pointwise),
    operator::floordiv => ShardRule(pointwise),
    operator::r#mod => ShardRule(pointwise),
    operator::pow => ShardRule(pointwise),
    operator::neg => ShardRule(pointwise),
    operator::abs => ShardRule(pointwise),
    operator::invert => ShardRule(pointwise),
    operator::and_ => ShardRule(pointwise),
    operator::or_ => ShardRule(pointwise),
    operator::xor => ShardRule(pointwise),
    operator::eq => ShardRule(pointwise),
    operator::ne => ShardRule(pointwise),
    operator::lt => ShardRule(pointwise),
    operator::le => ShardRule(pointwise),
    operator::gt => ShardRule(pointwise),
    operator::ge => ShardRule(pointwise),
} }
