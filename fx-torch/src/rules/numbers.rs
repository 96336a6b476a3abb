//! Numbers: of tensors, of sizes, and what is asserted of them.

use fx_nn::ir::ValueMeta;
use fx_nn::prelude::*;
use fx_nn::{Error, Result, operator};

use super::entry::{Entry, by, of_two};
use crate::call::Call;
use crate::numbers;

/// The only element of a tensor; the reader knows which whole numbers it may be.
fn item(call: &Call<'_>) -> Result<Value> {
    let x = call.own()?;
    let dtype = call.dtype(0)?;
    Ok(match dtype {
        DType::Bool => Value::of(numbers::truth(&x)?),
        dtype if dtype.is_floating_point() => Value::of(numbers::float(&x)?),
        _ => Value::of(numbers::whole(
            &x,
            call.maybe("least")?,
            call.maybe("most")?,
        )?),
    })
}

fn not(call: &Call<'_>) -> Result<Value> {
    match call.at(0)? {
        Value::Bool(known) => Ok(Value::Bool(!known)),
        other => operator::invert.call_as((other.clone(),)),
    }
}

/// A number as a float.
fn float(call: &Call<'_>) -> Result<Value> {
    match call.at(0)? {
        Value::Float(known) => Ok(Value::Float(*known)),
        other => operator::truediv.call_as((other.clone(), 1)),
    }
}

fn whole_part(call: &Call<'_>) -> Result<Value> {
    match call.at(0)? {
        Value::Int(known) => Ok(Value::Int(*known)),
        other => Ok(Value::of(numbers::whole_part(Float::from_value(
            other.clone(),
        )?)?)),
    }
}

fn root(call: &Call<'_>) -> Result<Value> {
    operator::pow.call_as((call.at(0)?.clone(), 0.5))
}

fn two(function: fn(Int, Int) -> Result<Int>, call: &Call<'_>) -> Result<Value> {
    let int = |at: usize| Int::from_value(call.at(at)?.clone());
    Ok(Value::of(function(int(0)?, int(1)?)?))
}

fn chosen(call: &Call<'_>) -> Result<Value> {
    let int = |at: usize| Int::from_value(call.at(at)?.clone());
    let condition = Bool::from_value(call.at(0)?.clone())?;
    Ok(Value::of(numbers::chosen(condition, int(1)?, int(2)?)?))
}

fn itself(call: &Call<'_>) -> Result<Value> {
    Ok(call.at(0)?.clone())
}

/// What holds of every run is left out; another claim stops a run for which it does not hold.
fn assertion(call: &Call<'_>) -> Result<Value> {
    let claim = call.at(0)?.clone();
    let message = match call.args.get(1) {
        Some((_, Value::Str(text))) => text.to_string(),
        _ => "an assertion of the program does not hold".to_string(),
    };
    let known = match &claim {
        // Of what tensors do not have here.
        Value::None => Some(true),
        Value::Bool(known) => Some(*known),
        Value::Proxy(proxy) => match proxy.meta()? {
            Some(ValueMeta::Bool(known)) => known,
            _ => None,
        },
        other => Some(Tensor::from_value(other.clone())?.item()? != 0.0),
    };
    match known {
        Some(true) => {}
        Some(false) => return Err(Error::msg(message)),
        None => {
            let _: Value = operator::_assert.call_as((claim, message))?;
        }
    }
    Ok(Value::None)
}

pub(crate) const RULES: &[Entry] = by! {
    "_operator.and_" => |call| of_two(operator::and_, call),
    "_operator.lshift" => |call| of_two(operator::lshift, call),
    "_operator.or_" => |call| of_two(operator::or_, call),
    "_operator.pos" => itself,
    "_operator.pow" => |call| of_two(operator::pow, call),
    "_operator.rshift" => |call| of_two(operator::rshift, call),
    "aten._assert_async" => assertion,
    "aten._assert_scalar" => assertion,
    "aten._local_scalar_dense" => item,
    "aten.item" => item,
    "math.trunc" => whole_part,
    "torch._sym_sqrt" => root,
    "torch.sym_float" => float,
    "torch.sym_int" => whole_part,
    "torch.sym_ite" => chosen,
    "torch.sym_max" => |call| two(numbers::larger, call),
    "torch.sym_min" => |call| two(numbers::smaller, call),
    "torch.sym_not" => not,
    "torch.sym_sqrt" => root,
};
