//! Calls with tensors alone, and the tensors that they give.

use fx_nn::prelude::*;
use fx_nn::trace::CallArgs;

/// The arguments of a call.
pub fn call(inputs: &[Tensor]) -> CallArgs {
    CallArgs {
        args: inputs.iter().cloned().map(Value::object).collect(),
        kwargs: Vec::new(),
    }
}

/// The tensors of a result, in order.
pub fn tensors(value: &Value, all: &mut Vec<Tensor>) {
    match value {
        Value::List(items) | Value::Tuple(items) => {
            items.iter().for_each(|item| tensors(item, all))
        }
        Value::Dict(items) => items.values().for_each(|item| tensors(item, all)),
        Value::Int(number) => all.extend(Tensor::full((), *number, DType::I64)),
        value => all.extend(value.downcast_ref::<Tensor>().cloned()),
    }
}
