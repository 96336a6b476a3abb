//! How many multiplications with an addition the operations take.

use fx_core::ir::ValueMeta;
use fx_core::value::{Dim, Value};
use fx_core::{Result, function_table, operator};
use indexmap::IndexMap;

use crate::multiply_adds::{CountedCall, MultiplyAdds, dims_of};

// What is no function of `ops`.
function_table! { MultiplyAdds {
    operator::matmul => MultiplyAdds(|call| rows_by_columns(call, "a")),
} }

/// Of a product of matrices, of which the first is `x`.
pub(super) fn rows_of_x(call: &CountedCall<'_>) -> Result<Dim> {
    rows_by_columns(call, "x")
}

fn last(shape: &[Dim]) -> Dim {
    shape.last().cloned().unwrap_or(Dim::known(1))
}

/// The sizes without the first.
fn behind_first(shape: &[Dim]) -> &[Dim] {
    shape.get(1..).unwrap_or_default()
}

/// The product of all sizes but the last.
fn rows(shape: &[Dim]) -> Result<Dim> {
    Dim::product(shape.iter().rev().skip(1))
}

/// A product of matrices: each element of the result is a sum over the first operand's last dim.
pub(super) fn rows_by_columns(call: &CountedCall<'_>, x: &str) -> Result<Dim> {
    call.numel()? * last(&call.shape(x))
}

pub(super) fn conv(call: &CountedCall<'_>) -> Result<Dim> {
    call.numel()? * Dim::product(behind_first(&call.shape("weight")))?
}

pub(super) fn conv_transpose(call: &CountedCall<'_>) -> Result<Dim> {
    let (x, weight) = (call.shape("x"), call.shape("weight"));
    Dim::product(&x)? * Dim::product(behind_first(&weight))?
}

pub(super) fn attention(call: &CountedCall<'_>) -> Result<Dim> {
    let [query, key, value] = ["query", "key", "value"].map(|name| call.shape(name));
    let columns = key.iter().rev().nth(1).cloned().unwrap_or(Dim::known(0));
    (rows(&query)? * columns)? * (last(&query) + last(&value))?
}

pub(super) fn lstm(call: &CountedCall<'_>) -> Result<Dim> {
    let steps = rows(&call.shape("x"))?;
    let weights = call.value("params").map(ValueMeta::of);
    steps * weights.map_or(Ok(Dim::known(0)), |weights| matrices(&weights))?
}

/// The number of elements of the matrices in a list of tensors.
fn matrices(tensors: &ValueMeta) -> Result<Dim> {
    let Some(items) = tensors.items() else {
        return Ok(Dim::known(0));
    };
    let matrices = items.iter().filter_map(ValueMeta::tensor);
    let mut matrices = matrices.filter(|meta| meta.shape.len() == 2);
    matrices.try_fold(Dim::known(0), |sum, meta| sum + Dim::product(&meta.shape)?)
}

/// The product of all sizes that an equation names, where it has several operands.
pub(super) fn einsum(call: &CountedCall<'_>) -> Result<Dim> {
    let none = Ok(Dim::known(0));
    let (Some(Value::Str(equation)), Some(operands)) =
        (call.value("equation"), call.value("operands"))
    else {
        return none;
    };
    let inputs = equation.split("->").next().unwrap_or_default();
    let (Value::List(operands) | Value::Tuple(operands)) = operands else {
        return none;
    };
    if operands.len() < 2 {
        return none;
    }
    let mut sizes: IndexMap<char, Dim> = IndexMap::new();
    for (labels, operand) in inputs.split(',').zip(operands.iter()) {
        let labels = labels.chars().filter(|c| c.is_alphabetic());
        sizes.extend(labels.zip(dims_of(operand)));
    }
    Dim::product(sizes.values())
}
