//! Operations on each element alone.

use fx_core::{DType, Error, Result, wrap};

use crate::error::Fx;
use crate::kernels::{binary, pointwise};
use crate::tensor::Tensor;

/// max(x, 0).
///
/// # Errors
/// For bool tensors.
#[wrap(method, path = "fx_nn::ops::relu")]
pub fn relu(x: &Tensor) -> Result<Tensor> {
    if x.is_bool() {
        return Err(Error::msg("relu: bool tensors are not supported"));
    }
    pointwise::relu(x.data("relu")?).map(Tensor::from).fx()
}

/// -x.
///
/// # Errors
/// For bool tensors.
#[wrap(method, path = "fx_nn::ops::neg")]
pub fn neg(x: &Tensor) -> Result<Tensor> {
    -x
}

/// 1 / (1 + exp(-x)).
///
/// # Errors
/// Those of the conversion to float.
#[wrap(method, path = "fx_nn::ops::sigmoid")]
pub fn sigmoid(x: &Tensor) -> Result<Tensor> {
    pointwise::sigmoid(as_float(x)?.data("sigmoid")?)
        .map(Tensor::from)
        .fx()
}

/// x · sigmoid(x), elementwise.
///
/// # Errors
/// When the tensor is of truth values.
#[wrap(method, path = "fx_nn::ops::silu")]
pub fn silu(x: &Tensor) -> Result<Tensor> {
    let x = as_float(x)?;
    &x * x.sigmoid()?
}

/// The hyperbolic tangent.
///
/// # Errors
/// Those of the conversion to float.
#[wrap(method, path = "fx_nn::ops::tanh")]
pub fn tanh(x: &Tensor) -> Result<Tensor> {
    as_float(x)?.data("tanh")?.tanh().map(Tensor::from).fx()
}

/// e to the power of x.
///
/// # Errors
/// Those of the conversion to float.
#[wrap(method, path = "fx_nn::ops::exp")]
pub fn exp(x: &Tensor) -> Result<Tensor> {
    as_float(x)?.data("exp")?.exp().map(Tensor::from).fx()
}

/// Each element held between `min` and `max`; `None` leaves that side open.
///
/// # Errors
/// When both sides are open.
///
/// ```
/// use fx_nn::prelude::*;
/// let x = Tensor::from_vec(vec![-1.0f32, 0.5, 2.0], 3)?;
/// assert_eq!(x.clamp(0.0, 1.0)?.to_vec()?, [0.0, 0.5, 1.0]);
/// assert_eq!(x.clamp(0.0, None)?.to_vec()?, [0.0, 0.5, 2.0]);
/// # Ok::<(), fx_nn::Error>(())
/// ```
#[wrap(method, path = "fx_nn::ops::clamp")]
pub fn clamp(
    x: &Tensor,
    #[kw] min: impl Into<Option<f64>>,
    #[kw] max: impl Into<Option<f64>>,
) -> Result<Tensor> {
    // Whole bounds keep integers integers, as PyTorch's integer bounds do.
    let whole = |bound: Option<f64>| bound.is_none_or(|b| b.fract() == 0.0);
    let promoted = if whole(min) && whole(max) && !x.is_bool() {
        x.clone()
    } else {
        as_float(x)?
    };
    pointwise::clamp(promoted.data("clamp")?, min, max)
        .map(Tensor::from)
        .fx()
}

/// Integers and truth values as `float32`, as PyTorch promotes them where only floats will do.
fn as_float(x: &Tensor) -> Result<Tensor> {
    if x.dtype()?.is_floating_point() {
        Ok(x.clone())
    } else {
        x.to_dtype(DType::F32)
    }
}

/// The larger of each two elements; shapes broadcast.
///
/// # Errors
/// When the shapes do not broadcast.
#[wrap(method, path = "fx_nn::ops::maximum")]
pub fn maximum(x: &Tensor, other: &Tensor) -> Result<Tensor> {
    extreme("maximum", x, other, binary::maximum)
}

/// The smaller of each two elements; shapes broadcast.
///
/// # Errors
/// When the shapes do not broadcast.
#[wrap(method, path = "fx_nn::ops::minimum")]
pub fn minimum(x: &Tensor, other: &Tensor) -> Result<Tensor> {
    extreme("minimum", x, other, binary::minimum)
}

/// The larger or smaller of two tensors of one type.
fn extreme(
    what: &str,
    x: &Tensor,
    other: &Tensor,
    kernel: fn(
        &candle_core::Tensor,
        &candle_core::Tensor,
    ) -> candle_core::Result<candle_core::Tensor>,
) -> Result<Tensor> {
    let common = x.dtype()?.promote(other.dtype()?);
    let (x, other) = (x.to_dtype(common)?, other.to_dtype(common)?);
    let result = kernel(x.data(what)?, other.data(what)?).fx()?;
    Ok(if common == DType::Bool {
        Tensor::from_bools(result)
    } else {
        result.into()
    })
}

/// Zeroes elements with probability `p` and scales the rest by 1 / (1 - p); the identity outside training.
///
/// # Errors
/// When `p` is not in [0, 1].
#[wrap(random, path = "fx_nn::ops::dropout")]
pub fn dropout(
    x: &Tensor,
    #[kw]
    #[default(0.5)]
    p: f64,
    #[kw]
    #[default(true)]
    training: bool,
) -> Result<Tensor> {
    if !(0.0..=1.0).contains(&p) {
        return Err(Error::msg(format_args!(
            "dropout: p is a probability in [0, 1], not {p}"
        )));
    }
    if !training {
        return Ok(x.clone());
    }
    let data = x.data("dropout")?;
    pointwise::dropout_mask(data.dims(), p, data.dtype(), data.device())
        .and_then(|mask| data.mul(&mask))
        .map(Tensor::from)
        .fx()
}
