//! Multiply-adds: how many multiplications with an addition a call of an operation takes.

use std::collections::HashMap;

use fx_core::{CallArgs, TensorMeta, Value, ValueMeta};

/// Of a call by its operation's name, its arguments and what it gave; 0 for what multiplies no matrices.
pub(crate) fn multiply_adds(name: &str, call: &CallArgs, output: &ValueMeta) -> u64 {
    let arg = |at: usize, name: &str| {
        let keyword = || call.kwargs.iter().find(|(key, _)| **key == *name);
        call.args
            .get(at)
            .or_else(|| keyword().map(|(_, value)| value))
    };
    let shape = |at: usize, name: &str| {
        let meta = arg(at, name).map(ValueMeta::of);
        meta.and_then(|m| m.tensor().cloned())
            .unwrap_or(TensorMeta {
                shape: vec![0],
                dtype: None,
                strides: None,
            })
    };
    let last = |meta: &TensorMeta| meta.shape.last().copied().unwrap_or(1);
    let given = output.tensor().map_or(0, TensorMeta::numel);
    let count = match name {
        "linear" | "matmul" => given * last(&shape(0, "x")),
        "conv1d" | "conv2d" => {
            let weight = shape(1, "weight");
            given * weight.shape[1..].iter().product::<usize>()
        }
        "conv_transpose2d" => {
            let (x, weight) = (shape(0, "x"), shape(1, "weight"));
            x.numel() * weight.shape[1..].iter().product::<usize>()
        }
        "scaled_dot_product_attention" => {
            let (query, key, value) = (shape(0, "query"), shape(1, "key"), shape(2, "value"));
            let rows = query.numel() / last(&query).max(1);
            let columns = key.shape.iter().rev().nth(1).copied().unwrap_or(0);
            rows * columns * (last(&query) + last(&value))
        }
        "lstm" => {
            let x = shape(0, "x");
            let steps = x.numel() / last(&x).max(1);
            let weights = arg(3, "params").map(ValueMeta::of);
            steps * weights.map_or(0, |weights| matrices(&weights))
        }
        "einsum" => einsum(arg(0, "equation"), arg(1, "operands")),
        _ => 0,
    };
    count as u64
}

/// Elements of the matrices in a list of tensors.
fn matrices(tensors: &ValueMeta) -> usize {
    let ValueMeta::Sequence(items) = tensors else {
        return 0;
    };
    let matrices = items.iter().filter_map(ValueMeta::tensor);
    let matrices = matrices.filter(|meta| meta.shape.len() == 2);
    matrices.map(TensorMeta::numel).sum()
}

/// The product of all sizes that an equation names, where it has several operands.
fn einsum(equation: Option<&Value>, operands: Option<&Value>) -> usize {
    let (Some(Value::Str(equation)), Some(operands)) = (equation, operands) else {
        return 0;
    };
    let inputs = equation.split("->").next().unwrap_or_default();
    let ValueMeta::Sequence(operands) = ValueMeta::of(operands) else {
        return 0;
    };
    if operands.len() < 2 {
        return 0;
    }
    let mut sizes: HashMap<char, usize> = HashMap::new();
    for (labels, operand) in inputs.split(',').zip(&operands) {
        let shape = operand.tensor().map_or(&[][..], |meta| &meta.shape);
        let labels = labels.chars().filter(|c| c.is_alphabetic());
        sizes.extend(labels.zip(shape.iter().copied()));
    }
    sizes.values().product()
}
