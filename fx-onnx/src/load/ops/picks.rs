//! Elements by their places.

use fx_nn::prelude::*;
use fx_nn::tensor::Object;
use fx_nn::{Error, Result};

use super::{Operator, op};
use crate::load::checks::places;
use crate::load::node::{Given, NodeCx};
use crate::load::value::{V, as_type};

pub(super) const TABLE: &[Operator] = &[
    op("Gather", |cx| {
        if let V::Ints(items, _) = cx.input(0) {
            let places = cx.input(1).known_ints()?;
            let scalar = cx.rank(1)? == 0;
            let size = items.len() as i64;
            let picked = places.iter().map(|at| {
                let at = if *at < 0 { at + size } else { *at };
                items
                    .get(at as usize)
                    .cloned()
                    .ok_or_else(|| Error::msg("a size at a place that is not there"))
            });
            return Ok(vec![V::Ints(picked.collect::<Result<_>>()?, scalar)]);
        }
        let (x, at) = (cx.tensor(0)?, cx.tensor(1)?);
        // A dim that is counted from the start needs no number of dims.
        let axis = match (cx.int("axis", 0), cx.rank(0)) {
            (axis @ 0.., Err(_)) => axis,
            (axis, rank) => cx.place(axis, rank?)?,
        };
        if cx.rank(1)? == 0 {
            if at_known(&at)? {
                return cx.like(ops::select(&x, axis, at.item()? as i64)?);
            }
            let one = ops::unsqueeze(&wrapped(cx, &at, axis)?, 0)?;
            return cx.like(ops::squeeze(&ops::index_select(&x, axis, &one)?, axis)?);
        }
        // A table of the file: what looks up rows counts from the start.
        let is_table = Object::proxy(&x).is_none() && cx.rank(0)? == 2 && cx.is_float(0);
        if is_table && axis == 0 && !at_known(&at)? {
            let at = as_type(&at, DType::I64)?;
            return cx.like(ops::embedding(&at, &x, None)?);
        }
        let at = wrapped(cx, &at, axis)?;
        if cx.rank(1)? == 1 {
            return cx.like(ops::index_select(&x, axis, &at)?);
        }
        if axis == 0 && cx.rank(0)? == 2 {
            return cx.like(ops::embedding(&at, &x, None)?);
        }
        let flat = ops::index_select(&x, axis, &ops::reshape(&at, [-1])?)?;
        let mut sizes = Vec::new();
        for dim in 0..axis {
            sizes.push(x.size(dim)?);
        }
        for dim in 0..cx.rank(1)? as i64 {
            sizes.push(at.size(dim)?);
        }
        for dim in axis + 1..cx.rank(0)? as i64 {
            sizes.push(x.size(dim)?);
        }
        cx.like(ops::reshape(&flat, sizes)?)
    })
    .makes(|of| of.products())
    .weights(&[0]),
    op("GatherElements", |cx| {
        let (x, at) = (cx.tensor(0)?, cx.tensor(1)?);
        let axis = cx.axis("axis", 0, cx.rank(0)?)?;
        let at = wrapped(cx, &at, axis)?;
        cx.like(ops::gather(&x, axis, &at)?)
    }),
    op("GatherND", |cx| {
        let (x, at) = (cx.tensor(0)?, cx.tensor(1)?);
        let batch = cx.int("batch_dims", 0) as usize;
        let (shape, places) = (cx.known_shape(0)?, cx.known_shape(1)?);
        let flat = flat_places(&at, &shape, &places, batch)?;
        let depth = *places.last().unwrap_or(&1) + batch;
        let mut rows = vec![shape[..depth].iter().product::<usize>() as i64];
        rows.extend(shape[depth..].iter().map(|n| *n as i64));
        let picked = ops::index_select(&ops::reshape(&x, rows)?, 0, &flat)?;
        let mut result: Vec<i64> = places[..places.len() - 1]
            .iter()
            .map(|n| *n as i64)
            .collect();
        result.extend(shape[depth..].iter().map(|n| *n as i64));
        cx.like(ops::reshape(&picked, result)?)
    })
    .check(depths),
    op("ScatterElements", scatter),
    op("Scatter", scatter),
    op("ScatterND", |cx| {
        let (x, at, from) = (cx.tensor(0)?, cx.tensor(1)?, cx.tensor(2)?);
        let (shape, places) = (cx.known_shape(0)?, cx.known_shape(1)?);
        let flat = flat_places(&at, &shape, &places, 0)?;
        let depth = *places.last().unwrap_or(&1);
        let rows = shape[..depth].iter().product::<usize>() as i64;
        let width = shape[depth..].iter().product::<usize>() as i64;
        let count = places[..places.len() - 1].iter().product::<usize>() as i64;
        let table = ops::reshape(&x, [rows, width])?;
        let source = ops::reshape(&from, [count, width])?;
        let index = ops::expand(&ops::unsqueeze(&flat, 1)?, [count, width])?;
        let y = match &*cx.text("reduction", "none") {
            "none" => ops::scatter(&table, 0, &index, &source)?,
            "add" => ops::scatter_add(&table, 0, &index, &source)?,
            "mul" => ops::scatter_reduce(&table, 0, &index, &source, "prod", true)?,
            "max" => ops::scatter_reduce(&table, 0, &index, &source, "amax", true)?,
            "min" => ops::scatter_reduce(&table, 0, &index, &source, "amin", true)?,
            other => {
                return Err(Error::not_in_format(format_args!(
                    "scattering by {other:?}"
                )));
            }
        };
        let shape: Vec<i64> = shape.iter().map(|n| *n as i64).collect();
        cx.like(ops::reshape(&y, shape)?)
    })
    .check(depths),
    op("TensorScatter", |cx| {
        let (cache, update) = (cx.tensor(0)?, cx.tensor(1)?);
        let rank = cx.rank(0)?;
        let axis = cx.axis("axis", -2, rank)?;
        if axis == 0 {
            return Err(Error::msg("writes along the batch"));
        }
        // The places of each row of the batch, along the axis.
        let along = |at: usize| {
            let mut shape = vec![1i64; rank];
            shape[at] = -1;
            shape
        };
        let count = cx.numbers(update.size(axis)?)?;
        let mut places = ops::reshape(&count, along(axis as usize))?;
        if let Some(starts) = cx.optional(2)? {
            let starts = as_type(&starts, DType::I64)?;
            places = (places + ops::reshape(&starts, along(0))?)?;
        }
        if cx.text("mode", "linear") == "circular" {
            let shape = cx.shape(0)?;
            let size = shape[axis as usize].as_number().ok_or_else(|| {
                Error::msg("writes round a size that is not known: fix it with `Load::dim`")
            })?;
            places = ops::remainder(&places, size)?;
        }
        let sizes = (0..rank as i64)
            .map(|dim| update.size(dim))
            .collect::<Result<Vec<Int>>>()?;
        cx.like(ops::scatter(
            &cache,
            axis,
            &ops::expand(&places, sizes)?,
            &update,
        )?)
    }),
    op("NonZero", |cx| {
        let x = cx.tensor(0)?;
        let places = match cx.rank(0)? {
            0 => ops::nonzero(&ops::reshape(&x, [1])?)?,
            _ => ops::nonzero(&x)?,
        };
        cx.of(ops::t(&places)?, DType::I64)
    }),
    op("Compress", |cx| {
        let (x, keep) = (cx.tensor(0)?, cx.tensor(1)?);
        let places = ops::reshape(&ops::nonzero(&keep)?, [-1])?;
        match cx.attribute("axis").and_then(|a| a.i) {
            None => cx.like(ops::index_select(&ops::reshape(&x, [-1])?, 0, &places)?),
            Some(axis) => {
                let axis = cx.place(axis, cx.rank(0)?)?;
                cx.like(ops::index_select(&x, axis, &places)?)
            }
        }
    }),
    op("OneHot", |cx| {
        let at = cx.tensor(0)?;
        let depth = cx.input(1).known_ints()?.first().copied().unwrap_or(1);
        let values = cx.tensor(2)?;
        let rank = cx.rank(0)? + 1;
        let axis = cx.axis("axis", -1, rank)?;
        let at = as_type(&at, DType::I64)?;
        let at = ops::remainder(&at, depth)?;
        // Places outside of the range are off; they are in it only after the remainder.
        let given = as_type(&cx.tensor(0)?, DType::I64)?;
        let inside = ops::logical_and(&given.ge(-depth)?, &given.lt(depth)?)?;
        let classes: Tensor = Tensor::from_vec((0..depth).collect(), depth as usize)?;
        let on = ops::unsqueeze(&at, -1)?.eq(&classes)?;
        let on = ops::logical_and(&on, &ops::unsqueeze(&inside, -1)?)?;
        let (off_value, on_value) = (ops::select(&values, 0, 0)?, ops::select(&values, 0, 1)?);
        let y = ops::r#where(&on, &on_value, &off_value)?;
        let y = ops::movedim(&y, -1, axis)?;
        Ok(vec![V::Tensor(y, cx.input(2).dtype())])
    })
    .check(|cx| places(cx, 1))
    .makes(|of| of.first().saturating_mul(of.product(1))),
];

fn scatter(cx: &mut NodeCx<'_>) -> Given {
    let (x, at, from) = (cx.tensor(0)?, cx.tensor(1)?, cx.tensor(2)?);
    let axis = cx.axis("axis", 0, cx.rank(0)?)?;
    let at = wrapped(cx, &at, axis)?;
    let y = match &*cx.text("reduction", "none") {
        "none" => ops::scatter(&x, axis, &at, &from)?,
        "add" => ops::scatter_add(&x, axis, &at, &from)?,
        "mul" => ops::scatter_reduce(&x, axis, &at, &from, "prod", true)?,
        "max" => ops::scatter_reduce(&x, axis, &at, &from, "amax", true)?,
        "min" => ops::scatter_reduce(&x, axis, &at, &from, "amin", true)?,
        other => {
            return Err(Error::not_in_format(format_args!(
                "scattering by {other:?}"
            )));
        }
    };
    cx.like(y)
}

/// What places through several dims ask.
fn depths(cx: &NodeCx<'_>) -> Result<()> {
    let batch = cx.int("batch_dims", 0);
    let (x, places) = (cx.known_shape(0)?, cx.known_shape(1)?);
    let depth = places.last().copied().unwrap_or(usize::MAX);
    let fits = usize::try_from(batch).ok().and_then(|batch| {
        let dims = batch.checked_add(depth)?;
        (dims <= x.len() && batch < places.len()).then_some(())
    });
    fits.ok_or_else(|| {
        Error::msg(format_args!(
            "places {places:?} of {x:?}, of which {batch} dims are the batch"
        ))
    })
}

fn at_known(at: &Tensor) -> Result<bool> {
    use fx_nn::tensor::Object;
    Ok(at.proxy().is_none())
}

/// Places counted from the end, from the start.
fn wrapped(cx: &NodeCx<'_>, at: &Tensor, axis: i64) -> Result<Tensor> {
    if at_known(at)? && at.to_vec()?.iter().all(|n| *n >= 0.0) {
        return as_type(at, DType::I64);
    }
    let at = as_type(at, DType::I64)?;
    let size = match cx.shape(0).map(|shape| shape[axis as usize].as_number()) {
        Ok(Some(size)) => Int::from(size),
        _ => cx.tensor(0)?.size(axis)?,
    };
    ops::r#where(&at.lt(0)?, (&at + size)?, &at)
}

/// Places through the first dims as places of rows.
fn flat_places(at: &Tensor, shape: &[usize], places: &[usize], batch: usize) -> Result<Tensor> {
    let depth = *places
        .last()
        .ok_or_else(|| Error::msg("places without dims"))?;
    let at = as_type(at, DType::I64)?;
    let count: usize = places[..places.len() - 1].iter().product();
    let mut flat: Option<Tensor> = None;
    let outer: usize = shape[..batch].iter().product();
    if batch > 0 {
        let each = count / outer.max(1);
        let rows: Vec<i64> = (0..count).map(|i| (i / each.max(1)) as i64).collect();
        flat = Some(Tensor::from_vec(rows, count)?);
    }
    let table = ops::reshape(&at, [count as i64, depth as i64])?;
    for column in 0..depth {
        let size = shape[batch + column] as i64;
        let own = ops::remainder(&ops::select(&table, 1, column as i64)?, size)?;
        flat = Some(match flat {
            Some(flat) => ((flat * size)? + own)?,
            None => own,
        });
    }
    flat.ok_or_else(|| Error::msg("places without columns"))
}
