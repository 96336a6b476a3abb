//! Elements by their places.

use fx_nn::prelude::*;
use fx_nn::tensor::Object;
use fx_nn::{Error, Result};

use crate::load::checks::places;
use crate::load::node::NodeCx;
use crate::load::operator::{Operator, op};
use crate::load::value::{Given, V, as_type};
use crate::load::whole::Whole;

pub(super) const TABLE: &[Operator] = &[
    op("Gather", |cx| {
        if let (V::Ints(items, _), Ok(places)) = (cx.input(0), cx.input(1).known_ints()) {
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
        if let (V::Sizes(of), Ok(places)) = (cx.input(0), cx.input(1).known_ints()) {
            let sizes = places.iter().map(|at| of.size(*at));
            let sizes = sizes.collect::<Result<Vec<Int>>>()?;
            return Ok(vec![V::Ints(sizes, cx.rank(1)? == 0)]);
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
        // A table of the file: what looks up tokens counts from the start.
        let is_table =
            axis == 0 && Object::proxy(&x).is_none() && cx.rank(0)? == 2 && cx.is_float(0);
        let of_input = cx
            .node
            .input
            .get(1)
            .is_some_and(|name| cx.reader.flow.ids.contains(name));
        if is_table && of_input && !at_known(&at)? {
            let at = as_type(&at, DType::I64)?;
            return cx.like(ops::embedding(&at, &x, None)?);
        }
        let at = wrapped(cx, &at, axis)?;
        if cx.rank(1)? == 1 && !is_table {
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
    .any_type()
    .makes(|of| of.products())
    .weights(&[0])
    .moves_text(),
    op("GatherElements", |cx| {
        let (x, at) = (cx.tensor(0)?, cx.tensor(1)?);
        let axis = cx.axis("axis", 0, cx.rank(0)?)?;
        let at = wrapped(cx, &at, axis)?;
        cx.like(ops::gather(&x, axis, &at)?)
    })
    .moves_text(),
    op("GatherND", |cx| {
        let (x, at) = (cx.tensor(0)?, cx.tensor(1)?);
        let batch = cx.int("batch_dims", 0) as usize;
        let (sizes, places) = (cx.sizes(0)?, cx.sizes(1)?);
        let deep = depth(cx)? + batch;
        let flat = flat_places(&at, &sizes, &places, batch, deep)?;
        let mut rows = vec![product(&sizes[..deep])?];
        rows.extend(ints(&sizes[deep..])?);
        let picked = ops::index_select(&ops::reshape(&x, rows)?, 0, &flat)?;
        let mut result = ints(&places[..places.len() - 1])?;
        result.extend(ints(&sizes[deep..])?);
        cx.like(ops::reshape(&picked, result)?)
    })
    .check(depths)
    .moves_text(),
    op("ScatterElements", scatter).moves_text(),
    op("Scatter", scatter).moves_text(),
    op("ScatterND", |cx| {
        let (x, at, from) = (cx.tensor(0)?, cx.tensor(1)?, cx.tensor(2)?);
        let (sizes, places) = (cx.sizes(0)?, cx.sizes(1)?);
        let deep = depth(cx)?;
        let flat = flat_places(&at, &sizes, &places, 0, deep)?;
        let (rows, width) = (product(&sizes[..deep])?, product(&sizes[deep..])?);
        let count = product(&places[..places.len() - 1])?;
        let table = ops::reshape(&x, vec![rows, width])?;
        let source = ops::reshape(&from, vec![count, width])?;
        let index = ops::expand(&ops::unsqueeze(&flat, 1)?, vec![count, width])?;
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
        cx.like(ops::reshape(&y, ints(&sizes)?)?)
    })
    .check(depths)
    .moves_text(),
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
            places = match &cx.sizes(0)?[axis as usize] {
                size if let Some(size) = size.known() => ops::remainder(&places, size)?,
                size => ops::remainder(&places, &size.tensor()?)?,
            };
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
    })
    .indices(),
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
    })
    .moves_text(),
    op("OneHot", |cx| {
        let at = cx.tensor(0)?;
        let depth = cx.whole(1)?;
        let values = cx.tensor(2)?;
        let rank = cx.rank(0)? + 1;
        let axis = cx.axis("axis", -1, rank)?;
        let at = as_type(&at, DType::I64)?;
        // Places outside of the range are off; they are in it only after the remainder.
        let given = as_type(&cx.tensor(0)?, DType::I64)?;
        let (at, inside, classes) = match depth.known() {
            Some(depth) => {
                let inside = ops::logical_and(&given.ge(-depth)?, &given.lt(depth)?)?;
                let classes = Tensor::from_vec((0..depth).collect(), depth as usize)?;
                (ops::remainder(&at, depth)?, inside, classes)
            }
            None => {
                let size = depth.tensor()?;
                let inside = ops::logical_and(&given.ge((-&size)?)?, &given.lt(&size)?)?;
                let classes = cx.numbers(depth.int()?)?;
                (ops::remainder(&at, &size)?, inside, classes)
            }
        };
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
    let (x, places) = (cx.shape(0)?, cx.shape(1)?);
    let depth = depth(cx)?;
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

/// How many dims a place leads through.
fn depth(cx: &NodeCx<'_>) -> Result<usize> {
    let places = cx.shape(1)?;
    match places.last() {
        None => Err(Error::msg("places without dims")),
        Some(depth) => depth.as_known().ok_or_else(|| {
            Error::msg(format_args!(
                "places through {depth} dims, a number that only a run knows"
            ))
        }),
    }
}

/// The product of sizes.
fn product(sizes: &[Whole]) -> Result<Int> {
    let one = Whole::from(1);
    let all = sizes.iter().try_fold(one, |n, size| n.times(size.clone()));
    all?.int()
}

fn ints(sizes: &[Whole]) -> Result<Vec<Int>> {
    sizes.iter().map(Whole::int).collect()
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

/// Places through the first `deep` dims, of which some are the batch, as places of rows.
fn flat_places(
    at: &Tensor,
    sizes: &[Whole],
    places: &[Whole],
    batch: usize,
    deep: usize,
) -> Result<Tensor> {
    let at = as_type(at, DType::I64)?;
    let outer = product(&sizes[..batch])?;
    let each = product(&places[batch..places.len() - 1])?;
    let depth = (deep - batch) as i64;
    // The places of one image of the batch beside each other.
    let table = ops::reshape(&at, vec![outer, each, depth.into()])?;
    let mut flat: Option<Tensor> = None;
    if batch > 0 {
        let images = ops::arange(0, outer, 1, Some(DType::I64))?;
        flat = Some(ops::unsqueeze(&images, 1)?);
    }
    for column in 0..depth {
        let size = &sizes[batch + column as usize];
        let own = ops::select(&table, -1, column)?;
        let own = match size.known() {
            Some(size) => ops::remainder(&own, size)?,
            None => ops::remainder(&own, &size.tensor()?)?,
        };
        flat = Some(match (flat, size.known()) {
            (Some(flat), Some(size)) => ((flat * size)? + own)?,
            (Some(flat), None) => ((flat * size.tensor()?)? + own)?,
            (None, _) => own,
        });
    }
    let flat = flat.ok_or_else(|| Error::msg("places without columns"))?;
    ops::reshape(&flat, [-1])
}
