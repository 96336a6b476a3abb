//! Operators of PyTorch's core set that give more than one result, or stand for several functions.

use fx_nn::ir::Function;
use fx_nn::prelude::*;
use fx_nn::{Error, Result, operator};

use super::entry::{Entry, by, rank, same_function};
use crate::call::Call;

fn tuple<const N: usize>(all: [Tensor; N]) -> Value {
    Value::Tuple(all.into_iter().map(Value::object).collect())
}

/// A norm's result with the mean and one over the deviation of what it is taken over, whose dims stay.
fn with_moments(y: Tensor, x: &Tensor, dims: Vec<i64>, eps: f64) -> Result<[Tensor; 3]> {
    let variance = ops::var(x, dims.clone(), false, true)?;
    let rstd = ops::rsqrt(&(variance + eps)?)?;
    Ok([y, ops::mean(x, dims, true)?, rstd])
}

fn layer_norm(call: &Call<'_>) -> Result<Value> {
    let x: Tensor = call.of("input")?;
    let y = Tensor::from_value(same_function(function!(ops::layer_norm), &[], call)?)?;
    let over = call.items("normalized_shape")?.len() as i64;
    let dims = (-over..0).collect();
    Ok(tuple(with_moments(y, &x, dims, call.of("eps")?)?))
}

fn group_norm(call: &Call<'_>) -> Result<Value> {
    let (x, groups): (Tensor, i64) = (call.of("input")?, call.of("group")?);
    let eps: f64 = call.of("eps")?;
    let optional = |name: &str| call.get(name).cloned().unwrap_or(Value::None);
    let y: Tensor = function!(ops::group_norm).call_as(args![
        &x,
        groups,
        weight = optional("weight"),
        bias = optional("bias"),
        eps = eps
    ])?;
    let images: Int = call.of("N")?;
    let parted = ops::reshape(&x, vec![images, groups.into(), Int::from(-1)])?;
    let [y, mean, rstd] = with_moments(y, &parted, vec![-1], eps)?;
    Ok(tuple([
        y,
        ops::squeeze(&mean, -1)?,
        ops::squeeze(&rstd, -1)?,
    ]))
}

/// Batch norm: without statistics by those of the batch, else in evaluation.
fn batch_norm(call: &Call<'_>, in_evaluation: bool) -> Result<Value> {
    let x: Tensor = call.of("input")?;
    let training = !in_evaluation && call.or("training", false)?;
    let has_statistics = call.get("running_mean").is_some();
    if training && has_statistics {
        return Err(Error::msg(
            "batch norm in training writes its statistics, which is not read yet: export in evaluation",
        ));
    }
    let args = call.args.iter().filter(|(name, _)| *name != "training");
    let mut args: Vec<(&str, Value)> = args.cloned().collect();
    args.push(("training", Value::Bool(training)));
    let own = call.with_args(args);
    let y = Tensor::from_value(same_function(function!(ops::batch_norm), &[], &own)?)?;
    if !training {
        let none = || ops::zeros(vec![0i64], Some(DType::F32));
        return Ok(tuple([y, none()?, none()?]));
    }
    let dims: Vec<i64> = (0..rank(&x)?).filter(|dim| *dim != 1).collect();
    let [y, mean, rstd] = with_moments(y, &x, dims, call.of("eps")?)?;
    Ok(tuple([
        y,
        ops::reshape(&mean, [-1])?,
        ops::reshape(&rstd, [-1])?,
    ]))
}

/// A convolution over as many dims as its weight has, one way or the other.
fn convolution(call: &Call<'_>) -> Result<Value> {
    let w: Tensor = call.of("weight")?;
    let transposed: bool = call.or("transposed", false)?;
    let dims = rank(&w)? - 2;
    let function: Function = match (dims, transposed) {
        (1, false) => function!(ops::conv1d),
        (2, false) => function!(ops::conv2d),
        (3, false) => function!(ops::conv3d),
        (1, true) => function!(ops::conv_transpose1d),
        (2, true) => function!(ops::conv_transpose2d),
        (3, true) => function!(ops::conv_transpose3d),
        _ => {
            return Err(Error::msg(format_args!(
                "a convolution over {dims} dims, and 1 to 3 are read"
            )));
        }
    };
    let is_meant = |name: &str| name != "transposed" && (transposed || name != "output_padding");
    let mut args: Vec<(&str, Value)> = Vec::new();
    for (name, value) in call.args.iter().filter(|(name, _)| is_meant(name)) {
        let value = match value {
            // One number stands for all dims.
            Value::List(items) if items.len() == 1 && dims > 1 && *name != "bias" => {
                Value::List(vec![items[0].clone(); dims as usize].into())
            }
            value => value.clone(),
        };
        args.push((*name, value));
    }
    same_function(function, &[], &call.with_args(args))
}

fn dropout(call: &Call<'_>) -> Result<Value> {
    let (x, p): (Tensor, f64) = (call.of("input")?, call.of("p")?);
    let of_ones = |dtype| ops::ones_like(&x, Some(dtype));
    if !call.or("train", true)? {
        return Ok(tuple([x.clone(), of_ones(DType::Bool)?]));
    }
    let kept: Tensor = operator::ge.call_as((ops::rand_like(&x, Some(DType::F32))?, p))?;
    let scale = if p < 1.0 { 1.0 / (1.0 - p) } else { 0.0 };
    let own = ops::to_dtype(&kept, call.dtype(0)?)?;
    Ok(tuple([((x * own)? * scale)?, kept]))
}

/// Sums, means or extremes of the rows of a table, of bags of indices that begin at offsets.
fn embedding_bag(call: &Call<'_>) -> Result<Value> {
    let (table, at): (Tensor, Tensor) = (call.of("weight")?, call.of("indices")?);
    let offsets: Tensor = call.of("offsets")?;
    let mode: i64 = call.or("mode", 0)?;
    let offsets = match call.or("include_last_offset", false)? {
        true => {
            let bags = (offsets.size(0)? - 1)?;
            ops::narrow(&offsets, 0, Int::from(0), bags)?
        }
        false => offsets,
    };
    // The bag of each index: how many bags have begun, without the first.
    let place = ops::arange(Int::from(0), at.size(0)?, Int::from(1), Some(DType::I64))?;
    let begun: Tensor = operator::le.call_as((ops::unsqueeze(&offsets, 1)?, place))?;
    let bag = (ops::sum(&ops::to_dtype(&begun, DType::I64)?, vec![0], false)? - 1)?;
    let bags = ops::arange(
        Int::from(0),
        offsets.size(0)?,
        Int::from(1),
        Some(DType::I64),
    )?;
    let mut is_in: Tensor = operator::eq.call_as((ops::unsqueeze(&bags, 1)?, bag.clone()))?;
    let padding: i64 = call.or("padding_idx", -1)?;
    if padding >= 0 {
        let is_kept: Tensor = operator::ne.call_as((at.clone(), padding))?;
        is_in = ops::logical_and(&is_in, &is_kept)?;
    }
    let counts = ops::sum(&ops::to_dtype(&is_in, DType::I64)?, vec![1], false)?;
    let mut rows = ops::embedding(&at, &table, None)?;
    let weights = call.maybe::<Tensor>("per_sample_weights")?;
    if let Some(weights) = &weights {
        rows = (rows * ops::unsqueeze(weights, 1)?)?;
    }
    let dtype = call.dtype(0)?;
    let sum = ops::matmul(&ops::to_dtype(&is_in, dtype)?, &rows)?;
    let y = match mode {
        0 => sum,
        1 => {
            let least: Tensor = function!(ops::clamp).call_as(args![counts.clone(), min = 1])?;
            (sum / ops::to_dtype(&ops::unsqueeze(&least, 1)?, dtype)?)?
        }
        2 => {
            let is_out = ops::logical_not(&ops::unsqueeze(&is_in, 2)?)?;
            let all = ops::unsqueeze(&rows, 0)?;
            let own: Tensor = function!(ops::r#where).call_as((is_out, f64::NEG_INFINITY, all))?;
            let most = ops::amax(&own, vec![1], false)?;
            let is_empty: Tensor = operator::eq.call_as((ops::unsqueeze(&counts, 1)?, 0))?;
            function!(ops::r#where).call_as((is_empty, 0.0, most))?
        }
        other => return Err(Error::msg(format_args!("`mode` is {other}"))),
    };
    // What else it gives is for its gradient, and not read.
    Ok(Value::Tuple(
        vec![Value::object(y), Value::None, Value::None, Value::None].into(),
    ))
}

/// Distances of each two rows, the first before the second.
fn pdist(call: &Call<'_>) -> Result<Value> {
    let x = call.own()?;
    let all = ops::cdist(&x, &x, call.or("p", 2.0)?, "donot_use_mm_for_euclid_dist")?;
    let rows = x.size(0)?;
    let at = ops::triu_indices(rows, rows, 1)?;
    let first: Tensor = operator::mul.call_as((ops::select(&at, 0, Int::from(0))?, rows))?;
    let flat = (first + ops::select(&at, 0, Int::from(1))?)?;
    Ok(Value::object(ops::index_select(
        &ops::ravel(&all)?,
        0,
        &flat,
    )?))
}

fn cdist(call: &Call<'_>) -> Result<Value> {
    let mode = match call.maybe::<i64>("compute_mode")? {
        None | Some(0) => "use_mm_for_euclid_dist_if_necessary",
        Some(1) => "use_mm_for_euclid_dist",
        Some(2) => "donot_use_mm_for_euclid_dist",
        Some(other) => return Err(Error::msg(format_args!("`compute_mode` is {other}"))),
    };
    let (a, b): (Tensor, Tensor) = (call.of("x1")?, call.of("x2")?);
    Ok(Value::object(ops::cdist(&a, &b, call.or("p", 2.0)?, mode)?))
}

/// A product of rows with the matrix of each: the rows lie in groups that end at offsets.
fn grouped(call: &Call<'_>) -> Result<Value> {
    let (rows, matrices): (Tensor, Tensor) =
        (call.own()?, Tensor::from_value(call.at(1)?.clone())?);
    let ends: Tensor = call.of("offs")?;
    if call.get("bias").is_some() || call.get("out_dtype").is_some() {
        return Err(Error::msg("a grouped product with `bias` or `out_dtype`"));
    }
    if rank(&rows)? != 2 || rank(&matrices)? != 3 {
        return Err(Error::msg(
            "a grouped product of other than rows with a matrix of each group",
        ));
    }
    // How many groups end before a row.
    let place = ops::arange(Int::from(0), rows.size(0)?, Int::from(1), Some(DType::I64))?;
    let ends = ops::unsqueeze(&ops::to_dtype(&ends, DType::I64)?, 1)?;
    let ended: Tensor = operator::le.call_as((ends, place.clone()))?;
    let group = ops::sum(&ops::to_dtype(&ended, DType::I64)?, vec![0], false)?;
    let all = ops::matmul(&ops::unsqueeze(&rows, 0)?, &matrices)?;
    let first: Tensor = operator::mul.call_as((group, rows.size(0)?))?;
    let flat = ops::flatten(&all, 0, 1)?;
    Ok(Value::object(ops::index_select(
        &flat,
        0,
        &(first + place)?,
    )?))
}

pub(crate) const RULES: &[Entry] = by! {
    "aten.native_layer_norm" => layer_norm,
    "aten.native_group_norm" => group_norm,
    "aten._native_batch_norm_legit" => |call| batch_norm(call, false),
    "aten._native_batch_norm_legit_no_training" => |call| batch_norm(call, true),
    "aten.native_batch_norm" => |call| batch_norm(call, false),
    "aten.convolution" => convolution,
    "aten.native_dropout" => dropout,
    "aten._embedding_bag" => embedding_bag,
    "aten.embedding_bag" => embedding_bag,
    "aten._embedding_bag_forward_only" => embedding_bag,
    "aten._pdist_forward" => pdist,
    "aten._cdist_forward" => cdist,
    "aten._grouped_mm" => grouped,
    "transformers.grouped_mm_fallback" => grouped,
};
