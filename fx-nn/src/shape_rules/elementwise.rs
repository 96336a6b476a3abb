//! Element by element: the shape of the argument, or of all arguments broadcast.

use fx_core::shapes::{Fake, RuleCall, result_type};
use fx_core::value::DType;
use fx_core::{Error, Result};

use super::{
    Elements, fractional, like, number, require, require_one_type, require_type, rules, shape_of,
    tensor, wrong, x,
};
use crate::ops;

rules! {
    same => ops::absolute, ops::relu, ops::relu6, ops::contiguous, ops::sign, ops::sgn,
        ops::hardtanh,
        ops::dropout, ops::dropout1d, ops::dropout2d, ops::dropout3d, ops::alpha_dropout,
        ops::feature_alpha_dropout, ops::rrelu, ops::nan_to_num,
        ops::stochastic_depth, ops::threshold, ops::tril, ops::triu, ops::flip, ops::fliplr, ops::flipud,
        ops::roll, ops::bernoulli, ops::group_norm, ops::layer_norm, ops::rms_norm,
        ops::instance_norm, ops::local_response_norm, ops::normalize, ops::masked_fill, ops::to_device,
        ops::index_add, ops::index_copy, ops::index_fill, ops::index_put, ops::scatter,
        ops::scatter_add, ops::scatter_reduce, ops::scatter_value, ops::masked_scatter,
        ops::select_scatter, ops::slice_scatter, ops::diagonal_scatter, ops::channel_shuffle, ops::msort;
    |call| same_of(call, Elements::Fractions) => ops::celu, ops::softplus, ops::leaky_relu, ops::elu, ops::gelu, ops::silu, ops::mish, ops::selu, ops::hardsigmoid, ops::hardswish, ops::hardshrink, ops::softshrink, ops::logsigmoid, ops::frac;
    |call| same_of(call, Elements::Numbers) => ops::ceil, ops::floor, ops::round, ops::trunc, ops::fix, ops::neg, ops::positive;
    |call| same_of(call, Elements::Bits) => ops::bitwise_not;
    |call| both_of(call, Elements::Bits) => ops::bitwise_and, ops::bitwise_or, ops::bitwise_xor;
    |call| both_of(call, Elements::WholeNumbers) => ops::gcd, ops::lcm, ops::bitwise_left_shift, ops::bitwise_right_shift;
    square => ops::square;
    batch_norm => ops::batch_norm;
    float => ops::exp, ops::log, ops::sqrt, ops::rsqrt, ops::reciprocal, ops::sin, ops::cos, ops::tan,
        ops::asin, ops::acos, ops::atan, ops::sinh, ops::cosh, ops::tanh, ops::asinh, ops::acosh, ops::atanh,
        ops::erf, ops::erfc, ops::erfinv, ops::exp2, ops::expm1, ops::log1p, ops::log2, ops::log10,
        ops::logit, ops::sinc, ops::sigmoid, ops::softsign, ops::tanhshrink, ops::deg2rad, ops::rad2deg;
    truths => ops::isfinite, ops::isinf, ops::isnan, ops::isneginf, ops::isposinf, ops::signbit,
        ops::logical_not;
    along => ops::softmax, ops::softmin, ops::log_softmax;
    both => ops::maximum, ops::minimum, ops::fmax, ops::fmin, ops::fmod, ops::remainder, ops::heaviside, ops::floor_divide;
    both_float => ops::atan2, ops::copysign, ops::hypot, ops::logaddexp, ops::logaddexp2, ops::xlogy;
    compared => ops::logical_and, ops::logical_or, ops::logical_xor, ops::isclose;
    bounded => ops::clamp, ops::clip;
    to_dtype => ops::to_dtype;
    type_as => ops::type_as;
    choice => ops::r#where;
    three => ops::addcmul, ops::addcdiv, ops::lerp;
    scores => ops::mask_scores;
    prelu => ops::prelu;
    glu => ops::glu;
    all_close => ops::allclose;
    |_| Ok(Fake::Bool(None)) => ops::equal;
}

fn same(call: &mut RuleCall<'_>) -> Result<Fake> {
    let x = x(call)?;
    Ok(like(x, x.dtype))
}

fn same_of(call: &mut RuleCall<'_>, elements: Elements) -> Result<Fake> {
    require(call, x(call)?, elements)?;
    same(call)
}

fn both_of(call: &mut RuleCall<'_>, elements: Elements) -> Result<Fake> {
    let dtype = result_type(call.args().iter().take(2));
    require_type(call, dtype, elements)?;
    pair(call, dtype)
}

fn square(call: &mut RuleCall<'_>) -> Result<Fake> {
    let x = x(call)?;
    let dtype = x.dtype.map(|dtype| match dtype {
        DType::Bool => DType::I64,
        dtype => dtype,
    });
    Ok(like(x, dtype))
}

/// The statistics, weight and bias have a number per channel.
fn batch_norm(call: &mut RuleCall<'_>) -> Result<Fake> {
    let x = x(call)?;
    if let Some(channels) = x.shape.get(1) {
        for param in ["running_mean", "running_var", "weight", "bias"] {
            if let Some(meta) = call.optional_tensor(param)?
                && let Some(size) = meta.shape.first()
            {
                call.same(channels, size, || {
                    format!("{:?} has channels, `{param}` others", x.shape)
                })?;
            }
        }
    }
    Ok(like(x, x.dtype))
}

fn float(call: &mut RuleCall<'_>) -> Result<Fake> {
    let x = x(call)?;
    Ok(like(x, fractional(x.dtype)))
}

fn truths(call: &mut RuleCall<'_>) -> Result<Fake> {
    Ok(like(x(call)?, Some(DType::Bool)))
}

fn along(call: &mut RuleCall<'_>) -> Result<Fake> {
    let x = x(call)?;
    require(call, x, Elements::Fractions)?;
    call.place(call.int("dim")?, x.shape.len())?;
    Ok(like(x, x.dtype))
}

/// The first two arguments, broadcast.
fn pair(call: &mut RuleCall<'_>, dtype: Option<DType>) -> Result<Fake> {
    let (a, b) = match call.args() {
        [a, b, ..] => (a, b),
        other => return Err(Error::expected("two arguments", other.len())),
    };
    let shape = match (a, b) {
        (Fake::Single(_), Fake::Single(_)) => call.broadcast(&[shape_of(a), shape_of(b)])?,
        (Fake::Single(a), _) => a.shape.clone(),
        _ => shape_of(b).to_vec(),
    };
    Ok(tensor(shape, dtype))
}

fn both(call: &mut RuleCall<'_>) -> Result<Fake> {
    let dtype = result_type(call.args().iter().take(2));
    pair(call, dtype)
}

fn both_float(call: &mut RuleCall<'_>) -> Result<Fake> {
    let dtype = fractional(result_type(call.args().iter().take(2)));
    pair(call, dtype)
}

fn compared(call: &mut RuleCall<'_>) -> Result<Fake> {
    pair(call, Some(DType::Bool))
}

/// A tensor and two limits, each a number, a tensor or none.
fn bounded(call: &mut RuleCall<'_>) -> Result<Fake> {
    let args: Vec<&Fake> = call.args().iter().filter(|arg| !arg.is_none()).collect();
    let dtype = result_type(args.iter().copied());
    let shapes: Vec<_> = args.iter().map(|arg| shape_of(arg)).collect();
    Ok(tensor(call.broadcast(&shapes)?, dtype))
}

fn to_dtype(call: &mut RuleCall<'_>) -> Result<Fake> {
    let dtype = call.dtype("dtype")?;
    Ok(like(x(call)?, dtype))
}

fn type_as(call: &mut RuleCall<'_>) -> Result<Fake> {
    let dtype = call.tensor("other")?.dtype;
    Ok(like(x(call)?, dtype))
}

fn choice(call: &mut RuleCall<'_>) -> Result<Fake> {
    let (condition, a, b) = (
        call.arg("condition")?,
        call.arg("input")?,
        call.arg("other")?,
    );
    let dtype = result_type([a, b]).or(match (a, b) {
        (Fake::Float(_), _) | (_, Fake::Float(_)) => Some(DType::F32),
        (Fake::Int(_), _) | (_, Fake::Int(_)) => Some(DType::I64),
        _ => Some(DType::Bool),
    });
    let shape = call.broadcast(&[shape_of(condition), shape_of(a), shape_of(b)])?;
    Ok(tensor(shape, dtype))
}

/// Three arguments, broadcast.
fn three(call: &mut RuleCall<'_>) -> Result<Fake> {
    let args: Vec<&Fake> = call.args().iter().take(3).collect();
    let shapes: Vec<_> = args.iter().map(|arg| shape_of(arg)).collect();
    let dtype = result_type(args.iter().copied());
    Ok(tensor(call.broadcast(&shapes)?, dtype))
}

fn scores(call: &mut RuleCall<'_>) -> Result<Fake> {
    let (scores, mask) = (call.tensor("scores")?, call.tensor("mask")?);
    let shape = call.broadcast(&[&scores.shape, &mask.shape])?;
    Ok(tensor(shape, scores.dtype))
}

fn prelu(call: &mut RuleCall<'_>) -> Result<Fake> {
    let (x, weight) = (x(call)?, call.tensor("weight")?);
    if let ([size], Some(channels)) = (&weight.shape[..], x.shape.get(1))
        && *size != 1
    {
        call.same(channels, size, || {
            "the input's channels and the weights".to_string()
        })?;
    }
    Ok(like(x, x.dtype))
}

/// One half of a dim gates the other.
fn glu(call: &mut RuleCall<'_>) -> Result<Fake> {
    let x = x(call)?;
    let dim = call.place(call.int("dim")?, x.shape.len())?;
    let mut shape = x.shape.clone();
    if let Some(size) = shape.get_mut(dim) {
        *size = call.env().divided(size, &2.into())?;
    }
    Ok(tensor(shape, x.dtype))
}

/// A truth that a run decides.
fn all_close(call: &mut RuleCall<'_>) -> Result<Fake> {
    let (x, other) = (x(call)?, call.tensor("other")?);
    require_one_type(call, x, other)?;
    for param in ["rtol", "atol"] {
        if number(call, param)?.is_some_and(|number| number.is_nan() || number < 0.0) {
            return Err(wrong(call, format_args!("`{param}` is not below 0")));
        }
    }
    call.broadcast(&[&x.shape, &other.shape])?;
    Ok(Fake::Bool(None))
}
