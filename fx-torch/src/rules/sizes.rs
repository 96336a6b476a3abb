//! Sizes, arithmetic on them, and what is asserted of them.

use fx_nn::prelude::*;
use fx_nn::{Error, Result, operator};

use super::entry::{Entry, by};
use crate::call::Call;

fn size(call: &Call<'_>) -> Result<Value> {
    Ok(Value::of(call.own()?.size(call.of("dim")?)?))
}

macro_rules! operators {
    ($($name:ident)*) => {$(
        fn $name(call: &Call<'_>) -> Result<Value> {
            operator::$name.call_as((call.at(0)?.clone(), call.at(1)?.clone()))
        }
    )*};
}
operators! { add sub mul truediv floordiv eq ne lt le gt ge getitem }

fn modulo(call: &Call<'_>) -> Result<Value> {
    operator::r#mod.call_as((call.at(0)?.clone(), call.at(1)?.clone()))
}

fn neg(call: &Call<'_>) -> Result<Value> {
    operator::neg.call_as((call.at(0)?.clone(),))
}

/// What a program asserts of its sizes is the contract of its inputs.
fn nothing(_: &Call<'_>) -> Result<Value> {
    Ok(Value::None)
}

fn sum(call: &Call<'_>) -> Result<Value> {
    let items = match call.at(0)? {
        Value::List(items) | Value::Tuple(items) => items,
        other => return Err(Error::msg(format_args!("a sum of {}", other.describe()))),
    };
    let mut items = items.iter();
    let first = items.next().cloned().unwrap_or(Value::Int(0));
    items.try_fold(first, |sum, item| {
        operator::add.call_as((sum, item.clone()))
    })
}

pub(crate) const RULES: &[Entry] = by! {
    "aten.sym_size" => size,
    "_operator.add" => add,
    "_operator.sub" => sub,
    "_operator.mul" => mul,
    "_operator.truediv" => truediv,
    "_operator.floordiv" => floordiv,
    "_operator.mod" => modulo,
    "_operator.neg" => neg,
    "_operator.eq" => eq,
    "_operator.ne" => ne,
    "_operator.lt" => lt,
    "_operator.le" => le,
    "_operator.gt" => gt,
    "_operator.ge" => ge,
    "_operator.getitem" => getitem,
    "torch.sym_sum" => sum,
    "aten._assert_tensor_metadata" => nothing,
    "aten._assert_scalar" => nothing,
    "aten._assert_async" => nothing,
    "aten.sym_constrain_range" => nothing,
    "aten.sym_constrain_range_for_size" => nothing,
};
