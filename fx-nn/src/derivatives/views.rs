//! Derivatives of functions that move, repeat and join elements.

use fx_core::trace::FromValue;
use fx_core::value::{Int, IntoValue, Value};
use fx_core::{Error, Result};

use super::derivatives;
use crate::func::{Derivative, Pullback, known};
use crate::ops;
use crate::tensor::{Dims, Tensor};

derivatives! {
    ops::reshape => |call| back(call);
    ops::flatten => |call| back(call);
    ops::unflatten => |call| back(call);
    ops::squeeze => |call| back(call);
    ops::unsqueeze => |call| back(call);
    ops::atleast_1d => |call| back(call);
    ops::atleast_2d => |call| back(call);
    ops::atleast_3d => |call| back(call);
    ops::expand => |call| call.give("x", Pullback::grad);
    ops::t => |call| {
        let x: Tensor = call.arg("x")?;
        call.give("x", |call| match known::rank(&x)? {
            2 => ops::transpose(&call.grad()?, 0, 1),
            _ => call.grad(),
        })
    };
    ops::transpose => |call| {
        let (a, b): (i64, i64) = (call.arg("dim0")?, call.arg("dim1")?);
        call.give("x", |call| ops::transpose(&call.grad()?, a, b))
    };
    ops::permute => |call| {
        let x: Tensor = call.arg("x")?;
        call.give("x", |call| {
            let order = known::places(call.arg("dims")?, known::rank(&x)?)?;
            let mut back = vec![0i64; order.len()];
            for (to, from) in order.iter().enumerate() {
                back[*from] = to as i64;
            }
            ops::permute(&call.grad()?, back)
        })
    };
    ops::movedim => |call| {
        call.give("x", |call| {
            let (from, to): (Dims, Dims) = (call.arg("source")?, call.arg("destination")?);
            ops::movedim(&call.grad()?, to, from)
        })
    };
    ops::narrow => |call| {
        let (x, dim, start): (Tensor, i64, Int) = (call.arg("x")?, call.arg("dim")?, call.arg("start")?);
        call.give("x", |call| unsliced(&call.grad()?, &x, dim, start))
    };
    ops::select => |call| {
        let (x, dim, index): (Tensor, i64, Int) = (call.arg("x")?, call.arg("dim")?, call.arg("index")?);
        call.give("x", |call| unsliced(&ops::unsqueeze(&call.grad()?, dim)?, &x, dim, index))
    };
    ops::split => |call| joined(call);
    ops::split_with_sizes => |call| joined(call);
    ops::chunk => |call| joined(call);
    ops::tensor_split => |call| {
        let dim: i64 = call.arg("dim")?;
        parted(call, dim)
    };
    ops::unbind => |call| {
        let dim: i64 = call.arg("dim")?;
        call.give("x", |call| ops::stack(&call.grads()?, dim))
    };
    ops::hsplit => |call| {
        let x: Tensor = call.arg("x")?;
        let dim = if known::rank(&x)? == 1 { 0 } else { 1 };
        parted(call, dim)
    };
    crate::control::stacked => |call| call.give_stacked("items", |call| call.grad());
    ops::cat => |call| {
        let dim: i64 = call.arg("dim")?;
        call.give_items("tensors", |call| {
            let grad = call.grad()?;
            let mut at = Int::from(0);
            let items = known::items(&call.arg("tensors")?)?;
            items.iter().map(|item| {
                // PyTorch takes empty tensors of one dim among others.
                if known::rank(item)? == 1 && known::rank(&grad)? != 1 {
                    return ops::zeros_like(item, None);
                }
                let size = known::size(item, dim)?;
                let part = ops::narrow(&grad, dim, at, size)?;
                at = (at + size)?;
                Ok(part)
            }).collect()
        })
    };
    ops::broadcast_tensors => |call| call.give_items("tensors", Pullback::grads);
    ops::meshgrid => |call| call.give_items("tensors", |call| {
        let (items, indexing): (Vec<Tensor>, String) = (known::items(&call.arg("tensors")?)?, call.arg("indexing")?);
        let count = items.len();
        call.grads()?.iter().enumerate().map(|(own, grad)| {
            let dim = match own {
                0 | 1 if indexing == "xy" && count > 1 => 1 - own,
                own => own,
            };
            let others: Vec<i64> = (0..count).filter(|at| *at != dim).map(|at| at as i64).collect();
            match others.is_empty() {
                true => Ok(grad.clone()),
                false => ops::sum(grad, others, false),
            }
        }).collect()
    });
    ops::repeat => |call| {
        let x: Tensor = call.arg("x")?;
        call.give("x", |call| unrepeated(&call.grad()?, &x, known::ints(call.arg("repeats")?)?))
    };
    ops::tile => |call| {
        let x: Tensor = call.arg("x")?;
        call.give("x", |call| {
            let (mut times, rank) = (known::ints(call.arg("dims")?)?, known::rank(&x)?);
            while times.len() < rank {
                times.insert(0, Int::from(1));
            }
            unrepeated(&call.grad()?, &x, times)
        })
    };
    ops::roll => |call| {
        call.give("x", |call| {
            let (shifts, dims): (Vec<Int>, Dims) = (known::ints(call.arg("shifts")?)?, call.arg("dims")?);
            let back = shifts.into_iter().map(|shift| 0 - shift).collect::<Result<Vec<Int>>>()?;
            ops::roll(&call.grad()?, back, dims)
        })
    };
    ops::rot90 => |call| {
        let k: Int = call.arg("k")?;
        call.give("x", |call| ops::rot90(&call.grad()?, (0 - k)?, call.arg::<Dims>("dims")?))
    };
    ops::tril => |call| {
        let diagonal: i64 = call.arg("diagonal")?;
        call.give("x", |call| ops::tril(&call.grad()?, diagonal))
    };
    ops::triu => |call| {
        let diagonal: i64 = call.arg("diagonal")?;
        call.give("x", |call| ops::triu(&call.grad()?, diagonal))
    };
    ops::pixel_shuffle => |call| {
        let factor: usize = call.arg("upscale_factor")?;
        call.give("x", |call| ops::pixel_unshuffle(&call.grad()?, factor))
    };
    ops::pixel_unshuffle => |call| {
        let factor: usize = call.arg("downscale_factor")?;
        call.give("x", |call| ops::pixel_shuffle(&call.grad()?, factor))
    };
    ops::diagonal => |call| moved(call);
    ops::diag => |call| moved(call);
    ops::diag_embed => |call| {
        let (offset, dim1, dim2): (i64, i64, i64) = (call.arg("offset")?, call.arg("dim1")?, call.arg("dim2")?);
        call.give("x", |call| ops::diagonal(&call.grad()?, offset, dim1, dim2))
    };
    ops::repeat_interleave => |call| moved(call);
    ops::combinations => |call| moved(call);
    ops::block_diag => |call| {
        call.give_items("tensors", |call| {
            let grad = call.grad()?;
            let (mut row, mut column) = (Int::from(0), Int::from(0));
            known::items(&call.arg("tensors")?)?.iter().map(|item| {
                let sizes = known::sizes(item)?;
                let (height, width) = match sizes.as_slice() {
                    [] => (Int::from(1), Int::from(1)),
                    [width] => (Int::from(1), *width),
                    [height, width, ..] => (*height, *width),
                };
                let rows = ops::narrow(&grad, 0, row, height)?;
                let part = ops::narrow(&rows, 1, column, width)?;
                (row, column) = ((row + height)?, (column + width)?);
                ops::reshape(&part, sizes)
            }).collect()
        })
    };
}

fx_core::function_table! { Derivative {
    // Of a tensor; items of structures are taken where gradients are.
    fx_core::operator::getitem => Derivative::Composite(|call| {
        let (x, index): (Tensor, Value) = (call.arg("a")?, call.arg("b")?);
        indexed(&x, &index).map(IntoValue::into_value)
    }),
} }

/// A part of a tensor, a dim at a time.
fn indexed(x: &Tensor, index: &Value) -> Result<Tensor> {
    let parts: &[Value] = match index {
        Value::Tuple(parts) => parts,
        one => std::slice::from_ref(one),
    };
    let takes = |part: &&Value| !matches!(part, Value::None | Value::Ellipsis);
    let left = known::rank(x)?.saturating_sub(parts.iter().filter(takes).count());
    let mut found = x.clone();
    let mut dim = 0i64;
    for part in parts {
        match part {
            Value::Ellipsis => dim += left as i64,
            Value::None => {
                found = ops::unsqueeze(&found, dim)?;
                dim += 1;
            }
            Value::Slice(ends) => {
                found = sliced(&found, dim, ends)?;
                dim += 1;
            }
            at => found = ops::select(&found, dim, Int::from_value(at.clone())?)?,
        }
    }
    Ok(found)
}

/// The elements of a slice of a dim.
fn sliced(x: &Tensor, dim: i64, [start, stop, step]: &[Value; 3]) -> Result<Tensor> {
    let size = known::size(x, dim)?;
    let end = |end: &Value, open: Int| -> Result<Int> {
        let end = match end {
            Value::None => return Ok(open),
            end => Int::from_value(end.clone())?,
        };
        match (known::number(&end), known::number(&size)) {
            (Some(end), Some(size)) => {
                let end = if end < 0 { end + size } else { end };
                Ok(Int::from(end.clamp(0, size)))
            }
            (Some(end), None) if end < 0 => size + end,
            _ => Ok(end),
        }
    };
    let (start, stop) = (end(start, Int::from(0))?, end(stop, size)?);
    let step = match step {
        Value::None => 1,
        step => i64::from_value(step.clone())?,
    };
    match (step, known::number(&start), known::number(&stop)) {
        (1, Some(start), Some(stop)) => ops::narrow(x, dim, start, (stop - start).max(0)),
        (1, _, _) => ops::narrow(x, dim, start, (stop - start)?),
        (step, Some(start), Some(stop)) => {
            let index = ops::arange(start, stop.max(start), step, None)?;
            ops::index_select(x, dim, &index)
        }
        _ => Err(Error::msg(
            "the derivative of a slice with a step needs ends that are numbers",
        )),
    }
}

/// The indices of dims.
/// The same elements in the shape that they had.
fn back(call: &mut Pullback<'_>) -> Result<()> {
    let x: Tensor = call.arg("x")?;
    call.give("x", |call| ops::reshape(&call.grad()?, known::sizes(&x)?))
}

/// Zeros around the gradient of a part along a dim.
fn unsliced(grad: &Tensor, x: &Tensor, dim: i64, start: Int) -> Result<Tensor> {
    let rank = known::rank(x)?;
    let at = known::place(dim, rank)?;
    let (whole, part) = (known::size(x, dim)?, known::size(grad, dim)?);
    let start = match known::number(&start) {
        Some(n) if n < 0 => (whole + n)?,
        _ => start,
    };
    let after = ((whole - start)? - part)?;
    if (known::number(&start), known::number(&after)) == (Some(0), Some(0)) {
        return Ok(grad.clone());
    }
    // The last dim first.
    let mut pads = vec![Int::from(0); 2 * (rank - 1 - at)];
    pads.extend([start, after]);
    ops::pad(grad, pads, "constant", None)
}

/// The parts of a tensor along a dim, joined.
fn joined(call: &mut Pullback<'_>) -> Result<()> {
    let dim: i64 = call.arg("dim")?;
    call.give("x", |call| ops::cat(&call.grads()?, dim))
}

/// Parts by their ends, which may leave elements out or have some twice.
fn parted(call: &mut Pullback<'_>, dim: i64) -> Result<()> {
    let (x, sections): (Tensor, Value) = (call.arg("x")?, call.arg("indices_or_sections")?);
    call.give("x", |call| {
        let grads = call.grads()?;
        let (Value::List(ends) | Value::Tuple(ends), Some(size)) =
            (&sections, known::number(&known::size(&x, dim)?))
        else {
            return ops::cat(&grads, dim);
        };
        let mut sum: Option<Tensor> = None;
        let mut start = 0;
        for (at, grad) in grads.iter().enumerate() {
            let part = unsliced(grad, &x, dim, Int::from(start))?;
            sum = Some(match sum {
                Some(sum) => (sum + part)?,
                None => part,
            });
            if let Some(end) = ends.get(at) {
                let end = i64::from_value(end.clone())?;
                start = (if end < 0 { end + size } else { end }).clamp(0, size);
            }
        }
        sum.ok_or_else(|| Error::msg("there are no parts"))
    })
}

/// The sum of the copies of a repeated tensor.
fn unrepeated(grad: &Tensor, x: &Tensor, times: Vec<Int>) -> Result<Tensor> {
    let own = known::sizes(x)?;
    let added = times
        .len()
        .checked_sub(own.len())
        .ok_or_else(|| Error::msg("there are fewer repeats than dims"))?;
    let mut shape = Vec::with_capacity(2 * times.len());
    let mut copies = Vec::with_capacity(times.len());
    for (at, times) in times.into_iter().enumerate() {
        copies.push(shape.len() as i64);
        shape.push(times);
        shape.push(match at.checked_sub(added) {
            Some(at) => own[at],
            None => Int::from(1),
        });
    }
    if shape.is_empty() {
        return Ok(grad.clone());
    }
    let sum = ops::sum(&ops::reshape(grad, shape)?, copies, false)?;
    ops::reshape(&sum, own)
}

/// The gradient of a function that only moves elements, from where it moves the numbers of places: what it fills in
/// has none.
pub(super) fn moved(call: &mut Pullback<'_>) -> Result<()> {
    let x: Tensor = call.arg("x")?;
    call.give("x", |call| {
        let name = format!("the derivative of `{}`", call.function().path());
        let shape = known::shape(&x, &name)?;
        let count: usize = shape.iter().product();
        // 0 is what is filled in.
        let own = ops::reshape(
            &ops::arange(1, count as i64 + 1, 1, None)?,
            shape.iter().map(|n| *n as i64).collect::<Vec<_>>(),
        )?;
        let from: Tensor = call.with(&[("x", own.into())])?;
        let flat = ops::zeros([count + 1], Some(known::dtype(&call.grad()?)?))?;
        let index = ops::reshape(&from, [-1])?;
        let sums = ops::scatter_add(&flat, 0, &index, &ops::reshape(&call.grad()?, [-1])?)?;
        ops::reshape(&ops::narrow(&sums, 0, 1, count as i64)?, known::sizes(&x)?)
    })
}
