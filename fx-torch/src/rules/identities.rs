//! Operators that give the very elements: copies, and other element types.

use fx_nn::Result;
use fx_nn::prelude::*;

use super::complex;
use super::entry::{Entry, by};
use crate::call::Call;

/// The very tensor.
fn identity(call: &Call<'_>) -> Result<Value> {
    Ok(call.at(0)?.clone())
}

/// The tensor in the element type that is named, if one is.
fn to(call: &Call<'_>) -> Result<Value> {
    if let Some(Value::Str(_)) = call.get("dtype") {
        return complex::to(call);
    }
    let other = call.args.iter().position(|(name, _)| *name == "other");
    let dtype = match (call.maybe::<DType>("dtype")?, other) {
        (None, Some(other)) => Some(call.dtype(other)?),
        (dtype, _) => dtype,
    };
    match dtype {
        Some(dtype) if call.dtype(0)? != dtype => {
            Ok(Value::object(ops::to_dtype(&call.own()?, dtype)?))
        }
        _ => identity(call),
    }
}

pub(crate) const RULES: &[Entry] = by! {
    "aten.alias" => identity,
    "aten.detach" => identity,
    "aten.contiguous" => identity,
    "aten.clone" => identity,
    "aten.lift_fresh_copy" => identity,
    "aten.lift_fresh" => identity,
    "aten.resolve_conj" => identity,
    "aten.resolve_neg" => identity,
    "aten.to" => to,
    "aten._to_copy" => to,
    "aten.type_as" => to,
};
