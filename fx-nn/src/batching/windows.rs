//! Functions of windows, for many examples at once: the examples are more samples, or more groups.

use fx_core::trace::FromValue;
use fx_core::value::{Int, IntoValue, Value};
use fx_core::{Error, Result};

use super::batching;
use crate::func::kinds::each;
use crate::func::{BatchCall, known};
use crate::ops;
use crate::tensor::Tensor;

batching! {
    ops::conv1d => |call| conv(call, 1);
    ops::conv2d => |call| conv(call, 2);
    ops::conv3d => |call| conv(call, 3);
    ops::conv_transpose1d => |call| conv(call, 1);
    ops::conv_transpose2d => |call| conv(call, 2);
    ops::conv_transpose3d => |call| conv(call, 3);
    ops::max_pool1d => |call| pool(call, 1);
    ops::max_pool2d => |call| pool(call, 2);
    ops::max_pool3d => |call| pool(call, 3);
    ops::max_pool1d_with_indices => |call| pool(call, 1);
    ops::max_pool2d_with_indices => |call| pool(call, 2);
    ops::max_pool3d_with_indices => |call| pool(call, 3);
    ops::avg_pool1d => |call| pool(call, 1);
    ops::avg_pool2d => |call| pool(call, 2);
    ops::avg_pool3d => |call| pool(call, 3);
    ops::adaptive_avg_pool1d => |call| pool(call, 1);
    ops::adaptive_avg_pool2d => |call| pool(call, 2);
    ops::adaptive_avg_pool3d => |call| pool(call, 3);
    ops::adaptive_max_pool1d => |call| pool(call, 1);
    ops::adaptive_max_pool2d => |call| pool(call, 2);
    ops::adaptive_max_pool3d => |call| pool(call, 3);
    ops::adaptive_max_pool1d_with_indices => |call| pool(call, 1);
    ops::adaptive_max_pool2d_with_indices => |call| pool(call, 2);
    ops::adaptive_max_pool3d_with_indices => |call| pool(call, 3);
    ops::lp_pool1d => |call| pool(call, 1);
    ops::lp_pool2d => |call| pool(call, 2);
    ops::dropout1d => |call| samples(call, "x", call.rank("x")? == 2);
    ops::dropout2d => |call| samples(call, "x", call.rank("x")? == 3);
    ops::dropout3d => |call| samples(call, "x", call.rank("x")? == 4);
    ops::feature_alpha_dropout => |call| samples(call, "x", false);
    ops::stochastic_depth => |call| match call.arg::<String>("mode")?.as_str() {
        "row" => samples(call, "x", false),
        _ => call.with(&[("mode", "row".into_value())]),
    };
    ops::batch_norm => |call| batch_norm(call);
    ops::instance_norm => |call| {
        let others = ["running_mean", "running_var", "weight", "bias"];
        match others.iter().any(|name| call.is_batched(name)) {
            true => call.one_by_one(),
            false => samples(call, "x", false),
        }
    };
    ops::unfold => |call| samples(call, "x", call.rank("x")? == 3);
    ops::fold => |call| samples(call, "x", call.rank("x")? == 2);
    ops::interpolate => |call| samples(call, "x", false);
    ops::interpolate_with => |call| samples(call, "x", false);
    ops::pad => |call| match call.arg::<String>("mode")?.as_str() {
        "constant" => call.with(&[]),
        _ => {
            let padded = known::ints(call.arg("pad")?)?.len() / 2;
            let has_no_sample = call.rank("x")? == padded + 1;
            samples(call, "x", has_no_sample)
        }
    };
}

/// Two dims as one.
fn joined(x: &Tensor) -> Result<Tensor> {
    let sizes = known::sizes(x)?;
    let mut shape = vec![(sizes[0] * sizes[1])?];
    shape.extend(sizes[2..].iter().copied());
    ops::reshape(x, shape)
}

/// The first dim as examples and what each has of it.
fn parted(x: &Tensor, examples: Int) -> Result<Tensor> {
    let sizes = known::sizes(x)?;
    let mut shape = vec![examples, Int::from(-1)];
    if let (Some(all), Some(n)) = (known::number(&sizes[0]), known::number(&examples))
        && n > 0
    {
        shape[1] = Int::from(all / n);
    }
    shape.extend(sizes[1..].iter().copied());
    ops::reshape(x, shape)
}

/// A function of samples: those of all examples behind each other.
fn samples(call: &BatchCall<'_>, name: &str, has_no_sample: bool) -> Result<Value> {
    let x = call.tensor(name)?;
    if has_no_sample {
        return call.with(&[(name, x.into_value())]);
    }
    let found = call.with(&[(name, joined(&x)?.into_value())])?;
    each(found, |y| parted(y, call.size()))
}

fn pool(call: &BatchCall<'_>, dims: usize) -> Result<Value> {
    samples(call, "x", call.rank("x")? == dims + 1)
}

/// Examples with one kernel are more samples; with a kernel each they are groups.
fn conv(call: &BatchCall<'_>, dims: usize) -> Result<Value> {
    let bias = match call.is_batched("bias") {
        true => call.optional("bias")?,
        false => None,
    };
    if !call.is_batched("weight") {
        let has_no_sample = call.rank("x")? == dims + 1;
        let call_without = match &bias {
            Some(_) => Value::None,
            None => call.arg("bias")?,
        };
        let x = call.tensor("x")?;
        let given = if has_no_sample { x } else { joined(&x)? };
        let mut y: Tensor =
            Tensor::from_value(call.with(&[("x", given.into_value()), ("bias", call_without)])?)?;
        if !has_no_sample {
            y = parted(&y, call.size())?;
        }
        return with_bias(y, bias, dims).map(IntoValue::into_value);
    }
    let groups: i64 = call.arg("groups")?;
    let examples = known::number(&call.size()).ok_or_else(|| {
        Error::msg("a convolution with a kernel for each example needs a number of examples")
    })?;
    let has_no_sample = call.rank("x")? == dims + 1;
    let x = call.tensor("x")?;
    // [examples, samples, channels, ..] as [samples, examples * channels, ..].
    let x = if has_no_sample {
        ops::unsqueeze(&x, 1)?
    } else {
        x
    };
    let x = ops::transpose(&x, 0, 1)?;
    let sizes = known::sizes(&x)?;
    let mut shape = vec![sizes[0], (sizes[1] * sizes[2])?];
    shape.extend(sizes[3..].iter().copied());
    let x = ops::reshape(&x, shape)?;
    let weight = joined(&call.tensor("weight")?)?;
    let own = match &bias {
        Some(_) => Value::None,
        None => match call.optional("bias")? {
            Some(bias) => joined_vector(&bias)?.into_value(),
            None => Value::None,
        },
    };
    let y = Tensor::from_value(call.with(&[
        ("x", x.into_value()),
        ("weight", weight.into_value()),
        ("bias", own),
        ("groups", Value::Int(groups * examples)),
    ])?)?;
    let sizes = known::sizes(&y)?;
    let channels = known::number(&sizes[1]).map_or(Int::from(-1), |n| Int::from(n / examples));
    let mut shape = vec![sizes[0], call.size(), channels];
    shape.extend(sizes[2..].iter().copied());
    let y = ops::transpose(&ops::reshape(&y, shape)?, 0, 1)?;
    let y = if has_no_sample {
        ops::squeeze(&y, 1)?
    } else {
        y
    };
    with_bias(y, bias, dims).map(IntoValue::into_value)
}

fn joined_vector(x: &Tensor) -> Result<Tensor> {
    ops::reshape(x, vec![Int::from(-1)])
}

/// A bias for each example.
fn with_bias(y: Tensor, bias: Option<Tensor>, dims: usize) -> Result<Tensor> {
    let Some(bias) = bias else {
        return Ok(y);
    };
    let sizes = known::sizes(&bias)?;
    let mut shape = vec![sizes[0]];
    shape.extend(vec![Int::from(1); known::rank(&y)? - 2 - dims]);
    shape.push(sizes[1]);
    shape.extend(vec![Int::from(1); dims]);
    y + ops::reshape(&bias, shape)?
}

/// Each channel of each example by its own statistics, or by the running ones.
fn batch_norm(call: &BatchCall<'_>) -> Result<Tensor> {
    let x = call.tensor("x")?;
    let rank = call.rank("x")?;
    let mut shape = vec![Int::from(1); rank + 1];
    shape[2] = known::size(&x, 2)?;
    let wide = |of: Tensor| -> Result<Tensor> {
        let mut shape = shape.clone();
        shape[0] = known::size(&of, 0)?;
        ops::reshape(&of, shape)
    };
    let (mean, var) = match (
        call.arg::<bool>("training")?,
        call.optional("running_mean")?,
        call.optional("running_var")?,
    ) {
        (false, Some(mean), Some(var)) => (wide(mean)?, wide(var)?),
        _ => {
            let dims: Vec<i64> = (1..=rank as i64).filter(|dim| *dim != 2).collect();
            let mean = ops::mean(&x, dims.clone(), true)?;
            let apart = (&x - &mean)?;
            (mean, ops::mean(&(&apart * &apart)?, dims, true)?)
        }
    };
    let mut y = ((x - mean)? * ops::rsqrt(&(var + call.arg::<f64>("eps")?)?)?)?;
    if let Some(weight) = call.optional("weight")? {
        y = (y * wide(weight)?)?;
    }
    match call.optional("bias")? {
        Some(bias) => y + wide(bias)?,
        None => Ok(y),
    }
}
