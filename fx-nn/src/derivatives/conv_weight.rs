//! `conv2d_weight`: the gradient of the weights of a convolution as one function, for which compiled code has a kernel.

use fx_core::ir::ValueMeta;
use fx_core::passes::{CoreSet, DecomposedCall};
use fx_core::shapes::ShapeRule;
use fx_core::value::{Int, IntoValue, Value};
use fx_core::{Error, Result, function, function_table, wrap};

use super::conv_steps::Steps;
use crate::func::{BatchCall, Batching, known};
use crate::ops;
use crate::tensor::{Pair, Tensor};

/// The gradient of the weights of [`conv2d`](crate::ops::conv2d) from that of its result
/// (`torch.nn.grad.conv2d_weight`); it has the shape of `weight`.
///
/// ```
/// use fx_nn::prelude::*;
/// let (x, w) = (Tensor::ones((1, 1, 3, 3))?, Tensor::zeros((1, 1, 2, 2))?);
/// let grad = Tensor::ones((1, 1, 2, 2))?;
/// let found = fx_nn::grad::conv2d_weight(&x, &w, &grad, 1, 0, 1, 1)?;
/// assert_eq!(found.to_vec()?, [4.0; 4]);
/// # Ok::<(), fx_nn::Error>(())
/// ```
///
/// # Errors
/// Returns an error if the shapes do not fit.
#[wrap(path = "fx_nn::grad::conv2d_weight")]
#[allow(clippy::too_many_arguments, reason = "those of the convolution")]
pub fn conv2d_weight(
    x: &Tensor,
    weight: &Tensor,
    grad: &Tensor,
    #[default(1)] stride: impl Into<Pair>,
    #[default(0)] padding: impl Into<Pair>,
    #[default(1)] dilation: impl Into<Pair>,
    #[default(1)] groups: usize,
) -> Result<Tensor> {
    let weight = known::sizes(weight)?;
    let sizes = [&known::sizes(x)?[..], &weight[..]];
    by_convolution(x, grad, sizes, [stride, padding, dilation], groups)
}

/// By the sizes of the input and the weights.
fn by_convolution(
    x: &Tensor,
    grad: &Tensor,
    [of_x, of_weight]: [&[Int]; 2],
    [stride, padding, dilation]: [Pair; 3],
    groups: usize,
) -> Result<Tensor> {
    let list = |pair: Pair| {
        let (a, b) = pair.tuple();
        vec![a as i64, b as i64]
    };
    let steps = Steps {
        stride: list(stride),
        padding: list(padding),
        dilation: list(dilation),
        groups: groups as i64,
    };
    let kernel = of_weight.iter().skip(2).map(known::number);
    let kernel: Option<Vec<i64>> = kernel.collect();
    let kernel = kernel.ok_or_else(|| {
        Error::msg("the gradient of a convolution needs the sizes of its windows")
    })?;
    steps.of_weight_at(x, of_x, grad, &kernel)
}

/// The sizes of an argument: a weight's are known of the call alone.
fn sizes_of(call: &DecomposedCall<'_>, name: &str) -> Result<Vec<Int>> {
    let meta = call.meta(name).and_then(ValueMeta::tensor);
    let known = meta.and_then(|meta| {
        let sizes = meta.shape.iter().map(|dim| dim.as_number().map(Int::from));
        sizes.collect::<Option<_>>()
    });
    known.map_or_else(|| known::sizes(&call.arg::<Tensor>(name)?), Ok)
}

function_table! { CoreSet {
    function!(conv2d_weight) => CoreSet::decomposed(|call: &DecomposedCall<'_>| {
        let pair = |name| call.arg::<Pair>(name);
        by_convolution(
            &call.arg::<Tensor>("x")?,
            &call.arg::<Tensor>("grad")?,
            [&sizes_of(call, "x")?, &sizes_of(call, "weight")?],
            [pair("stride")?, pair("padding")?, pair("dilation")?],
            call.arg("groups")?,
        )
        .map(IntoValue::into_value)
    }),
} }

function_table! { ShapeRule {
    function!(conv2d_weight) => ShapeRule(|call| Ok(ValueMeta::clone(call.arg("weight")?))),
} }

function_table! { Batching {
    function!(conv2d_weight) => Batching(of_each_example),
} }

/// The gradient of each example: a product with the windows of its images.
fn of_each_example(call: &BatchCall<'_>) -> Result<Value> {
    let (x, grad) = (call.tensor("x")?, call.tensor("grad")?);
    let (of_x, of_grad, weight) = (
        known::sizes(&x)?,
        known::sizes(&grad)?,
        call.sizes("weight")?,
    );
    let ([n, images, .., height, width], [.., rows, columns], [outputs, inputs, kernel @ ..]) =
        (&of_x[..], &of_grad[..], &weight[..])
    else {
        return Err(Error::msg(
            "images, gradients and weights have other shapes",
        ));
    };
    let sides = kernel.iter().map(|size| {
        let size = known::number(size).and_then(|size| usize::try_from(size).ok());
        size.ok_or_else(|| {
            Error::msg("the gradient of a convolution needs a kernel whose sizes are numbers")
        })
    });
    let [down, across] = sides.collect::<Result<Vec<_>>>()?[..] else {
        return Err(Error::msg(
            "the kernel of a convolution over images has two sizes",
        ));
    };
    let pair = |name| call.arg::<Pair>(name);
    let groups: usize = call.arg("groups")?;
    let of_groups = Int::from(groups as i64);
    let channels = (*inputs * of_groups)?;
    let own = match groups {
        1 => *outputs,
        _ => outputs.floordiv(of_groups)?,
    };
    let places = (*rows * *columns)?;
    let all = ops::reshape(&x, [(*n * *images)?, channels, *height, *width])?;
    let windows = ops::unfold(
        &all,
        (down, across),
        pair("dilation")?,
        pair("padding")?,
        pair("stride")?,
    )?;
    let size = (*inputs * (down * across) as i64)?;
    // One row for each place of each image.
    let windows = ops::reshape(&windows, [*n, *images, of_groups, size, places])?;
    let windows = ops::permute(&windows, [0, 2, 1, 4, 3])?;
    let grad = ops::reshape(&grad, [*n, *images, of_groups, own, places])?;
    let grad = ops::permute(&grad, [0, 2, 3, 1, 4])?;
    let several = (*images * places)?;
    let mut left = vec![*n, of_groups, own, several];
    let mut right = vec![*n, of_groups, several, size];
    if groups == 1 {
        left.remove(1);
        right.remove(1);
    }
    let product = ops::matmul(&ops::reshape(&grad, left)?, &ops::reshape(&windows, right)?)?;
    let mut sizes = vec![*n];
    sizes.extend(&weight);
    ops::reshape(&product, sizes).map(IntoValue::into_value)
}
