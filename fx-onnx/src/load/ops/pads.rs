//! Margins around tensors, whose widths may be known to a run alone.

use fx_nn::prelude::*;
use fx_nn::tensor::Object;
use fx_nn::{Bound, Error, Result};

use crate::load::checks::{Constants, places};
use crate::load::node::NodeCx;
use crate::load::operator::{Operator, op};
use crate::load::value::{Given, as_type};
use crate::load::whole::Whole;

pub(super) const TABLE: &[Operator] = &[op("Pad", pad).check(|cx| places(cx, 1)).makes(margins)];

/// The elements with the widest margin at each side.
fn margins(of: &Constants<'_>) -> u64 {
    let most = of.largest(1, "pads").saturating_mul(2);
    let sizes = of.sizes().iter();
    sizes.fold(1, |n, size| {
        n.saturating_mul(most.saturating_add(*size as u64))
    })
}

fn pad(cx: &mut NodeCx<'_>) -> Given {
    let mut x = cx.tensor(0)?;
    let rank = cx.rank(0)?;
    let pads = match cx.version < 11 {
        true => {
            let pads = cx.ints("pads").unwrap_or_default();
            pads.into_iter().map(Whole::from).collect()
        }
        false => cx.wholes(1)?,
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
    let mut before = vec![Whole::from(0); rank];
    let mut after = before.clone();
    for (at, axis) in axes.iter().enumerate() {
        let of = |at: usize| pads.get(at).cloned().unwrap_or_else(|| 0.into());
        before[*axis as usize] = of(at);
        after[*axis as usize] = of(at + axes.len());
    }
    let mode = cx.text("mode", "constant");
    if mode == "constant" {
        return constant(cx, &x, &before, &after);
    }
    if !matches!(&*mode, "reflect" | "edge" | "wrap") {
        return Err(Error::not_in_format(format_args!("padding by {mode:?}")));
    }
    // By places, dim by dim: fx pads the last dims alone by these modes.
    let sizes = cx.sizes(0)?;
    for dim in 0..rank {
        let (low, high) = (&before[dim], &after[dim]);
        if low.known() == Some(0) && high.known() == Some(0) {
            continue;
        }
        let places = match (low.known(), high.known(), sizes[dim].known()) {
            (Some(low), Some(high), Some(size)) => of_known(&mode, low, high, size)?,
            _ => repeated(&mode, low, high, &sizes[dim])?,
        };
        x = ops::index_select(&x, dim as i64, &places)?;
    }
    cx.like(x)
}

/// Margins of one number.
fn constant(cx: &NodeCx<'_>, x: &Tensor, before: &[Whole], after: &[Whole]) -> Given {
    let dims = before.iter().zip(after);
    let first = dims
        .clone()
        .position(|(low, high)| low.known() != Some(0) || high.known() != Some(0));
    let Some(first) = first else {
        return cx.like(x.clone());
    };
    let mut sizes = Vec::new();
    for (low, high) in dims.skip(first).rev() {
        sizes.extend([low.int()?, high.int()?]);
    }
    let dtype = cx.dtype(0)?;
    let own = match dtype {
        DType::Bool => as_type(x, DType::U8)?,
        _ => x.clone(),
    };
    let with = |x: &Tensor, value: Bound| ops::pad(x, sizes.clone(), "constant", value);
    let value = match (cx.version < 11, cx.has(2)) {
        (true, _) => cx.float("value", 0.0),
        (_, true) => {
            let value = cx.tensor(2)?;
            if value.proxy().is_some() {
                // The number is only a run's: what is beside the elements has it.
                let there = ops::ones_like(x, Some(DType::U8))?;
                let there = with(&there, Bound::from(0i64))?.ne(0)?;
                let wide = with(&own, Bound::from(0i64))?;
                let value = as_type(
                    &ops::reshape(&value, ())?,
                    Tensor::dtype(&own).unwrap_or(dtype),
                )?;
                return cx.like(ops::r#where(&there, &wide, &value)?);
            }
            value.item()?
        }
        _ => 0.0,
    };
    match dtype {
        DType::Bool => cx.of(with(&own, Bound::from(value))?.ne(0)?, dtype),
        dtype if dtype.is_floating_point() => cx.like(with(&own, Bound::from(value))?),
        _ => cx.like(with(&own, Bound::from(value as i64))?),
    }
}

/// The places that elements and margins have in a dim of a known size.
fn of_known(mode: &str, low: i64, high: i64, size: i64) -> Result<Tensor> {
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
    let places: Vec<i64> = (-low..size + high).map(|at| start + place(at)).collect();
    let count = places.len();
    Tensor::from_vec(places, count)
}

/// The same places, computed when the graph runs.
fn repeated(mode: &str, low: &Whole, high: &Whole, size: &Whole) -> Result<Tensor> {
    let none = Whole::from(0);
    let start = none.minus(low.clone())?.at_least(0)?;
    let end = none.minus(high.clone())?.at_least(0)?;
    let size = size.minus(start.clone())?.minus(end)?;
    let (low, high) = (low.at_least(0)?, high.at_least(0)?);
    let count = size.plus(low.clone())?.plus(high)?.int()?;
    let at = ops::arange(0, count, 1, Some(DType::I64))?;
    let at = (at - low.tensor()?)?;
    let last = size.minus(1)?;
    let places = match mode {
        "edge" => {
            let at = ops::clamp(&at, 0, Bound::from(None::<f64>))?;
            ops::minimum(&at, &last.tensor()?)?
        }
        "wrap" => ops::remainder(&at, &size.tensor()?)?,
        _ => {
            let period = last.at_least(1)?.times(2)?.tensor()?;
            let at = ops::remainder(&at, &period)?;
            ops::r#where(&at.gt(&last.tensor()?)?, (&period - &at)?, &at)?
        }
    };
    match start.known() {
        Some(0) => Ok(places),
        _ => places + start.tensor()?,
    }
}
