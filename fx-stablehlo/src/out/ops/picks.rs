//! What picks elements by places that a run knows, and what puts them there.

use fx_nn::lowering::{OpCall, Val};
use fx_nn::prelude::*;
use fx_nn::value::DType;

use super::{dim_of, rules};
use crate::out::cx::{Array, Cx};
use crate::out::text;

rules! {
    embedding => |cx, call| {
        let (x, weight) = (cx.tensor(call, "x")?, cx.tensor(call, "weight")?);
        // The row that gets no gradient.
        call.needs_no(&["padding_idx"]);
        Ok(take(cx, &weight, 0, &x).into())
    },
    index_select => |cx, call| {
        let (x, index) = (cx.tensor(call, "x")?, cx.tensor(call, "index")?);
        let dim = dim_of(call, "dim", x.rank())?;
        // A number is its one element.
        if x.rank() == 0 {
            return Ok(x.into());
        }
        // One place is a row of one.
        let index = cx.reshape(&index, &[index.count()]);
        Ok(take(cx, &x, dim, &index).into())
    },
    take => |cx, call| {
        let (x, index) = (cx.tensor(call, "x")?, cx.tensor(call, "index")?);
        let flat = cx.reshape(&x, &[x.count()]);
        Ok(super::picks::take(cx, &flat, 0, &index).into())
    },
    gather => |cx, call| {
        let (x, index) = (cx.tensor(call, "x")?, cx.tensor(call, "index")?);
        let dim = dim_of(call, "dim", x.rank())?;
        Ok(along(cx, &x, dim, &index).into())
    },
    take_along_dim => |cx, call| {
        let (x, index) = (cx.tensor(call, "x")?, cx.tensor(call, "indices")?);
        if call.is_none("dim")? {
            let (flat, index) = (cx.reshape(&x, &[x.count()]), cx.reshape(&index, &[index.count()]));
            return Ok(along(cx, &flat, 0, &index).into());
        }
        let dim = dim_of(call, "dim", x.rank())?;
        // Both broadcast, but along the dim.
        let (mut of, mut at) = (x.shape.clone(), index.shape.clone());
        for other in (0..x.rank()).filter(|other| *other != dim) {
            let size = x.shape[other].max(index.shape[other]);
            (of[other], at[other]) = (size, size);
        }
        let (x, index) = (cx.expand(&x, &of)?, cx.expand(&index, &at)?);
        Ok(along(cx, &x, dim, &index).into())
    },
    one_hot => |cx, call| {
        let x = cx.tensor(call, "x")?;
        let (dtype, shape) = cx.result(call)?;
        call.needs_no(&["num_classes"]);
        let classes = cx.iota(shape.len() - 1, x.dtype, &shape);
        let dims: Vec<i64> = (0..x.rank() as i64).collect();
        let x = cx.broadcast(&x, &dims, &shape);
        let same = cx.compare("EQ", &x, &classes);
        Ok(cx.convert(&same, dtype).into())
    },
    scatter => |cx, call| {
        let src = cx.tensor(call, "src")?;
        scattered(cx, call, &src, "second", true)
    },
    scatter_value => |cx, call| {
        let (x, index) = (cx.tensor(call, "x")?, cx.tensor(call, "index")?);
        let src = cx.value(&call.val("value")?, x.dtype, &index.shape)?;
        scattered(cx, call, &src, "second", true)
    },
    scatter_add => |cx, call| {
        let src = cx.tensor(call, "src")?;
        scattered(cx, call, &src, "add", true)
    },
    scatter_reduce => |cx, call| {
        let src = cx.tensor(call, "src")?;
        let op = match &*call.text("reduce")? {
            "sum" => "add",
            "prod" => "multiply",
            "amax" => "maximum",
            "amin" => "minimum",
            other => return Err(Error::not_in_format(format_args!("reduce {other:?}: write it by the sum and the count"))),
        };
        scattered(cx, call, &src, op, call.flag("include_self")?)
    },
    index_add => |cx, call| {
        let source = cx.tensor(call, "source")?;
        let alpha = call.float("alpha")?;
        let source = if alpha == 1.0 { source } else { cx.with_number("multiply", &source, alpha) };
        rows_put(cx, call, &source, "add")
    },
    index_copy => |cx, call| {
        let source = cx.tensor(call, "source")?;
        rows_put(cx, call, &source, "second")
    },
    index_fill => |cx, call| {
        let (x, index) = (cx.tensor(call, "x")?, cx.tensor(call, "index")?);
        let dim = dim_of(call, "dim", x.rank())?;
        let mut shape = x.shape.clone();
        if let Some(size) = shape.get_mut(dim) {
            *size = index.count();
        }
        let source = cx.value(&call.val("value")?, x.dtype, &shape)?;
        rows_put(cx, call, &source, "second")
    },
    index_put => |cx, call| {
        let x = cx.tensor(call, "x")?;
        let indices = cx.tensors(call, "indices")?;
        if indices.iter().any(|index| index.dtype == DType::Bool) {
            return Err(Error::msg("how many elements a mask picks is known by a run alone: use `where`"));
        }
        let rank = indices.iter().map(Array::rank).max().unwrap_or(0);
        let mut shape = vec![1; rank];
        for index in &indices {
            for (at, size) in index.shape.iter().rev().enumerate() {
                if *size != 1 {
                    shape[rank - 1 - at] = *size;
                }
            }
        }
        let mut places = Vec::new();
        for (dim, index) in indices.iter().enumerate() {
            places.push((dim, cx.expand(index, &shape)?));
        }
        let updates = [shape, x.shape[indices.len()..].to_vec()].concat();
        let values = cx.value(&call.val("values")?, x.dtype, &updates)?;
        let op = if call.flag("accumulate")? { "add" } else { "second" };
        put_rows(cx, &x, &places, &values, op).map(Val::from)
    },
    select_scatter => |cx, call| {
        let (x, src) = (cx.tensor(call, "x")?, cx.tensor(call, "src")?);
        let dim = dim_of(call, "dim", x.rank())?;
        let at = call.int("index")?;
        let at = if at < 0 { at + x.shape[dim] } else { at };
        let mut shape = x.shape.clone();
        shape[dim] = 1;
        let src = cx.reshape(&src, &shape);
        let (head, tail) = (cx.slice_dim(&x, dim, 0, at, 1), cx.slice_dim(&x, dim, at + 1, x.shape[dim], 1));
        Ok(cx.concatenate(&[head, src, tail], dim).into())
    },
    slice_scatter => |cx, call| {
        let (x, src) = (cx.tensor(call, "x")?, cx.tensor(call, "src")?);
        let dim = dim_of(call, "dim", x.rank())?;
        let start = call.optional_int("start")?.unwrap_or(0);
        let start = if start < 0 { start + x.shape[dim] } else { start }.clamp(0, x.shape[dim]);
        let step = call.int("step")?;
        // The source is as long as the slice.
        call.needs_no(&["end"]);
        let places: Vec<i64> = (0..src.shape[dim]).map(|at| start + at * step).collect();
        let places = cx.ints(&places, DType::I64);
        let (x, src) = (to_front(cx, &x, dim), to_front(cx, &src, dim));
        let rows = put_rows(cx, &x, &[(0, places)], &src, "second")?;
        Ok(from_front(cx, &rows, dim).into())
    },
    searchsorted => |cx, call| {
        if !call.is_none("sorter")? {
            return Err(Error::not_in_format("a sorter: gather the sequence before"));
        }
        let side = if call.is_none("side")? { None } else { Some(call.text("side")?) };
        let right = call.flag("right")? || side.as_deref() == Some("right");
        call.needs_no(&["out_int32"]);
        let (sequence, values) = (cx.tensor(call, "sorted_sequence")?, cx.tensor(call, "values")?);
        let (dtype, shape) = cx.result(call)?;
        // All pairs, `[.., values, sequence]`.
        let size = sequence.shape.last().copied().unwrap_or(0);
        let pairs = [shape.clone(), vec![size]].concat();
        let dims: Vec<i64> = (0..shape.len() as i64).collect();
        let values = cx.broadcast(&values, &dims, &pairs);
        let sequence = cx.convert(&sequence, values.dtype);
        let mut dims: Vec<i64> = (0..sequence.rank() as i64 - 1).collect();
        dims.push(pairs.len() as i64 - 1);
        let sequence = cx.broadcast(&sequence, &dims, &pairs);
        let below = cx.compare(if right { "GE" } else { "GT" }, &values, &sequence);
        let below = cx.convert(&below, dtype);
        Ok(cx.reduce("add", &below, 0.0, &[pairs.len() as i64 - 1]).into())
    },
}

/// Places counted from the end, from the start.
fn from_start(cx: &mut Cx, index: &Array, size: i64) -> Array {
    let index = cx.convert(index, DType::I64);
    let behind = cx.with_number("add", &index, size as f64);
    let is_negative = cx.compare_number("LT", &index, 0.0);
    cx.select(&is_negative, &behind, &index)
}

/// The elements at places of one dim; the dims of the places stand there.
pub(super) fn take(cx: &mut Cx, x: &Array, dim: usize, index: &Array) -> Array {
    let index = from_start(cx, index, x.shape[dim]);
    let mut sizes = x.shape.clone();
    sizes[dim] = 1;
    let mut shape = x.shape.clone();
    shape.splice(dim..=dim, index.shape.iter().copied());
    let offsets: Vec<i64> = (0..shape.len() as i64)
        .filter(|at| !(dim as i64..(dim + index.rank()) as i64).contains(at))
        .collect();
    let attributes = format!(
        "dimension_numbers = #stablehlo.gather<offset_dims = {}, collapsed_slice_dims = [{dim}], \
         start_index_map = [{dim}], index_vector_dim = {}>, slice_sizes = {}, indices_are_sorted = false",
        text::list(&offsets),
        index.rank(),
        text::array(&sizes)
    );
    cx.op("gather", &[x, &index], &attributes, x.dtype, &shape)
}

/// The elements at places among all, in a shape.
pub(super) fn take_flat(cx: &mut Cx, x: &Array, places: &[i64], shape: &[i64]) -> Array {
    let flat = cx.reshape(x, &[x.count()]);
    let places = cx.ints(places, DType::I64);
    let taken = take(cx, &flat, 0, &places);
    cx.reshape(&taken, shape)
}

/// The elements along a dim at places of one shape with the tensor's rank.
pub(super) fn along(cx: &mut Cx, x: &Array, dim: usize, index: &Array) -> Array {
    if x.rank() == 0 {
        return cx.broadcast(x, &[], &index.shape);
    }
    let places = grid(cx, x, dim, index);
    take_rows(cx, x, &places)
}

/// The places in every dim that places along one mean.
fn grid(cx: &mut Cx, x: &Array, dim: usize, index: &Array) -> Vec<(usize, Array)> {
    let dims = (0..x.rank()).map(|other| match other == dim {
        true => (other, cx.convert(index, DType::I64)),
        false => (other, cx.iota(other, DType::I64, &index.shape)),
    });
    dims.collect()
}

/// Places in some dims, one behind the other in a last dim.
fn joined(cx: &mut Cx, x: &Array, places: &[(usize, Array)]) -> Array {
    let mut parts = Vec::new();
    for (dim, index) in places {
        let index = from_start(cx, index, x.shape[*dim]);
        let shape = [index.shape.clone(), vec![1]].concat();
        parts.push(cx.reshape(&index, &shape));
    }
    let last = parts[0].rank() - 1;
    cx.concatenate(&parts, last)
}

/// The elements at places of some dims; the dims of the places stand first.
pub(super) fn take_rows(cx: &mut Cx, x: &Array, places: &[(usize, Array)]) -> Array {
    let index = joined(cx, x, places);
    let dims: Vec<i64> = places.iter().map(|(dim, _)| *dim as i64).collect();
    let (mut sizes, mut shape) = (x.shape.clone(), places[0].1.shape.clone());
    for dim in &dims {
        sizes[*dim as usize] = 1;
    }
    let count = shape.len() as i64;
    let rest = (0..x.rank()).filter(|dim| !dims.contains(&(*dim as i64)));
    shape.extend(rest.map(|dim| x.shape[dim]));
    let offsets: Vec<i64> = (count..shape.len() as i64).collect();
    let attributes = format!(
        "dimension_numbers = #stablehlo.gather<offset_dims = {}, collapsed_slice_dims = {}, start_index_map = {}, \
         index_vector_dim = {count}>, slice_sizes = {}, indices_are_sorted = false",
        text::list(&offsets),
        text::list(&dims),
        text::list(&dims),
        text::array(&sizes)
    );
    cx.op("gather", &[x, &index], &attributes, x.dtype, &shape)
}

/// Elements put at places of some dims; `second` replaces what is there, anything else joins the two.
pub(super) fn put_rows(
    cx: &mut Cx,
    x: &Array,
    places: &[(usize, Array)],
    updates: &Array,
    op: &str,
) -> Result<Array> {
    let index = joined(cx, x, places);
    let dims: Vec<i64> = places.iter().map(|(dim, _)| *dim as i64).collect();
    let count = places[0].1.rank() as i64;
    let window: Vec<i64> = (count..updates.rank() as i64).collect();
    let scalar = (x.dtype, Vec::new());
    let body = match op {
        "second" => cx.region(&[scalar.clone(), scalar], |_, both| {
            Ok(vec![both[1].clone()])
        })?,
        op => cx.folding(op, x.dtype),
    };
    let attributes = format!(
        "scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = {}, inserted_window_dims = {}, \
         scatter_dims_to_operand_dims = {}, index_vector_dim = {count}>, indices_are_sorted = false, \
         unique_indices = false",
        text::list(&window),
        text::list(&dims),
        text::list(&dims)
    );
    let results = [(x.dtype, x.shape.clone())];
    let mut made = cx.operations(
        "scatter",
        &[x, &index, updates],
        &attributes,
        vec![body],
        &results,
    );
    made.pop()
        .ok_or_else(|| Error::msg("a scatter gives one tensor"))
}

fn scattered(
    cx: &mut Cx,
    call: &OpCall<'_>,
    src: &Array,
    op: &str,
    include_self: bool,
) -> Result<Val> {
    let (own, mut index) = (cx.tensor(call, "x")?, cx.tensor(call, "index")?);
    let dim = dim_of(call, "dim", own.rank())?;
    // Such an index has dims of its own.
    if index.count() == 0 {
        return Ok(own.into());
    }
    let (mut x, mut src) = (own.clone(), cx.convert(src, own.dtype));
    if own.rank() == 0 {
        // A number is a row of one.
        for of in [&mut x, &mut index, &mut src] {
            *of = cx.reshape(of, &[of.count()]);
        }
    }
    // The source may be larger than the places.
    let zeros = vec![0; src.rank()];
    let src = cx.slice(&src, &zeros, &index.shape, &vec![1; src.rank()]);
    let places = grid(cx, &x, dim, &index);
    if !include_self {
        let start = match op {
            "multiply" => 1.0,
            "maximum" => super::reduce::limit(x.dtype, true),
            "minimum" => super::reduce::limit(x.dtype, false),
            _ => 0.0,
        };
        let neutral = cx.splat(start, x.dtype, &src.shape);
        x = put_rows(cx, &x, &places, &neutral, "second")?;
    }
    let y = put_rows(cx, &x, &places, &src, op)?;
    Ok(cx.reshape(&y, &own.shape).into())
}

/// A dim moved to the front.
fn to_front(cx: &mut Cx, x: &Array, dim: usize) -> Array {
    let mut order: Vec<i64> = (0..x.rank() as i64).collect();
    order.remove(dim);
    order.insert(0, dim as i64);
    cx.transpose(x, &order)
}

/// The front dim moved back.
fn from_front(cx: &mut Cx, x: &Array, dim: usize) -> Array {
    let mut order: Vec<i64> = (1..x.rank() as i64).collect();
    order.insert(dim, 0);
    cx.transpose(x, &order)
}

/// Rows of a source put at places along a dim.
fn rows_put(cx: &mut Cx, call: &OpCall<'_>, source: &Array, op: &str) -> Result<Val> {
    let (own, index) = (cx.tensor(call, "x")?, cx.tensor(call, "index")?);
    let dim = dim_of(call, "dim", own.rank())?;
    let index = cx.reshape(&index, &[index.count()]);
    let (mut x, mut source) = (own.clone(), cx.convert(source, own.dtype));
    if own.rank() <= 1 {
        // A number is a row of one.
        x = cx.reshape(&x, &[x.count()]);
        source = cx.reshape(&source, &[source.count()]);
        source = cx.expand(&source, &index.shape)?;
    }
    let (x, source) = (to_front(cx, &x, dim), to_front(cx, &source, dim));
    let rows = put_rows(cx, &x, &[(0, index)], &source, op)?;
    let y = from_front(cx, &rows, dim);
    Ok(cx.reshape(&y, &own.shape).into())
}
