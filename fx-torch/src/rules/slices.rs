//! Slices that are written, and parts that counts decide.

use fx_nn::prelude::*;
use fx_nn::value::IntoValue;
use fx_nn::{Error, Result};

use super::entry::{Entry, by, rank};
use super::shape::slice;
use crate::call::Call;
use crate::numbers;

/// A tensor with other elements along a dim, from `start` to `end`.
///
/// # Errors
/// Returns an error if the elements do not fit.
pub(crate) fn put_between(
    whole: &Tensor,
    new: Tensor,
    dim: i64,
    start: Value,
    end: Value,
) -> Result<Tensor> {
    let part = |from: Value, to: Value| -> Result<Tensor> {
        let args = vec![
            ("self", Value::object(whole.clone())),
            ("dim", Value::Int(dim)),
            ("start", from),
            ("end", to),
        ];
        let call = Call {
            target: "torch.ops.aten.slice.Tensor",
            args,
            dtypes: Vec::new(),
        };
        Tensor::from_value(slice(&call)?)
    };
    let mut parts = Vec::new();
    if !matches!(start, Value::None | Value::Int(0)) {
        parts.push(part(Value::None, start)?);
    }
    parts.push(new);
    if !matches!(end, Value::None | Value::Int(i64::MAX)) {
        parts.push(part(end, Value::None)?);
    }
    match parts.as_slice() {
        [one] => Ok(one.clone()),
        several => ops::cat(several, dim),
    }
}

/// A tensor with other elements in a slice of it, by the arguments of `slice`.
///
/// # Errors
/// Returns an error if the elements do not fit.
pub(crate) fn put(call: &Call<'_>, whole: &Tensor, new: Tensor) -> Result<Tensor> {
    let end = |name: &str| call.get(name).cloned().unwrap_or(Value::None);
    let (start, stop, dim): (Value, Value, i64) = (end("start"), end("end"), call.or("dim", 0)?);
    let known = |value: &Value| match value {
        // The largest number is the end.
        Value::None | Value::Int(i64::MAX) => Some(None),
        Value::Int(number) => Some(Some(*number)),
        _ => None,
    };
    match (known(&start), known(&stop), call.or("step", 1i64)?) {
        (Some(start), Some(stop), step @ 1..) => {
            ops::slice_scatter(whole, &new, dim, start, stop, step as usize)
        }
        (_, _, 1) => put_between(whole, new, dim, start, stop),
        _ => Err(Error::msg(
            "it writes a slice with steps whose ends a run decides: write it without steps",
        )),
    }
}

fn slice_scatter(call: &Call<'_>) -> Result<Value> {
    Ok(put(call, &call.own()?, call.of("src")?)?.into_value())
}

/// For each index as many of it as counts say.
fn indices_of(counts: &Tensor) -> Result<Tensor> {
    let ends = ops::cumsum(counts, 0)?;
    let all = numbers::whole(&ops::sum(&ops::ravel(counts)?, 0, false)?, Some(0), None)?;
    let places = ops::arange(Int::from(0), all, Int::from(1), Some(DType::I64))?;
    ops::searchsorted(&ends, &places, false, true, None, None)
}

/// Each item of a dim as often as its count says.
fn repeated(call: &Call<'_>) -> Result<Value> {
    let counts: Tensor = call.of("repeats")?;
    let own = call.own()?;
    let (own, dim) = match call.maybe::<i64>("dim")? {
        Some(dim) => (own, dim),
        None => (ops::ravel(&own)?, 0),
    };
    let counts = match rank(&counts)? {
        0 => ops::expand(&counts, vec![own.size(dim)?])?,
        _ => counts,
    };
    Ok(ops::index_select(&own, dim, &indices_of(&counts)?)?.into_value())
}

fn repeats(call: &Call<'_>) -> Result<Value> {
    Ok(indices_of(&call.of("repeats")?)?.into_value())
}

/// The different elements, where each stands among them, and how many there are of it.
fn unique(call: &Call<'_>) -> Result<Value> {
    let dim = call.maybe::<i64>("dim")?;
    let (values, inverse, counts) = ops::unique(&call.own()?, true, true, true, dim)?;
    let all = [values, inverse, counts].map(IntoValue::into_value);
    Ok(Value::Tuple(all.into_iter().collect()))
}

pub(crate) const RULES: &[Entry] = by! {
    "aten._unique2" => unique,
    "aten.repeat_interleave.Tensor" => repeats,
    "aten.repeat_interleave.self_Tensor" => repeated,
    "aten.slice_scatter" => slice_scatter,
    "aten.unique_dim" => unique,
};
