//! What is computed element by element.

use fx_nn::lowering::{OpCall, Val};
use fx_nn::prelude::*;
use fx_nn::value::DType;

use super::{nothing, rules};
use crate::out::cx::{Array, Cx};

rules! {
    relu => |cx, call| {
        let x = cx.widened(call, "x")?;
        Ok(cx.with_number("maximum", &x, 0.0).into())
    },
    sigmoid => unary("logistic"), tanh => unary("tanh"), exp => unary("exponential"),
    expm1 => unary("exponential_minus_one"), log => unary("log"), log1p => unary("log_plus_one"),
    sqrt => unary("sqrt"), rsqrt => unary("rsqrt"), sin => unary("sine"), cos => unary("cosine"), tan => unary("tan"),
    floor => whole("floor"), ceil => whole("ceil"),
    sign => |cx, call| {
        let x = cx.widened(call, "x")?;
        if x.dtype == DType::Bool {
            return Ok(x.into());
        }
        if matches!(x.dtype, DType::U8 | DType::U32) {
            // StableHLO has no sign of what has none.
            return Ok(cx.with_number("minimum", &x, 1.0).into());
        }
        let sign = cx.unary("sign", &x);
        if !x.dtype.is_floating_point() {
            return Ok(sign.into());
        }
        // PyTorch's sign of NaN is 0, and that of StableHLO is NaN.
        let nan = cx.compare("NE", &x, &x);
        let zero = cx.splat(0.0, x.dtype, &x.shape);
        Ok(cx.select(&nan, &zero, &sign).into())
    },
    erf => unary("chlo.erf"), erfc => unary("chlo.erfc"), erfinv => unary("chlo.erf_inv"),
    acos => unary("chlo.acos"), acosh => unary("chlo.acosh"), asin => unary("chlo.asin"), asinh => unary("chlo.asinh"),
    atan => unary("chlo.atan"), atanh => unary("chlo.atanh"), cosh => unary("chlo.cosh"), sinh => unary("chlo.sinh"),
    atan2 => pair("atan2", "x", "other"), maximum => pair("maximum", "x", "other"), minimum => pair("minimum", "x", "other"),
    reciprocal => |cx, call| {
        let x = cx.widened(call, "x")?;
        let one = cx.splat(1.0, x.dtype, &x.shape);
        Ok(cx.binary("divide", &one, &x).into())
    },
    trunc => |cx, call| {
        let x = cx.widened(call, "x")?;
        Ok(truncated(cx, &x).into())
    },
    round => |cx, call| {
        let x = cx.widened(call, "x")?;
        let decimals = call.int("decimals")?;
        if !x.dtype.is_floating_point() {
            return Ok(x.into());
        }
        // A negative power of ten has no float of its own: its reciprocal divides, as in PyTorch.
        let by = 10f64.powi(decimals.unsigned_abs() as i32);
        let (up, down) = if decimals > 0 { ("multiply", "divide") } else { ("divide", "multiply") };
        let scaled = if decimals == 0 { x } else { cx.with_number(up, &x, by) };
        let rounded = cx.unary("round_nearest_even", &scaled);
        Ok(if decimals == 0 { rounded } else { cx.with_number(down, &rounded, by) }.into())
    },
    isnan => |cx, call| {
        let x = cx.tensor(call, "x")?;
        Ok(cx.compare("NE", &x, &x).into())
    },
    isinf => |cx, call| {
        let x = cx.tensor(call, "x")?;
        if !x.dtype.is_floating_point() {
            return Ok(cx.splat(0.0, DType::Bool, &x.shape).into());
        }
        let size = cx.unary("abs", &x);
        Ok(cx.compare_number("EQ", &size, f64::INFINITY).into())
    },
    isfinite => |cx, call| {
        let x = cx.tensor(call, "x")?;
        if !x.dtype.is_floating_point() {
            return Ok(cx.splat(1.0, DType::Bool, &x.shape).into());
        }
        Ok(cx.op("is_finite", &[&x], "", DType::Bool, &x.shape).into())
    },
    clamp => |cx, call| {
        let mut x = cx.widened(call, "x")?;
        for (name, op) in [("min", "maximum"), ("max", "minimum")] {
            if !call.is_none(name)? {
                let bound = cx.value(&call.val(name)?, x.dtype, &x.shape)?;
                x = cx.binary(op, &x, &bound);
            }
        }
        Ok(x.into())
    },
    floor_divide => |cx, call| floor_divide(cx, call, "x", "other"),
    remainder => |cx, call| remainder(cx, call, "x", "other"),
    fmod => pair("remainder", "x", "other"),
    prelu => |cx, call| {
        let (x, mut weight) = (cx.tensor(call, "x")?, cx.tensor(call, "weight")?);
        if weight.count() > 1 && x.rank() > 1 {
            weight = cx.broadcast(&weight, &[1], &x.shape);
        }
        let weight = match weight.shape == x.shape {
            true => weight,
            false => {
                let one = cx.reshape(&weight, &vec![1; weight.rank().min(x.rank())]);
                cx.expand(&one, &x.shape)?
            }
        };
        let below = cx.binary("multiply", &x, &weight);
        let is_above = cx.compare_number("GE", &x, 0.0);
        Ok(cx.select(&is_above, &x, &below).into())
    },
    r#where => |cx, call| {
        let (dtype, shape) = cx.result(call)?;
        let mask = cx.value(&call.val("condition")?, DType::Bool, &shape)?;
        let a = cx.value(&call.val("input")?, dtype, &shape)?;
        let b = cx.value(&call.val("other")?, dtype, &shape)?;
        Ok(cx.select(&mask, &a, &b).into())
    },
    masked_fill => |cx, call| {
        let x = cx.widened(call, "x")?;
        let mask = cx.value(&call.val("mask")?, DType::Bool, &x.shape)?;
        let number = cx.value(&call.val("value")?, x.dtype, &x.shape)?;
        Ok(cx.select(&mask, &number, &x).into())
    },
    mask_scores => |cx, call| {
        let (dtype, shape) = cx.result(call)?;
        let scores = cx.value(&call.val("scores")?, dtype, &shape)?;
        let mask = cx.tensor(call, "mask")?;
        if mask.dtype == DType::Bool {
            let mask = cx.expand(&mask, &shape)?;
            let never = cx.splat(f64::NEG_INFINITY, dtype, &shape);
            return Ok(cx.select(&mask, &never, &scores).into());
        }
        let mask = cx.convert(&mask, dtype);
        let mask = cx.expand(&mask, &shape)?;
        Ok(cx.binary("add", &scores, &mask).into())
    },
    to_dtype => |cx, call| {
        let x = cx.tensor(call, "x")?;
        let (dtype, _) = cx.result(call)?;
        // A float becomes a whole number towards zero.
        Ok(cx.convert(&x, dtype).into())
    },
    type_as => |cx, call| {
        let x = cx.tensor(call, "x")?;
        // Its element type alone counts.
        call.needs_no(&["other"]);
        let (dtype, _) = cx.result(call)?;
        Ok(cx.convert(&x, dtype).into())
    },
    to_device => nothing("x"),
    logical_not => |cx, call| {
        let x = cx.tensor(call, "x")?;
        let x = cx.convert(&x, DType::Bool);
        Ok(cx.unary("not", &x).into())
    },
    logical_and => logical("and"), logical_or => logical("or"),
    bitwise_not => inverted("x"),
    bitwise_and => pair("and", "x", "other"), bitwise_or => pair("or", "x", "other"), bitwise_xor => pair("xor", "x", "other"),
    bitwise_left_shift => pair("shift_left", "x", "other"),
    bitwise_right_shift => |cx, call| shifted_right(cx, call, "x", "other"),
}

/// An operation on `x` in the type of the result.
fn unary(op: &'static str) -> impl Fn(&mut Cx, &OpCall<'_>) -> Result<Val> + Send + Sync {
    move |cx, call| {
        let x = cx.widened(call, "x")?;
        Ok(cx.unary(op, &x).into())
    }
}

/// An operation that leaves whole numbers as they are.
fn whole(op: &'static str) -> impl Fn(&mut Cx, &OpCall<'_>) -> Result<Val> + Send + Sync {
    move |cx, call| {
        let x = cx.widened(call, "x")?;
        Ok(match x.dtype.is_floating_point() {
            true => cx.unary(op, &x).into(),
            false => x.into(),
        })
    }
}

/// An operation on two arguments in the type and the shape of the result.
pub(super) fn pair(
    op: &'static str,
    a: &'static str,
    b: &'static str,
) -> impl Fn(&mut Cx, &OpCall<'_>) -> Result<Val> + Send + Sync {
    move |cx, call| {
        let (a, b) = (cx.widened(call, a)?, cx.widened(call, b)?);
        Ok(cx.binary(op, &a, &b).into())
    }
}

fn logical(op: &'static str) -> impl Fn(&mut Cx, &OpCall<'_>) -> Result<Val> + Send + Sync {
    move |cx, call| {
        let (_, shape) = cx.result(call)?;
        let a = cx.value(&call.val("x")?, DType::Bool, &shape)?;
        let b = cx.value(&call.val("other")?, DType::Bool, &shape)?;
        Ok(cx.binary(op, &a, &b).into())
    }
}

/// Bits, or a truth, turned over.
pub(super) fn inverted(
    name: &'static str,
) -> impl Fn(&mut Cx, &OpCall<'_>) -> Result<Val> + Send + Sync {
    move |cx, call| {
        let x = cx.widened(call, name)?;
        Ok(cx.unary("not", &x).into())
    }
}

pub(super) fn shifted_right(cx: &mut Cx, call: &OpCall<'_>, a: &str, b: &str) -> Result<Val> {
    let (a, b) = (cx.widened(call, a)?, cx.widened(call, b)?);
    let unsigned = matches!(a.dtype, DType::U8 | DType::U16 | DType::U32);
    let op = if unsigned {
        "shift_right_logical"
    } else {
        "shift_right_arithmetic"
    };
    Ok(cx.binary(op, &a, &b).into())
}

/// Towards zero.
fn truncated(cx: &mut Cx, x: &Array) -> Array {
    if !x.dtype.is_floating_point() {
        return x.clone();
    }
    let size = cx.unary("abs", x);
    let size = cx.unary("floor", &size);
    let sign = cx.unary("sign", x);
    cx.binary("multiply", &size, &sign)
}

/// The largest whole number that is at most the quotient.
pub(super) fn floor_divide(cx: &mut Cx, call: &OpCall<'_>, a: &str, b: &str) -> Result<Val> {
    let (a, b) = (cx.widened(call, a)?, cx.widened(call, b)?);
    if a.dtype.is_floating_point() {
        // As PyTorch does: from the remainder, which is exact. A quotient of zero has the sign of the division, and one
        // by zero is the division.
        let rest = cx.binary("remainder", &a, &b);
        let further = is_rest_of_other_sign(cx, &a, &b);
        let whole = cx.binary("subtract", &a, &rest);
        let near = cx.binary("divide", &whole, &b);
        let near = cx.unary("round_nearest_even", &near);
        let less = cx.with_number("subtract", &near, 1.0);
        let near = cx.select(&further, &less, &near);
        let division = cx.binary("divide", &a, &b);
        let nothing = cx.with_number("multiply", &division, 0.0);
        let is_nothing = cx.compare_number("EQ", &near, 0.0);
        let quotient = cx.select(&is_nothing, &nothing, &near);
        let by_zero = cx.compare_number("EQ", &b, 0.0);
        return Ok(cx.select(&by_zero, &division, &quotient).into());
    }
    let quotient = cx.binary("divide", &a, &b);
    if matches!(a.dtype, DType::U8 | DType::U16 | DType::U32) {
        return Ok(quotient.into());
    }
    let below = is_rest_of_other_sign(cx, &a, &b);
    let less = cx.with_number("subtract", &quotient, 1.0);
    Ok(cx.select(&below, &less, &quotient).into())
}

/// Whether what a division to zero leaves has another sign than the divisor.
fn is_rest_of_other_sign(cx: &mut Cx, a: &Array, b: &Array) -> Array {
    let rest = cx.binary("remainder", a, b);
    let is_rest = cx.compare_number("NE", &rest, 0.0);
    let (left, right) = (
        cx.compare_number("LT", &rest, 0.0),
        cx.compare_number("LT", b, 0.0),
    );
    let differ = cx.binary("xor", &left, &right);
    cx.binary("and", &is_rest, &differ)
}

/// The remainder with the sign of the divisor.
fn floored_remainder(cx: &mut Cx, a: &Array, b: &Array) -> Array {
    let rest = cx.binary("remainder", a, b);
    if matches!(a.dtype, DType::U8 | DType::U16 | DType::U32) {
        return rest;
    }
    let other = is_rest_of_other_sign(cx, a, b);
    let moved = cx.binary("add", &rest, b);
    cx.select(&other, &moved, &rest)
}

pub(super) fn remainder(cx: &mut Cx, call: &OpCall<'_>, a: &str, b: &str) -> Result<Val> {
    let (a, b) = (cx.widened(call, a)?, cx.widened(call, b)?);
    Ok(floored_remainder(cx, &a, &b).into())
}
