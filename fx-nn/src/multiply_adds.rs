//! Multiply-adds: how many multiplications with an addition a function call takes, in a table that
//! any crate can extend.

use std::collections::HashMap;

use fx_core::ir::{Function, TensorMeta, ValueMeta};
use fx_core::trace::CallArgs;
use fx_core::value::Value;
use fx_core::{function, function_table, operator};

use crate::ops;

/// How many multiplications with an addition a function call takes: an entry of a
/// [`FunctionTable`](fx_core::ir::FunctionTable). [`summary`](crate::summary) and
/// [`counts`](crate::passes::counts) count functions without an entry as 0.
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
///         let columns = call.shape("x").last().copied().unwrap_or(1);
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

/// A counted call: its arguments and its result.
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

    /// The argument of a parameter, if it is given.
    pub fn value(&self, param: &str) -> Option<&'c Value> {
        self.args.argument(self.function.params(), param)
    }

    /// The shape of a tensor argument; that of an empty tensor if there is none.
    pub fn shape(&self, param: &str) -> Vec<usize> {
        let object = self.value(param).and_then(Value::as_object);
        let shape = object.and_then(|object| object.shape());
        shape.map_or_else(|| vec![0], <[usize]>::to_vec)
    }

    /// The result of the call.
    pub fn output(&self) -> &'c ValueMeta {
        self.output
    }

    /// The number of elements of the call's result.
    pub fn numel(&self) -> usize {
        let tensor = self.output.tensor();
        tensor.and_then(TensorMeta::numel).unwrap_or(0)
    }
}

function_table! { MultiplyAdds {
    function!(ops::linear) => MultiplyAdds(|call| rows_by_columns(call, "x")),
    function!(ops::matmul) => MultiplyAdds(|call| rows_by_columns(call, "x")),
    operator::matmul => MultiplyAdds(|call| rows_by_columns(call, "a")),
    function!(ops::mm) => MultiplyAdds(|call| rows_by_columns(call, "x")),
    function!(ops::bmm) => MultiplyAdds(|call| rows_by_columns(call, "x")),
    function!(ops::mv) => MultiplyAdds(|call| rows_by_columns(call, "x")),
    function!(ops::addmm) => MultiplyAdds(|call| rows_by_columns(call, "mat1")),
    function!(ops::baddbmm) => MultiplyAdds(|call| rows_by_columns(call, "batch1")),
    function!(ops::conv3d) => MultiplyAdds(conv),
    function!(ops::conv_transpose1d) => MultiplyAdds(conv_transpose),
    function!(ops::conv_transpose3d) => MultiplyAdds(conv_transpose),
    function!(ops::gru) => MultiplyAdds(lstm),
    function!(ops::rnn_tanh) => MultiplyAdds(lstm),
    function!(ops::rnn_relu) => MultiplyAdds(lstm),
    function!(ops::conv1d) => MultiplyAdds(conv),
    function!(ops::conv2d) => MultiplyAdds(conv),
    function!(ops::conv_transpose2d) => MultiplyAdds(conv_transpose),
    function!(ops::scaled_dot_product_attention) => MultiplyAdds(attention),
    function!(ops::lstm) => MultiplyAdds(lstm),
    function!(ops::einsum) => MultiplyAdds(einsum),
} }

fn last(shape: &[usize]) -> usize {
    shape.last().copied().unwrap_or(1)
}

fn numel(shape: &[usize]) -> usize {
    shape.iter().product()
}

/// A product of matrices: each element of the result is a sum over the first operand's last dim.
fn rows_by_columns(call: &CountedCall<'_>, x: &str) -> u64 {
    (call.numel() * last(&call.shape(x))) as u64
}

fn conv(call: &CountedCall<'_>) -> u64 {
    let weight = call.shape("weight");
    (call.numel() * numel(&weight[1..])) as u64
}

fn conv_transpose(call: &CountedCall<'_>) -> u64 {
    let (x, weight) = (call.shape("x"), call.shape("weight"));
    (numel(&x) * numel(&weight[1..])) as u64
}

fn attention(call: &CountedCall<'_>) -> u64 {
    let [query, key, value] = ["query", "key", "value"].map(|name| call.shape(name));
    let rows = numel(&query) / last(&query).max(1);
    let columns = key.iter().rev().nth(1).copied().unwrap_or(0);
    (rows * columns * (last(&query) + last(&value))) as u64
}

fn lstm(call: &CountedCall<'_>) -> u64 {
    let x = call.shape("x");
    let steps = numel(&x) / last(&x).max(1);
    let weights = call.value("params").map(ValueMeta::of);
    (steps * weights.map_or(0, |weights| matrices(&weights))) as u64
}

/// The number of elements of the matrices in a list of tensors.
fn matrices(tensors: &ValueMeta) -> usize {
    let ValueMeta::Sequence(items) = tensors else {
        return 0;
    };
    let matrices = items.iter().filter_map(ValueMeta::tensor);
    let matrices = matrices.filter(|meta| meta.shape.len() == 2);
    matrices.filter_map(TensorMeta::numel).sum()
}

/// The product of all sizes that an equation names, where it has several operands.
fn einsum(call: &CountedCall<'_>) -> u64 {
    let (Some(Value::Str(equation)), Some(operands)) =
        (call.value("equation"), call.value("operands"))
    else {
        return 0;
    };
    let inputs = equation.split("->").next().unwrap_or_default();
    let (Value::List(operands) | Value::Tuple(operands)) = operands else {
        return 0;
    };
    if operands.len() < 2 {
        return 0;
    }
    let mut sizes: HashMap<char, usize> = HashMap::new();
    for (labels, operand) in inputs.split(',').zip(operands.iter()) {
        let shape = operand.as_object().and_then(|object| object.shape());
        let shape = shape.unwrap_or_default();
        let labels = labels.chars().filter(|c| c.is_alphabetic());
        sizes.extend(labels.zip(shape.iter().copied()));
    }
    sizes.values().product::<usize>() as u64
}
