//! Element by element: the shape of the argument, or of all arguments broadcast.

use fx_core::Result;
use fx_core::ir::ValueMeta;
use fx_core::shapes::{RuleCall, result_type};
use fx_core::value::DType;

use super::{
    Elements, divided, fractional, kind, like, number, of_all, place, require, require_fits,
    require_held, require_number, require_one_type, require_probability, require_rank,
    require_type, require_type_of, rules, tensor, truth, word, wrong, x,
};
use crate::ops::{self, special};
use crate::tensor::Number;

rules! {
    same => ops::contiguous, ops::detach, ops::sign, ops::sgn, ops::nan_to_num, ops::msort,
        ops::to_device;
    |call| same_of(call, Elements::Numbers) => ops::absolute, ops::relu, ops::relu6, ops::ceil,
        ops::floor, ops::trunc, ops::fix, ops::neg, ops::positive;
    |call| same_of(call, Elements::Fractions) => ops::softplus, ops::leaky_relu, ops::elu,
        ops::silu, ops::mish, ops::selu, ops::hardsigmoid, ops::hardswish, ops::hardshrink,
        ops::logsigmoid, ops::frac, ops::bernoulli;
    |call| same_of(call, Elements::Bits) => ops::bitwise_not;
    round => ops::round;
    celu => ops::celu;
    gelu => ops::gelu;
    softshrink => ops::softshrink;
    hardtanh => ops::hardtanh;
    threshold => ops::threshold;
    rrelu => ops::rrelu;
    dropout => ops::dropout;
    |call| of_channels(call, 2..=3) => ops::dropout1d;
    |call| of_channels(call, 0..=usize::MAX) => ops::dropout2d, ops::dropout3d;
    |call| alpha_dropout(call, 0) => ops::alpha_dropout;
    |call| alpha_dropout(call, 2) => ops::feature_alpha_dropout;
    stochastic_depth => ops::stochastic_depth;
    triangle => ops::tril, ops::triu;
    |call| both_of(call, Elements::Bits) => ops::bitwise_and, ops::bitwise_or, ops::bitwise_xor;
    |call| both_of(call, Elements::WholeNumbers) => ops::gcd, ops::lcm, ops::bitwise_left_shift,
        ops::bitwise_right_shift;
    |call| both_of(call, Elements::Fractions) => ops::hypot, ops::logaddexp, ops::logaddexp2;
    quotient => ops::fmod, ops::remainder, ops::floor_divide;
    both => ops::maximum, ops::minimum, ops::fmax, ops::fmin;
    heaviside => ops::heaviside;
    both_float => ops::atan2, ops::copysign, ops::xlogy;
    square => ops::square;
    float => ops::exp, ops::log, ops::sqrt, ops::rsqrt, ops::reciprocal, ops::sin, ops::cos, ops::tan,
        ops::asin, ops::acos, ops::atan, ops::sinh, ops::cosh, ops::tanh, ops::asinh, ops::acosh, ops::atanh,
        ops::erf, ops::erfc, ops::erfinv, ops::exp2, ops::expm1, ops::log1p, ops::log2, ops::log10,
        ops::logit, ops::sinc, ops::sigmoid, ops::deg2rad, ops::rad2deg;
    float => special::lgamma, special::gammaln, special::digamma, special::ndtr, special::i0, special::i0e,
        special::i1, special::i1e, special::entr;
    float_of_single => special::ndtri, special::log_ndtr, special::erfcx;
    polygamma => special::polygamma;
    both_float => special::xlog1py;
    zeta => special::zeta;
    |call| both_of(call, Elements::Fractions) => special::gammainc, special::gammaincc;
    float_of_numbers => ops::softsign, ops::tanhshrink;
    truths => ops::isfinite, ops::isinf, ops::isnan, ops::isneginf, ops::isposinf, ops::signbit,
        ops::logical_not;
    along => ops::softmax, ops::softmin, ops::log_softmax;
    compared => ops::logical_and, ops::logical_or, ops::logical_xor;
    close => ops::isclose;
    all_close => ops::allclose;
    |_| Ok(ValueMeta::Bool(None)) => ops::equal;
    clamp => ops::clamp, ops::clip;
    to_dtype => ops::to_dtype;
    type_as => ops::type_as;
    choice => ops::r#where;
    masked_fill => ops::masked_fill;
    addcmul => ops::addcmul;
    addcdiv => ops::addcdiv;
    lerp => ops::lerp;
    scores => ops::mask_scores;
    prelu => ops::prelu;
    glu => ops::glu;
}

fn same(call: &mut RuleCall<'_>) -> Result<ValueMeta> {
    let x = x(call)?;
    Ok(like(x, x.dtype))
}

fn same_of(call: &mut RuleCall<'_>, elements: Elements) -> Result<ValueMeta> {
    require(call, x(call)?, elements)?;
    same(call)
}

/// Only floats have decimals.
fn round(call: &mut RuleCall<'_>) -> Result<ValueMeta> {
    same_of(
        call,
        match call.int("decimals")? {
            0 => Elements::Numbers,
            _ => Elements::Fractions,
        },
    )
}

fn celu(call: &mut RuleCall<'_>) -> Result<ValueMeta> {
    require_number(call, "alpha", "another number than 0", |alpha| alpha != 0.0)?;
    same_of(call, Elements::Fractions)
}

fn gelu(call: &mut RuleCall<'_>) -> Result<ValueMeta> {
    word(call, "approximate", &["none", "tanh"])?;
    same_of(call, Elements::Fractions)
}

fn softshrink(call: &mut RuleCall<'_>) -> Result<ValueMeta> {
    require_number(
        call,
        "lambd",
        "a finite number that is 0 or above",
        |lambda| lambda >= 0.0 && lambda.is_finite(),
    )?;
    same_of(call, Elements::Fractions)
}

fn hardtanh(call: &mut RuleCall<'_>) -> Result<ValueMeta> {
    let x = x(call)?;
    if let (Some(low), Some(high)) = (number(call, "min_val")?, number(call, "max_val")?)
        && low > high
    {
        return Err(wrong(
            call,
            format_args!("`min_val` {low} is above `max_val` {high}"),
        ));
    }
    // Whole numbers drop a fraction of their bounds.
    for (param, lower) in [("min_val", true), ("max_val", false)] {
        match (kind(call.arg(param)?), x.dtype) {
            (_, Some(dtype)) if dtype.is_floating_point() => {}
            (Some(Number::Float(bound)), Some(dtype)) if bound.is_finite() => {
                require_bound(call, Number::Int(bound as i64), dtype, lower)?;
            }
            (Some(bound), Some(dtype)) => require_bound(call, bound, dtype, lower)?,
            _ => {}
        }
    }
    same_of(call, Elements::Numbers)
}

fn threshold(call: &mut RuleCall<'_>) -> Result<ValueMeta> {
    let dtype = x(call)?.dtype;
    require_held(call, "threshold", dtype)?;
    require_held(call, "value", dtype)?;
    same_of(call, Elements::Numbers)
}

fn rrelu(call: &mut RuleCall<'_>) -> Result<ValueMeta> {
    let (lower, upper) = (number(call, "lower")?, number(call, "upper")?);
    if let (Some(lower), Some(upper)) = (lower, upper)
        && !(lower <= upper && lower.is_finite() && upper.is_finite())
    {
        return Err(wrong(
            call,
            format_args!("`lower` {lower} is above `upper` {upper}, or one of them is not finite"),
        ));
    }
    same_of(call, Elements::Fractions)
}

/// Whether elements are dropped in a run; `None` if the run decides it.
fn drops(call: &RuleCall<'_>) -> Result<Option<(f64, bool)>> {
    Ok(number(call, "p")?.zip(truth(call, "training")?))
}

fn dropout(call: &mut RuleCall<'_>) -> Result<ValueMeta> {
    require_probability(call, "p")?;
    match drops(call)? {
        // Nothing of numbers is dropped, or all.
        Some((p, true)) if p != 0.0 && p != 1.0 => same_of(call, Elements::Fractions),
        _ => same(call),
    }
}

fn of_channels(
    call: &mut RuleCall<'_>,
    ranks: std::ops::RangeInclusive<usize>,
) -> Result<ValueMeta> {
    require_probability(call, "p")?;
    let x = x(call)?;
    require_rank(call, x, ranks)?;
    if let Some((p, true)) = drops(call)? {
        let is_float = x.dtype.is_none_or(|dtype| dtype.is_floating_point());
        if p != 0.0 || is_float {
            require_rank(call, x, 2..)?;
            require(call, x, Elements::Fractions)?;
        }
    }
    same(call)
}

fn alpha_dropout(call: &mut RuleCall<'_>, dims: usize) -> Result<ValueMeta> {
    require_probability(call, "p")?;
    if let Some((p, true)) = drops(call)?
        && p != 0.0
    {
        require_rank(call, x(call)?, dims..)?;
        require(call, x(call)?, Elements::Fractions)?;
    }
    same(call)
}

fn stochastic_depth(call: &mut RuleCall<'_>) -> Result<ValueMeta> {
    require_probability(call, "p")?;
    word(call, "mode", &["batch", "row"])?;
    match drops(call)? {
        Some((p, true)) if p != 0.0 => same_of(call, Elements::Fractions),
        _ => same(call),
    }
}

fn triangle(call: &mut RuleCall<'_>) -> Result<ValueMeta> {
    require_rank(call, x(call)?, 2..)?;
    same(call)
}

/// The first two arguments, in the type that they have in common.
fn of_two(call: &RuleCall<'_>) -> Option<DType> {
    result_type(call.args().iter().take(2))
}

fn both_of(call: &mut RuleCall<'_>, elements: Elements) -> Result<ValueMeta> {
    require_type(call, of_two(call), elements)?;
    both(call)
}

/// Whole numbers are not divided by 0.
fn quotient(call: &mut RuleCall<'_>) -> Result<ValueMeta> {
    let by = call.args().get(1).and_then(kind);
    let is_zero = matches!(by, Some(Number::Int(0) | Number::Bool(false)));
    if is_zero
        && of_two(call).is_some_and(|dtype| !dtype.is_floating_point())
        && x(call)?.shape.iter().all(|size| *size != 0)
    {
        return Err(wrong(
            call,
            "integers are not divided by 0: convert the tensor with `to_dtype`",
        ));
    }
    both_of(call, Elements::Numbers)
}

fn heaviside(call: &mut RuleCall<'_>) -> Result<ValueMeta> {
    require_type_of(call, x(call)?, &["values"])?;
    both(call)
}

fn square(call: &mut RuleCall<'_>) -> Result<ValueMeta> {
    let x = x(call)?;
    let dtype = x.dtype.map(|dtype| match dtype {
        DType::Bool => DType::I64,
        dtype => dtype,
    });
    Ok(like(x, dtype))
}

fn float(call: &mut RuleCall<'_>) -> Result<ValueMeta> {
    let x = x(call)?;
    Ok(like(x, fractional(x.dtype)))
}

/// What is not computed in half precision.
fn float_of_single(call: &mut RuleCall<'_>) -> Result<ValueMeta> {
    require_type(call, fractional(x(call)?.dtype), Elements::Single)?;
    float(call)
}

fn polygamma(call: &mut RuleCall<'_>) -> Result<ValueMeta> {
    require_number(call, "n", "0 or above", |n| n >= 0.0)?;
    float(call)
}

fn zeta(call: &mut RuleCall<'_>) -> Result<ValueMeta> {
    require_type(call, fractional(of_two(call)), Elements::Single)?;
    both_float(call)
}

fn float_of_numbers(call: &mut RuleCall<'_>) -> Result<ValueMeta> {
    require(call, x(call)?, Elements::Numbers)?;
    float(call)
}

fn truths(call: &mut RuleCall<'_>) -> Result<ValueMeta> {
    Ok(like(x(call)?, Some(DType::Bool)))
}

fn along(call: &mut RuleCall<'_>) -> Result<ValueMeta> {
    place(call, "dim", x(call)?.shape.len())?;
    same_of(call, Elements::Fractions)
}

/// The first two arguments, broadcast.
fn pair(call: &mut RuleCall<'_>, dtype: Option<DType>) -> Result<ValueMeta> {
    of_all(call, call.args().iter().take(2), dtype)
}

fn both(call: &mut RuleCall<'_>) -> Result<ValueMeta> {
    pair(call, of_two(call))
}

fn both_float(call: &mut RuleCall<'_>) -> Result<ValueMeta> {
    pair(call, fractional(of_two(call)))
}

fn compared(call: &mut RuleCall<'_>) -> Result<ValueMeta> {
    pair(call, Some(DType::Bool))
}

fn close(call: &mut RuleCall<'_>) -> Result<ValueMeta> {
    require_type_of(call, x(call)?, &["other"])?;
    for param in ["rtol", "atol"] {
        require_number(call, param, "0 or above", |number| number >= 0.0)?;
    }
    compared(call)
}

/// A truth that a run decides.
fn all_close(call: &mut RuleCall<'_>) -> Result<ValueMeta> {
    close(call)?;
    Ok(ValueMeta::Bool(None))
}

fn require_bound(call: &RuleCall<'_>, bound: Number, dtype: DType, lower: bool) -> Result<()> {
    match bound.is_nan() {
        true => Ok(()),
        false => bound
            .bound(call.function().name(), dtype, lower)
            .map(|_| ()),
    }
}

/// A tensor and two limits, each a number or none.
fn clamp(call: &mut RuleCall<'_>) -> Result<ValueMeta> {
    let x = x(call)?;
    let limits = [call.arg("min")?, call.arg("max")?];
    if limits.iter().all(|limit| limit.is_none()) {
        return Err(wrong(call, "give `min`, `max` or both"));
    }
    let given = limits.into_iter().filter(|limit| !limit.is_none());
    let dtype = result_type(call.args().iter().take(1).chain(given));
    require_type(call, dtype, Elements::Numbers)?;
    let numbers = limits.map(kind);
    if let Some(dtype) = dtype
        && !numbers.iter().flatten().any(|number| number.is_nan())
    {
        for (number, lower) in numbers.into_iter().zip([true, false]) {
            if let Some(number) = number {
                require_bound(call, number, dtype, lower)?;
            }
        }
    }
    Ok(like(x, dtype))
}

fn to_dtype(call: &mut RuleCall<'_>) -> Result<ValueMeta> {
    let dtype = call.dtype("dtype")?;
    Ok(like(x(call)?, dtype))
}

fn type_as(call: &mut RuleCall<'_>) -> Result<ValueMeta> {
    let dtype = call.tensor("other")?.dtype;
    Ok(like(x(call)?, dtype))
}

fn choice(call: &mut RuleCall<'_>) -> Result<ValueMeta> {
    require(call, call.tensor("condition")?, Elements::Truths)?;
    let (condition, a, b) = (
        call.arg("condition")?,
        call.arg("input")?,
        call.arg("other")?,
    );
    let dtype = result_type([a, b]).or(match (a, b) {
        (ValueMeta::Float(_), _) | (_, ValueMeta::Float(_)) => Some(DType::F32),
        (ValueMeta::Int(_), _) | (_, ValueMeta::Int(_)) => Some(DType::I64),
        _ => Some(DType::Bool),
    });
    // Beyond the half types a number is infinite.
    if a.as_tensor().is_some() != b.as_tensor().is_some()
        && !matches!(dtype, Some(DType::F16 | DType::BF16))
    {
        require_held(call, "input", dtype)?;
        require_held(call, "other", dtype)?;
    }
    of_all(call, [condition, a, b], dtype)
}

fn masked_fill(call: &mut RuleCall<'_>) -> Result<ValueMeta> {
    let x = x(call)?;
    require(call, call.tensor("mask")?, Elements::Truths)?;
    require_held(call, "value", x.dtype)?;
    pair(call, x.dtype)
}

/// Three arguments, broadcast.
fn three(call: &mut RuleCall<'_>, dtype: Option<DType>) -> Result<ValueMeta> {
    of_all(call, call.args().iter().take(3), dtype)
}

fn addcmul(call: &mut RuleCall<'_>) -> Result<ValueMeta> {
    let dtype = result_type(call.args().iter().take(3));
    require_type(call, dtype, Elements::Numbers)?;
    if dtype.is_some_and(|dtype| !dtype.is_floating_point()) {
        require_held(call, "value", dtype)?;
    }
    three(call, dtype)
}

fn addcdiv(call: &mut RuleCall<'_>) -> Result<ValueMeta> {
    let (a, b) = (call.tensor("tensor1")?, call.tensor("tensor2")?);
    if let (Some(a), Some(b)) = (a.dtype, b.dtype)
        && !a.is_floating_point()
        && !b.is_floating_point()
    {
        return Err(wrong(
            call,
            "integers are not divided by each other: convert one with `to_dtype`",
        ));
    }
    three(call, result_type(call.args().iter().take(3)))
}

fn lerp(call: &mut RuleCall<'_>) -> Result<ValueMeta> {
    let x = x(call)?;
    require(call, x, Elements::Fractions)?;
    require_type_of(call, x, &["end"])?;
    if let Some(weight) = call.arg("weight")?.as_tensor() {
        require_one_type(call, x, weight)?;
    }
    three(call, x.dtype)
}

/// A mask of truths hides scores, another one is added to them.
fn scores(call: &mut RuleCall<'_>) -> Result<ValueMeta> {
    let (scores, mask) = (call.tensor("scores")?, call.tensor("mask")?);
    let dtype = match mask.dtype {
        Some(DType::Bool) => {
            require(call, scores, Elements::Fractions)?;
            scores.dtype
        }
        _ => of_two(call),
    };
    pair(call, dtype)
}

/// One weight, or one for each channel.
fn prelu(call: &mut RuleCall<'_>) -> Result<ValueMeta> {
    let (x, weight) = (x(call)?, call.tensor("weight")?);
    require(call, x, Elements::Fractions)?;
    require_one_type(call, x, weight)?;
    require_rank(call, weight, ..=1)?;
    match (&weight.shape[..], x.shape.get(1)) {
        ([size], Some(channels)) if *size != 1 => call.same(channels, size, || {
            "the input's channels and the weights".to_string()
        })?,
        (weights, None) => require_fits(call, weights, &[1.into()])?,
        _ => {}
    }
    Ok(like(x, x.dtype))
}

/// One half of a dim gates the other.
fn glu(call: &mut RuleCall<'_>) -> Result<ValueMeta> {
    let x = x(call)?;
    require(call, x, Elements::Fractions)?;
    let place = place(call, "dim", x.shape.len())?;
    let Some(size) = x.shape.get(place) else {
        return Err(wrong(call, "a tensor without dims has no halves"));
    };
    let half = divided(call, size, 2, "elements in halves")?;
    Ok(tensor(super::resized(&x.shape, place, half), x.dtype))
}
