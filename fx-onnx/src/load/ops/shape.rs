//! What rearranges tensors, and sizes as numbers.

use fx_nn::prelude::*;
use fx_nn::tensor::Object;
use fx_nn::value::{Dim, IntoValue};
use fx_nn::{Bound, Error, Result, operator};

use super::{Operator, op};
use crate::load::checks::{Constants, at_least, places, rank};
use crate::load::node::{Given, NodeCx};
use crate::load::value::{V, as_type};

pub(super) const TABLE: &[Operator] = &[
    op("Shape", |cx| {
        let x = cx.tensor(0)?;
        let rank = cx.rank(0)? as i64;
        let end = |at: i64| (if at < 0 { at + rank } else { at }).clamp(0, rank);
        let (start, stop) = (end(cx.int("start", 0)), end(cx.int("end", rank)));
        let sizes = (start..stop)
            .map(|dim| x.size(dim))
            .collect::<Result<Vec<Int>>>()?;
        Ok(vec![V::Ints(sizes, false)])
    }),
    op("Size", |cx| {
        let x = cx.tensor(0)?;
        let sizes = (0..cx.rank(0)? as i64).map(|dim| x.size(dim));
        let mut product = Int::from(1i64);
        for size in sizes {
            product = (product * size?)?;
        }
        Ok(vec![V::Ints(vec![product], true)])
    }),
    op("Reshape", |cx| {
        let mut sizes = if cx.version < 5 {
            cx.ints("shape")
                .unwrap_or_default()
                .into_iter()
                .map(Int::from)
                .collect()
        } else {
            cx.input(1).ints()?
        };
        if let (Some((items, _)), V::Ints(..)) = (cx.input(0).as_sizes(), cx.input(0)) {
            match sizes.len() {
                0 => return Ok(vec![V::Ints(items, true)]),
                1 => return Ok(vec![V::Ints(items, false)]),
                _ => {}
            }
        }
        let x = cx.tensor(0)?;
        if !cx.flag("allowzero") {
            for (at, size) in sizes.iter_mut().enumerate() {
                if size.concrete() == Some(0) {
                    *size = x.size(at as i64)?;
                }
            }
        }
        cx.like(ops::reshape(&x, sizes)?)
    })
    .views(),
    op("Flatten", |cx| {
        let x = cx.tensor(0)?;
        let rank = cx.rank(0)? as i64;
        let axis = cx.int("axis", 1);
        let axis = if axis < 0 { axis + rank } else { axis };
        if axis == 1 && rank > 1 {
            return cx.like(ops::flatten(&x, 1, -1)?);
        }
        let mut rows = Int::from(1i64);
        for dim in 0..axis {
            rows = (rows * x.size(dim)?)?;
        }
        let mut columns = Int::from(1i64);
        for dim in axis..rank {
            columns = (columns * x.size(dim)?)?;
        }
        cx.like(ops::reshape(&x, vec![rows, columns])?)
    })
    .views(),
    op("Squeeze", |cx| {
        let axes = cx.axes(1)?;
        if let V::Ints(items, false) = cx.input(0)
            && items.len() == 1
        {
            return Ok(vec![V::Ints(items.clone(), true)]);
        }
        let x = cx.tensor(0)?;
        let shape = cx.shape(0)?;
        let axes: Vec<i64> = match axes {
            Some(axes) => axes
                .into_iter()
                .map(|axis| cx.place(axis, shape.len()))
                .collect::<Result<_>>()?,
            None => cx
                .known_shape(0)?
                .iter()
                .enumerate()
                .filter(|(_, size)| **size == 1)
                .map(|(dim, _)| dim as i64)
                .collect(),
        };
        squeezed(cx, x, &shape, axes)
    })
    .views(),
    op("Unsqueeze", |cx| {
        let axes = cx.axes(1)?.unwrap_or_default();
        if let V::Ints(items, true) = cx.input(0)
            && axes.len() == 1
        {
            return Ok(vec![V::Ints(items.clone(), false)]);
        }
        let mut x = cx.tensor(0)?;
        let rank = cx.rank(0)? + axes.len();
        let mut axes = axes
            .into_iter()
            .map(|axis| cx.place(axis, rank))
            .collect::<Result<Vec<i64>>>()?;
        axes.sort_unstable();
        for axis in axes {
            x = ops::unsqueeze(&x, axis)?;
        }
        cx.like(x)
    })
    .views(),
    op("Transpose", |cx| {
        let x = cx.tensor(0)?;
        let rank = cx.rank(0)? as i64;
        let perm = cx.ints("perm").unwrap_or_else(|| (0..rank).rev().collect());
        if rank == 2 && Object::proxy(&x).is_none() && perm == [1, 0] {
            let turned = ops::t(&x.detach()?)?;
            cx.reader.note_turned(&x, &turned);
            return cx.like(turned);
        }
        cx.like(ops::permute(&x, perm)?)
    })
    .views()
    .weights(&[0]),
    op("Concat", |cx| {
        let all: Option<Vec<(Vec<Int>, bool)>> = cx.inputs.iter().map(V::as_sizes).collect();
        let is_sized = cx.inputs.iter().any(|v| matches!(v, V::Ints(..)));
        if let (Some(all), true) = (all, is_sized) {
            return Ok(vec![V::Ints(
                all.into_iter().flat_map(|(items, _)| items).collect(),
                false,
            )]);
        }
        let rank = cx.rank(0)?;
        let axis = cx.axis("axis", 1, rank)?;
        let ranks = (1..cx.inputs.len()).filter_map(|at| cx.rank(at).ok());
        if let Some(other) = ranks.into_iter().find(|other| *other != rank) {
            return Err(Error::msg(format_args!(
                "inputs of {rank} and of {other} dims are put together"
            )));
        }
        let all = (0..cx.inputs.len())
            .map(|at| cx.tensor(at))
            .collect::<Result<Vec<Tensor>>>()?;
        cx.like(ops::cat(&all, axis)?)
    }),
    op("Split", |cx| {
        let x = cx.tensor(0)?;
        let axis = cx.axis("axis", 0, cx.rank(0)?)?;
        let sizes = match cx.has(1) {
            true => Some(cx.input(1).known_ints()?),
            false => cx.ints("split"),
        };
        let count = cx.node.output.len() as i64;
        let sizes = match sizes {
            Some(sizes) => sizes,
            None => {
                let size = cx.shape(0)?[axis as usize]
                    .as_number()
                    .ok_or_else(|| Error::msg("pieces of a size that is not known"))?;
                let count = cx.int("num_outputs", count);
                let each = size.saturating_add(count - 1) / count.max(1);
                (0..count)
                    .map(|at| each.min(size - at * each).max(0))
                    .collect()
            }
        };
        let sizes: Vec<usize> = sizes
            .into_iter()
            .map(|size| usize::try_from(size).unwrap_or(0))
            .collect();
        let count = sizes.len();
        let pieces = ops::split_with_sizes(&x, sizes, axis)?;
        let dtype = cx.input(0).dtype();
        (0..count)
            .map(|at| Ok(V::Tensor(pieces.get(at as i64)?, dtype)))
            .collect()
    })
    .check(|cx| {
        let outputs = cx.node.output.len() as i64;
        match cx.int("num_outputs", outputs) == outputs {
            true => Ok(()),
            false => Err(Error::msg("other pieces than outputs")),
        }
    })
    .views(),
    op("Slice", slice).any_numbers().views(),
    op("Expand", |cx| {
        let x = cx.tensor(0)?;
        let sizes = cx.input(1).ints()?;
        let shape = cx.shape(0)?;
        let rank = shape.len().max(sizes.len());
        let mut target = Vec::with_capacity(rank);
        for dim in 0..rank {
            let own = (dim + shape.len()).checked_sub(rank);
            let asked = (dim + sizes.len()).checked_sub(rank).map(|at| sizes[at]);
            target.push(match (own, asked) {
                (Some(own), Some(asked))
                    if asked.concrete() == Some(1)
                        || shape[own].as_number().is_some_and(|n| n != 1) =>
                {
                    x.size(own as i64)?
                }
                (_, Some(asked)) => asked,
                (Some(own), None) => x.size(own as i64)?,
                (None, None) => Int::from(1i64),
            });
        }
        cx.like(ops::expand(&x, target)?)
    })
    .makes(asked)
    .views(),
    op("Tile", |cx| {
        let x = cx.tensor(0)?;
        let times = cx.input(1).ints()?;
        cx.like(ops::tile(&x, times)?)
    })
    .makes(|of| of.first().saturating_mul(of.product(1))),
    op("DepthToSpace", |cx| {
        let x = cx.tensor(0)?;
        let block = cx.int("blocksize", 1);
        if cx.text("mode", "DCR") == "CRD" {
            return cx.like(ops::pixel_shuffle(&x, block as usize)?);
        }
        let (n, c, h, w) = (x.size(0)?, x.size(1)?, x.size(2)?, x.size(3)?);
        let deep = c.floordiv(block * block)?;
        let y = ops::reshape(&x, vec![n, block.into(), block.into(), deep, h, w])?;
        let y = ops::permute(&y, [0, 3, 4, 1, 5, 2])?;
        cx.like(ops::reshape(&y, vec![n, deep, (h * block)?, (w * block)?])?)
    })
    .check(blocks),
    op("SpaceToDepth", |cx| {
        let x = cx.tensor(0)?;
        let block = cx.int("blocksize", 1);
        let (n, c, h, w) = (x.size(0)?, x.size(1)?, x.size(2)?, x.size(3)?);
        let (rows, columns) = (h.floordiv(block)?, w.floordiv(block)?);
        let y = ops::reshape(&x, vec![n, c, rows, block.into(), columns, block.into()])?;
        let order = if cx.text("mode", "DCR") == "CRD" {
            [0, 1, 3, 5, 2, 4]
        } else {
            [0, 3, 5, 1, 2, 4]
        };
        let y = ops::permute(&y, order)?;
        cx.like(ops::reshape(
            &y,
            vec![n, (c * (block * block))?, rows, columns],
        )?)
    })
    .check(blocks),
    op("Trilu", |cx| {
        let x = cx.tensor(0)?;
        let k = if cx.has(1) {
            cx.input(1).known_ints()?.first().copied().unwrap_or(0)
        } else {
            0
        };
        cx.like(if cx.int("upper", 1) != 0 {
            ops::triu(&x, k)?
        } else {
            ops::tril(&x, k)?
        })
    }),
    op("Pad", pad).check(|cx| places(cx, 1)).makes(margins),
    op("ReverseSequence", |cx| {
        let x = cx.tensor(0)?;
        let lengths = cx.input(1).known_ints()?;
        let (time, batch) = (cx.int("time_axis", 0), cx.int("batch_axis", 1));
        let mut rows = Vec::new();
        for (at, length) in lengths.iter().enumerate() {
            let row = ops::narrow(&x, batch, at as i64, 1)?;
            let total = row.size(time)?;
            let head = ops::flip(&ops::narrow(&row, time, 0, *length)?, time)?;
            let tail = ops::narrow(&row, time, *length, (total - *length)?)?;
            rows.push(ops::cat(&[head, tail], time)?);
        }
        cx.like(ops::cat(&rows, batch)?)
    }),
    op("CenterCropPad", |cx| {
        let mut x = cx.tensor(0)?;
        let rank = cx.rank(0)?;
        let shape = cx.known_shape(0)?;
        let target = cx.input(1).known_ints()?;
        let axes = cx
            .ints("axes")
            .unwrap_or_else(|| (0..rank as i64).collect());
        for (axis, want) in axes.into_iter().zip(target) {
            let axis = cx.place(axis, rank)?;
            let have = shape[axis as usize] as i64;
            if want < have {
                x = ops::narrow(&x, axis, (have - want) / 2, want)?;
            } else if want > have {
                let mut pads = vec![0i64; 2 * (rank - axis as usize)];
                let before = (want - have) / 2;
                let last = pads.len();
                (pads[last - 2], pads[last - 1]) = (before, want - have - before);
                x = ops::pad(&x, pads, "constant", Bound::from(None::<f64>))?;
            }
        }
        cx.like(x)
    })
    .makes(asked),
];

/// What blocks of an image ask.
fn blocks(cx: &NodeCx<'_>) -> Result<()> {
    at_least(cx, "blocksize", 1)?;
    rank(cx, 0, 4..5)
}

/// The elements of a result whose sizes are the second input.
fn asked(of: &Constants<'_>) -> u64 {
    of.product(1).max(of.first())
}

/// The elements with the widest margin at each side.
fn margins(of: &Constants<'_>) -> u64 {
    let most = of.largest(1, "pads").saturating_mul(2);
    let sizes = of.sizes().iter();
    sizes.fold(1, |n, size| {
        n.saturating_mul(most.saturating_add(*size as u64))
    })
}

/// Without dims, each of which is of size 1: ONNX refuses others, where `ops::squeeze` leaves them as they are.
fn squeezed(cx: &NodeCx<'_>, mut x: Tensor, shape: &[Dim], mut axes: Vec<i64>) -> Given {
    axes.sort_unstable();
    axes.dedup();
    let of = |axis: &i64| &shape[*axis as usize];
    if let Some(axis) = axes
        .iter()
        .find(|axis| of(axis).as_number().is_some_and(|n| n != 1))
    {
        return Err(Error::msg(format_args!(
            "the dim {axis} of size {} is to be left out, which only a dim of size 1 can be",
            of(axis)
        )));
    }
    if axes.iter().any(|axis| of(axis).as_number().is_none()) {
        // The elements fit the other sizes if the dims have size 1, and only then.
        let kept = (0..shape.len() as i64).filter(|dim| !axes.contains(dim));
        let sizes = kept.map(|dim| x.size(dim)).collect::<Result<Vec<Int>>>()?;
        return cx.like(ops::reshape(&x, sizes)?);
    }
    for axis in axes.into_iter().rev() {
        x = ops::squeeze(&x, axis)?;
    }
    cx.like(x)
}

fn slice(cx: &mut NodeCx<'_>) -> Given {
    let (starts, ends, axes, steps) = if cx.version < 10 {
        let of = |name: &str| {
            cx.ints(name)
                .map(|ints| ints.into_iter().map(Int::from).collect::<Vec<Int>>())
        };
        (
            of("starts").unwrap_or_default(),
            of("ends").unwrap_or_default(),
            cx.ints("axes"),
            None,
        )
    } else {
        let axes = if cx.has(3) {
            Some(cx.input(3).known_ints()?)
        } else {
            None
        };
        let steps = if cx.has(4) {
            Some(cx.input(4).known_ints()?)
        } else {
            None
        };
        (cx.input(1).ints()?, cx.input(2).ints()?, axes, steps)
    };
    if steps.iter().flatten().any(|step| *step == 0) {
        return Err(Error::msg("a step of 0 gets nowhere"));
    }
    if let V::Ints(items, _) = cx.input(0) {
        let size = items.len() as i64;
        let known = |of: &Int| {
            of.concrete()
                .ok_or_else(|| Error::msg("a slice of sizes at a place that is not known"))
        };
        let step = steps.as_ref().and_then(|s| s.first().copied()).unwrap_or(1);
        let (Some(start), Some(stop)) = (starts.first(), ends.first()) else {
            return Err(Error::msg("a slice without places"));
        };
        let (start, stop) = bounds(known(start)?, known(stop)?, size, step);
        let mut kept = Vec::new();
        let mut at = start;
        while if step > 0 { at < stop } else { at > stop } {
            kept.push(items[at as usize]);
            at = at.saturating_add(step);
        }
        return Ok(vec![V::Ints(kept, false)]);
    }
    let mut x = cx.tensor(0)?;
    let shape = cx.shape(0)?;
    let axes = axes.unwrap_or_else(|| (0..starts.len() as i64).collect());
    for (at, axis) in axes.into_iter().enumerate() {
        let axis = cx.place(axis, shape.len())?;
        let step = steps.as_ref().and_then(|s| s.get(at).copied()).unwrap_or(1);
        let (Some(start), Some(stop)) = (starts.get(at), ends.get(at)) else {
            return Err(Error::msg("fewer places than dims"));
        };
        let size = shape[axis as usize].as_number();
        match (start.concrete(), stop.concrete(), size) {
            (Some(start), Some(stop), Some(size)) => {
                let (start, stop) = bounds(start, stop, size, step);
                if step > 0 {
                    let length = (stop - start).max(0);
                    if start != 0 || length != size {
                        x = ops::narrow(&x, axis, start, length)?;
                    }
                    if step > 1 {
                        x = stepped(&x, axis, (length + step - 1) / step, step)?;
                    }
                } else {
                    // From the end: the part, turned.
                    let length = (start - stop).max(0);
                    x = ops::flip(&ops::narrow(&x, axis, stop + 1, length)?, axis)?;
                    if step < -1 {
                        x = stepped(&x, axis, (length - step - 1) / -step, -step)?;
                    }
                }
            }
            (start, stop, _) if step == 1 => {
                let end = |at: &Int, known: Option<i64>, left: fn(i64) -> bool| match known {
                    Some(known) if left(known) => None,
                    _ => Some(*at),
                };
                let from = end(&starts[at], start, |start| start == 0);
                let to = end(&ends[at], stop, |stop| stop >= i64::from(i32::MAX));
                x = part(&x, axis, from, to)?;
            }
            _ => return Err(Error::msg("a slice with steps of a size that is not known")),
        }
    }
    cx.like(x)
}

/// Where a slice of a known size begins, and what it stops before. Backward, it begins at an element that there is, and
/// the largest numbers mean all that is left, as they do forward.
fn bounds(start: i64, stop: i64, size: i64, step: i64) -> (i64, i64) {
    let from_start = |at: i64| if at < 0 { at.saturating_add(size) } else { at };
    if step > 0 {
        let within = |at: i64| from_start(at).clamp(0, size);
        return (within(start), within(stop));
    }
    let stop = match stop {
        i64::MAX => -1,
        stop if stop == i64::from(i32::MAX) => -1,
        stop => from_start(stop).clamp(-1, size - 1),
    };
    (from_start(start).min(size - 1).max(size.min(1) - 1), stop)
}

/// A part along a dim, by an index, which stops at the end.
fn part(x: &Tensor, axis: i64, from: Option<Int>, to: Option<Int>) -> Result<Tensor> {
    if from.is_none() && to.is_none() {
        return Ok(x.clone());
    }
    let slice = |from: Option<Int>, to: Option<Int>| {
        Value::Slice(Box::new([from.into_value(), to.into_value(), Value::None]))
    };
    let whole = (0..axis).map(|_| slice(None, None));
    let parts: Vec<Value> = whole.chain([slice(from, to)]).collect();
    match <[Value; 1]>::try_from(parts) {
        Ok([only]) => operator::getitem.call_as((x, only)),
        Err(parts) => operator::getitem.call_as((x, Value::Tuple(parts.into()))),
    }
}

fn stepped(x: &Tensor, axis: i64, count: i64, step: i64) -> Result<Tensor> {
    let places: Vec<i64> = (0..count.max(0)).map(|at| at * step).collect();
    let count = places.len();
    ops::index_select(x, axis, &Tensor::from_vec(places, count)?)
}

fn pad(cx: &mut NodeCx<'_>) -> Given {
    let mut x = cx.tensor(0)?;
    let rank = cx.rank(0)?;
    let pads = match cx.version < 11 {
        true => cx
            .ints("pads")
            .unwrap_or_default()
            .into_iter()
            .map(Int::from)
            .collect(),
        false => cx.input(1).ints()?,
    };
    let axes = match cx.has(3) {
        true => cx
            .input(3)
            .known_ints()?
            .into_iter()
            .map(|axis| cx.place(axis, rank))
            .collect::<Result<Vec<i64>>>()?,
        false => (0..rank as i64).collect(),
    };
    let value = match (cx.version < 11, cx.has(2)) {
        (true, _) => cx.float("value", 0.0),
        (_, true) => cx.tensor(2)?.item()?,
        _ => 0.0,
    };
    let mode = cx.text("mode", "constant");
    let mut before = vec![Int::from(0i64); rank];
    let mut after = before.clone();
    for (at, axis) in axes.iter().enumerate() {
        before[*axis as usize] = pads.get(at).cloned().unwrap_or_else(|| 0i64.into());
        after[*axis as usize] = pads
            .get(at + axes.len())
            .cloned()
            .unwrap_or_else(|| 0i64.into());
    }
    let mode = match &*mode {
        "constant" => {
            let mut sizes = Vec::new();
            let first = (0..rank).find(|dim| {
                before[*dim].concrete() != Some(0) || after[*dim].concrete() != Some(0)
            });
            for dim in (first.unwrap_or(rank)..rank).rev() {
                sizes.push(before[dim]);
                sizes.push(after[dim]);
            }
            if sizes.is_empty() {
                return cx.like(x);
            }
            let dtype = cx.dtype(0)?;
            if dtype == DType::Bool {
                let y = ops::pad(
                    &as_type(&x, DType::U8)?,
                    sizes,
                    "constant",
                    Bound::from(value),
                )?;
                return cx.of(y.ne(0)?, dtype);
            }
            return match dtype.is_floating_point() {
                true => cx.like(ops::pad(&x, sizes, "constant", Bound::from(value))?),
                false => cx.like(ops::pad(&x, sizes, "constant", Bound::from(value as i64))?),
            };
        }
        "reflect" => "reflect",
        "edge" => "edge",
        "wrap" => "wrap",
        other => return Err(Error::not_in_format(format_args!("padding by {other:?}"))),
    };
    // By places, dim by dim: fx pads the last dims alone by these modes.
    let shape = cx.known_shape(0)?;
    for dim in 0..rank {
        let known = |of: &Int| {
            of.concrete()
                .ok_or_else(|| Error::msg("padding by a size that is not known"))
        };
        let (low, high, size) = (known(&before[dim])?, known(&after[dim])?, shape[dim] as i64);
        if low == 0 && high == 0 {
            continue;
        }
        // What negative margins cut off is gone before the others repeat what is left.
        let start = (-low).max(0);
        let size = size - start - (-high).max(0);
        let (low, high) = (low.max(0), high.max(0));
        let place = |at: i64| match mode {
            "edge" => at.clamp(0, size - 1),
            "wrap" => at.rem_euclid(size),
            _ => {
                let period = 2 * (size - 1).max(1);
                let at = at.rem_euclid(period);
                if at >= size { period - at } else { at }
            }
        };
        if size < 1 {
            return Err(Error::msg("margins cut off all that is there"));
        }
        let places = (-low..size + high).map(|at| start + place(at));
        let places: Vec<i64> = places.collect();
        let count = places.len();
        x = ops::index_select(&x, dim as i64, &Tensor::from_vec(places, count)?)?;
    }
    cx.like(x)
}
