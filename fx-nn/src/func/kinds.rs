//! Calls for many examples by what the kind of a function says of dims.
//!
//! Invariant: a dim of an example is the next dim of all examples.

use fx_core::ir::Function;
use fx_core::trace::FromValue;
use fx_core::value::{Int, IntoValue, Value};
use fx_core::{Error, Result};

use super::batching::{BatchCall, aligned, repeated};
use super::derivative::args_of;
use super::known;
use crate::op_kind::OpKind;
use crate::ops;
use crate::tensor::{Dims, Tensor};

type Rule = fn(&BatchCall<'_>) -> Result<Value>;

/// The rule of a function's kind, if that says enough.
pub(crate) fn by_kind(kind: OpKind, function: Function) -> Option<Rule> {
    let params = function.params();
    let has = |name: &str| params.iter().any(|param| param.name == name);
    match kind {
        OpKind::Unary => Some(unary),
        OpKind::Binary | OpKind::Compare => Some(pointwise),
        // One number, or zeros, in the shape of another tensor.
        OpKind::Create if has("x") && !has("size") && !has("shape") => Some(|call| call.with(&[])),
        OpKind::Create if has("x") => Some(|call| {
            repeated(&Tensor::from_value(call.with(&[])?)?, call.size()).map(IntoValue::into_value)
        }),
        OpKind::Reduce if has("x") && has("dim") && has("keepdim") => Some(reduce),
        OpKind::Along if has("x") && (has("dim") || has("dims")) => Some(along),
        _ => None,
    }
}

/// Each element by itself.
fn unary(call: &BatchCall<'_>) -> Result<Value> {
    let found = call.with(&[])?;
    match call.batched.first() {
        // The type of another tensor has no examples.
        Some(false) => {
            repeated(&Tensor::from_value(found)?, call.size()).map(IntoValue::into_value)
        }
        _ => Ok(found),
    }
}

/// Each element, or each pair of elements: what has fewer dims in an example gets dims of size 1 behind the examples.
pub(crate) fn pointwise(call: &BatchCall<'_>) -> Result<Value> {
    let tensors: Vec<Option<Tensor>> = call
        .args
        .iter()
        .map(|arg| {
            Tensor::from_value(arg.clone())
                .ok()
                .filter(|x| known::rank(x).is_ok())
        })
        .collect();
    let mut rank = 0;
    for (tensor, batched) in tensors.iter().zip(call.batched) {
        if let Some(tensor) = tensor {
            rank = rank.max(known::rank(tensor)? - usize::from(*batched));
        }
    }
    let mut args = call.args.to_vec();
    for (at, tensor) in tensors.iter().enumerate() {
        if let (Some(tensor), true) = (tensor, call.batched[at]) {
            args[at] = aligned(tensor, rank)?.into_value();
        }
    }
    call.function.call(args_of(args))
}

/// A number of one example beside dims: with a dim of its own.
fn with_dims(call: &BatchCall<'_>) -> Result<(Tensor, usize, bool)> {
    let (x, rank) = (call.arg::<Tensor>("x")?, call.rank("x")?);
    match rank {
        0 => Ok((ops::unsqueeze(&x, 1)?, 1, true)),
        _ => Ok((x, rank, false)),
    }
}

/// Elements along dims become one.
pub(crate) fn reduce(call: &BatchCall<'_>) -> Result<Value> {
    let (x, rank, was_number) = with_dims(call)?;
    let keepdim: bool = call.arg("keepdim")?;
    let given: Value = call.arg("dim")?;
    let dims = match Dims::from_value(given.clone()) {
        Ok(Dims::All) => None,
        Ok(Dims::One(dim)) => Some(vec![call.dim(dim, rank)?]),
        Ok(Dims::Many(dims)) if dims.is_empty() => None,
        Ok(Dims::Many(dims)) => Some(
            dims.into_iter()
                .map(|dim| call.dim(dim, rank))
                .collect::<Result<Vec<_>>>()?,
        ),
        Err(error) => return Err(error),
    };
    // One dim is a number for some functions, and a list for others.
    let as_given = |dims: &[i64]| match (&given, dims) {
        (Value::Int(_), [one]) => Value::Int(*one),
        _ => Value::List(dims.iter().map(|dim| Value::Int(*dim)).collect()),
    };
    let takes_lists = call
        .function
        .params()
        .iter()
        .any(|param| param.name == "dim" && param.ty.contains("Dims"));
    let found = match dims {
        Some(dims) => call.with(&[("x", x.into_value()), ("dim", as_given(&dims))])?,
        None if takes_lists => {
            let all: Vec<i64> = (1..=rank as i64).collect();
            call.with(&[("x", x.into_value()), ("dim", as_given(&all))])?
        }
        None => {
            // All elements, as one dim.
            let flat = ops::reshape(&x, vec![call.size(), count(&x)?])?;
            let found = call.with(&[
                ("x", flat.into_value()),
                ("dim", Value::Int(1)),
                ("keepdim", Value::Bool(false)),
            ])?;
            match keepdim && !was_number {
                true => each(found, |y| {
                    let mut sizes = vec![call.size()];
                    sizes.extend(vec![Int::from(1); rank]);
                    ops::reshape(y, sizes)
                })?,
                false => found,
            }
        }
    };
    match was_number && keepdim && !matches!(given, Value::None) {
        true => each(found, |y| ops::squeeze(y, 1)),
        false if was_number && known::rank(&first(&found)?)? == 2 => {
            each(found, |y| ops::squeeze(y, 1))
        }
        false => Ok(found),
    }
}

/// How many elements an example has.
pub(crate) fn count(x: &Tensor) -> Result<Int> {
    let mut count = Int::from(1);
    for size in &known::sizes(x)?[1..] {
        count = (count * *size)?;
    }
    Ok(count)
}

fn first(value: &Value) -> Result<Tensor> {
    match Tensor::from_value(value.clone()) {
        Ok(tensor) if known::rank(&tensor).is_ok() => Ok(tensor),
        _ => known::items(value)?
            .into_iter()
            .next()
            .ok_or_else(|| Error::msg("there is no result")),
    }
}

/// A tensor, or each of several.
pub(crate) fn each(value: Value, change: impl Fn(&Tensor) -> Result<Tensor>) -> Result<Value> {
    if let Ok(tensor) = Tensor::from_value(value.clone())
        && known::rank(&tensor).is_ok()
    {
        return change(&tensor).map(IntoValue::into_value);
    }
    let items = known::items(&value)?;
    let items = items
        .iter()
        .map(|item| change(item).map(IntoValue::into_value));
    Ok(Value::Tuple(items.collect::<Result<_>>()?))
}

/// Elements along a dim, together.
pub(crate) fn along(call: &BatchCall<'_>) -> Result<Value> {
    let (x, rank, was_number) = with_dims(call)?;
    let is_complex = call.function.path().contains("::fft::") && call.function.name() != "rfft";
    let rank = if is_complex { rank - 1 } else { rank };
    let name = match call
        .function
        .params()
        .iter()
        .any(|param| param.name == "dim")
    {
        true => "dim",
        false => "dims",
    };
    let given: Value = call.arg(name)?;
    let dims = match Dims::from_value(given.clone())? {
        Dims::One(dim) => Value::Int(call.dim(dim, rank)?),
        Dims::Many(dims) => {
            let dims = dims
                .into_iter()
                .map(|dim| call.dim(dim, rank).map(Value::Int));
            Value::List(dims.collect::<Result<_>>()?)
        }
        Dims::All => {
            let found = along_all(call, x, rank, name)?;
            return if was_number {
                each(found, |y| ops::squeeze(y, 1))
            } else {
                Ok(found)
            };
        }
    };
    let found = call.with(&[("x", x.into_value()), (name, dims)])?;
    match was_number {
        true => each(found, |y| ops::squeeze(y, 1)),
        false => Ok(found),
    }
}

/// Elements along all dims.
fn along_all(call: &BatchCall<'_>, x: Tensor, rank: usize, name: &str) -> Result<Value> {
    if call.function == fx_core::function!(ops::roll) {
        // Of the flattened tensor.
        let sizes = known::sizes(&x)?;
        let flat = ops::reshape(&x, vec![call.size(), count(&x)?])?;
        let moved = call.with(&[("x", flat.into_value()), (name, Value::Int(1))])?;
        return each(moved, |y| ops::reshape(y, sizes.clone()));
    }
    let lengths = call.arg::<Value>("s").ok();
    let last = match &lengths {
        Some(Value::List(all) | Value::Tuple(all)) => all.len(),
        _ if call.function.name().ends_with('2') => 2,
        _ => rank,
    };
    let dims = (rank - last..rank)
        .map(|at| Value::Int(at as i64 + 1))
        .collect();
    call.with(&[("x", x.into_value()), (name, Value::List(dims))])
}
