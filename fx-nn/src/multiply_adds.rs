//! Multiply-adds: how many multiplications with an addition a function call takes, in a table that
//! any crate can extend.

use std::borrow::Cow;

use fx_core::ir::{Function, ValueMeta};
use fx_core::trace::CallArgs;
use fx_core::value::{Dim, Value};
use fx_core::{Result, function, function_table, operator};
use indexmap::IndexMap;

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
///         let columns = call.shape("x").last().cloned().unwrap_or(1.into());
///         call.numel()? * columns
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
pub struct MultiplyAdds(pub fn(&CountedCall<'_>) -> Result<Dim>);

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
    pub fn shape(&self, param: &str) -> Vec<Dim> {
        dims_of(self.value(param).unwrap_or(&Value::None))
    }

    /// The result of the call.
    pub fn output(&self) -> &'c ValueMeta {
        self.output
    }

    /// The number of elements of the call's result.
    ///
    /// # Errors
    /// Returns an error if it does not fit an `i64`.
    pub fn numel(&self) -> Result<Dim> {
        match self.output.tensor() {
            Some(tensor) => Dim::product(&tensor.shape),
            None => Ok(Dim::known(0)),
        }
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
fn rows_by_columns(call: &CountedCall<'_>, x: &str) -> Result<Dim> {
    call.numel()? * last(&call.shape(x))
}

fn conv(call: &CountedCall<'_>) -> Result<Dim> {
    call.numel()? * Dim::product(behind_first(&call.shape("weight")))?
}

fn conv_transpose(call: &CountedCall<'_>) -> Result<Dim> {
    let (x, weight) = (call.shape("x"), call.shape("weight"));
    Dim::product(&x)? * Dim::product(behind_first(&weight))?
}

fn attention(call: &CountedCall<'_>) -> Result<Dim> {
    let [query, key, value] = ["query", "key", "value"].map(|name| call.shape(name));
    let columns = key.iter().rev().nth(1).cloned().unwrap_or(Dim::known(0));
    (rows(&query)? * columns)? * (last(&query) + last(&value))?
}

fn lstm(call: &CountedCall<'_>) -> Result<Dim> {
    let steps = rows(&call.shape("x"))?;
    let weights = call.value("params").map(ValueMeta::of);
    steps * weights.map_or(Ok(Dim::known(0)), |weights| matrices(&weights))?
}

/// The number of elements of the matrices in a list of tensors.
fn matrices(tensors: &ValueMeta) -> Result<Dim> {
    let ValueMeta::Sequence(items) = tensors else {
        return Ok(Dim::known(0));
    };
    let matrices = items.iter().filter_map(ValueMeta::tensor);
    let mut matrices = matrices.filter(|meta| meta.shape.len() == 2);
    matrices.try_fold(Dim::known(0), |sum, meta| sum + Dim::product(&meta.shape)?)
}

/// The product of all sizes that an equation names, where it has several operands.
fn einsum(call: &CountedCall<'_>) -> Result<Dim> {
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

/// The sizes of a tensor, which may have names.
fn dims_of(value: &Value) -> Vec<Dim> {
    let dims = value.as_object().and_then(|object| object.dims());
    dims.map_or_else(|| vec![Dim::known(0)], Cow::into_owned)
}
