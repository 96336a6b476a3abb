//! Operators that give gradients, which stand in programs that were exported with their backward part.

use fx_nn::prelude::*;
use fx_nn::{Error, Result, operator};

use super::entry::{Entry, by, rank};
use crate::call::Call;

/// The results that a call asks for.
fn asked(call: &Call<'_>, all: [Tensor; 3]) -> Result<Value> {
    let mask: Vec<bool> = call.of("output_mask")?;
    let items = all.into_iter().zip(mask);
    let items = items.map(|(x, is_asked)| match is_asked {
        true => Value::object(x),
        false => Value::None,
    });
    Ok(Value::Tuple(items.collect()))
}

/// What a norm gives back along dims: of the gradient by what was normalized, and the normalized.
fn of_norm(grad: &Tensor, own: &Tensor, rstd: &Tensor, dims: &[i64]) -> Result<Tensor> {
    let mean = |x: &Tensor| ops::mean(x, dims.to_vec(), true);
    let along = (own * mean(&(grad * own)?)?)?;
    ((grad - mean(grad)?)? - along)? * rstd
}

fn layer_norm(call: &Call<'_>) -> Result<Value> {
    let (grad, x): (Tensor, Tensor) = (call.of("grad_out")?, call.of("input")?);
    let (mean, rstd): (Tensor, Tensor) = (call.of("mean")?, call.of("rstd")?);
    let over = call.items("normalized_shape")?.len() as i64;
    let dims: Vec<i64> = (-over..0).collect();
    let own = ((x - mean)? * &rstd)?;
    let outer: Vec<i64> = (0..rank(&own)? - over).collect();
    let weighted = match call.maybe::<Tensor>("weight")? {
        Some(weight) => (&grad * weight)?,
        None => grad.clone(),
    };
    let sum = |x: &Tensor| match outer.is_empty() {
        true => Ok(x.clone()),
        false => ops::sum(x, outer.clone(), false),
    };
    let all = [
        of_norm(&weighted, &own, &rstd, &dims)?,
        sum(&(&grad * &own)?)?,
        sum(&grad)?,
    ];
    asked(call, all)
}

fn group_norm(call: &Call<'_>) -> Result<Value> {
    let (grad, x): (Tensor, Tensor) = (call.of("grad_out")?, call.of("input")?);
    let (mean, rstd): (Tensor, Tensor) = (call.of("mean")?, call.of("rstd")?);
    let (images, channels): (Int, Int) = (call.of("N")?, call.of("C")?);
    let groups: i64 = call.of("group")?;
    let shape = x.shape()?;
    // `[images, groups, channels, pixels]`.
    let each_group: Int = operator::floordiv.call_as((channels, groups))?;
    let parted =
        |x: &Tensor| ops::reshape(x, vec![images, groups.into(), each_group, Int::from(-1)]);
    let each = |x: &Tensor| ops::reshape(x, vec![images, groups.into(), 1.into(), 1.into()]);
    let (rstd, parted_grad) = (each(&rstd)?, parted(&grad)?);
    let own = ((parted(&x)? - each(&mean)?)? * &rstd)?;
    let weighted = match call.maybe::<Tensor>("weight")? {
        Some(weight) => (&parted_grad * ops::reshape(&weight, [1, groups, -1, 1])?)?,
        None => parted_grad.clone(),
    };
    let of_x = of_norm(&weighted, &own, &rstd, &[2, 3])?;
    let sum = |x: &Tensor| ops::reshape(&ops::sum(x, vec![0, 3], false)?, [-1]);
    let all = [
        ops::reshape(&of_x, shape)?,
        sum(&(&parted_grad * &own)?)?,
        sum(&parted_grad)?,
    ];
    asked(call, all)
}

/// A matrix whose rows are the means that an adaptive pool takes along a dim.
fn means(from: usize, to: usize) -> Result<Tensor> {
    let mut all = vec![0f32; from * to];
    for row in 0..to {
        let (start, end) = (row * from / to, ((row + 1) * from).div_ceil(to));
        for at in start..end {
            all[row * from + at] = 1.0 / (end - start) as f32;
        }
    }
    Tensor::from_vec(all, (to, from))
}

/// The last dims of a tensor, which have to be known.
fn last(x: &Tensor) -> Result<[usize; 2]> {
    let size = |dim: i64| match x.size(dim)? {
        Int::Concrete(size) => Ok(size as usize),
        Int::Proxy(_) => Err(Error::msg("a run decides the size of the image")),
    };
    Ok([size(-2)?, size(-1)?])
}

fn adaptive_avg_pool2d(call: &Call<'_>) -> Result<Value> {
    let (grad, x): (Tensor, Tensor) = (call.of("grad_output")?, call.of("self")?);
    let ([to_rows, to_columns], [rows, columns]) = (last(&grad)?, last(&x)?);
    let down = ops::t(&means(rows, to_rows)?)?;
    let spread = ops::matmul(&ops::matmul(&down, &grad)?, &means(columns, to_columns)?)?;
    Ok(Value::object(spread))
}

/// Numbers for two dims, of which one stands for both.
fn pair(call: &Call<'_>, name: &str, otherwise: [i64; 2]) -> Result<[i64; 2]> {
    match call.get(name) {
        None => Ok(otherwise),
        Some(Value::Int(one)) => Ok([*one; 2]),
        Some(_) => match call.of::<Vec<i64>>(name)?[..] {
            [] => Ok(otherwise),
            [one] => Ok([one; 2]),
            [a, b] => Ok([a, b]),
            _ => Err(Error::msg(format_args!(
                "`{name}` has more than two numbers"
            ))),
        },
    }
}

fn avg_pool2d(call: &Call<'_>) -> Result<Value> {
    if call.or("ceil_mode", false)? {
        return Err(Error::msg("the gradient of a pool with `ceil_mode`"));
    }
    let (grad, x): (Tensor, Tensor) = (call.of("grad_output")?, call.of("self")?);
    let window = pair(call, "kernel_size", [1, 1])?;
    let (stride, padding) = (
        pair(call, "stride", window)?,
        pair(call, "padding", [0, 0])?,
    );
    let (area, [rows, columns]) = (window[0] * window[1], last(&x)?);
    let ([to_rows, to_columns], channels) = (last(&grad)?, x.size(-3)?);
    let is_one = rank(&x)? == 3;
    let grad = match is_one {
        true => ops::unsqueeze(&grad, 0)?,
        false => grad,
    };
    let divisor = call.maybe::<i64>("divisor_override")?;
    let shares = match (call.or("count_include_pad", true)?, divisor) {
        (_, Some(divisor)) => (grad / divisor as f64)?,
        (true, None) => (grad / area as f64)?,
        (false, None) => {
            // How many pixels each window has.
            let count = |size: usize, to: usize, at: usize| -> Vec<f32> {
                let start = |of: i64| (of * stride[at] - padding[at], of);
                let ends = (0..to as i64).map(start).map(|(start, _)| {
                    let end = (start + window[at]).min(size as i64);
                    (end - start.max(0)) as f32
                });
                ends.collect()
            };
            let down = Tensor::from_vec(count(rows, to_rows, 0), (to_rows, 1))?;
            (grad / (down * Tensor::from_vec(count(columns, to_columns, 1), to_columns)?)?)?
        }
    };
    // The same share for each pixel of a window.
    let shares = ops::flatten(&ops::unsqueeze(&shares, 2)?, 3, 4)?;
    let all = ops::repeat(&shares, vec![1, 1, area, 1])?;
    let all = ops::reshape(&all, vec![all.size(0)?, (channels * area)?, all.size(3)?])?;
    let x = function!(ops::fold).call_as::<Tensor>(args![
        all,
        (rows, columns),
        (window[0], window[1]),
        padding = (padding[0], padding[1]),
        stride = (stride[0], stride[1])
    ])?;
    Ok(Value::object(match is_one {
        true => ops::squeeze(&x, 0)?,
        false => x,
    }))
}

fn max_pool2d(call: &Call<'_>) -> Result<Value> {
    let (grad, x): (Tensor, Tensor) = (call.of("grad_output")?, call.of("self")?);
    let flat = |x: &Tensor| ops::flatten(x, -2, -1);
    let at = flat(&call.of::<Tensor>("indices")?)?;
    let zeros = flat(&ops::zeros_like(&x, None)?)?;
    let all = ops::scatter_add(&zeros, -1, &at, &flat(&grad)?)?;
    Ok(Value::object(ops::reshape(&all, x.shape()?)?))
}

fn embedding(call: &Call<'_>) -> Result<Value> {
    if call.or("scale_grad_by_freq", false)? {
        return Err(Error::msg("`scale_grad_by_freq` is not read"));
    }
    let (grad, at): (Tensor, Tensor) = (call.of("grad_output")?, call.of("indices")?);
    let (rows, padding): (Int, i64) = (call.of("num_weights")?, call.or("padding_idx", -1)?);
    let width = grad.size(-1)?;
    let mut grad = ops::reshape(&grad, vec![Int::from(-1), width])?;
    let at = ops::ravel(&at)?;
    if padding >= 0 {
        let is_kept: Tensor = operator::ne.call_as((at.clone(), padding))?;
        let kept = ops::to_dtype(&ops::unsqueeze(&is_kept, 1)?, call.dtype(0)?)?;
        grad = (grad * kept)?;
    }
    let zeros = ops::zeros(vec![rows, width], Some(call.dtype(0)?))?;
    Ok(Value::object(ops::index_add(&zeros, 0, &at, &grad, 1)?))
}

/// The gradients of a convolution over images: by its input, its weight and its bias.
fn convolution(call: &Call<'_>) -> Result<Value> {
    let (grad, x): (Tensor, Tensor) = (call.of("grad_output")?, call.of("input")?);
    let w: Tensor = call.of("weight")?;
    if rank(&x)? != 4 {
        return Err(Error::msg(
            "the gradient of a convolution that is not over images",
        ));
    }
    let (stride, padding) = (
        pair(call, "stride", [1, 1])?,
        pair(call, "padding", [0, 0])?,
    );
    let dilation = pair(call, "dilation", [1, 1])?;
    let groups: usize = call.of("groups")?;
    let [_, _, height, width] = w.dims()?[..] else {
        return Err(Error::msg("the weight has no four dims"));
    };
    let kernel = [height as i64, width as i64];
    let usizes = |x: [i64; 2]| (x[0] as usize, x[1] as usize);
    let is_transposed: bool = call.of("transposed")?;
    let of_x = match is_transposed {
        true => ops::conv2d(
            &grad,
            &w,
            None,
            usizes(stride),
            usizes(padding),
            usizes(dilation),
            groups,
        )?,
        false => {
            let (from, to) = (last(&grad)?, last(&x)?);
            let least = |at: usize| {
                (from[at] as i64 - 1) * stride[at] - 2 * padding[at]
                    + dilation[at] * (kernel[at] - 1)
                    + 1
            };
            let more = [to[0] as i64 - least(0), to[1] as i64 - least(1)];
            ops::conv_transpose2d(
                &grad,
                &w,
                None,
                usizes(stride),
                usizes(padding),
                usizes(more),
                groups,
                usizes(dilation),
            )?
        }
    };
    // Of each group: the images as channels, moved over each other.
    let (moved, fixed) = match is_transposed {
        true => (&grad, &x),
        false => (&x, &grad),
    };
    let moved = ops::chunk(&ops::transpose(moved, 0, 1)?, Int::from(groups as i64), 0)?;
    let fixed = ops::chunk(&ops::transpose(fixed, 0, 1)?, Int::from(groups as i64), 0)?;
    let mut parts = Vec::new();
    for group in 0..groups {
        let of_w = ops::conv2d(
            &moved.get(group)?,
            &fixed.get(group)?,
            None,
            usizes(dilation),
            usizes(padding),
            usizes(stride),
            1,
        )?;
        let of_w = ops::narrow(&of_w, 2, Int::from(0), Int::from(kernel[0]))?;
        let of_w = ops::narrow(&of_w, 3, Int::from(0), Int::from(kernel[1]))?;
        parts.push(ops::transpose(&of_w, 0, 1)?);
    }
    let of_w = match parts.as_slice() {
        [one] => one.clone(),
        several => ops::cat(several, 0)?,
    };
    asked(call, [of_x, of_w, ops::sum(&grad, vec![0, 2, 3], false)?])
}

/// By what a softmax gave: `grad - sum(grad)` of what counts.
fn softmax(call: &Call<'_>, is_log: bool) -> Result<Value> {
    let (grad, y): (Tensor, Tensor) = (call.of("grad_output")?, call.of("output")?);
    let dim: i64 = call.of("dim")?;
    let sum = |x: &Tensor| ops::sum(x, vec![dim], true);
    let of_x = match is_log {
        true => (&grad - (ops::exp(&y)? * sum(&grad)?)?)?,
        false => {
            let own = (&grad * &y)?;
            (&own - (&y * sum(&own)?)?)?
        }
    };
    Ok(Value::object(of_x))
}

fn threshold(call: &Call<'_>) -> Result<Value> {
    let (grad, x): (Tensor, Tensor) = (call.of("grad_output")?, call.of("self")?);
    let least = call.value("threshold")?.clone();
    let is_above: Tensor = operator::gt.call_as((x, least))?;
    function!(ops::r#where).call_as((is_above, grad, 0.0))
}

fn tanh(call: &Call<'_>) -> Result<Value> {
    let (grad, y): (Tensor, Tensor) = (call.of("grad_output")?, call.of("output")?);
    let own = ops::neg(&((&y * &y)? - 1.0)?)?;
    Ok(Value::object((grad * own)?))
}

fn sigmoid(call: &Call<'_>) -> Result<Value> {
    let (grad, y): (Tensor, Tensor) = (call.of("grad_output")?, call.of("output")?);
    let own = ops::neg(&((&y * &y)? - &y)?)?;
    Ok(Value::object((grad * own)?))
}

pub(crate) const RULES: &[Entry] = by! {
    "aten.native_layer_norm_backward" => layer_norm,
    "aten.native_group_norm_backward" => group_norm,
    "aten._adaptive_avg_pool2d_backward" => adaptive_avg_pool2d,
    "aten.avg_pool2d_backward" => avg_pool2d,
    "aten.max_pool2d_with_indices_backward" => max_pool2d,
    "aten.embedding_dense_backward" => embedding,
    "aten.convolution_backward" => convolution,
    "aten._softmax_backward_data" => |call| softmax(call, false),
    "aten._log_softmax_backward_data" => |call| softmax(call, true),
    "aten.threshold_backward" => threshold,
    "aten.tanh_backward" => tanh,
    "aten.sigmoid_backward" => sigmoid,
};
