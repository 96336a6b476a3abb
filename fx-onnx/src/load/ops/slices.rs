//! Parts of tensors, whose places may be known to a run alone.

use fx_nn::prelude::*;
use fx_nn::value::{Dim, IntoValue};
use fx_nn::{Error, Result, operator};

use crate::load::node::NodeCx;
use crate::load::operator::{Operator, op};
use crate::load::value::{Given, V};
use crate::load::whole::Whole;

pub(super) const TABLE: &[Operator] = &[op("Slice", slice).any_numbers().views().moves_text()];

/// From this number on, an end means all that is left.
const END: i64 = i32::MAX as i64;

fn slice(cx: &mut NodeCx<'_>) -> Given {
    let (starts, ends, axes, steps) = if cx.version < 10 {
        let of = |name: &str| {
            let numbers = cx.ints(name).unwrap_or_default().into_iter();
            numbers.map(Whole::from).collect::<Vec<Whole>>()
        };
        (of("starts"), of("ends"), cx.ints("axes"), None)
    } else {
        let axes = match cx.has(3) {
            true => Some(cx.input(3).known_ints()?),
            false => None,
        };
        let steps = match cx.has(4) {
            true => Some(cx.wholes(4)?),
            false => None,
        };
        (cx.wholes(1)?, cx.wholes(2)?, axes, steps)
    };
    let step_of = |at: usize| {
        let given = steps.as_ref().and_then(|steps| steps.get(at).cloned());
        given.unwrap_or_else(|| 1.into())
    };
    if steps.iter().flatten().any(|step| step.known() == Some(0)) {
        return Err(Error::msg("a step of 0 gets nowhere"));
    }
    if let V::Ints(items, _) = cx.input(0)
        && let (Some(start), Some(stop)) = (starts.first(), ends.first())
        && let (Some(start), Some(stop), Some(step)) =
            (start.known(), stop.known(), step_of(0).known())
    {
        let (start, stop) = bounds(start, stop, items.len() as i64, step);
        let mut kept = Vec::new();
        let mut at = start;
        while if step > 0 { at < stop } else { at > stop } {
            kept.extend(items.get(at as usize));
            at = at.saturating_add(step);
        }
        return Ok(vec![V::Ints(kept, false)]);
    }
    let mut x = cx.tensor(0)?;
    let shape = cx.shape(0);
    let axes = axes.unwrap_or_else(|| (0..starts.len() as i64).collect());
    for (at, axis) in axes.into_iter().enumerate() {
        let axis = cx.dim_of(axis, 0)?;
        let (Some(start), Some(stop)) = (starts.get(at), ends.get(at)) else {
            return Err(Error::msg("fewer places than dims"));
        };
        let step = step_of(at);
        let size = match &shape {
            Ok(shape) => shape.get(axis as usize).and_then(Dim::as_number),
            Err(_) => None,
        };
        x = match (start.known(), stop.known(), step.known(), size) {
            (Some(start), Some(stop), Some(step), Some(size)) => {
                of_known(&x, axis, bounds(start, stop, size, step), size, step)?
            }
            (from, to, Some(step), _) if step > 0 => {
                // Whether a size that falls with another one counts from the end is seen by the run.
                let place = |at: &Whole| match at.falls() {
                    true => at.counted(&x.size(axis)?.into())?.int(),
                    false => at.int(),
                };
                let from = match from {
                    Some(0) => None,
                    _ => Some(place(start)?),
                };
                let to = match to {
                    Some(at) if at >= END => None,
                    _ => Some(place(stop)?),
                };
                part(&x, axis, from, to, step)?
            }
            _ => walked(&x, axis, start, stop, &step)?,
        };
    }
    cx.like(x)
}

/// A part of a dim of a known size.
fn of_known(
    x: &Tensor,
    axis: i64,
    (start, stop): (i64, i64),
    size: i64,
    step: i64,
) -> Result<Tensor> {
    let mut x = x.clone();
    if step > 0 {
        let length = (stop - start).max(0);
        if start != 0 || length != size {
            x = ops::narrow(&x, axis, start, length)?;
        }
        if step > 1 {
            x = stepped(&x, axis, (length + step - 1) / step, step)?;
        }
        return Ok(x);
    }
    // From the end: the part, turned.
    let length = (start - stop).max(0);
    x = ops::flip(&ops::narrow(&x, axis, stop + 1, length)?, axis)?;
    match step < -1 {
        true => stepped(&x, axis, (length - step - 1) / -step, -step),
        false => Ok(x),
    }
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
        i64::MAX | END => -1,
        stop => from_start(stop).clamp(-1, size - 1),
    };
    (from_start(start).min(size - 1).max(size.min(1) - 1), stop)
}

/// A part along a dim, by an index, which stops at the end.
fn part(x: &Tensor, axis: i64, from: Option<Int>, to: Option<Int>, step: i64) -> Result<Tensor> {
    if from.is_none() && to.is_none() && step == 1 {
        return Ok(x.clone());
    }
    let all = || Value::Slice(Box::new([Value::None, Value::None, Value::None]));
    let step = match step {
        1 => Value::None,
        step => step.into_value(),
    };
    let own = Value::Slice(Box::new([from.into_value(), to.into_value(), step]));
    let parts: Vec<Value> = (0..axis).map(|_| all()).chain([own]).collect();
    match <[Value; 1]>::try_from(parts) {
        Ok([only]) => operator::getitem.call_as((x, only)),
        Err(parts) => operator::getitem.call_as((x, Value::Tuple(parts.into()))),
    }
}

/// A part by its places, which are computed when the graph runs.
fn walked(x: &Tensor, axis: i64, start: &Whole, stop: &Whole, step: &Whole) -> Result<Tensor> {
    let size = Whole::from(x.size(axis)?);
    let last = size.minus(1)?;
    // What is far outside is at an end.
    let start = match start.known() {
        Some(at) if at >= END => size.clone(),
        Some(at) if at <= -END => 0.into(),
        _ => start.counted(&size)?,
    };
    // Backward, the largest numbers mean all that is left.
    let stop = match (stop.known(), step.known()) {
        (Some(at), Some(..0)) if at == i64::MAX || at == END => Whole::from(-1),
        (Some(at), Some(..0)) if at <= -END => Whole::from(-1),
        (Some(at), _) if at >= END => size.clone(),
        _ => stop.counted(&size)?,
    };
    let forward = (
        start.at_least(0)?.at_most(size.clone())?,
        stop.at_least(0)?.at_most(size.clone())?,
    );
    let backward = (
        start.at_most(last.clone())?.at_least(0)?,
        stop.at_least(-1)?.at_most(last)?,
    );
    let start = step.if_negative(backward.0, forward.0)?;
    let stop = step.if_negative(backward.1, forward.1)?;
    let count = stop.minus(start.clone())?.steps(step.clone())?;
    let count = count.at_least(0)?.at_most(size)?.int()?;
    let places = ops::arange(0, count, 1, Some(DType::I64))?;
    let places = (places * step.tensor()?)?;
    ops::index_select(x, axis, &(places + start.tensor()?)?)
}

fn stepped(x: &Tensor, axis: i64, count: i64, step: i64) -> Result<Tensor> {
    let places: Vec<i64> = (0..count.max(0)).map(|at| at * step).collect();
    let count = places.len();
    ops::index_select(x, axis, &Tensor::from_vec(places, count)?)
}
