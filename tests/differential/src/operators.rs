//! Every function of `fx_core::operator`, called by its sign in Rust on tensors and numbers, by name.

use fx_nn::ir::{Function, registry};
use fx_nn::prelude::*;
use fx_nn::tensor::{Operand, OperandRef, binary, unary};
use fx_nn::value::{IntoValue, Operator};
use fx_nn::{Error, Result};

use crate::args::{Args, Take};
use crate::call::Arg;
use crate::tensor::AnyIndex;

/// What stands beside an operator.
enum Side {
    Tensor(Tensor),
    Bool(bool),
    Int(i64),
    Float(f64),
}

impl<'a> Take<'a> for Side {
    fn take(arg: &'a Arg, tensors: &'a [Tensor]) -> Option<Self> {
        Some(match arg {
            Arg::Tensor(place) => Side::Tensor(tensors.get(*place)?.clone()),
            Arg::Bool(truth) => Side::Bool(*truth),
            Arg::Int(n) => Side::Int(*n),
            Arg::Float(x) => Side::Float(*x),
            _ => return None,
        })
    }
}

impl Operand for Side {
    fn lend(&self) -> OperandRef<'_> {
        match self {
            Side::Tensor(tensor) => OperandRef::Object(tensor),
            Side::Bool(truth) => OperandRef::Bool(*truth),
            Side::Int(n) => OperandRef::Int(*n),
            Side::Float(x) => OperandRef::Float(*x),
        }
    }
}

/// The call of an operator, `None` where it has no tensor to stand beside.
pub(crate) fn operator(name: &str, a: &mut Args<'_>) -> Result<Value> {
    match name {
        "getitem" => {
            let x: &Tensor = a.next()?;
            Ok(x.i(AnyIndex(index(a.next()?)?))?.into_value())
        }
        "getattr" => {
            let x: &Tensor = a.next()?;
            match a.next::<&str>()? {
                "shape" => Ok(x.shape()?.into_value()),
                _ => Ok(x.ndim()?.into_value()),
            }
        }
        "neg" | "abs" | "invert" => {
            let x: &Tensor = a.next()?;
            Ok(unary::<Tensor>(sign(name)?, &x)?.into_value())
        }
        _ => {
            let (x, y): (Side, Side) = (a.next()?, a.next()?);
            Ok(binary::<Tensor>(sign(name)?, &x, &y)?.into_value())
        }
    }
}

/// The registered function of an operator's name.
pub(crate) fn registered(name: &str) -> Result<Function> {
    let escaped = if name == "mod" { "r#mod" } else { name };
    registry::function(&format!("fx_core::operator::{escaped}"))?
        .ok_or_else(|| Error::msg(format_args!("no operator `{name}`")))
}

fn sign(name: &str) -> Result<Operator> {
    let operator = registered(name)?.def().operator;
    operator.ok_or_else(|| Error::msg(format_args!("`{name}` has no sign")))
}

/// Whether the operator is called on plain values, or by its function alone: it has no sign then.
pub(crate) fn is_plain(name: &str, args: &[Arg]) -> bool {
    name.contains("assert") || !args.iter().any(|arg| matches!(arg, Arg::Tensor(_)))
}

/// An argument as a graph's value.
pub(crate) fn plain(arg: &Arg, tensors: &[Tensor]) -> Result<Value> {
    Ok(match arg {
        Arg::None => Value::None,
        Arg::Bool(truth) => Value::Bool(*truth),
        Arg::Int(n) => Value::Int(*n),
        Arg::Float(x) => Value::Float(*x),
        Arg::Str(text) => Value::Str(text.as_str().into()),
        Arg::Tensor(place) => tensors
            .get(*place)
            .cloned()
            .map(Value::object)
            .ok_or_else(|| Error::msg("no such tensor"))?,
        other => return Err(Error::msg(format_args!("no plain value: {other:?}"))),
    })
}

/// The parts of an index.
fn index(arg: &Arg) -> Result<Value> {
    let end = |end: &Option<i64>| end.map_or(Value::None, Value::Int);
    Ok(match arg {
        Arg::None => Value::None,
        Arg::Int(n) => Value::Int(*n),
        Arg::Ellipsis => Value::Ellipsis,
        Arg::Slice(parts) => Value::Slice(Box::new(parts.each_ref().map(end))),
        Arg::List(items) => Value::Tuple(items.iter().map(index).collect::<Result<_>>()?),
        other => return Err(Error::msg(format_args!("no index: {other:?}"))),
    })
}
