//! Activation functions, and dropout.

use crate::op;
use fx_core::Result;

use crate::error::{Fx, require, unfit};
use crate::kernels::activation::{self, Bend};
use crate::kernels::elementary::Elementary;
use crate::kernels::pointwise;
use crate::tensor::Tensor;

/// max(x, 0).
///
/// # Errors
/// Returns an error for bool tensors.
#[op(unary, member, method, path = "fx_nn::ops::relu")]
pub fn relu(x: &Tensor) -> Result<Tensor> {
    require("relu", !x.is_bool())?;
    pointwise::relu(x.data("relu")?).map(Tensor::made).fx()
}

/// min(max(x, 0), 6).
///
/// # Errors
/// Returns an error for bool tensors.
#[op(unary, path = "fx_nn::ops::relu6")]
pub fn relu6(x: &Tensor) -> Result<Tensor> {
    require("relu6", !x.is_bool())?;
    if !x.dtype()?.is_floating_point() {
        return x.clamp(0, 6);
    }
    activation::hardtanh("relu6", x.data("relu6")?, 0.0, 6.0)
        .map(Tensor::made)
        .fx()
}

/// x where it is above 0, `negative_slope` · x elsewhere.
///
/// # Errors
/// Returns an error if the tensor is not float.
#[op(unary, path = "fx_nn::ops::leaky_relu")]
pub fn leaky_relu(
    x: &Tensor,
    #[kw]
    #[default(0.01)]
    negative_slope: f64,
) -> Result<Tensor> {
    activation::leaky_relu(x.data("leaky_relu")?, negative_slope)
        .map(Tensor::made)
        .fx()
}

fn bent(op: &str, x: &Tensor, bend: Bend) -> Result<Tensor> {
    activation::bent(op, x.data(op)?, bend)
        .map(Tensor::made)
        .fx()
}

/// x where it is above 0, `alpha` · (exp(x) - 1) elsewhere.
///
/// # Errors
/// Returns an error if the tensor is not float.
#[op(unary, path = "fx_nn::ops::elu")]
pub fn elu(
    x: &Tensor,
    #[kw]
    #[default(1.0)]
    alpha: f64,
) -> Result<Tensor> {
    let bend = Bend {
        slope: 1.0,
        bottom: alpha,
        rate: 1.0,
    };
    bent("elu", x, bend)
}

/// ELU with the slope and the bottom that keep a mean of 0 and a variance of 1.
///
/// # Errors
/// Returns an error if the tensor is not float.
#[op(unary, path = "fx_nn::ops::selu")]
pub fn selu(x: &Tensor) -> Result<Tensor> {
    let (alpha, slope) = (1.673_263_242_354_377_2, 1.050_700_987_355_480_5);
    let bend = Bend {
        slope,
        bottom: alpha * slope,
        rate: 1.0,
    };
    bent("selu", x, bend)
}

/// x where it is above 0, `alpha` · (exp(x / alpha) - 1) elsewhere, which has one slope at 0.
///
/// # Errors
/// Returns an error if the tensor is not float, or `alpha` is 0.
#[op(unary, path = "fx_nn::ops::celu")]
pub fn celu(
    x: &Tensor,
    #[kw]
    #[default(1.0)]
    alpha: f64,
) -> Result<Tensor> {
    require("celu", alpha != 0.0)?;
    let bend = Bend {
        slope: 1.0,
        bottom: alpha,
        rate: 1.0 / alpha,
    };
    bent("celu", x, bend)
}

/// x · tanh(log(1 + exp(x))).
///
/// # Errors
/// Returns an error if the tensor is not float.
#[op(unary, path = "fx_nn::ops::mish")]
pub fn mish(x: &Tensor) -> Result<Tensor> {
    activation::mish(x.data("mish")?).map(Tensor::made).fx()
}

/// log(sigmoid(x)), without overflow.
///
/// # Errors
/// Returns an error if the tensor is not float.
#[op(unary, path = "fx_nn::ops::logsigmoid")]
pub fn logsigmoid(x: &Tensor) -> Result<Tensor> {
    super::elementary::floating("logsigmoid", x)?;
    Elementary::LogSigmoid
        .of(x.data("logsigmoid")?)
        .map(Tensor::made)
        .fx()
}

/// x / (1 + |x|).
///
/// # Errors
/// Returns an error for bool tensors.
#[op(unary, path = "fx_nn::ops::softsign")]
pub fn softsign(x: &Tensor) -> Result<Tensor> {
    x / (x.abs()? + 1)?
}

/// x - tanh(x).
///
/// # Errors
/// Returns an error for bool tensors.
#[op(unary, path = "fx_nn::ops::tanhshrink")]
pub fn tanhshrink(x: &Tensor) -> Result<Tensor> {
    require("tanhshrink", !x.is_bool())?;
    Elementary::Tanhshrink
        .of(x.as_float()?.data("tanhshrink")?)
        .map(Tensor::made)
        .fx()
}

/// x · Φ(x), the share of a normal distribution below x; `approximate` is `"none"`, or `"tanh"` for the usual
/// approximation.
///
/// # Errors
/// Returns an error if `approximate` is neither, or the tensor is not float.
#[op(unary, path = "fx_nn::ops::gelu")]
pub fn gelu(
    x: &Tensor,
    #[kw]
    #[default("none")]
    approximate: &str,
) -> Result<Tensor> {
    let tanh = match approximate {
        "none" => false,
        "tanh" => true,
        _ => return Err(unfit("gelu")),
    };
    activation::gelu(x.data("gelu")?, tanh)
        .map(Tensor::made)
        .fx()
}

/// log(1 + exp(beta · x)) / beta, and x where beta · x is above `threshold`.
///
/// # Errors
/// Returns an error if the tensor is not float.
#[op(unary, path = "fx_nn::ops::softplus")]
pub fn softplus(
    x: &Tensor,
    #[default(1.0)] beta: f64,
    #[default(20.0)] threshold: f64,
) -> Result<Tensor> {
    activation::softplus(x.data("softplus")?, beta, threshold)
        .map(Tensor::made)
        .fx()
}

/// 1 / (1 + exp(-x)).
///
/// # Errors
/// Returns the errors of the conversion to float.
#[op(unary, member, method, path = "fx_nn::ops::sigmoid")]
pub fn sigmoid(x: &Tensor) -> Result<Tensor> {
    pointwise::sigmoid(x.as_float()?.data("sigmoid")?)
        .map(Tensor::made)
        .fx()
}

/// x · sigmoid(x), elementwise.
///
/// # Errors
/// Returns an error if the tensor is not float.
#[op(unary, method, path = "fx_nn::ops::silu")]
pub fn silu(x: &Tensor) -> Result<Tensor> {
    pointwise::silu(x.data("silu")?).map(Tensor::made).fx()
}

/// The hyperbolic tangent.
///
/// # Errors
/// Returns the errors of the conversion to float.
#[op(unary, member, method, path = "fx_nn::ops::tanh")]
pub fn tanh(x: &Tensor) -> Result<Tensor> {
    x.as_float()?.data("tanh")?.tanh().map(Tensor::made).fx()
}

/// Zeroes elements with probability `p` and scales the rest by 1 / (1 - p); the identity outside training.
///
/// # Errors
/// Returns an error if `p` is not in [0, 1].
#[op(draw, member, random = training, path = "fx_nn::ops::dropout")]
pub fn dropout(
    x: &Tensor,
    #[kw]
    #[default(0.5)]
    p: f64,
    #[kw]
    #[default(true)]
    training: bool,
) -> Result<Tensor> {
    require("dropout", (0.0..=1.0).contains(&p))?;
    if !training || (p == 0.0 && !x.dtype()?.is_floating_point()) {
        return Ok(x.clone());
    }
    let data = x.data("dropout")?;
    if p == 1.0 && !data.dtype().is_float() {
        return data.zeros_like().map(|data| x.with_data(data)).fx();
    }
    pointwise::dropout_mask(data.dims(), p, data.dtype(), data.device())
        .and_then(|mask| data.mul(&mask))
        .map(Tensor::made)
        .fx()
}
