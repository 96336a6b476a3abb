//! Operations on each element alone.

use fx_core::{Result, wrap};

use crate::error::Fx;
use crate::kernels::{binary, pointwise};
use crate::tensor::Tensor;

/// max(x, 0).
///
/// # Errors
/// When the tensor's type has no such operation.
#[wrap(method, path = "fx_nn::ops::relu")]
pub fn relu(x: &Tensor) -> Result<Tensor> {
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
/// For tensors that are not float.
#[wrap(method, path = "fx_nn::ops::sigmoid")]
pub fn sigmoid(x: &Tensor) -> Result<Tensor> {
    pointwise::sigmoid(x.data("sigmoid")?)
        .map(Tensor::from)
        .fx()
}

/// The hyperbolic tangent.
///
/// # Errors
/// For tensors that are not float.
#[wrap(method, path = "fx_nn::ops::tanh")]
pub fn tanh(x: &Tensor) -> Result<Tensor> {
    x.data("tanh")?.tanh().map(Tensor::from).fx()
}

/// e to the power of x.
///
/// # Errors
/// For tensors that are not float.
#[wrap(method, path = "fx_nn::ops::exp")]
pub fn exp(x: &Tensor) -> Result<Tensor> {
    x.data("exp")?.exp().map(Tensor::from).fx()
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
    pointwise::clamp(x.data("clamp")?, min, max)
        .map(Tensor::from)
        .fx()
}

/// The larger of each two elements; shapes broadcast.
///
/// # Errors
/// When the shapes do not broadcast.
#[wrap(method, path = "fx_nn::ops::maximum")]
pub fn maximum(x: &Tensor, other: &Tensor) -> Result<Tensor> {
    binary::maximum(x.data("maximum")?, other.data("maximum")?)
        .map(Tensor::from)
        .fx()
}

/// The smaller of each two elements; shapes broadcast.
///
/// # Errors
/// When the shapes do not broadcast.
#[wrap(method, path = "fx_nn::ops::minimum")]
pub fn minimum(x: &Tensor, other: &Tensor) -> Result<Tensor> {
    binary::minimum(x.data("minimum")?, other.data("minimum")?)
        .map(Tensor::from)
        .fx()
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
        return Err(fx_core::Error::msg(format_args!(
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
