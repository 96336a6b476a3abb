//! Functions of each element alone, and of pairs of elements.

use std::f64::consts::{LN_2, LN_10, PI, SQRT_2};

use fx_core::Result;
use fx_core::passes::DecomposedCall;

use super::{Wide, decompose, in_common, times, widened};
use crate::ops::special;
use crate::tensor::{Number, Tensor};
use crate::{TensorOrNumber, ops};

decompose! {
    ops::neg(x: Tensor) => -&x;
    ops::absolute(x: Tensor) => x.abs();
    ops::positive(x: Tensor) => Ok(x);
    ops::square(x: Tensor) => x.pow(2);
    ops::fix(x: Tensor) => ops::trunc(&x);
    ops::frac(x: Tensor) => &x - ops::trunc(&x)?;
    ops::sgn(x: Tensor) => ops::sign(&x);
    ops::deg2rad(x: Tensor) => &x * (PI / 180.0);
    ops::rad2deg(x: Tensor) => &x * (180.0 / PI);
    ops::exp2(x: Tensor) |call| => widened(call, ("x", &x), |x| (x * LN_2)?.exp());
    ops::log2(x: Tensor) |call| => widened(call, ("x", &x), |x| x.log()? / LN_2);
    ops::log10(x: Tensor) |call| => widened(call, ("x", &x), |x| x.log()? / LN_10);
    ops::sinc(x: Tensor) |call| => widened(call, ("x", &x), sinc);
    ops::logit(x: Tensor, eps: Option<f64>) |call| => widened(call, ("x", &x), |x| logit(x, eps));
    special::gammaln(x: Tensor) => special::lgamma(&x);
    special::ndtr(x: Tensor) |call| => widened(call, ("x", &x), |x| ((x / SQRT_2)?.erf()? + 1.0)? * 0.5);
    ops::isposinf(x: Tensor) => x.eq(f64::INFINITY);
    ops::isneginf(x: Tensor) => x.eq(f64::NEG_INFINITY);
    ops::addcmul(x: Tensor, tensor1: Tensor, tensor2: Tensor, value: Number) |call| =>
        blended(call, [&x, &tensor1, &tensor2], value, |a, b| a * b);
    ops::addcdiv(x: Tensor, tensor1: Tensor, tensor2: Tensor, value: Number) |call| =>
        blended(call, [&x, &tensor1, &tensor2], value, |a, b| a / b);
    ops::lerp(x: Tensor, end: Tensor, weight: TensorOrNumber) |call| => {
        let wide = Wide::of(call, &["x", "end", "weight"]);
        let weight = match weight {
            TensorOrNumber::Tensor(weight) => TensorOrNumber::Tensor(wide.up(&weight)?),
            number => number,
        };
        wide.down(&lerp(&wide.up(&x)?, &wide.up(&end)?, &weight)?)
    };
    ops::fmax(x: Tensor, other: Tensor) => but_nan(&x, &other, ops::maximum(&x, &other)?);
    ops::fmin(x: Tensor, other: Tensor) => but_nan(&x, &other, ops::minimum(&x, &other)?);
    ops::heaviside(x: Tensor, values: Tensor) =>
        ops::r#where(&x.eq(0)?, &values, &ops::type_as(&x.gt(0)?, &x)?);
    ops::logical_xor(x: Tensor, other: Tensor) => ops::logical_not(&x)?.ne(&ops::logical_not(&other)?);
}

/// `x` and a number times what is made of two tensors.
fn blended(
    call: &DecomposedCall<'_>,
    [x, a, b]: [&Tensor; 3],
    value: Number,
    made: impl FnOnce(&Tensor, &Tensor) -> Result<Tensor>,
) -> Result<Tensor> {
    let names = ["x", "tensor1", "tensor2"];
    let wide = Wide::of(call, &names);
    let a = wide.up(&in_common(call, &names, ("tensor1", a))?)?;
    let b = wide.up(&in_common(call, &names, ("tensor2", b))?)?;
    wide.down(&(wide.up(x)? + times(&made(&a, &b)?, value)?)?)
}

/// Near 0 by its series: the slope of the quotient is a difference of large numbers there.
fn sinc(x: &Tensor) -> Result<Tensor> {
    let angle = (x * PI)?;
    let is_near = angle.abs()?.lt(0.1)?;
    let square = ops::square(&ops::r#where(&is_near, &angle, 0)?)?;
    let mut near = (1.0 - (&square / 72.0)?)?;
    for divisor in [42.0, 20.0, 6.0] {
        near = (1.0 - ((&square / divisor)? * near)?)?;
    }
    let far = ops::r#where(&is_near, 1, &angle)?;
    ops::r#where(&is_near, &near, &(far.sin()? / &far)?)
}

fn logit(x: &Tensor, eps: Option<f64>) -> Result<Tensor> {
    let share = match eps {
        None => x.clone(),
        Some(eps) => ops::clamp(x, eps, 1.0 - eps)?,
    };
    (&share / (1.0 - &share)?)?.log()
}

fn lerp(x: &Tensor, end: &Tensor, weight: &TensorOrNumber) -> Result<Tensor> {
    let way = (end - x)?;
    match weight {
        // From the nearer end, as PyTorch does.
        TensorOrNumber::Number(weight) if weight.as_f64().abs() < 0.5 => x + times(&way, *weight)?,
        TensorOrNumber::Number(weight) => end - (&way * (1.0 - weight.as_f64()))?,
        TensorOrNumber::Tensor(weight) => {
            let from_end = (end - (&way * (1.0 - weight)?)?)?;
            let from_start = (x + (&way * weight)?)?;
            ops::r#where(&weight.abs()?.lt(0.5)?, &from_start, &from_end)
        }
    }
}

/// One of two numbers; the other one where one of the two is NaN, the first where both are.
fn but_nan(x: &Tensor, other: &Tensor, chosen: Tensor) -> Result<Tensor> {
    let beside_nan = ops::r#where(&ops::isnan(x)?, other, &chosen)?;
    ops::r#where(&ops::isnan(other)?, x, &beside_nan)
}
