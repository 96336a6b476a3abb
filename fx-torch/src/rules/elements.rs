//! Operators element by element.

use fx_nn::prelude::*;
use fx_nn::{Error, Result, operator};

use super::entry::{Entry, by, of_two, same};
use crate::call::Call;

/// An operand times `alpha`.
fn scaled(call: &Call<'_>, operand: &Value) -> Result<Value> {
    match call.get("alpha") {
        None | Some(Value::Int(1)) => Ok(operand.clone()),
        Some(Value::Float(alpha)) if *alpha == 1.0 => Ok(operand.clone()),
        Some(alpha) => operator::mul.call_as((operand.clone(), alpha.clone())),
    }
}

fn add(call: &Call<'_>) -> Result<Value> {
    operator::add.call_as((call.at(0)?.clone(), scaled(call, call.value("other")?)?))
}

fn sub(call: &Call<'_>) -> Result<Value> {
    operator::sub.call_as((call.at(0)?.clone(), scaled(call, call.value("other")?)?))
}

fn rsub(call: &Call<'_>) -> Result<Value> {
    operator::sub.call_as((call.value("other")?.clone(), scaled(call, call.at(0)?)?))
}

fn div(call: &Call<'_>) -> Result<Value> {
    let mode: Option<String> = call.maybe("rounding_mode")?;
    match mode.as_deref() {
        None => of_two(operator::truediv, call),
        Some("trunc") => {
            let quotient = Tensor::from_value(of_two(operator::truediv, call)?)?;
            Ok(Value::object(ops::trunc(&quotient)?))
        }
        Some("floor") => of_two(function!(ops::floor_divide), call),
        Some(mode) => Err(Error::msg(format_args!("`rounding_mode` is {mode:?}"))),
    }
}

fn neg(call: &Call<'_>) -> Result<Value> {
    operator::neg.call_as((call.at(0)?.clone(),))
}

/// Of booleans and of integers.
fn not(call: &Call<'_>) -> Result<Value> {
    Ok(Value::object(ops::bitwise_not(&call.own()?)?))
}

fn clamp_min(call: &Call<'_>) -> Result<Value> {
    let (own, least) = (call.at(0)?.clone(), call.value("min")?.clone());
    function!(ops::clamp).call_as(args![own, min = least])
}

fn clamp_max(call: &Call<'_>) -> Result<Value> {
    let (own, most) = (call.at(0)?.clone(), call.value("max")?.clone());
    function!(ops::clamp).call_as(args![own, max = most])
}

/// `scale` times an ELU whose lower part is of `input_scale` times the elements.
fn elu(call: &Call<'_>) -> Result<Value> {
    let (x, alpha): (Tensor, f64) = (call.own()?, call.or("alpha", 1.0)?);
    let (scale, inner): (f64, f64) = (call.or("scale", 1.0)?, call.or("input_scale", 1.0)?);
    if scale == 1.0 && inner == 1.0 {
        return Ok(Value::object(ops::elu(&x, alpha)?));
    }
    let lower = (ops::expm1(&(&x * inner)?)? * (alpha * scale))?;
    let is_upper: Tensor = operator::gt.call_as((x.clone(), 0))?;
    function!(ops::r#where).call_as((is_upper, (x * scale)?, lower))
}

/// Bounds are numbers, or tensors.
fn clamp(call: &Call<'_>) -> Result<Value> {
    let bound = |name: &str| call.get(name).cloned().unwrap_or(Value::None);
    let (min, max) = (bound("min"), bound("max"));
    let is_number = |x: &Value| matches!(x, Value::None | Value::Int(_) | Value::Float(_));
    if is_number(&min) && is_number(&max) {
        return function!(ops::clamp).call_as(args![call.at(0)?.clone(), min = min, max = max]);
    }
    let mut own = call.own()?;
    for (name, function) in [
        ("min", function!(ops::maximum)),
        ("max", function!(ops::minimum)),
    ] {
        if let Some(bound) = call.get(name) {
            let at = call.args.iter().position(|(known, _)| *known == name);
            let is_tensor = at.is_some_and(|at| call.dtypes.get(at).is_some_and(Option::is_some));
            let bound = match is_tensor {
                true => Tensor::from_value(bound.clone())?,
                // A number, or a size that a run decides.
                false => operator::add.call_as((ops::zeros_like(&own, None)?, bound.clone()))?,
            };
            own = function.call_as((own, bound))?;
        }
    }
    Ok(Value::object(own))
}

/// Elements where a mask is true are a number, which a tensor without dims may have.
fn masked_fill(call: &Call<'_>) -> Result<Value> {
    let (own, mask) = (call.at(0)?.clone(), call.value("mask")?.clone());
    let value = call.value("value")?.clone();
    match value {
        Value::Bool(_) | Value::Int(_) | Value::Float(_) => {
            function!(ops::masked_fill).call_as((own, mask, value))
        }
        value => {
            let dtype = call.dtype(0)?;
            let value = ops::to_dtype(&Tensor::from_value(value)?, dtype)?;
            function!(ops::r#where).call_as((mask, value, own))
        }
    }
}

fn chosen(call: &Call<'_>) -> Result<Value> {
    let (own, other) = (call.value("self")?.clone(), call.value("other")?.clone());
    function!(ops::r#where).call_as((call.value("condition")?.clone(), own, other))
}

/// A leaky unit whose slope is drawn in training, beside the slopes.
fn rrelu_with_noise(call: &Call<'_>) -> Result<Value> {
    let (lower, upper) = (call.or("lower", 0.125)?, call.or("upper", 1.0 / 3.0)?);
    let y = ops::rrelu(&call.own()?, lower, upper, call.or("training", false)?)?;
    let noise = call.value("noise")?.clone();
    Ok(Value::Tuple(vec![Value::object(y), noise].into()))
}

pub(crate) const RULES: &[Entry] = by! {
    "aten.rrelu_with_noise_functional" => rrelu_with_noise,
    "aten.add" => add,
    "aten.sub" => sub,
    "aten.subtract" => sub,
    "aten.rsub" => rsub,
    "aten.mul" => |call| of_two(operator::mul, call),
    "aten.multiply" => |call| of_two(operator::mul, call),
    "aten.div" => div,
    "aten.divide" => div,
    "aten.true_divide" => div,
    "aten.pow" => |call| of_two(operator::pow, call),
    "aten.eq" => |call| of_two(operator::eq, call),
    "aten.ne" => |call| of_two(operator::ne, call),
    "aten.lt" => |call| of_two(operator::lt, call),
    "aten.le" => |call| of_two(operator::le, call),
    "aten.gt" => |call| of_two(operator::gt, call),
    "aten.ge" => |call| of_two(operator::ge, call),
    "aten.neg" => neg,
    "aten.negative" => neg,
    "aten.bitwise_not" => not,
    "aten.clamp" => clamp,
    "aten.clip" => clamp,
    "aten.masked_fill" => masked_fill,
    "aten.clamp_min" => clamp_min,
    "aten.clamp_max" => clamp_max,
    "aten.elu" => elu,
    "aten.where" => chosen,
};

pub(crate) const SAME: &[Entry] = same! {
    "aten.gcd" => ops::gcd,
    "aten.lcm" => ops::lcm,
    "aten.rrelu" => ops::rrelu,
    "aten.__and__" => ops::bitwise_and,
    "aten.__lshift__" => ops::bitwise_left_shift,
    "aten.__rshift__" => ops::bitwise_right_shift,
    "aten.bitwise_left_shift" => ops::bitwise_left_shift,
    "aten.bitwise_right_shift" => ops::bitwise_right_shift,
    "aten.addcdiv" => ops::addcdiv,
    "aten.addcmul" => ops::addcmul,
    "aten.celu" => ops::celu,
    "aten.copysign" => ops::copysign,
    "aten.deg2rad" => ops::deg2rad,
    "aten.rad2deg" => ops::rad2deg,
    "aten.erfinv" => ops::erfinv,
    "aten.fmax" => ops::fmax,
    "aten.fmin" => ops::fmin,
    "aten.frac" => ops::frac,
    "aten.heaviside" => ops::heaviside,
    "aten.hypot" => ops::hypot,
    "aten.isclose" => ops::isclose,
    "aten.isneginf" => ops::isneginf,
    "aten.isposinf" => ops::isposinf,
    "aten.logaddexp2" => ops::logaddexp2,
    "aten.logit" => ops::logit,
    "aten.positive" => ops::positive,
    "aten.sgn" => ops::sgn,
    "aten.signbit" => ops::signbit,
    "aten.sinc" => ops::sinc,
    "aten.digamma" => ops::special::digamma,
    "aten.i0" => ops::special::i0,
    "aten.igamma" => ops::special::gammainc,
    "aten.igammac" => ops::special::gammaincc,
    "aten.lgamma" => ops::special::lgamma,
    "aten.polygamma" => ops::special::polygamma["self" => "x"],
    "aten.special_entr" => ops::special::entr,
    "aten.special_erfcx" => ops::special::erfcx,
    "aten.special_i0e" => ops::special::i0e,
    "aten.special_i1" => ops::special::i1,
    "aten.special_i1e" => ops::special::i1e,
    "aten.special_log_ndtr" => ops::special::log_ndtr,
    "aten.special_ndtr" => ops::special::ndtr,
    "aten.special_ndtri" => ops::special::ndtri,
    "aten.special_xlog1py" => ops::special::xlog1py,
    "aten.special_zeta" => ops::special::zeta,
    "aten.special_expit" => ops::sigmoid,
    "aten.special_logit" => ops::logit,
    "aten.xlogy" => ops::xlogy,
    "aten.fix" => ops::trunc,
    "aten.__or__" => ops::bitwise_or,
    "aten.__xor__" => ops::bitwise_xor,
    "aten.bitwise_and" => ops::bitwise_and,
    "aten.bitwise_or" => ops::bitwise_or,
    "aten.bitwise_xor" => ops::bitwise_xor,
    "aten.logical_and" => ops::logical_and,
    "aten.logical_or" => ops::logical_or,
    "aten.logical_xor" => ops::logical_xor,
    "aten.logical_not" => ops::logical_not,
    "aten.floor_divide" => ops::floor_divide,
    "aten.remainder" => ops::remainder,
    "aten.fmod" => ops::fmod,
    "aten.abs" => ops::absolute,
    "aten.absolute" => ops::absolute,
    "aten.acos" => ops::acos,
    "aten.acosh" => ops::acosh,
    "aten.asin" => ops::asin,
    "aten.asinh" => ops::asinh,
    "aten.atan" => ops::atan,
    "aten.atan2" => ops::atan2,
    "aten.atanh" => ops::atanh,
    "aten.ceil" => ops::ceil,
    "aten.cos" => ops::cos,
    "aten.cosh" => ops::cosh,
    "aten.erf" => ops::erf,
    "aten.erfc" => ops::erfc,
    "aten.exp" => ops::exp,
    "aten.exp2" => ops::exp2,
    "aten.expm1" => ops::expm1,
    "aten.floor" => ops::floor,
    "aten.gelu" => ops::gelu,
    "aten.hardshrink" => ops::hardshrink,
    "aten.hardsigmoid" => ops::hardsigmoid,
    "aten.hardswish" => ops::hardswish,
    "aten.hardtanh" => ops::hardtanh,
    "aten.isfinite" => ops::isfinite,
    "aten.isinf" => ops::isinf,
    "aten.isnan" => ops::isnan,
    "aten.leaky_relu" => ops::leaky_relu,
    "aten.lerp" => ops::lerp,
    "aten.log" => ops::log,
    "aten.log10" => ops::log10,
    "aten.log1p" => ops::log1p,
    "aten.log2" => ops::log2,
    "aten.log_sigmoid" => ops::logsigmoid,
    "aten.logaddexp" => ops::logaddexp,
    "aten.max.other" => ops::maximum,
    "aten.maximum" => ops::maximum,
    "aten.min.other" => ops::minimum,
    "aten.minimum" => ops::minimum,
    "aten.mish" => ops::mish,
    "aten.nan_to_num" => ops::nan_to_num,
    "aten.prelu" => ops::prelu,
    "aten.reciprocal" => ops::reciprocal,
    "aten.relu" => ops::relu,
    "aten.relu6" => ops::relu6,
    "aten.round" => ops::round,
    "aten.rsqrt" => ops::rsqrt,
    "aten.selu" => ops::selu,
    "aten.sigmoid" => ops::sigmoid,
    "aten.sign" => ops::sign,
    "aten.silu" => ops::silu,
    "aten.sin" => ops::sin,
    "aten.sinh" => ops::sinh,
    "aten.softplus" => ops::softplus,
    "aten.softshrink" => ops::softshrink,
    "aten.sqrt" => ops::sqrt,
    "aten.square" => ops::square,
    "aten.tan" => ops::tan,
    "aten.tanh" => ops::tanh,
    "aten.threshold" => ops::threshold,
    "aten.trunc" => ops::trunc,
};
