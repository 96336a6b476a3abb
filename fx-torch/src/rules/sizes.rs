//! Sizes, arithmetic on them, and what is asserted of them.

use fx_nn::ir::Function;
use fx_nn::prelude::*;
use fx_nn::{Error, Result, operator};

use super::entry::{Entry, by, of_two, rank};
use crate::call::Call;

fn size(call: &Call<'_>) -> Result<Value> {
    Ok(Value::of(call.own()?.size(call.of("dim")?)?))
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

/// How many elements there are.
fn count(call: &Call<'_>) -> Result<Value> {
    let own = call.own()?;
    let mut count = Int::from(1);
    for dim in 0..rank(&own)? {
        count = (count * own.size(dim)?)?;
    }
    Ok(Value::of(count))
}

/// What fx's tensors do not have: where in a memory they begin. Programs assert things of it.
const OFFSET: &str = "where a tensor begins in its memory";

fn offset(_: &Call<'_>) -> Result<Value> {
    Ok(Value::Str(OFFSET.into()))
}

/// A comparison; of what is not known, nothing, which an assertion takes.
fn compared(function: Function, call: &Call<'_>) -> Result<Value> {
    let is_offset = |value: &Value| matches!(value, Value::Str(text) if &**text == OFFSET);
    match call.args.iter().any(|(_, value)| is_offset(value)) {
        true => Ok(Value::None),
        false => of_two(function, call),
    }
}

pub(crate) const RULES: &[Entry] = by! {
    "aten.sym_storage_offset" => offset,
    "aten.sym_numel" => count,
    "aten.numel" => count,
    "aten.sym_size" => size,
    "_operator.add" => |call| of_two(operator::add, call),
    "_operator.sub" => |call| of_two(operator::sub, call),
    "_operator.mul" => |call| of_two(operator::mul, call),
    "_operator.truediv" => |call| of_two(operator::truediv, call),
    "_operator.floordiv" => |call| of_two(operator::floordiv, call),
    "_operator.mod" => |call| of_two(operator::r#mod, call),
    "_operator.neg" => neg,
    "_operator.eq" => |call| compared(operator::eq, call),
    "_operator.ne" => |call| compared(operator::ne, call),
    "_operator.lt" => |call| compared(operator::lt, call),
    "_operator.le" => |call| compared(operator::le, call),
    "_operator.gt" => |call| compared(operator::gt, call),
    "_operator.ge" => |call| compared(operator::ge, call),
    "_operator.getitem" => |call| of_two(operator::getitem, call),
    "torch.sym_sum" => sum,
    "aten._assert_tensor_metadata" => nothing,
    "aten.sym_constrain_range" => nothing,
    "aten.sym_constrain_range_for_size" => nothing,
};
