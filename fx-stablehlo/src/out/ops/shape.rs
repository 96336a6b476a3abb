//! What rearranges a tensor: views, joins, pieces.

use fx_nn::lowering::{OpCall, Val};
use fx_nn::prelude::*;
use fx_nn::value::DType;

use super::picks::take_flat;
use super::{dim_of, dims_of, rules};
use crate::out::cx::{Array, Cx};

rules! {
    reshape => reshaped, flatten => reshaped, unflatten => reshaped, squeeze => reshaped, unsqueeze => reshaped,
    atleast_1d => reshaped, atleast_2d => reshaped, atleast_3d => reshaped,
    size => |cx, call| {
        let x = cx.tensor(call, "x")?;
        let dim = dim_of(call, "dim", x.rank())?;
        Ok(Val::Dim(x.shape[dim].into()))
    },
    permute => |cx, call| {
        let x = cx.tensor(call, "x")?;
        let order = dims_of(call, "dims", x.rank())?;
        Ok(cx.transpose(&x, &order).into())
    },
    transpose => |cx, call| {
        let x = cx.tensor(call, "x")?;
        let mut order: Vec<i64> = (0..x.rank() as i64).collect();
        let (one, other) = (dim_of(call, "dim0", x.rank())?, dim_of(call, "dim1", x.rank())?);
        if x.rank() > 0 {
            order.swap(one, other);
        }
        Ok(cx.transpose(&x, &order).into())
    },
    t => |cx, call| {
        let x = cx.tensor(call, "x")?;
        let order: Vec<i64> = (0..x.rank() as i64).rev().collect();
        Ok(cx.transpose(&x, &order).into())
    },
    movedim => |cx, call| {
        let x = cx.tensor(call, "x")?;
        let (from, to) = (dims_of(call, "source", x.rank())?, dims_of(call, "destination", x.rank())?);
        let mut order = vec![-1i64; x.rank()];
        for (from, to) in from.iter().zip(&to) {
            order[*to as usize] = *from;
        }
        let mut left = (0..x.rank() as i64).filter(|dim| !from.contains(dim));
        for place in order.iter_mut().filter(|place| **place < 0) {
            *place = left.next().unwrap_or(0);
        }
        Ok(cx.transpose(&x, &order).into())
    },
    expand => |cx, call| {
        let x = cx.tensor(call, "x")?;
        let (_, shape) = cx.result(call)?;
        call.needs_no(&["size"]);
        Ok(cx.expand(&x, &shape)?.into())
    },
    broadcast_tensors => |cx, call| {
        let (tensors, types) = (cx.tensors(call, "tensors")?, cx.results(call)?);
        let pairs = tensors.iter().zip(&types);
        Ok(Val::List(pairs.map(|(x, (_, shape))| Ok(cx.expand(x, shape)?.into())).collect::<Result<_>>()?))
    },
    meshgrid => |cx, call| {
        let (tensors, types) = (cx.tensors(call, "tensors")?, cx.results(call)?);
        let swaps = call.text("indexing")? == "xy" && tensors.len() > 1;
        let mut grids = Vec::new();
        for (at, (x, (_, shape))) in tensors.iter().zip(&types).enumerate() {
            let dim = match at {
                0 | 1 if swaps => 1 - at,
                at => at,
            };
            let x = cx.reshape(x, &[x.count()]);
            grids.push(cx.broadcast(&x, &[dim as i64], shape).into());
        }
        Ok(Val::List(grids))
    },
    repeat => |cx, call| tiled(cx, call, "repeats"), tile => |cx, call| tiled(cx, call, "dims"),
    repeat_interleave => |cx, call| {
        let x = cx.tensor(call, "x")?;
        let (x, dim) = match call.is_none("dim")? || x.rank() == 0 {
            true => (cx.reshape(&x, &[x.count()]), 0),
            false => (x.clone(), dim_of(call, "dim", x.rank())?),
        };
        let counts = call.ints("repeats")?;
        let size = x.shape[dim];
        let counts = if counts.len() == 1 { vec![counts[0]; size as usize] } else { counts };
        let places: Vec<i64> = counts.iter().enumerate()
            .flat_map(|(at, count)| std::iter::repeat_n(at as i64, (*count).max(0) as usize)).collect();
        let places = cx.ints(&places, DType::I64);
        Ok(super::picks::take(cx, &x, dim, &places).into())
    },
    cat => |cx, call| {
        let (dtype, shape) = cx.result(call)?;
        let dim = dim_of(call, "dim", shape.len())?;
        let mut parts = Vec::new();
        for x in cx.tensors(call, "tensors")? {
            // An empty tensor of one dim joins anything.
            if x.shape != [0] || shape.len() == 1 {
                parts.push(cx.convert(&x, dtype));
            }
        }
        if parts.is_empty() {
            return Ok(cx.splat(0.0, dtype, &shape).into());
        }
        Ok(cx.concatenate(&parts, dim).into())
    },
    hstack => |cx, call| {
        let (dtype, shape) = cx.result(call)?;
        let mut parts = Vec::new();
        for x in cx.tensors(call, "tensors")? {
            // An empty tensor of one dim joins anything.
            if x.shape == [0] && shape.len() > 1 {
                continue;
            }
            let x = cx.convert(&x, dtype);
            parts.push(if x.rank() == 0 { cx.reshape(&x, &[1]) } else { x });
        }
        Ok(cx.concatenate(&parts, usize::from(shape.len() > 1)).into())
    },
    block_diag => |cx, call| {
        let (dtype, shape) = cx.result(call)?;
        let mut rows = Vec::new();
        let mut before = 0;
        for x in cx.tensors(call, "tensors")? {
            let x = cx.convert(&x, dtype);
            let x = match x.rank() {
                0 => cx.reshape(&x, &[1, 1]),
                1 => cx.reshape(&x, &[1, x.shape[0]]),
                _ => x,
            };
            let behind = shape[1] - before - x.shape[1];
            rows.push(cx.pad(&x, 0.0, &[[0, 0], [before, behind]], &[0, 0]));
            before += x.shape[1];
        }
        Ok(cx.concatenate(&rows, 0).into())
    },
    column_stack => |cx, call| {
        let (dtype, _) = cx.result(call)?;
        let mut columns = Vec::new();
        for x in cx.tensors(call, "tensors")? {
            let x = cx.convert(&x, dtype);
            columns.push(if x.rank() < 2 { cx.reshape(&x, &[x.count(), 1]) } else { x });
        }
        Ok(cx.concatenate(&columns, 1).into())
    },
    cartesian_prod => |cx, call| {
        let (dtype, shape) = cx.result(call)?;
        let tensors = cx.tensors(call, "tensors")?;
        let sizes: Vec<i64> = tensors.iter().map(Array::count).collect();
        let mut columns = Vec::new();
        for (at, x) in tensors.iter().enumerate() {
            let x = cx.convert(x, dtype);
            let x = cx.broadcast(&x, &[at as i64], &sizes);
            columns.push(cx.reshape(&x, &[x.count(), 1]));
        }
        let rows = cx.concatenate(&columns, 1);
        Ok(cx.reshape(&rows, &shape).into())
    },
    chunk => pieces, split => pieces, split_with_sizes => pieces,
    tensor_split => |cx, call| {
        let rank = call.tensor("x")?.rank();
        let dim = dim_of(call, "dim", rank)?;
        sections(cx, call, dim)
    },
    hsplit => |cx, call| {
        let rank = call.tensor("x")?.rank();
        sections(cx, call, usize::from(rank > 1))
    },
    unbind => |cx, call| {
        let x = cx.tensor(call, "x")?;
        let dim = dim_of(call, "dim", x.rank())?;
        let types = cx.results(call)?;
        let items = types.iter().enumerate().map(|(at, (_, shape))| {
            let item = cx.slice_dim(&x, dim, at as i64, at as i64 + 1, 1);
            cx.reshape(&item, shape).into()
        });
        Ok(Val::List(items.collect()))
    },
    narrow => |cx, call| {
        let x = cx.tensor(call, "x")?;
        let dim = dim_of(call, "dim", x.rank())?;
        let length = call.int("length")?;
        if let Val::Tensor(start) = call.val("start")? {
            let start = cx.array(&start)?;
            return Ok(dynamic_slice(cx, &x, dim, &start, length).into());
        }
        let start = call.int("start")?;
        let start = if start < 0 { start + x.shape[dim] } else { start };
        Ok(cx.slice_dim(&x, dim, start, start + length, 1).into())
    },
    select => |cx, call| {
        let x = cx.tensor(call, "x")?;
        let dim = dim_of(call, "dim", x.rank())?;
        let (_, shape) = cx.result(call)?;
        let item = match call.val("index")? {
            Val::Tensor(at) => {
                let at = cx.array(&at)?;
                dynamic_slice(cx, &x, dim, &at, 1)
            }
            _ => {
                let at = call.int("index")?;
                let at = if at < 0 { at + x.shape[dim] } else { at };
                cx.slice_dim(&x, dim, at, at + 1, 1)
            }
        };
        Ok(cx.reshape(&item, &shape).into())
    },
    flip => |cx, call| {
        let x = cx.tensor(call, "x")?;
        let dims = dims_of(call, "dims", x.rank())?;
        Ok(cx.reverse(&x, &dims).into())
    },
    roll => |cx, call| {
        let x = cx.tensor(call, "x")?;
        let shifts = call.ints("shifts")?;
        if call.is_none("dims")? {
            let flat = cx.reshape(&x, &[x.count()]);
            let rolled = rolled(cx, &flat, &shifts, &[0]);
            return Ok(cx.reshape(&rolled, &x.shape).into());
        }
        let dims = dims_of(call, "dims", x.rank())?;
        Ok(rolled(cx, &x, &shifts, &dims).into())
    },
    fft::fftshift => |cx, call| {
        let x = cx.tensor(call, "x")?;
        shifted(cx, call, &x, |size| size / 2)
    },
    fft::ifftshift => |cx, call| {
        let x = cx.tensor(call, "x")?;
        shifted(cx, call, &x, |size| -(size / 2))
    },
    rot90 => |cx, call| {
        let x = cx.tensor(call, "x")?;
        let dims = dims_of(call, "dims", x.rank())?;
        let &[a, b] = &*dims else {
            return Err(Error::msg("it turns in the plane of two dims"));
        };
        let mut order: Vec<i64> = (0..x.rank() as i64).collect();
        order.swap(a as usize, b as usize);
        Ok(match call.int("k")?.rem_euclid(4) {
            0 => x,
            1 => {
                let x = cx.reverse(&x, &[b]);
                cx.transpose(&x, &order)
            }
            2 => cx.reverse(&x, &[a, b]),
            _ => {
                let x = cx.transpose(&x, &order);
                cx.reverse(&x, &[b])
            }
        }.into())
    },
    tril => |cx, call| triangle(cx, call, false), triu => |cx, call| triangle(cx, call, true),
    pad => padded,
    pixel_shuffle => |cx, call| {
        let x = cx.tensor(call, "x")?;
        let by = call.int("upscale_factor")?;
        let (_, shape) = cx.result(call)?;
        let at = x.rank() - 3;
        let mut sizes = x.shape[..at].to_vec();
        sizes.extend([x.shape[at] / (by * by), by, by, x.shape[at + 1], x.shape[at + 2]]);
        let parts = cx.reshape(&x, &sizes);
        let mut order: Vec<i64> = (0..at as i64).collect();
        order.extend([0, 3, 1, 4, 2].map(|dim| at as i64 + dim));
        let moved = cx.transpose(&parts, &order);
        Ok(cx.reshape(&moved, &shape).into())
    },
    pixel_unshuffle => |cx, call| {
        let x = cx.tensor(call, "x")?;
        let by = call.int("downscale_factor")?;
        let (_, shape) = cx.result(call)?;
        let at = x.rank() - 3;
        let mut sizes = x.shape[..=at].to_vec();
        sizes.extend([x.shape[at + 1] / by, by, x.shape[at + 2] / by, by]);
        let parts = cx.reshape(&x, &sizes);
        let mut order: Vec<i64> = (0..=at as i64).collect();
        order.extend([2, 4, 1, 3].map(|dim| at as i64 + dim));
        let moved = cx.transpose(&parts, &order);
        Ok(cx.reshape(&moved, &shape).into())
    },
    diagonal => |cx, call| {
        let x = cx.tensor(call, "x")?;
        let (places, shape) = diagonal_places(cx, call, &x, "dim1", "dim2")?;
        Ok(take_flat(cx, &x, &places, &shape).into())
    },
    diag => |cx, call| {
        let x = cx.tensor(call, "x")?;
        let offset = call.int("diagonal")?;
        let (_, shape) = cx.result(call)?;
        if x.rank() == 1 {
            return Ok(on_diagonal(cx, &x, offset, &shape).into());
        }
        let columns = x.shape[1];
        let places: Vec<i64> = (0..shape[0]).map(|at| (at + (-offset).max(0)) * columns + at + offset.max(0)).collect();
        Ok(take_flat(cx, &x, &places, &shape).into())
    },
    diag_embed => |cx, call| {
        let x = cx.tensor(call, "x")?;
        let offset = call.int("offset")?;
        let (_, shape) = cx.result(call)?;
        let rank = shape.len();
        let (row, column) = (dim_of(call, "dim1", rank)?, dim_of(call, "dim2", rank)?);
        // The matrices are made last, then moved to their dims.
        let mut last: Vec<i64> = (0..rank).filter(|dim| *dim != row && *dim != column).map(|dim| shape[dim]).collect();
        last.extend([shape[row], shape[column]]);
        let matrices = on_diagonal(cx, &x, offset, &last);
        let mut rest = 0..rank as i64 - 2;
        let order: Vec<i64> = (0..rank).map(|dim| match dim {
            dim if dim == row => rank as i64 - 2,
            dim if dim == column => rank as i64 - 1,
            _ => rest.next().unwrap_or(0),
        }).collect();
        Ok(cx.transpose(&matrices, &order).into())
    },
}

/// Any view that keeps the order of the elements.
fn reshaped(cx: &mut Cx, call: &OpCall<'_>) -> Result<Val> {
    let x = cx.tensor(call, "x")?;
    let (_, shape) = cx.result(call)?;
    call.needs_no(&["shape", "start_dim", "end_dim", "dim", "sizes"]);
    Ok(cx.reshape(&x, &shape).into())
}

fn tiled(cx: &mut Cx, call: &OpCall<'_>, counts: &str) -> Result<Val> {
    let x = cx.tensor(call, "x")?;
    let mut counts = call.ints(counts)?;
    let (_, shape) = cx.result(call)?;
    let rank = shape.len();
    while counts.len() < rank {
        counts.insert(0, 1);
    }
    let sizes = [vec![1; rank - x.rank()], x.shape.clone()].concat();
    let spread: Vec<i64> = sizes.iter().flat_map(|size| [1, *size]).collect();
    let whole: Vec<i64> = counts
        .iter()
        .zip(&sizes)
        .flat_map(|(count, size)| [*count, *size])
        .collect();
    let x = cx.reshape(&x, &spread);
    let x = cx.expand(&x, &whole)?;
    Ok(cx.reshape(&x, &shape).into())
}

fn pieces(cx: &mut Cx, call: &OpCall<'_>) -> Result<Val> {
    let rank = call.tensor("x")?.rank();
    pieces_along(cx, call, dim_of(call, "dim", rank)?)
}

/// One behind the other, as long as the results are.
fn pieces_along(cx: &mut Cx, call: &OpCall<'_>, dim: usize) -> Result<Val> {
    let x = cx.tensor(call, "x")?;
    call.needs_no(&["chunks", "split_size", "split_sizes", "indices_or_sections"]);
    let mut start = 0;
    let mut items = Vec::new();
    for (_, shape) in cx.results(call)? {
        let size = shape[dim];
        items.push(cx.slice_dim(&x, dim, start, start + size, 1).into());
        start += size;
    }
    Ok(Val::List(items))
}

/// Pieces between places, which may stand in any order; or so many pieces.
fn sections(cx: &mut Cx, call: &OpCall<'_>, dim: usize) -> Result<Val> {
    let Val::List(_) = call.val("indices_or_sections")? else {
        return pieces_along(cx, call, dim);
    };
    let x = cx.tensor(call, "x")?;
    let size = x.shape[dim];
    let place = |at: i64| if at < 0 { at + size } else { at }.clamp(0, size);
    let (mut items, mut start) = (Vec::new(), 0);
    for end in call
        .ints("indices_or_sections")?
        .into_iter()
        .chain([i64::MAX])
    {
        let (first, last) = (place(start), place(end));
        items.push(cx.slice_dim(&x, dim, first, last.max(first), 1).into());
        start = end;
    }
    Ok(Val::List(items))
}

/// Elements from a place that a run knows.
fn dynamic_slice(cx: &mut Cx, x: &Array, dim: usize, at: &Array, length: i64) -> Array {
    let at = cx.convert(at, DType::I64);
    let at = cx.reshape(&at, &[]);
    let behind = cx.with_number("add", &at, x.shape[dim] as f64);
    let is_negative = cx.compare_number("LT", &at, 0.0);
    let at = cx.select(&is_negative, &behind, &at);
    let zero = cx.splat(0.0, DType::I64, &[]);
    let mut operands = vec![x];
    operands.extend((0..x.rank()).map(|other| if other == dim { &at } else { &zero }));
    let mut shape = x.shape.clone();
    shape[dim] = length;
    let attributes = format!("slice_sizes = {}", crate::out::text::array(&shape));
    cx.op("dynamic_slice", &operands, &attributes, x.dtype, &shape)
}

/// The elements moved on, and around the end.
fn rolled(cx: &mut Cx, x: &Array, shifts: &[i64], dims: &[i64]) -> Array {
    let mut x = x.clone();
    for (shift, dim) in shifts.iter().zip(dims) {
        let dim = *dim as usize;
        let size = x.shape[dim];
        let by = if size == 0 { 0 } else { shift.rem_euclid(size) };
        if by != 0 {
            let tail = cx.slice_dim(&x, dim, size - by, size, 1);
            let head = cx.slice_dim(&x, dim, 0, size - by, 1);
            x = cx.concatenate(&[tail, head], dim);
        }
    }
    x
}

/// A complex tensor, whose last dim has the two parts of each number, rolled along its own dims.
fn shifted(cx: &mut Cx, call: &OpCall<'_>, x: &Array, by: fn(i64) -> i64) -> Result<Val> {
    let dims = dims_of(call, "dim", x.rank() - 1)?;
    let shifts: Vec<i64> = dims.iter().map(|dim| by(x.shape[*dim as usize])).collect();
    Ok(rolled(cx, x, &shifts, &dims).into())
}

fn triangle(cx: &mut Cx, call: &OpCall<'_>, upper: bool) -> Result<Val> {
    let x = cx.tensor(call, "x")?;
    let diagonal = call.int("diagonal")?;
    let matrix = x.shape[x.rank() - 2..].to_vec();
    let (row, column) = (
        cx.iota(0, DType::I64, &matrix),
        cx.iota(1, DType::I64, &matrix),
    );
    let row = cx.with_number("add", &row, diagonal as f64);
    let kept = cx.compare(if upper { "GE" } else { "LE" }, &column, &row);
    let kept = cx.expand(&kept, &x.shape)?;
    let zero = cx.splat(0.0, x.dtype, &x.shape);
    Ok(cx.select(&kept, &x, &zero).into())
}

/// Elements on a diagonal of matrices of zeros, which are the last two dims.
fn on_diagonal(cx: &mut Cx, x: &Array, offset: i64, shape: &[i64]) -> Array {
    let rank = shape.len();
    let rows = shape[rank - 2];
    // Element i stands in row i - min(offset, 0): it is spread over the rows, then masked.
    let before = (-offset).max(0);
    let mut around = vec![[0, 0]; x.rank()];
    around[x.rank() - 1] = [before, rows - before - x.shape[x.rank() - 1]];
    let padded = cx.pad(x, 0.0, &around, &vec![0; x.rank()]);
    let dims: Vec<i64> = (0..rank as i64 - 1).collect();
    let spread = cx.broadcast(&padded, &dims, shape);
    let (row, column) = (
        cx.iota(rank - 2, DType::I64, shape),
        cx.iota(rank - 1, DType::I64, shape),
    );
    let moved = cx.with_number("add", &row, offset as f64);
    let is_diagonal = cx.compare("EQ", &column, &moved);
    let zero = cx.splat(0.0, x.dtype, shape);
    cx.select(&is_diagonal, &spread, &zero)
}

/// The places of a diagonal among all elements, and its shape.
fn diagonal_places(
    cx: &Cx,
    call: &OpCall<'_>,
    x: &Array,
    dim1: &str,
    dim2: &str,
) -> Result<(Vec<i64>, Vec<i64>)> {
    let (row, column) = (dim_of(call, dim1, x.rank())?, dim_of(call, dim2, x.rank())?);
    let offset = call.int("offset")?;
    let (_, shape) = cx.result(call)?;
    let length = shape.last().copied().unwrap_or(0);
    let mut strides = vec![1; x.rank()];
    for dim in (0..x.rank().saturating_sub(1)).rev() {
        strides[dim] = strides[dim + 1] * x.shape[dim + 1];
    }
    let mut starts = vec![0];
    for dim in (0..x.rank()).filter(|dim| *dim != row && *dim != column) {
        let stride = strides[dim];
        starts = starts
            .iter()
            .flat_map(|start| (0..x.shape[dim]).map(move |at| start + at * stride))
            .collect();
    }
    let first = (-offset).max(0) * strides[row] + offset.max(0) * strides[column];
    let step = strides[row] + strides[column];
    let places = starts
        .iter()
        .flat_map(|start| (0..length).map(move |at| start + first + at * step));
    Ok((places.collect(), shape))
}

fn padded(cx: &mut Cx, call: &OpCall<'_>) -> Result<Val> {
    let mut x = cx.tensor(call, "x")?;
    let sizes = call.ints("pad")?;
    let mode = call.text("mode")?;
    let value = call.val("value")?;
    let mut around = vec![[0, 0]; x.rank()];
    for (at, pair) in sizes.chunks_exact(2).enumerate() {
        let rank = around.len();
        around[rank - 1 - at] = [pair[0], pair[1]];
    }
    if mode == "constant" {
        let number = match value {
            Val::None => 0.0,
            val => val
                .as_f64()
                .ok_or_else(|| Error::msg("padding with a number that only a run knows"))?,
        };
        return Ok(cx.pad(&x, number, &around, &vec![0; x.rank()]).into());
    }
    for (dim, [before, behind]) in around.into_iter().enumerate() {
        let size = x.shape[dim];
        let mut parts = Vec::new();
        let edge = |cx: &mut Cx, x: &Array, start: i64, count: i64| -> Vec<Array> {
            let one = cx.slice_dim(x, dim, start, start + 1, 1);
            vec![one; count as usize]
        };
        let turned = |cx: &mut Cx, x: &Array, start: i64, stop: i64| {
            let part = cx.slice_dim(x, dim, start, stop, 1);
            cx.reverse(&part, &[dim as i64])
        };
        if before > 0 {
            match &*mode {
                "replicate" => parts.extend(edge(cx, &x, 0, before)),
                "reflect" => parts.push(turned(cx, &x, 1, before + 1)),
                "circular" => parts.push(cx.slice_dim(&x, dim, size - before, size, 1)),
                other => return Err(Error::msg(format_args!("{other:?} is no way to pad"))),
            }
        }
        let start = (-before).max(0);
        parts.push(cx.slice_dim(&x, dim, start, size - (-behind).max(0), 1));
        if behind > 0 {
            match &*mode {
                "replicate" => parts.extend(edge(cx, &x, size - 1, behind)),
                "reflect" => parts.push(turned(cx, &x, size - 1 - behind, size - 1)),
                "circular" => parts.push(cx.slice_dim(&x, dim, 0, behind, 1)),
                other => return Err(Error::msg(format_args!("{other:?} is no way to pad"))),
            }
        }
        x = cx.concatenate(&parts, dim);
    }
    Ok(x.into())
}

/// What a scan gives is stacked already; what its steps give, if they were written one by one, is not.
fn stacked(cx: &mut Cx, call: &OpCall<'_>) -> Result<Val> {
    let whole = call.val("items")?;
    if !matches!(whole, Val::List(_)) {
        return Ok(whole);
    }
    let mut rows = Vec::new();
    for x in cx.tensors(call, "items")? {
        let shape = [&[1], &*x.shape].concat();
        rows.push(cx.reshape(&x, &shape));
    }
    Ok(cx.concatenate(&rows, 0).into())
}

fx_nn::function_table! { crate::out::Rule {
    fx_nn::function!(fx_nn::control::stacked) => crate::out::Rule::new(stacked),
} }
