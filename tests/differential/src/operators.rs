//! Every function of `fx_core::operator`, called by its sign on tensors and numbers.

use fx_nn::ir::{Function, registry};
use fx_nn::prelude::*;
use fx_nn::tensor::{Operand, OperandRef, binary, unary};
use fx_nn::value::{IntoValue, Operator};
use fx_nn::{Error, Result};

use crate::call::Arg;
use crate::tensor::AnyIndex;

/// The call of an operator by its sign.
///
/// # Errors
/// When the call is refused.
pub(crate) fn operator(name: &str, args: &[Value]) -> Result<Value> {
    let tensor = |at: usize| -> Result<&Tensor> {
        let value = args.get(at).and_then(Value::downcast_ref::<Tensor>);
        value.ok_or_else(|| Error::msg(format_args!("`{name}` has no tensor at {at}")))
    };
    Ok(match (name, args) {
        ("getitem", [_, index]) => tensor(0)?.i(AnyIndex(index.clone()))?.into_value(),
        ("getattr", [_, Value::Str(attribute)]) => match &**attribute {
            "shape" => tensor(0)?.shape()?.into_value(),
            _ => tensor(0)?.ndim()?.into_value(),
        },
        (_, [_]) => unary::<Tensor>(sign(name)?, &tensor(0)?)?.into_value(),
        (_, [x, y]) => binary::<Tensor>(sign(name)?, &Side(x), &Side(y))?.into_value(),
        _ => {
            return Err(Error::msg(format_args!(
                "`{name}` with {} operands",
                args.len()
            )));
        }
    })
}

/// What stands beside an operator.
struct Side<'a>(&'a Value);

impl Operand for Side<'_> {
    fn lend(&self) -> OperandRef<'_> {
        match self.0 {
            Value::Bool(boolean) => OperandRef::Bool(*boolean),
            Value::Int(n) => OperandRef::Int(*n),
            Value::Float(x) => OperandRef::Float(*x),
            value => match value.downcast_ref::<Tensor>() {
                Some(tensor) => OperandRef::Object(tensor),
                None => OperandRef::Bool(false),
            },
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
