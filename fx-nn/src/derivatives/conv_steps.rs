//! `Steps`: how a convolution goes over its input, and the convolutions that its derivatives are.

use fx_core::ir::Function;
use fx_core::value::{Int, IntoValue, Value};
use fx_core::{Error, Result, function};

use crate::func::{Pullback, args_of, known};
use crate::ops;
use crate::tensor::Tensor;

/// The numbers of an option, one for each of some dims.
pub(super) fn numbers(call: &Pullback<'_>, name: &str, dims: usize) -> Result<Vec<i64>> {
    let wrong =
        |value: &Value| Error::msg(format_args!("`{name}` is {}, no numbers", value.describe()));
    let value: Value = call.arg(name)?;
    let found: Vec<i64> = match &value {
        Value::Int(n) => vec![*n; dims],
        Value::Tuple(items) | Value::List(items) => items
            .iter()
            .map(|item| match item {
                Value::Int(n) => Ok(*n),
                other => Err(wrong(other)),
            })
            .collect::<Result<_>>()?,
        other => return Err(wrong(other)),
    };
    match found.len() {
        1 => Ok(vec![found[0]; dims]),
        n if n == dims => Ok(found),
        _ => Err(wrong(&value)),
    }
}

/// Numbers as an option of a function over some dims.
pub(super) fn option(numbers: &[i64]) -> Value {
    match numbers {
        [one] => Value::Int(*one),
        several => Value::Tuple(several.iter().map(|n| Value::Int(*n)).collect()),
    }
}

fn convolution(dims: usize, is_transposed: bool) -> Function {
    match (dims, is_transposed) {
        (1, false) => function!(ops::conv1d),
        (2, false) => function!(ops::conv2d),
        (_, false) => function!(ops::conv3d),
        (1, true) => function!(ops::conv_transpose1d),
        (2, true) => function!(ops::conv_transpose2d),
        (_, true) => function!(ops::conv_transpose3d),
    }
}

/// How a convolution goes over its input.
pub(super) struct Steps {
    pub stride: Vec<i64>,
    pub padding: Vec<i64>,
    pub dilation: Vec<i64>,
    pub groups: i64,
}

impl Steps {
    pub fn of(call: &Pullback<'_>, dims: usize) -> Result<Self> {
        Ok(Steps {
            stride: numbers(call, "stride", dims)?,
            padding: numbers(call, "padding", dims)?,
            dilation: numbers(call, "dilation", dims)?,
            groups: call.arg("groups")?,
        })
    }

    pub fn conv(&self, x: &Tensor, weight: &Tensor) -> Result<Tensor> {
        let args = vec![
            x.into_value(),
            weight.into_value(),
            Value::None,
            option(&self.stride),
            option(&self.padding),
            option(&self.dilation),
            Value::Int(self.groups),
        ];
        convolution(self.stride.len(), false).call_as(args_of(args))
    }

    pub fn conv_transpose(&self, x: &Tensor, weight: &Tensor, added: &[i64]) -> Result<Tensor> {
        let args = vec![
            x.into_value(),
            weight.into_value(),
            Value::None,
            option(&self.stride),
            option(&self.padding),
            option(added),
            Value::Int(self.groups),
            option(&self.dilation),
        ];
        convolution(self.stride.len(), true).call_as(args_of(args))
    }

    /// The gradient of the weights of a convolution of `x` whose result has the gradient `grad`, both with a batch.
    pub fn of_weight(&self, x: &Tensor, grad: &Tensor, kernel: &[i64]) -> Result<Tensor> {
        self.of_weight_at(x, &known::sizes(x)?, grad, kernel)
    }

    /// [`of_weight`](Steps::of_weight), for an input of these sizes.
    pub fn of_weight_at(
        &self,
        x: &Tensor,
        own: &[Int],
        grad: &Tensor,
        kernel: &[i64],
    ) -> Result<Tensor> {
        let dims = self.stride.len();
        let (batch, channels) = (own[0], own[1]);
        let groups = self.groups;
        let inner = known::number(&channels).map(|n| Int::from(n / groups));
        let inner = inner.ok_or_else(|| {
            Error::msg("the derivative of a convolution needs the number of channels")
        })?;
        // The batch becomes the channels that are summed, and the channels the batch.
        let mut shape = vec![batch, Int::from(groups), inner];
        shape.extend(own[2..].iter().cloned());
        let mut order: Vec<i64> = vec![2, 1, 0];
        order.extend((3..3 + dims).map(|at| at as i64));
        let image = ops::permute(&ops::reshape(x, shape)?, order)?;
        let mut shape = vec![inner, (batch * groups)?];
        shape.extend(own[2..].iter().cloned());
        let image = ops::reshape(&image, shape)?;
        let windows = ops::transpose(grad, 0, 1)?;
        let turned = Steps {
            stride: self.dilation.clone(),
            padding: self.padding.clone(),
            dilation: self.stride.clone(),
            groups,
        };
        let mut found = ops::transpose(&turned.conv(&image, &windows)?, 0, 1)?;
        for (at, size) in kernel.iter().enumerate() {
            // A stride may leave a rest behind the last window. Where that is not known, all of it is kept.
            let found_size = known::size(&found, at as i64 + 2).ok();
            if found_size.and_then(|size| known::number(&size)) != Some(*size) {
                found = ops::narrow(&found, at as i64 + 2, 0, *size)?;
            }
        }
        Ok(found)
    }
}
