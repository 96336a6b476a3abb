//! What rearranges tensors, and sizes as numbers.

use fx_nn::prelude::*;
use fx_nn::tensor::Object;
use fx_nn::value::Dim;
use fx_nn::{Bound, Error, Result};

use crate::load::checks::{Constants, at_least, rank};
use crate::load::node::NodeCx;
use crate::load::operator::{Operator, op};
use crate::load::value::{Given, V, as_type};
use crate::load::whole::Whole;

pub(super) const TABLE: &[Operator] = &[
    op("Shape", |cx| {
        let x = cx.tensor(0)?;
        let parts = cx.attribute("start").is_some() || cx.attribute("end").is_some();
        let (first, last) = (cx.int("start", 0), cx.int("end", -1));
        let rank = match cx.rank(0) {
            // In a branch, what is not known may yet be.
            Err(_) if !parts => return Ok(vec![V::Sizes(x)]),
            // Sizes that are counted from the first one need no number of dims; there are as many as asked for.
            Err(_) if first >= 0 && last >= 0 => {
                let sizes = (first..last).map(|dim| x.size(dim));
                return Ok(vec![V::Ints(sizes.collect::<Result<Vec<Int>>>()?, false)]);
            }
            rank => rank? as i64,
        };
        let end = |at: i64| (if at < 0 { at + rank } else { at }).clamp(0, rank);
        let (start, stop) = (end(cx.int("start", 0)), end(cx.int("end", rank)));
        let sizes = (start..stop)
            .map(|dim| x.size(dim))
            .collect::<Result<Vec<Int>>>()?;
        Ok(vec![V::Ints(sizes, false)])
    })
    .any_type()
    .sizes_text(),
    op("Size", |cx| {
        if let V::Sizes(of) = cx.input(0) {
            return Ok(vec![V::Ints(vec![of.dim()?], true)]);
        }
        let x = cx.tensor(0)?;
        let Ok(rank) = cx.rank(0) else {
            return Ok(vec![V::Ints(vec![x.numel()?], true)]);
        };
        let sizes = (0..rank as i64).map(|dim| x.size(dim));
        let mut product = Int::from(1i64);
        for size in sizes {
            product = (product * size?)?;
        }
        Ok(vec![V::Ints(vec![product], true)])
    })
    .any_type()
    .sizes_text(),
    op("Reshape", |cx| {
        let mut sizes: Vec<Whole> = if cx.version < 5 {
            let sizes = cx.ints("shape").unwrap_or_default();
            sizes.into_iter().map(Whole::from).collect()
        } else {
            cx.wholes(1)?
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
            let most = cx.rank(0).unwrap_or(sizes.len());
            for (at, size) in sizes.iter_mut().enumerate() {
                let kept = match size {
                    Whole::Size(size) => size.concrete() == Some(0),
                    // Whether a run's number keeps a size is seen by the run.
                    Whole::Run(_) => at < most,
                };
                if kept {
                    let own = Whole::from(x.size(at as i64)?);
                    *size = size.if_zero(own, size.clone())?;
                }
            }
        }
        let sizes = sizes.iter().map(Whole::int);
        cx.like(ops::reshape(&x, sizes.collect::<Result<Vec<Int>>>()?)?)
    })
    .views()
    .moves_text(),
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
    .views()
    .moves_text(),
    op("Squeeze", |cx| {
        let axes = cx.axes(1)?;
        if let V::Ints(items, false) = cx.input(0)
            && items.len() == 1
        {
            return Ok(vec![V::Ints(items.clone(), true)]);
        }
        let x = cx.tensor(0)?;
        let shape = match (cx.shape(0), &axes) {
            (Err(_), Some(axes)) => return unranked(cx, x, axes, ops::squeeze),
            (shape, _) => shape?,
        };
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
    .views()
    .moves_text(),
    op("Unsqueeze", |cx| {
        let axes = cx.axes(1)?.unwrap_or_default();
        if let V::Ints(items, true) = cx.input(0)
            && axes.len() == 1
        {
            return Ok(vec![V::Ints(items.clone(), false)]);
        }
        let mut x = cx.tensor(0)?;
        let rank = match cx.rank(0) {
            Ok(rank) => rank + axes.len(),
            Err(_) => return unranked(cx, x, &axes, ops::unsqueeze),
        };
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
    .views()
    .moves_text(),
    op("Transpose", |cx| {
        let x = cx.tensor(0)?;
        let perm = match cx.ints("perm") {
            Some(perm) => perm,
            None => (0..cx.rank(0)? as i64).rev().collect(),
        };
        if perm.len() == 2 && Object::proxy(&x).is_none() && perm == [1, 0] {
            let turned = ops::t(&x.detach()?)?;
            cx.reader.note_turned(&x, &turned);
            return cx.like(turned);
        }
        cx.like(ops::permute(&x, perm)?)
    })
    .views()
    .weights(&[0])
    .moves_text(),
    op("Concat", |cx| {
        let is_sized = cx.inputs.iter().any(|v| matches!(v, V::Ints(..)));
        let of_run = |v: &V| match (is_sized, v) {
            // Numbers beside sizes are sizes too.
            (true, V::Tensor(x, _)) if Object::proxy(x).is_some() => {
                let is_whole = matches!(v.dtype(), Some(DType::I64 | DType::I32));
                let numbers = is_whole.then(|| v.wholes().ok()).flatten()?;
                let each = numbers.iter().map(Whole::int).collect::<Result<_>>();
                Some((each.ok()?, false))
            }
            _ => v.as_sizes(),
        };
        let all: Option<Vec<(Vec<Int>, bool)>> = cx.inputs.iter().map(of_run).collect();
        if let (Some(all), true) = (all, is_sized) {
            return Ok(vec![V::Ints(
                all.into_iter().flat_map(|(items, _)| items).collect(),
                false,
            )]);
        }
        let axis = cx.dim_of(cx.int("axis", 1), 0)?;
        let rank = cx.rank(0).ok();
        let ranks = (1..cx.inputs.len()).filter_map(|at| cx.rank(at).ok());
        if let Some(rank) = rank
            && let Some(other) = ranks.into_iter().find(|other| *other != rank)
        {
            return Err(Error::msg(format_args!(
                "inputs of {rank} and of {other} dims are put together"
            )));
        }
        let all = (0..cx.inputs.len())
            .map(|at| cx.tensor(at))
            .collect::<Result<Vec<Tensor>>>()?;
        cx.like(ops::cat(&all, axis)?)
    })
    .any_type()
    .moves_text(),
    op("Split", |cx| {
        let x = cx.tensor(0)?;
        let axis = cx.dim_of(cx.int("axis", 0), 0)?;
        let sizes = match (cx.has(1), cx.ints("split")) {
            (true, _) => Some(cx.wholes(1)?),
            (false, given) => given.map(|all| all.into_iter().map(Whole::from).collect()),
        };
        let count = cx.node.output.len() as i64;
        let sizes: Vec<Whole> = match sizes {
            Some(sizes) => sizes,
            None => {
                let size = &cx.sizes(0)?[axis as usize];
                let count = cx.int("num_outputs", count);
                let each = match size.known() {
                    Some(size) => Whole::from(size.saturating_add(count - 1) / count.max(1)),
                    None => size.plus(count - 1)?.over(count.max(1))?,
                };
                let rest = |at: i64| match (size.known(), each.known()) {
                    (Some(size), Some(each)) => Ok(each.min(size - at * each).max(0).into()),
                    _ if at + 1 == count => size.minus(each.times(at)?),
                    _ => Ok(each.clone()),
                };
                (0..count).map(rest).collect::<Result<_>>()?
            }
        };
        let dtype = cx.input(0).dtype();
        let known = sizes.iter().map(Whole::known).collect::<Option<Vec<i64>>>();
        let Some(sizes) = known else {
            let (mut start, mut pieces) = (Whole::from(0), Vec::new());
            for size in sizes {
                let piece = ops::narrow(&x, axis, start.int()?, size.int()?)?;
                pieces.push(V::Tensor(piece, dtype));
                start = start.plus(size)?;
            }
            return Ok(pieces);
        };
        let sizes: Vec<usize> = sizes
            .into_iter()
            .map(|size| usize::try_from(size).unwrap_or(0))
            .collect();
        let count = sizes.len();
        let pieces = ops::split_with_sizes(&x, sizes, axis)?;
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
    .views()
    .moves_text(),
    op("Expand", |cx| {
        let x = cx.tensor(0)?;
        let sizes = cx.wholes(1)?;
        let shape = cx.shape(0)?;
        let rank = shape.len().max(sizes.len());
        let mut target = Vec::with_capacity(rank);
        for dim in 0..rank {
            let own = (dim + shape.len()).checked_sub(rank);
            let asked = (dim + sizes.len()).checked_sub(rank).map(|at| &sizes[at]);
            target.push(match (own, asked) {
                (Some(own), Some(asked))
                    if asked.known() == Some(1)
                        || shape[own].as_number().is_some_and(|n| n != 1) =>
                {
                    x.size(own as i64)?
                }
                // Which of the two is 1 is seen by the run.
                (Some(own), Some(asked @ Whole::Run(_))) if shape[own].as_number().is_none() => {
                    let size = Whole::from(x.size(own as i64)?);
                    size.minus(1)?.if_zero(asked.clone(), size)?.int()?
                }
                (_, Some(asked)) => asked.int()?,
                (Some(own), None) => x.size(own as i64)?,
                (None, None) => Int::from(1i64),
            });
        }
        cx.like(ops::expand(&x, target)?)
    })
    .makes(asked)
    .views()
    .moves_text(),
    op("Tile", |cx| {
        let x = cx.tensor(0)?;
        let times = cx.input(1).ints()?;
        cx.like(ops::tile(&x, times)?)
    })
    .makes(|of| of.first().saturating_mul(of.product(1)))
    .moves_text(),
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
        let k = match cx.has(1) {
            true => cx.whole(1)?,
            false => 0.into(),
        };
        let Some(k) = k.known() else {
            let columns = cx.numbers(x.size(-1)?)?;
            let rows = ops::unsqueeze(&cx.numbers(x.size(-2)?)?, 1)?;
            let (apart, k) = ((columns - rows)?, k.tensor()?);
            let kept = match cx.int("upper", 1) != 0 {
                true => apart.ge(&k)?,
                false => apart.le(&k)?,
            };
            return cx.like(ops::r#where(&kept, &x, ops::zeros_like(&x, None)?)?);
        };
        cx.like(if cx.int("upper", 1) != 0 {
            ops::triu(&x, k)?
        } else {
            ops::tril(&x, k)?
        })
    }),
    op("ReverseSequence", |cx| {
        let x = cx.tensor(0)?;
        let rank = cx.rank(0)?;
        let (time, batch) = (
            cx.axis("time_axis", 0, rank)?,
            cx.axis("batch_axis", 1, rank)?,
        );
        let Ok(lengths) = cx.input(1).known_ints() else {
            let mut along = [vec![1i64; rank], vec![1i64; rank]];
            (along[0][time as usize], along[1][batch as usize]) = (-1, -1);
            let lengths = as_type(&cx.tensor(1)?, DType::I64)?;
            let lengths = ops::reshape(&lengths, along[1].clone())?;
            let places = ops::reshape(&cx.numbers(x.size(time)?)?, along[0].clone())?;
            let turned = ((&lengths - 1)? - &places)?;
            let places = ops::r#where(&places.lt(&lengths)?, &turned, &places)?;
            let sizes = (0..rank as i64).map(|dim| x.size(dim));
            let places = ops::expand(&places, sizes.collect::<Result<Vec<Int>>>()?)?;
            return cx.like(ops::gather(&x, time, &places)?);
        };
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

/// Dims left out of, or put into, a tensor whose number of dims a run decides.
fn unranked(
    cx: &NodeCx<'_>,
    mut x: Tensor,
    axes: &[i64],
    change: fn(&Tensor, i64) -> Result<Tensor>,
) -> Given {
    let mut axes = axes.to_vec();
    axes.sort_unstable();
    axes.dedup();
    let from_start = axes.iter().all(|axis| *axis >= 0);
    if !from_start && axes.len() > 1 {
        return Err(Error::msg(
            "dims that are counted from the end of a tensor whose number of dims a run decides",
        ));
    }
    // The last one first where dims are left out, so that the others keep their places.
    if cx.node.op_type == "Squeeze" {
        axes.reverse();
    }
    for axis in axes {
        x = change(&x, axis)?;
    }
    cx.like(x)
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
        // In a branch that is for such sizes, what a size is says nothing of other runs.
        if cx.scopes.len() > 1 {
            for axis in axes.into_iter().rev() {
                x = ops::select(&x, axis, 0)?;
            }
            return cx.like(x);
        }
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
