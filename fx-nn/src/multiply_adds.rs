//! Multiply-adds: how many multiplications with an addition a call of a function takes, a table that any crate adds to.

use std::collections::HashMap;

use fx_core::ir::{Function, TensorMeta, ValueMeta};
use fx_core::trace::CallArgs;
use fx_core::value::Value;
use fx_core::{function, function_table, operator};

use crate::ops;

/// How many multiplications with an addition a call of a function takes: an entry of a
/// [`FunctionTable`](fx_core::ir::FunctionTable). [`summary`](crate::summary) and
/// [`counts`](crate::passes::counts) count what has none as 0.
///
/// ```
/// use fx_nn::prelude::*;
/// use fx_nn::{MultiplyAdds, function_table, summary};
/// /// A product with itself.
/// #[wrap]
/// fn gram(x: &Tensor) -> Result<Tensor> {
///     x.matmul(&x.t()?)
/// }
/// function_table! { MultiplyAdds {
///     function!(gram) => MultiplyAdds(|call| {
///         let columns = call.tensor("x").shape.last().copied().unwrap_or(1);
///         (call.numel() * columns) as u64
///     }),
/// } }
///
/// #[derive(Module)]
/// struct Gram { tag: Tag }
/// #[trace]
/// impl Gram {
///     fn forward(&self, x: &Tensor) -> Result<Tensor> { gram(x) }
/// }
/// let counted = summary(&Gram { tag: Tag::default() }, &Tensor::rand((3, 5))?)?;
/// assert_eq!(counted.modules[0].multiply_adds, 3 * 3 * 5);
/// # Ok::<(), fx_nn::Error>(())
/// ```
#[derive(Debug, Clone, Copy)]
pub struct MultiplyAdds(pub fn(&CountedCall<'_>) -> u64);

/// A call that is counted: its arguments, and what it gave.
#[derive(Debug)]
pub struct CountedCall<'c> {
    function: Function,
    args: &'c CallArgs,
    output: &'c ValueMeta,
}

impl<'c> CountedCall<'c> {
    pub(crate) fn new(function: Function, args: &'c CallArgs, output: &'c ValueMeta) -> Self {
        CountedCall {
            function,
            args,
            output,
        }
    }

    /// The argument of a parameter, where it is given.
    pub fn value(&self, param: &str) -> Option<&'c Value> {
        self.args.argument(self.function.params(), param)
    }

    /// The shape of a tensor argument; that of an empty tensor where there is none.
    pub fn tensor(&self, param: &str) -> TensorMeta {
        let meta = self.value(param).map(ValueMeta::of);
        let tensor = meta.and_then(|meta| meta.tensor().cloned());
        tensor.unwrap_or(TensorMeta {
            shape: vec![0],
            dtype: None,
            strides: None,
        })
    }

    /// What the call gave.
    pub fn output(&self) -> &'c ValueMeta {
        self.output
    }

    /// Elements of the tensor that the call gave.
    pub fn numel(&self) -> usize {
        self.output.tensor().map_or(0, TensorMeta::numel)
    }
}

function_table! { MultiplyAdds {
    function!(ops::linear) => MultiplyAdds(|call| rows_by_columns(call, "x")),
    function!(ops::matmul) => MultiplyAdds(|call| rows_by_columns(call, "x")),
    operator::matmul => MultiplyAdds(|call| rows_by_columns(call, "a")),
    function!(ops::conv1d) => MultiplyAdds(conv),
    function!(ops::conv2d) => MultiplyAdds(conv),
    function!(ops::conv_transpose2d) => MultiplyAdds(conv_transpose),
    function!(ops::scaled_dot_product_attention) => MultiplyAdds(attention),
    function!(ops::lstm) => MultiplyAdds(lstm),
    function!(ops::einsum) => MultiplyAdds(einsum),
} }

fn last(meta: &TensorMeta) -> usize {
    meta.shape.last().copied().unwrap_or(1)
}

/// A product of matrices: each element of the result is a sum over the first operand's last dim.
fn rows_by_columns(call: &CountedCall<'_>, x: &str) -> u64 {
    (call.numel() * last(&call.tensor(x))) as u64
}

fn conv(call: &CountedCall<'_>) -> u64 {
    let weight = call.tensor("weight");
    (call.numel() * weight.shape[1..].iter().product::<usize>()) as u64
}

fn conv_transpose(call: &CountedCall<'_>) -> u64 {
    let (x, weight) = (call.tensor("x"), call.tensor("weight"));
    (x.numel() * weight.shape[1..].iter().product::<usize>()) as u64
}

fn attention(call: &CountedCall<'_>) -> u64 {
    let [query, key, value] = ["query", "key", "value"].map(|name| call.tensor(name));
    let rows = query.numel() / last(&query).max(1);
    let columns = key.shape.iter().rev().nth(1).copied().unwrap_or(0);
    (rows * columns * (last(&query) + last(&value))) as u64
}

fn lstm(call: &CountedCall<'_>) -> u64 {
    let x = call.tensor("x");
    let steps = x.numel() / last(&x).max(1);
    let weights = call.value("params").map(ValueMeta::of);
    (steps * weights.map_or(0, |weights| matrices(&weights))) as u64
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
fn einsum(call: &CountedCall<'_>) -> u64 {
    let (Some(Value::Str(equation)), Some(operands)) =
        (call.value("equation"), call.value("operands"))
    else {
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
    sizes.values().product::<usize>() as u64
}
