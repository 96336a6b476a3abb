//! Activation functions, by exponentials and choices.

use std::f64::consts::{FRAC_1_SQRT_2, PI};

use fx_core::passes::DecomposedCall;
use fx_core::{Error, Result};

use super::{decompose, dtype_of, widened};
use crate::tensor::{Number, Tensor};
use crate::{Bound, ops};

decompose! {
    ops::relu6(x: Tensor) => ops::clamp(&x, 0, 6);
    ops::hardtanh(x: Tensor, min_val: Number, max_val: Number) |call| =>
        ops::clamp(&x, beside(call, min_val), beside(call, max_val));
    ops::clip(x: Tensor, min: Bound, max: Bound) => ops::clamp(&x, min, max);
    ops::threshold(x: Tensor, threshold: f64, value: Number) |call| =>
        ops::r#where(&x.le(threshold)?, beside(call, value), &x);
    ops::leaky_relu(x: Tensor, negative_slope: f64) => unless_positive(&x, &(&x * negative_slope)?);
    ops::elu(x: Tensor, alpha: f64) => unless_positive(&x, &(ops::expm1(&x)? * alpha)?);
    ops::celu(x: Tensor, alpha: f64) => unless_positive(&x, &(ops::expm1(&(&x / alpha)?)? * alpha)?);
    ops::selu(x: Tensor) => unless_positive(&x, &(ops::expm1(&x)? * SELU_ALPHA)?)? * SELU_SCALE;
    ops::silu(x: Tensor) => &x * ops::sigmoid(&x)?;
    ops::mish(x: Tensor) => &x * ops::tanh(&ops::softplus(&x, 1.0, 20.0)?)?;
    ops::gelu(x: Tensor, approximate: String) => gelu(&x, &approximate);
    ops::glu(x: Tensor, dim: i64) => glu(&x, dim);
    ops::hardsigmoid(x: Tensor) => ops::clamp(&(&x + 3.0)?, 0, 6)? / 6.0;
    ops::hardswish(x: Tensor) => (&x * ops::clamp(&(&x + 3.0)?, 0, 6)?)? / 6.0;
    ops::hardshrink(x: Tensor, lambd: f64) => ops::r#where(&x.abs()?.le(lambd)?, 0, &x);
    ops::softshrink(x: Tensor, lambd: f64) => softshrink(&x, lambd);
    ops::softplus(x: Tensor, beta: f64, threshold: f64) => softplus(&x, beta, threshold);
    ops::softsign(x: Tensor) => &x / (x.abs()? + 1.0)?;
    ops::tanhshrink(x: Tensor) => &x - ops::tanh(&x)?;
    ops::logsigmoid(x: Tensor) => ops::clamp(&x, None, 0.0)? - ops::log1p(&(-x.abs()?)?.exp()?)?;
    ops::softmax(x: Tensor, dim: i64) |call| => widened(call, ("x", &x), |x| softmax(x, dim));
    ops::softmin(x: Tensor, dim: i64) => ops::softmax(&(-&x)?, dim);
    ops::log_softmax(x: Tensor, dim: i64) |call| => widened(call, ("x", &x), |x| log_softmax(x, dim));
}

const SELU_ALPHA: f64 = 1.673_263_242_354_377_2;
const SELU_SCALE: f64 = 1.050_700_987_355_480_5;

/// A number in the type of `x`: beside whole numbers, a float makes no floats of them.
fn beside(call: &DecomposedCall<'_>, number: Number) -> Number {
    match (dtype_of(call, "x"), number) {
        (Some(dtype), Number::Float(float)) if !dtype.is_floating_point() => {
            Number::Int(float as i64)
        }
        _ => number,
    }
}

/// x where it is positive or NaN, `other` elsewhere.
fn unless_positive(x: &Tensor, other: &Tensor) -> Result<Tensor> {
    ops::r#where(&x.gt(0)?, x, other)
}

fn gelu(x: &Tensor, approximate: &str) -> Result<Tensor> {
    let share = match approximate {
        "none" => (x * FRAC_1_SQRT_2)?.erf()?,
        "tanh" => {
            let cube = ((x * x)? * x)?;
            (((cube * 0.044_715)? + x)? * (2.0 / PI).sqrt())?.tanh()?
        }
        other => {
            return Err(Error::msg(format_args!(
                "approximate is \"none\" or \"tanh\", not {other:?}"
            )));
        }
    };
    (x * 0.5)? * (share + 1.0)?
}

fn glu(x: &Tensor, dim: i64) -> Result<Tensor> {
    let [value, gate] = ops::chunk(x, 2, dim)?.unpack()?;
    value * ops::sigmoid(&gate)?
}

fn softshrink(x: &Tensor, lambd: f64) -> Result<Tensor> {
    let below = ops::r#where(&x.lt(-lambd)?, &(x + lambd)?, &(x * 0.0)?)?;
    ops::r#where(&x.gt(lambd)?, &(x - lambd)?, &below)
}

fn softplus(x: &Tensor, beta: f64, threshold: f64) -> Result<Tensor> {
    let scaled = (x * beta)?;
    let bent = (ops::log1p(&scaled.exp()?)? / beta)?;
    ops::r#where(&scaled.gt(threshold)?, x, &bent)
}

fn softmax(x: &Tensor, dim: i64) -> Result<Tensor> {
    let powers = (x - ops::amax(x, dim, true)?)?.exp()?;
    let sum = ops::sum(&powers, dim, true)?;
    powers / sum
}

fn log_softmax(x: &Tensor, dim: i64) -> Result<Tensor> {
    let shifted = (x - ops::amax(x, dim, true)?)?;
    let sum = ops::sum(&shifted.exp()?, dim, true)?;
    shifted - sum.log()?
}
