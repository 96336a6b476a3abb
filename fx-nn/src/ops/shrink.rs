//! Piecewise activation functions, gates, and slopes that are learned or drawn.

use crate::op;
use fx_core::Result;

use crate::error::{Fx, require, unfit};
use crate::kernels::{activation, pointwise, shrink};
use crate::random;
use crate::tensor::{Number, Tensor};

/// 0 up to -3, x from 3 on, and x · (x + 3) / 6 between.
///
/// # Errors
/// Returns an error if the tensor is not float.
#[op(unary, path = "fx_nn::ops::hardswish")]
pub fn hardswish(x: &Tensor) -> Result<Tensor> {
    shrink::hardswish(x.data("hardswish")?)
        .map(Tensor::made)
        .fx()
}

/// 0 up to -3, 1 from 3 on, and x / 6 + 1 / 2 between.
///
/// # Errors
/// Returns an error if the tensor is not float.
#[op(unary, path = "fx_nn::ops::hardsigmoid")]
pub fn hardsigmoid(x: &Tensor) -> Result<Tensor> {
    shrink::hardsigmoid(x.data("hardsigmoid")?)
        .map(Tensor::made)
        .fx()
}

/// Each element held between `min_val` and `max_val`, where the gradient is 0 at either.
///
/// # Errors
/// Returns an error for bool tensors, and if `min_val` is above `max_val`.
#[op(unary, path = "fx_nn::ops::hardtanh")]
pub fn hardtanh(
    x: &Tensor,
    #[default(-1.0)] min_val: impl Into<Number>,
    #[default(1.0)] max_val: impl Into<Number>,
) -> Result<Tensor> {
    require("hardtanh", !x.is_bool())?;
    let dtype = x.dtype()?;
    let (low, high) = (min_val.as_f64(), max_val.as_f64());
    if low > high {
        return Err(unfit("hardtanh"));
    }
    if dtype.is_floating_point() {
        return activation::hardtanh("hardtanh", x.data("hardtanh")?, low, high)
            .map(Tensor::made)
            .fx();
    }
    // Integers drop a fraction, as in PyTorch.
    super::pointwise::clamp(x, min_val.whole(), max_val.whole())
}

/// x outside of [-lambd, lambd], and 0 within.
///
/// # Errors
/// Returns an error if the tensor is not float.
#[op(unary, path = "fx_nn::ops::hardshrink")]
pub fn hardshrink(x: &Tensor, #[default(0.5)] lambd: f64) -> Result<Tensor> {
    shrink::hardshrink(x.data("hardshrink")?, lambd)
        .map(Tensor::made)
        .fx()
}

/// x moved by `lambd` towards 0, and 0 within it.
///
/// # Errors
/// Returns an error if the tensor is not float, or `lambd` is below 0.
#[op(unary, path = "fx_nn::ops::softshrink")]
pub fn softshrink(x: &Tensor, #[default(0.5)] lambd: f64) -> Result<Tensor> {
    shrink::softshrink(x.data("softshrink")?, lambd)
        .map(Tensor::made)
        .fx()
}

/// x where it is above `threshold`, `value` elsewhere.
///
/// ```
/// use fx_nn::prelude::*;
/// let x = Tensor::from_vec(vec![0.0f32, 1.0, 2.0], 3)?;
/// assert_eq!(ops::threshold(&x, 1.0, -5.0)?.to_vec()?, [-5.0, -5.0, 2.0]);
/// # Ok::<(), fx_nn::Error>(())
/// ```
///
/// # Errors
/// Returns an error for bool tensors.
#[op(unary, path = "fx_nn::ops::threshold")]
pub fn threshold(
    x: &Tensor,
    threshold: impl Into<Number>,
    value: impl Into<Number>,
) -> Result<Tensor> {
    require("threshold", !x.is_bool())?;
    let dtype = x.dtype()?;
    let (threshold, value) = (
        threshold.checked("threshold", dtype)?,
        value.checked("threshold", dtype)?,
    );
    shrink::threshold(x.data("threshold")?, &threshold, &value)
        .map(Tensor::made)
        .fx()
}

/// x where it is above 0, `weight` · x elsewhere, with one weight, or one for each channel (dim 1).
///
/// ```
/// use fx_nn::prelude::*;
/// let x = Tensor::from_vec(vec![-2.0f32, 4.0, -2.0, -4.0], (2, 2))?;
/// let weight = Tensor::from_vec(vec![0.5f32, 0.25], 2)?;
/// assert_eq!(ops::prelu(&x, &weight)?.to_vec()?, [-1.0, 4.0, -1.0, -1.0]);
/// # Ok::<(), fx_nn::Error>(())
/// ```
///
/// # Errors
/// Returns an error if the tensors are not of one float type, or there is neither one weight nor
/// one per channel.
#[op(member, method, path = "fx_nn::ops::prelu")]
pub fn prelu(x: &Tensor, weight: &Tensor) -> Result<Tensor> {
    super::elementary::floating("prelu", x)?;
    let (data, own) = (x.data("prelu")?, weight.data("prelu")?);
    crate::kernels::dim::same_dtype("prelu", data, own).fx()?;
    let channels = match data.dims() {
        [_, channels, ..] => *channels,
        _ => 1,
    };
    let weight = match own.dims() {
        [] | [1] => own.reshape(()).fx()?,
        [count] if *count == channels => {
            let mut shape = vec![1; data.rank().saturating_sub(1)];
            if let Some(first) = shape.first_mut() {
                *first = channels;
            }
            own.reshape(shape).fx()?
        }
        _ => return Err(unfit("prelu")),
    };
    shrink::prelu(data, &weight).map(Tensor::made).fx()
}

/// The first half of x along `dim`, times the sigmoid of the second.
///
/// ```
/// use fx_nn::prelude::*;
/// let x = Tensor::from_vec(vec![3.0f32, 5.0, 0.0, 0.0], 4)?;
/// assert_eq!(ops::glu(&x, -1)?.to_vec()?, [1.5, 2.5]);
/// # Ok::<(), fx_nn::Error>(())
/// ```
///
/// # Errors
/// Returns an error if the tensor is not float, or has no such dim of an even size.
#[op(along, path = "fx_nn::ops::glu")]
pub fn glu(x: &Tensor, #[default(-1)] dim: i64) -> Result<Tensor> {
    super::elementary::floating("glu", x)?;
    let data = x.data("glu")?;
    let at = crate::kernels::dim::dim("glu", dim, data.rank()).fx()?;
    let size = data.dims().get(at).copied().unwrap_or(1);
    require("glu", size.is_multiple_of(2))?;
    crate::kernels::widen::widened(data, data, |x| {
        let half = |start| crate::kernels::view::narrow(&x, at, start, size / 2);
        half(0)?.mul(&pointwise::sigmoid(&half(size / 2)?)?)
    })
    .map(Tensor::made)
    .fx()
}

/// x where it is above 0, elsewhere times a slope: in training drawn for each element between `lower` and `upper`, else
/// the middle of both.
///
/// ```
/// use fx_nn::prelude::*;
/// let x = Tensor::from_vec(vec![-4.0f32, 4.0], 2)?;
/// assert_eq!(ops::rrelu(&x, 0.25, 0.75, false)?.to_vec()?, [-2.0, 4.0]);
/// let drawn = ops::rrelu(&x, 0.25, 0.75, true)?.to_vec()?;
/// assert!((-3.0..=-1.0).contains(&drawn[0]) && drawn[1] == 4.0);
/// # Ok::<(), fx_nn::Error>(())
/// ```
///
/// # Errors
/// Returns an error if the tensor is not float, or `lower` is above `upper`.
#[op(draw, member, random = training, path = "fx_nn::ops::rrelu")]
pub fn rrelu(
    x: &Tensor,
    #[default(0.125)] lower: f64,
    #[default(0.333_333_333_333_333_3)] upper: f64,
    #[default(false)] training: bool,
) -> Result<Tensor> {
    super::elementary::floating("rrelu", x)?;
    require(
        "rrelu",
        lower <= upper && lower.is_finite() && upper.is_finite(),
    )?;
    let data = x.data("rrelu")?;
    if !training {
        return activation::leaky_relu(data, (lower + upper) / 2.0)
            .map(Tensor::made)
            .fx();
    }
    random::uniform(data.dims(), lower as f32, upper as f32)
        .and_then(|slopes| slopes.to_device(data.device())?.to_dtype(data.dtype()))
        .and_then(|slopes| shrink::prelu(data, &slopes))
        .map(Tensor::made)
        .fx()
}

/// The softmax of -x along `dim`: large where x is small.
///
/// # Errors
/// Returns an error if there is no such dim, or the tensor is not float.
#[op(along, path = "fx_nn::ops::softmin")]
pub fn softmin(x: &Tensor, #[kw] dim: i64) -> Result<Tensor> {
    super::norms::softmax(&(-x)?, dim)
}
