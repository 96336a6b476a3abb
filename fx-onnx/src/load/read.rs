//! How a node is read: by the functions of the file, the table of operators, or as a leaf.
//!
//! Invariant: a rule reads what the entry of its operator has checked.

use fx_nn::prelude::*;
use fx_nn::trace::CallArgs;
use fx_nn::{Error, Result};

use super::graph::{Reader, Rules};
use super::node::NodeCx;
use super::scope::Scopes;
use super::value::{Given, V, as_type};
use super::{checks, ops, texts, versions};
use crate::dtype;
use crate::proto::NodeProto;

/// The table of operators, for a reader.
pub(super) const RULES: Rules = Rules {
    read,
    draws: |node| ops::is(&node.domain, &node.op_type, |entry| entry.draws),
};

/// What a node gives: of a function of the file, an operator, or a leaf.
fn read(reader: &Reader<'_>, node: &NodeProto, inputs: Vec<V>, scopes: &mut Scopes) -> Given {
    if let Some(function) = reader
        .functions
        .get(&(node.domain.clone(), node.op_type.clone()))
    {
        return reader.function(node, function, inputs);
    }
    if ops::is(&node.domain, &node.op_type, |_| true) {
        let version = reader.version(versions::domain(&node.domain))?;
        let Some(entry) = ops::entry(&node.domain, &node.op_type, version) else {
            return Err(Error::msg(format_args!(
                "fx reads the operator of later versions than {version}: convert the file with `onnx.version_converter`"
            )));
        };
        let mut cx = NodeCx {
            node,
            inputs,
            version,
            reader,
            scopes,
        };
        if !entry.any_numbers {
            checks::numbers(&cx)?;
        }
        if let Some(check) = entry.check {
            check(&cx)?;
        }
        let stored = match entry.any_type || entry.is_view {
            true => None,
            false => widen(&mut cx)?,
        };
        checks::room(&cx, entry.made)?;
        let mut given = match cx.inputs.iter().any(|v| matches!(v, V::Texts(_))) {
            true => texts::ruled(&mut cx, entry)?,
            false => (entry.rule)(&mut cx)?,
        };
        if let Some((stored, wide)) = stored.filter(|_| !entry.indices)
            && let Some(v) = given.first_mut()
            && v.dtype() == Some(wide)
        {
            *v = V::of(as_type(&v.tensor()?, stored)?, stored);
        }
        if !entry.is_view {
            checks::spent(&cx, &given)?;
        }
        return Ok(given);
    }
    let key = node.output.first().cloned().unwrap_or_default();
    let Some(opaque) = reader.opaque.get(&key) else {
        return Err(Error::msg(format_args!(
            "fx has no operator `{}{}`, and the file does not say what the node gives: add its types with `onnx.shape_inference`, or see `fx_onnx::support`",
            if node.domain.is_empty() {
                String::new()
            } else {
                format!("{}.", node.domain)
            },
            node.op_type
        )));
    };
    let args = inputs
        .iter()
        .filter(|input| !input.is_absent())
        .map(|input| Ok(Value::object(input.tensor()?)));
    let call = CallArgs {
        args: args.collect::<Result<_>>()?,
        kwargs: Vec::new(),
    };
    let given: Value = opaque.forward(call)?;
    match &given {
        Value::Tuple(items) => Ok(items
            .iter()
            .map(|item| {
                V::Tensor(
                    item.downcast_ref::<Tensor>()
                        .cloned()
                        .unwrap_or_else(|| unreachable_tensor(item)),
                    None,
                )
            })
            .collect()),
        Value::Proxy(proxy) if node.output.len() > 1 => {
            let items = (0..node.output.len())
                .map(|at| Ok(V::Tensor(proxy.getitem(at as i64)?.to::<Tensor>()?, None)));
            items.collect()
        }
        Value::Proxy(proxy) => Ok(vec![V::Tensor(proxy.to::<Tensor>()?, None)]),
        other => Ok(vec![V::Tensor(Tensor::from_value(other.clone())?, None)]),
    }
}

/// Makes inputs of an element type that fx only stores those of a type that it computes in. The first one's types: what
/// is stored, and what is computed in.
fn widen(cx: &mut NodeCx<'_>) -> Result<Option<(DType, DType)>> {
    let mut found = None;
    for input in &mut cx.inputs {
        let own = input.dtype();
        let (Some(own), Some(wide)) = (own, own.and_then(dtype::wider)) else {
            continue;
        };
        if let V::Tensor(x, _) = input {
            *input = V::of(as_type(x, wide)?, wide);
            found.get_or_insert((own, wide));
        }
    }
    Ok(found)
}

/// A result that is no tensor, as a tensor of its number.
fn unreachable_tensor(item: &Value) -> Tensor {
    Tensor::from_value(item.clone())
        .unwrap_or_else(|_| Tensor::full((), 0.0, DType::F32).expect("one number is a tensor"))
}
