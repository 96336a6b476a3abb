//! Activation functions, by exponentials and choices.

use std::f64::consts::{FRAC_1_SQRT_2, PI};

use fx_core::passes::DecomposedCall;
use fx_core::{Error, Result};

use fx_core::value::DType;

use super::{decompose, dtype_of, is_empty, widened};
use crate::tensor::{Number, Tensor};
use crate::{Bound, ops};

decompose! {
    ops::relu6(x: Tensor) |call| => held(call, &x, Number::Int(0), Number::Int(6));
    ops::hardtanh(x: Tensor, min_val: Number, max_val: Number) |call| => held(call, &x, min_val, max_val);
    ops::clip(x: Tensor, min: Bound, max: Bound) => ops::clamp(&x, min, max);
    ops::threshold(x: Tensor, threshold: f64, value: Number) |call| =>
        ops::r#where(&x.le(threshold)?, beside(call, value), &x);
    ops::leaky_relu(x: Tensor, negative_slope: f64) => ops::r#where(&x.gt(0)?, &x, &(&x * negative_slope)?);
    ops::elu(x: Tensor, alpha: f64) |call| => widened(call, ("x", &x), |x| {
        bent(x, |low| ops::expm1(low)? * alpha)
    });
    ops::celu(x: Tensor, alpha: f64) |call| => widened(call, ("x", &x), |x| {
        bent(x, |low| ops::expm1(&(low / alpha)?)? * alpha)
    });
    ops::selu(x: Tensor) |call| => widened(call, ("x", &x), |x| {
        bent(x, |low| ops::expm1(low)? * SELU_ALPHA)? * SELU_SCALE
    });
    ops::silu(x: Tensor) |call| => widened(call, ("x", &x), |x| x * ops::sigmoid(x)?);
    ops::mish(x: Tensor) |call| => widened(call, ("x", &x), |x| {
        x * ops::tanh(&ops::softplus(x, 1.0, 20.0)?)?
    });
    ops::gelu(x: Tensor, approximate: String) |call| => widened(call, ("x", &x), |x| gelu(x, &approximate));
    ops::glu(x: Tensor, dim: i64) |call| => widened(call, ("x", &x), |x| glu(x, dim));
    ops::hardsigmoid(x: Tensor) |call| => widened(call, ("x", &x), |x| ops::clamp(&(x + 3.0)?, 0, 6)? / 6.0);
    ops::hardswish(x: Tensor) |call| => widened(call, ("x", &x), hardswish);
    ops::hardshrink(x: Tensor, lambd: f64) => ops::r#where(&x.abs()?.le(lambd)?, 0, &x);
    ops::softshrink(x: Tensor, lambd: f64) |call| => widened(call, ("x", &x), |x| softshrink(x, lambd));
    ops::softplus(x: Tensor, beta: f64, threshold: f64) |call| =>
        widened(call, ("x", &x), |x| softplus(x, beta, threshold));
    ops::softsign(x: Tensor) |call| => widened(call, ("x", &x), |x| x / (x.abs()? + 1)?);
    ops::tanhshrink(x: Tensor) |call| => widened(call, ("x", &x), |x| x - ops::tanh(x)?);
    // At 0 the minimum has half of the slope.
    ops::logsigmoid(x: Tensor) |call| => widened(call, ("x", &x), |x| {
        ops::minimum(x, &ops::zeros_like(x, None)?)? - ops::log1p(&(-x.abs()?)?.exp()?)?
    });
    ops::softmax(x: Tensor, dim: i64) |call| => match is_empty(call, "x") {
        true => Ok(x),
        false => widened(call, ("x", &x), |x| softmax(x, dim)),
    };
    ops::softmin(x: Tensor, dim: i64) |call| => match is_empty(call, "x") {
        true => Ok(x),
        false => ops::softmax(&(-&x)?, dim),
    };
    ops::log_softmax(x: Tensor, dim: i64) |call| => match is_empty(call, "x") {
        true => Ok(x),
        false => widened(call, ("x", &x), |x| log_softmax(x, dim)),
    };
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

/// x where it is positive or NaN, `low` of it elsewhere: of 0 where it is not used, so that no slope is infinite.
fn bent(x: &Tensor, low: impl FnOnce(&Tensor) -> Result<Tensor>) -> Result<Tensor> {
    let is_low = x.le(0)?;
    ops::r#where(&is_low, &low(&ops::r#where(&is_low, x, 0)?)?, x)
}

/// x between two numbers: a choice, which has the slope 1 at NaN, as a clamp has not.
fn held(call: &DecomposedCall<'_>, x: &Tensor, min: Number, max: Number) -> Result<Tensor> {
    let name = call.function().name();
    if min.as_f64() > max.as_f64() {
        return Err(Error::msg(format_args!(
            "{name}: min_val {min} is above max_val {max}"
        )));
    }
    match dtype_of(call, "x") {
        Some(DType::Bool) => Err(Error::msg(format_args!(
            "{name}: bool tensors are not supported"
        ))),
        // Integers drop a fraction.
        Some(dtype) if !dtype.is_floating_point() => ops::clamp(x, min.whole(), max.whole()),
        _ => {
            // A zero at a bound keeps its sign.
            let (low, high) = (min.as_f64(), max.as_f64());
            let below = match high == 0.0 {
                true => ops::r#where(&x.ge(high)?, &zero_like(x)?, x)?,
                false => ops::r#where(&x.ge(high)?, max, x)?,
            };
            match low == 0.0 {
                true => ops::r#where(&x.le(low)?, &zero_like(x)?, &below),
                false => ops::r#where(&x.le(low)?, min, &below),
            }
        }
    }
}

/// 0 where something else than a zero is, which keeps its sign; without a slope.
fn zero_like(x: &Tensor) -> Result<Tensor> {
    ops::r#where(&x.ne(0)?, 0, &(x * 0)?)
}

fn hardswish(x: &Tensor) -> Result<Tensor> {
    let is_middle = x.abs()?.lt(3)?;
    let middle = ops::r#where(&is_middle, x, 0)?;
    let middle = ((&middle * (&middle + 3.0)?)? / 6.0)?;
    let y = ops::r#where(&x.le(-3)?, &(x * 0.0)?, x)?;
    ops::r#where(&is_middle, &middle, &y)
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
    // NaN stays, and what becomes 0 has no sign and no slope.
    let none = (x * 0.0)?.abs()?;
    let below = ops::r#where(&x.lt(-lambd)?, &(x + lambd)?, &none)?;
    ops::r#where(&x.gt(lambd)?, &(x - lambd)?, &below)
}

fn softplus(x: &Tensor, beta: f64, threshold: f64) -> Result<Tensor> {
    let scaled = (x * beta)?;
    if beta == 0.0 && threshold < 0.0 {
        return x + scaled;
    }
    let is_line = scaled.gt(threshold)?;
    // Of 0 where it is not used, so that no slope is infinite.
    let bent = ops::log1p(&ops::r#where(&is_line, 0, &scaled)?.exp()?)?;
    ops::r#where(&is_line, x, &(bent / beta)?)
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
