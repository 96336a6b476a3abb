//! Derivatives of functions of windows: convolutions, pools, norms over channels, resampling and padding.

use fx_core::ir::Function;
use fx_core::value::{Int, IntoValue, Value};
use fx_core::{Error, Result, function};

use super::conv_steps::{Steps, numbers, option};
use super::conv_weight::conv2d_weight;
use super::derivatives;
use crate::func::{Pullback, args_of, known};
use crate::ops;
use crate::tensor::{Bound, Tensor};

derivatives! {
    ops::conv1d => |call| conv(call, 1);
    ops::conv2d => |call| conv(call, 2);
    ops::conv3d => |call| conv(call, 3);
    ops::conv_transpose1d => |call| conv_transpose(call, 1);
    ops::conv_transpose2d => |call| conv_transpose(call, 2);
    ops::conv_transpose3d => |call| conv_transpose(call, 3);
    ops::max_pool1d => |call| max_pool(call, 1, function!(ops::max_pool1d_with_indices));
    ops::max_pool2d => |call| max_pool(call, 2, function!(ops::max_pool2d_with_indices));
    ops::max_pool3d => |call| max_pool(call, 3, function!(ops::max_pool3d_with_indices));
    ops::adaptive_max_pool1d => |call| max_pool(call, 1, function!(ops::adaptive_max_pool1d_with_indices));
    ops::adaptive_max_pool2d => |call| max_pool(call, 2, function!(ops::adaptive_max_pool2d_with_indices));
    ops::adaptive_max_pool3d => |call| max_pool(call, 3, function!(ops::adaptive_max_pool3d_with_indices));
    ops::max_pool1d_with_indices => |call| max_pool_places(call, 1);
    ops::max_pool2d_with_indices => |call| max_pool_places(call, 2);
    ops::max_pool3d_with_indices => |call| max_pool_places(call, 3);
    ops::adaptive_max_pool1d_with_indices => |call| max_pool_places(call, 1);
    ops::adaptive_max_pool2d_with_indices => |call| max_pool_places(call, 2);
    ops::adaptive_max_pool3d_with_indices => |call| max_pool_places(call, 3);
    ops::max_unpool1d => |call| max_unpool(call, 1);
    ops::max_unpool2d => |call| max_unpool(call, 2);
    ops::max_unpool3d => |call| max_unpool(call, 3);
    ops::avg_pool1d => |call| avg_pool(call, 1);
    ops::avg_pool2d => |call| avg_pool(call, 2);
    ops::avg_pool3d => |call| avg_pool(call, 3);
    ops::adaptive_avg_pool1d => |call| resampled(call, 1);
    ops::adaptive_avg_pool2d => |call| resampled(call, 2);
    ops::adaptive_avg_pool3d => |call| resampled(call, 3);
    ops::interpolate => |call| interpolated(call);
    ops::interpolate_with => |call| interpolated(call);
    ops::pad => |call| pad(call);
    ops::unfold => |call| {
        let x: Tensor = call.arg("x")?;
        call.give("x", |call| {
            let sizes = known::sizes(&x)?;
            let plane = Value::Tuple(sizes[sizes.len() - 2..].iter().cloned().map(IntoValue::into_value).collect());
            let args = vec![call.grad()?.into(), plane, call.arg("kernel_size")?, call.arg("dilation")?, call.arg("padding")?, call.arg("stride")?];
            function!(ops::fold).call_as(args_of(args))
        })
    };
    ops::fold => |call| {
        call.give("x", |call| {
            let args = vec![call.grad()?.into(), call.arg("kernel_size")?, call.arg("dilation")?, call.arg("padding")?, call.arg("stride")?];
            function!(ops::unfold).call_as(args_of(args))
        })
    };
    ops::batch_norm => |call| batch_norm(call);
}

/// A tensor with a batch, if it has none.
fn batched(x: &Tensor, dims: usize) -> Result<Tensor> {
    match known::rank(x)? == dims + 2 {
        true => Ok(x.clone()),
        false => ops::unsqueeze(x, 0),
    }
}

/// A tensor without the batch that was added.
fn unbatched(x: Tensor, like: &Tensor, dims: usize) -> Result<Tensor> {
    match known::rank(like)? == dims + 2 {
        true => Ok(x),
        false => ops::squeeze(&x, 0),
    }
}

fn of_bias(grad: &Tensor, dims: usize) -> Result<Tensor> {
    let mut summed: Vec<i64> = vec![0];
    summed.extend((2..dims + 2).map(|at| at as i64));
    ops::sum(grad, summed, false)
}

fn conv(call: &mut Pullback<'_>, dims: usize) -> Result<()> {
    let (x, weight): (Tensor, Tensor) = (call.arg("x")?, call.arg("weight")?);
    let steps = Steps::of(call, dims)?;
    let name = "the derivative of a convolution";
    let kernel: Vec<i64> = known::shape(&weight, name)?[2..]
        .iter()
        .map(|n| *n as i64)
        .collect();
    let grad = batched(&call.grad()?, dims)?;
    call.give("x", |_| {
        let (own, of_grad) = (known::sizes(&x)?, known::sizes(&grad)?);
        let own = &own[own.len() - dims..];
        // What the last window leaves.
        let mut added = Vec::with_capacity(dims);
        for at in 0..dims {
            let (Some(size), Some(windows)) =
                (known::number(&own[at]), known::number(&of_grad[at + 2]))
            else {
                if steps.stride[at] == 1 {
                    added.push(0);
                    continue;
                }
                return Err(Error::msg(format_args!(
                    "{name} with a stride needs sizes that are numbers"
                )));
            };
            let reached = (windows - 1) * steps.stride[at] - 2 * steps.padding[at]
                + steps.dilation[at] * (kernel[at] - 1)
                + 1;
            added.push(size - reached);
        }
        unbatched(steps.conv_transpose(&grad, &weight, &added)?, &x, dims)
    })?;
    call.give("weight", |_| {
        let x = batched(&x, dims)?;
        match (&steps.stride[..], &steps.padding[..], &steps.dilation[..]) {
            ([a, b], [c, d], [e, f]) => {
                let pair = |a: &i64, b: &i64| (*a as usize, *b as usize);
                let (stride, padding, dilation) = (pair(a, b), pair(c, d), pair(e, f));
                let groups = steps.groups as usize;
                conv2d_weight(&x, &weight, &grad, stride, padding, dilation, groups)
            }
            _ => steps.of_weight(&x, &grad, &kernel),
        }
    })?;
    call.give("bias", |_| of_bias(&grad, dims))
}

fn conv_transpose(call: &mut Pullback<'_>, dims: usize) -> Result<()> {
    let (x, weight): (Tensor, Tensor) = (call.arg("x")?, call.arg("weight")?);
    let steps = Steps::of(call, dims)?;
    let shape = known::shape(&weight, "the derivative of a convolution")?;
    let kernel: Vec<i64> = shape[2..].iter().map(|n| *n as i64).collect();
    let grad = batched(&call.grad()?, dims)?;
    call.give("x", |_| {
        let mut back = steps.conv(&grad, &weight)?;
        // Elements that an added edge alone reached.
        let sizes = known::sizes(&x)?;
        for (at, size) in sizes[sizes.len() - dims..].iter().enumerate() {
            let dim = at as i64 + 2;
            if known::number(&known::size(&back, dim)?) != known::number(size) {
                back = ops::narrow(&back, dim, 0, *size)?;
            }
        }
        unbatched(back, &x, dims)
    })?;
    // The same sum with the roles of the two exchanged.
    call.give("weight", |_| {
        steps.of_weight(&grad, &batched(&x, dims)?, &kernel)
    })?;
    call.give("bias", |_| of_bias(&grad, dims))
}

/// The elements of each image as one dim.
fn flat(x: &Tensor, dims: usize) -> Result<Tensor> {
    let sizes = known::sizes(x)?;
    let mut shape = sizes[..sizes.len() - dims].to_vec();
    shape.push(Int::from(-1));
    ops::reshape(x, shape)
}

/// The gradient of picked elements of windows goes to their places among those of an image.
fn placed(x: &Tensor, index: &Tensor, grad: &Tensor, dims: usize) -> Result<Tensor> {
    let sizes = known::sizes(x)?;
    let zeros = flat(&ops::zeros_like(x, None)?, dims)?;
    ops::reshape(
        &ops::scatter_add(&zeros, -1, &flat(index, dims)?, &flat(grad, dims)?)?,
        sizes,
    )
}

fn max_pool(call: &mut Pullback<'_>, dims: usize, with_indices: Function) -> Result<()> {
    let x: Tensor = call.arg("x")?;
    call.give("x", |call| {
        let picked: Value = with_indices.call(args_of(call.args.to_vec()))?;
        placed(&x, &known::items(&picked)?[1], &call.grad()?, dims)
    })
}

fn max_pool_places(call: &mut Pullback<'_>, dims: usize) -> Result<()> {
    let x: Tensor = call.arg("x")?;
    call.give("x", |call| {
        placed(&x, &call.items()?[1], &call.grads()?[0], dims)
    })
}

fn max_unpool(call: &mut Pullback<'_>, dims: usize) -> Result<()> {
    let index: Tensor = call.arg("indices")?;
    call.give("x", |call| {
        let sizes = known::sizes(&index)?;
        let picked = ops::gather(&flat(&call.grad()?, dims)?, -1, &flat(&index, dims)?)?;
        ops::reshape(&picked, sizes)
    })
}

/// Means over windows: each element has a share of the gradient of each window that it is in.
fn avg_pool(call: &mut Pullback<'_>, dims: usize) -> Result<()> {
    let x: Tensor = call.arg("x")?;
    // The windows over the image and its edges.
    let steps = Steps {
        stride: numbers(call, "stride", dims)?,
        padding: vec![0; dims],
        dilation: vec![1; dims],
        groups: 1,
    };
    let paddings = numbers(call, "padding", dims)?;
    let kernel = numbers(call, "kernel_size", dims)?;
    let counts_padding: bool = call.arg("count_include_pad")?;
    call.give("x", |call| {
        let name = format!("the derivative of `{}`", call.function().path());
        let (grad, own) = (call.grad()?, known::sizes(&x)?);
        let (from, to) = (
            known::last_sizes(&x, dims, &name)?,
            known::last_sizes(&grad, dims, &name)?,
        );
        // By how many elements each window is divided.
        let mut divisor = vec![1.0f64];
        for at in 0..dims {
            let (size, padding) = (from[at] as i64, paddings[at]);
            let along = (0..to[at] as i64).map(|window| {
                let start = window * steps.stride[at] - padding;
                let end = (start + kernel[at]).min(size + padding);
                match counts_padding {
                    true => end - start,
                    false => end.min(size) - start.max(0),
                }
            });
            let along: Vec<i64> = along.collect();
            divisor = divisor
                .iter()
                .flat_map(|n| along.iter().map(move |m| n * *m as f64))
                .collect();
        }
        let dtype = known::dtype(&grad)?;
        let divisor = ops::to_dtype(&Tensor::from_vec(divisor, &to[..])?, dtype)?;
        let mut shape = vec![Int::from(-1), Int::from(1)];
        shape.extend(to.iter().map(|size| Int::from(*size as i64)));
        let planes = ops::reshape(&(grad / divisor)?, shape)?;
        let mut window = vec![1, 1];
        window.extend(kernel.iter().copied());
        let ones = ops::ones(window, Some(dtype))?;
        let mut back = steps.conv_transpose(&planes, &ones, &vec![0; dims])?;
        // What no window reaches has no gradient, and what is beyond the image no element.
        for (at, start) in paddings.iter().enumerate() {
            let dim = at as i64 + 2;
            let (size, found) = (from[at] as i64, known::size(&back, dim)?);
            let missing = size + start - known::number(&found).unwrap_or_default();
            if missing > 0 {
                let mut pads = vec![0; 2 * (dims - 1 - at)];
                pads.extend([0, missing]);
                back = ops::pad(&back, pads, "constant", None)?;
            }
            if (*start, missing) != (0, missing.max(0)) {
                back = ops::narrow(&back, dim, *start, size)?;
            }
        }
        ops::reshape(&back, own)
    })
}

/// The gradient of a function that is linear in each of the last dims by itself, from what it makes of unit vectors.
fn resampled(call: &mut Pullback<'_>, dims: usize) -> Result<()> {
    let x: Tensor = call.arg("x")?;
    call.give("x", |call| {
        let name = format!("the derivative of `{}`", call.function().path());
        let mut grad = call.grad()?;
        let (from, to) = (
            known::last_sizes(&x, dims, &name)?,
            known::last_sizes(&grad, dims, &name)?,
        );
        let outer = known::rank(&x)? - dims;
        for at in 0..dims {
            let (own, made) = (from[at], to[at]);
            let weights = weights(call, dims, at, own)?;
            let weights = ops::to_dtype(&weights, known::dtype(&grad)?)?;
            debug_assert_eq!(weights.dims().ok(), Some(&[own, made][..]));
            // The dim last, times the weights turned.
            let dim = (outer + at) as i64;
            let last = ops::transpose(&grad, dim, -1)?;
            let back = ops::matmul(&last, &ops::transpose(&weights, 0, 1)?)?;
            grad = ops::transpose(&back, dim, -1)?;
        }
        Ok(grad)
    })
}

/// What a function makes of unit vectors along one of its dims, with the other dims as small as they can be.
fn weights(call: &Pullback<'_>, dims: usize, at: usize, own: usize) -> Result<Tensor> {
    let eye = ops::reshape(
        &ops::eye(own as i64, None, Some(crate::value::DType::F64))?,
        {
            let mut shape = vec![own as i64, 1];
            shape.extend((0..dims).map(|other| if other == at { own as i64 } else { 1 }));
            shape
        },
    )?;
    let mut given: Vec<(&str, Value)> = vec![("x", eye.into())];
    // Options of the other dims are those of a window of one element.
    for (name, plain) in [
        ("kernel_size", 1),
        ("stride", 1),
        ("padding", 0),
        ("output_size", 1),
    ] {
        if let Ok(mut all) = numbers(call, name, dims) {
            for (other, n) in all.iter_mut().enumerate() {
                if other != at {
                    *n = plain;
                }
            }
            given.push((name, option(&all)));
        }
    }
    let made: Tensor = call.with(&given)?;
    ops::reshape(&made, [own as i64, -1])
}

/// An image of another size.
fn interpolated(call: &mut Pullback<'_>) -> Result<()> {
    let x: Tensor = call.arg("x")?;
    call.give("x", |call| {
        let name = "the derivative of `interpolate`";
        let mut grad = call.grad()?;
        let dims = known::rank(&x)? - 2;
        let (from, to) = (
            known::last_sizes(&x, dims, name)?,
            known::last_sizes(&grad, dims, name)?,
        );
        for at in 0..dims {
            let (own, made) = (from[at], to[at]);
            // Images whose other dims stay as they are, at the size of 2 that every mode takes.
            let still = 2i64;
            let mut shape = vec![own as i64, 1];
            shape.extend((0..dims).map(|other| if other == at { own as i64 } else { 1 }));
            let eye = ops::reshape(
                &ops::eye(own as i64, None, Some(crate::value::DType::F64))?,
                shape,
            )?;
            let mut full = vec![own as i64, 1];
            full.extend((0..dims).map(|other| if other == at { own as i64 } else { still }));
            let image = ops::expand(&eye, full)?;
            let by_size = !matches!(call.arg::<Value>("size")?, Value::None);
            let mut given: Vec<(&str, Value)> = vec![("x", image.into())];
            if by_size {
                let sizes = (0..dims)
                    .map(|other| Value::Int(if other == at { made as i64 } else { still }));
                given.push(("size", Value::List(sizes.collect())));
            } else {
                let given_scales: Value = call.arg("scale_factor")?;
                let scales = match &given_scales {
                    Value::List(all) | Value::Tuple(all) if all.len() == dims => all[at].clone(),
                    Value::List(all) | Value::Tuple(all) if all.len() == 1 => all[0].clone(),
                    one => one.clone(),
                };
                let scales = (0..dims).map(|other| {
                    if other == at {
                        scales.clone()
                    } else {
                        Value::Float(1.0)
                    }
                });
                given.push(("scale_factor", Value::List(scales.collect())));
            }
            let made_of: Tensor = call.with(&given)?;
            let mut first = made_of;
            for other in (0..dims).rev().filter(|other| *other != at) {
                first = ops::select(&first, other as i64 + 2, 0)?;
            }
            let weights = ops::to_dtype(
                &ops::reshape(&first, [own as i64, made as i64])?,
                known::dtype(&grad)?,
            )?;
            let dim = at as i64 + 2;
            let last = ops::transpose(&grad, dim, -1)?;
            let back = ops::matmul(&last, &ops::transpose(&weights, 0, 1)?)?;
            grad = ops::transpose(&back, dim, -1)?;
        }
        Ok(grad)
    })
}

/// Padding: a constant is cut off, and what is mirrored or copied is added to where it came from.
fn pad(call: &mut Pullback<'_>) -> Result<()> {
    let x: Tensor = call.arg("x")?;
    call.give("x", |call| {
        let pads = known::ints(call.arg("pad")?)?;
        let mode: String = call.arg("mode")?;
        let rank = known::rank(&x)?;
        let mut grad = call.grad()?;
        for (at, pair) in pads.chunks(2).enumerate() {
            let dim = rank - 1 - at;
            let [before, after] = pair else {
                return Err(Error::msg("`pad` has a number that has no other"));
            };
            if (known::number(before), known::number(after)) == (Some(0), Some(0)) {
                continue;
            }
            if mode == "constant" {
                grad = unpadded(
                    &grad,
                    dim as i64,
                    before,
                    after,
                    known::size(&x, dim as i64)?,
                )?;
                continue;
            }
            let own = known::shape(&x, "the derivative of `pad`")?[dim];
            let row = ops::reshape(
                &ops::arange(0, own as i64, 1, Some(crate::value::DType::F64))?,
                [1, 1, -1],
            )?;
            let from: Tensor = ops::pad(&row, vec![*before, *after], &mode, Bound(None))?;
            let index = ops::to_dtype(&ops::reshape(&from, [-1])?, crate::value::DType::I64)?;
            let mut sizes = known::sizes(&grad)?;
            sizes[dim] = Int::from(own as i64);
            let zeros = ops::zeros(sizes, Some(known::dtype(&grad)?))?;
            grad = ops::index_add(&zeros, dim as i64, &index, &grad, 1)?;
        }
        Ok(grad)
    })
}

/// A padded dim without its padding; where elements were cut off instead, zeros.
fn unpadded(grad: &Tensor, dim: i64, before: &Int, after: &Int, own: Int) -> Result<Tensor> {
    let (Some(left), Some(right)) = (known::number(before), known::number(after)) else {
        return ops::narrow(grad, dim, *before, own);
    };
    let inner = match (left.max(0), right.max(0)) {
        (0, 0) => grad.clone(),
        (start, rest) => {
            let size = ((known::size(grad, dim)? - start)? - rest)?;
            ops::narrow(grad, dim, start, size)?
        }
    };
    if left >= 0 && right >= 0 {
        return Ok(inner);
    }
    let mut pads = vec![0i64; 2 * (known::rank(grad)? - 1 - dim as usize)];
    pads.extend([(-left).max(0), (-right).max(0)]);
    ops::pad(&inner, pads, "constant", None)
}

/// Elements by the statistics of their channel: of a batch in training, else the running ones.
fn batch_norm(call: &mut Pullback<'_>) -> Result<()> {
    let x: Tensor = call.arg("x")?;
    let weight: Option<Tensor> = call.arg("weight")?;
    let (training, eps): (bool, f64) = (call.arg("training")?, call.arg("eps")?);
    let running: (Option<Tensor>, Option<Tensor>) =
        (call.arg("running_mean")?, call.arg("running_var")?);
    let rank = known::rank(&x)?;
    let others: Vec<i64> = (0..rank as i64).filter(|dim| *dim != 1).collect();
    let mut along = vec![Int::from(1); rank];
    along[1] = known::size(&x, 1)?;
    let wide = |x: &Tensor| ops::reshape(x, along.clone());
    let (mean, var, is_running) = match running {
        (Some(mean), Some(var)) if !training => (wide(&mean)?, wide(&var)?, true),
        _ => {
            let mean = ops::mean(&x, others.clone(), true)?;
            let apart = (&x - &mean)?;
            (
                mean,
                ops::mean(&(&apart * &apart)?, others.clone(), true)?,
                false,
            )
        }
    };
    let scale = ops::rsqrt(&(var + eps)?)?;
    let grad = call.grad()?;
    let normal = ((&x - mean)? * &scale)?;
    call.give("bias", |_| ops::sum(&grad, others.clone(), false))?;
    call.give("weight", |_| {
        ops::sum(&(&grad * &normal)?, others.clone(), false)
    })?;
    call.give("x", |_| {
        let grad = match &weight {
            Some(weight) => (&grad * wide(weight)?)?,
            None => grad.clone(),
        };
        if is_running {
            return &grad * &scale;
        }
        let mean = ops::mean(&grad, others.clone(), true)?;
        let along_normal = ops::mean(&(&grad * &normal)?, others.clone(), true)?;
        ((grad - mean)? - (&normal * along_normal)?)? * &scale
    })
}
