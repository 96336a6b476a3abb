//! New tensors: of sizes that are given, or like another one.

use fx_core::Result;
use fx_core::ir::ValueMeta;
use fx_core::shapes::RuleCall;
use fx_core::value::{DType, Dim};

use super::{
    Elements, at_least, kind, like, not_negative, require_held, require_number, require_type,
    rules, tensor, wrong, x,
};
use crate::ops::{self, signal::windows};
use crate::tensor::Number;

rules! {
    of_sizes => ops::zeros, ops::ones, ops::empty;
    drawn => ops::rand, ops::randn;
    normal => ops::normal;
    full => ops::full;
    |call| of_type(call, "shape") => ops::new_zeros, ops::new_ones, ops::new_empty;
    new_full => ops::new_full;
    as_another => ops::zeros_like, ops::ones_like, ops::empty_like;
    drawn_as_another => ops::rand_like, ops::randn_like;
    full_like => ops::full_like;
    arange => ops::arange;
    eye => ops::eye;
    steps => ops::linspace, ops::logspace;
    randint => ops::randint;
    randint_like => ops::randint_like;
    permutation => ops::randperm;
    window => windows::bartlett, windows::blackman, windows::cosine, windows::general_hamming, windows::hamming,
        windows::hann, windows::nuttall;
    exponential => windows::exponential;
    |call| window_of(call, "std", "above 0", |std| std > 0.0 || std.is_nan()) => windows::gaussian;
    |call| window_of(call, "beta", "0 or above", |beta| beta >= 0.0 || beta.is_nan()) => windows::kaiser;
    general_cosine => windows::general_cosine;
}

/// A window of so many points.
fn window(call: &mut RuleCall<'_>) -> Result<ValueMeta> {
    let dtype = dtype_or(call, DType::F32)?;
    require_type(call, dtype, Elements::Single)?;
    Ok(tensor(vec![call.size("m")?], dtype))
}

/// The same, whose shape is a number.
fn window_of(
    call: &mut RuleCall<'_>,
    param: &str,
    what: &str,
    fits: fn(f64) -> bool,
) -> Result<ValueMeta> {
    require_number(call, param, what, fits)?;
    window(call)
}

fn exponential(call: &mut RuleCall<'_>) -> Result<ValueMeta> {
    if call.flag("sym")? && !call.arg("center")?.is_none() {
        return Err(wrong(
            call,
            "a symmetric window has its center in the middle: `center` is for `sym` of false",
        ));
    }
    window_of(call, "tau", "above 0", |tau| tau > 0.0 || tau.is_nan())
}

fn general_cosine(call: &mut RuleCall<'_>) -> Result<ValueMeta> {
    let is_longer = call.size("m")?.as_number().is_none_or(|m| m > 1);
    if is_longer && call.arg("a")?.items().is_some_and(|a| a.is_empty()) {
        return Err(wrong(call, "`a` has one coefficient at least"));
    }
    window(call)
}

/// The sizes of a parameter, none below 0.
fn sizes(call: &mut RuleCall<'_>, param: &str) -> Result<Vec<Dim>> {
    let sizes = call.sizes(param)?;
    for size in &sizes {
        at_least(
            call,
            size,
            0,
            format_args!("a size is 0 or above, and not {size}"),
        )?;
    }
    Ok(sizes)
}

fn dtype_or(call: &RuleCall<'_>, default: DType) -> Result<Option<DType>> {
    Ok(Some(call.dtype("dtype")?.unwrap_or(default)))
}

/// Random numbers are floats.
fn floats(call: &RuleCall<'_>, dtype: Option<DType>) -> Result<Option<DType>> {
    match dtype.filter(|dtype| !dtype.is_floating_point()) {
        None => Ok(dtype),
        Some(dtype) => Err(wrong(
            call,
            format_args!(
                "random numbers are floats, and not {dtype}: name a float `dtype`, or draw with `randint`"
            ),
        )),
    }
}

fn of_sizes(call: &mut RuleCall<'_>) -> Result<ValueMeta> {
    let dtype = dtype_or(call, DType::F32)?;
    Ok(tensor(sizes(call, "shape")?, dtype))
}

fn drawn(call: &mut RuleCall<'_>) -> Result<ValueMeta> {
    let dtype = floats(call, dtype_or(call, DType::F32)?)?;
    Ok(tensor(sizes(call, "shape")?, dtype))
}

fn normal(call: &mut RuleCall<'_>) -> Result<ValueMeta> {
    let dtype = floats(call, dtype_or(call, DType::F32)?)?;
    require_number(call, "std", "0 or above", |std| std >= 0.0)?;
    Ok(tensor(sizes(call, "size")?, dtype))
}

fn full(call: &mut RuleCall<'_>) -> Result<ValueMeta> {
    let dtype = match (call.dtype("dtype")?, call.arg("fill_value")?) {
        (Some(dtype), _) => dtype,
        (None, ValueMeta::Int(_)) => DType::I64,
        (None, ValueMeta::Bool(_)) => DType::Bool,
        (None, _) => DType::F32,
    };
    require_held(call, "fill_value", Some(dtype))?;
    Ok(tensor(sizes(call, "size")?, Some(dtype)))
}

fn of_type(call: &mut RuleCall<'_>, param: &str) -> Result<ValueMeta> {
    let dtype = call.dtype("dtype")?.or(x(call)?.dtype);
    Ok(tensor(sizes(call, param)?, dtype))
}

fn new_full(call: &mut RuleCall<'_>) -> Result<ValueMeta> {
    require_held(call, "fill_value", call.dtype("dtype")?.or(x(call)?.dtype))?;
    of_type(call, "size")
}

fn as_another(call: &mut RuleCall<'_>) -> Result<ValueMeta> {
    let x = x(call)?;
    Ok(like(x, call.dtype("dtype")?.or(x.dtype)))
}

fn drawn_as_another(call: &mut RuleCall<'_>) -> Result<ValueMeta> {
    floats(call, call.dtype("dtype")?.or(x(call)?.dtype))?;
    as_another(call)
}

fn full_like(call: &mut RuleCall<'_>) -> Result<ValueMeta> {
    require_held(call, "fill_value", call.dtype("dtype")?.or(x(call)?.dtype))?;
    as_another(call)
}

/// Numbers stand in a row, booleans do not.
fn in_a_row(call: &RuleCall<'_>, default: DType) -> Result<Option<DType>> {
    match dtype_or(call, default)? {
        Some(DType::Bool) => Err(wrong(
            call,
            "booleans do not stand in a row: name the `dtype` of numbers",
        )),
        dtype => Ok(dtype),
    }
}

fn arange(call: &mut RuleCall<'_>) -> Result<ValueMeta> {
    let dtype = in_a_row(call, DType::I64)?;
    let (start, end) = (call.size("start")?, call.size("end")?);
    let step = call.int("step")?;
    let way = (&end - &start)?;
    // Rounded up.
    let is_away = |way: i64| way != 0 && (way > 0) != (step > 0);
    if step == 0 || way.as_number().is_some_and(is_away) {
        return Err(wrong(
            call,
            format_args!("steps of {step} do not lead from {start} to {end}"),
        ));
    }
    let count = ((way + step)? - step.signum())?.div(step)?;
    Ok(tensor(vec![not_negative(call, count)?], dtype))
}

fn eye(call: &mut RuleCall<'_>) -> Result<ValueMeta> {
    let mut shape = sizes(call, "n")?;
    match call.arg("m")?.is_none() {
        true => shape.extend_from_within(..),
        false => shape.extend(sizes(call, "m")?),
    }
    Ok(tensor(shape, dtype_or(call, DType::F32)?))
}

/// The type holds both ends.
fn steps(call: &mut RuleCall<'_>) -> Result<ValueMeta> {
    let dtype = in_a_row(call, DType::F32)?;
    for param in ["start", "end"] {
        require_held(call, param, dtype)?;
    }
    Ok(tensor(sizes(call, "steps")?, dtype))
}

/// Returns an error unless there are whole numbers between two, which a type holds.
fn require_between(call: &RuleCall<'_>, dtype: Option<DType>) -> Result<()> {
    let numbers = [call.arg("low")?, call.arg("high")?].map(kind);
    let ([Some(Number::Int(low)), Some(Number::Int(high))], Some(dtype)) = (numbers, dtype) else {
        return Ok(());
    };
    let is_unsigned = matches!(dtype, DType::U8 | DType::U32);
    if low >= high || (dtype == DType::Bool && (low < 0 || high > 2)) || (is_unsigned && low < 0) {
        return Err(wrong(
            call,
            format_args!("no numbers of {dtype} are from {low} to before {high}"),
        ));
    }
    let name = call.function().name();
    Number::Int(low).check(name, dtype)?;
    Number::Int(high.saturating_sub(1)).check(name, dtype)
}

fn randint(call: &mut RuleCall<'_>) -> Result<ValueMeta> {
    let dtype = dtype_or(call, DType::I64)?;
    require_between(call, dtype)?;
    Ok(tensor(sizes(call, "size")?, dtype))
}

fn randint_like(call: &mut RuleCall<'_>) -> Result<ValueMeta> {
    require_between(call, call.dtype("dtype")?.or(x(call)?.dtype))?;
    as_another(call)
}

fn permutation(call: &mut RuleCall<'_>) -> Result<ValueMeta> {
    let dtype = in_a_row(call, DType::I64)?;
    let shape = sizes(call, "n")?;
    if let (Some(n), Some(dtype)) = (shape.first().and_then(Dim::as_number), dtype) {
        Number::Int(n.saturating_sub(1).max(0)).check("randperm", dtype)?;
    }
    Ok(tensor(shape, dtype))
}
