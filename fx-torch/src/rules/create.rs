//! Operators that make tensors.

use fx_nn::prelude::*;
use fx_nn::{Error, Result};

use super::entry::{Entry, by, same};
use crate::call::Call;

/// `start..end`, every `step`th; whole numbers, which may be sizes that a run decides.
fn arange(call: &Call<'_>) -> Result<Value> {
    // A whole number may be written as a float.
    let whole = |name: &str, otherwise: i64| match call.get(name) {
        Some(Value::Float(x)) if x.fract() == 0.0 && x.abs() < 1e15 => Ok(Int::from(*x as i64)),
        _ => call.or::<Int>(name, Int::from(otherwise)),
    };
    let is_float = |name: &str| matches!(call.get(name), Some(Value::Float(_)));
    let has_floats = ["start", "end", "step"].into_iter().any(is_float);
    let dtype = match call.maybe::<DType>("dtype")? {
        None if has_floats => Some(DType::F32),
        dtype => dtype,
    };
    if let (Ok(start), Ok(end), Ok(step)) = (whole("start", 0), whole("end", 0), whole("step", 1)) {
        if !has_floats {
            return Ok(Value::object(ops::arange(start, end, step, dtype)?));
        }
        let all = ops::arange(start, end, step, None)?;
        return Ok(Value::object(match dtype {
            Some(dtype) => ops::to_dtype(&all, dtype)?,
            None => all,
        }));
    }
    let number = |name: &str, otherwise: f64| call.or::<f64>(name, otherwise);
    let (start, end, step) = (
        number("start", 0.0)?,
        number("end", 0.0)?,
        number("step", 1.0)?,
    );
    let count = ((end - start) / step).ceil().max(0.0) as i64;
    let whole = ops::arange(
        Int::from(0),
        Int::from(count),
        Int::from(1),
        Some(DType::F64),
    )?;
    let all = ((whole * step)? + start)?;
    Ok(Value::object(ops::to_dtype(
        &all,
        dtype.unwrap_or(DType::F32),
    )?))
}

/// Numbers in even steps between two that are elements of tensors.
fn between(call: &Call<'_>) -> Result<Value> {
    let number =
        |name: &str| ops::to_dtype(&Tensor::from_value(call.value(name)?.clone())?, DType::F64);
    let (start, end) = (number("start")?, number("end")?);
    let steps = Int::from_value(call.value("steps")?.clone())?;
    let share = ops::linspace(0.0, 1.0, steps, Some(DType::F64))?;
    let all = (&start + ((&end - &start)? * share)?)?;
    let dtype = call.maybe::<DType>("dtype")?.unwrap_or(DType::F32);
    Ok(Value::object(ops::to_dtype(&all, dtype)?))
}

/// A tensor of one number.
fn filled(sizes: Value, number: Value, dtype: DType) -> Result<Value> {
    match number {
        // A number that a run decides is no literal: it is added.
        Value::Proxy(_) => {
            let zeros: Tensor = function!(ops::zeros).call_as((sizes, dtype))?;
            fx_nn::operator::add.call_as((zeros, number))
        }
        number => function!(ops::full).call_as(args![sizes, number, dtype = Value::DType(dtype)]),
    }
}

/// A number without dims.
fn scalar_tensor(call: &Call<'_>) -> Result<Value> {
    let dtype = call.or::<DType>("dtype", DType::F32)?;
    filled(Value::List(Box::default()), call.at(0)?.clone(), dtype)
}

fn full(call: &Call<'_>) -> Result<Value> {
    let number = call.value("fill_value")?.clone();
    let dtype = match (call.maybe::<DType>("dtype")?, &number) {
        (Some(dtype), _) => dtype,
        (None, Value::Bool(_)) => DType::Bool,
        (None, Value::Int(_)) => DType::I64,
        (None, Value::Proxy(_)) => {
            return Err(Error::msg(
                "a run decides of which element type it is: give `dtype` in the model",
            ));
        }
        (None, _) => DType::F32,
    };
    let number = match number {
        Value::Bool(boolean) => Value::Int(i64::from(boolean)),
        number => number,
    };
    filled(call.value("size")?.clone(), number, dtype)
}

/// Ones, as often as a number says, and zeros.
fn bernoulli(call: &Call<'_>) -> Result<Value> {
    let (own, p) = (call.own()?, call.or("p", 0.5)?);
    let shares = ops::full_like(&own, p, None)?;
    Ok(Value::object(ops::bernoulli(&shares)?))
}

/// Random numbers between two.
fn uniform(call: &Call<'_>) -> Result<Value> {
    let (from, to) = (call.or("from", 0.0)?, call.or("to", 1.0)?);
    let drawn = ops::rand_like(&call.own()?, None)?;
    Ok(Value::object(((drawn * (to - from))? + from)?))
}

fn eye(call: &Call<'_>) -> Result<Value> {
    let columns = call.get("m").cloned().unwrap_or(Value::None);
    let dtype = call.get("dtype").cloned().unwrap_or(Value::None);
    function!(ops::eye).call_as(args![call.at(0)?.clone(), m = columns, dtype = dtype])
}

/// Memory has no strides here.
fn empty_strided(call: &Call<'_>) -> Result<Value> {
    let dtype = call.maybe::<DType>("dtype")?;
    function!(ops::zeros).call_as((call.value("size")?.clone(), dtype.unwrap_or(DType::F32)))
}

pub(crate) const RULES: &[Entry] = by! {
    "aten.empty_permuted" => empty_strided,
    "aten.empty_strided" => empty_strided,
    "aten.arange" => arange,
    "aten.scalar_tensor" => scalar_tensor,
    "aten.full" => full,
    "aten.bernoulli.float" => bernoulli,
    "aten.bernoulli.p" => bernoulli,
    "aten.eye" => eye,
    "aten.linspace.Tensor_Tensor" => between,
    "aten.uniform" => uniform,
};

pub(crate) const SAME: &[Entry] = same! {
    "aten.empty" => ops::zeros["size" => "shape"],
    "aten.empty_like" => ops::zeros_like,
    "aten.full_like" => ops::full_like,
    "aten.fft_fftfreq" => ops::fft::fftfreq,
    "aten.fft_rfftfreq" => ops::fft::rfftfreq,
    "aten.bernoulli.default" => ops::bernoulli,
    "aten.linspace" => ops::linspace,
    "aten.logspace.default" => ops::logspace,
    "aten.multinomial" => ops::multinomial,
    "aten.normal.float_float" => ops::normal,
    "aten.vander" => ops::vander["N" => "n"],
    "aten.new_empty" => ops::new_zeros["size" => "shape"],
    "aten.new_full" => ops::new_full,
    "aten.new_ones" => ops::new_ones["size" => "shape"],
    "aten.new_zeros" => ops::new_zeros["size" => "shape"],
    "aten.ones" => ops::ones["size" => "shape"],
    "aten.ones_like" => ops::ones_like,
    "aten.rand" => ops::rand["size" => "shape"],
    "aten.rand_like" => ops::rand_like,
    "aten.randn" => ops::randn["size" => "shape"],
    "aten.randn_like" => ops::randn_like,
    "aten.randint.low" => ops::randint,
    "aten.randperm" => ops::randperm,
    "aten.fill.Scalar" => ops::full_like["value" => "fill_value"],
    "aten.tril_indices" => ops::tril_indices,
    "aten.triu_indices" => ops::triu_indices,
    "aten.zeros" => ops::zeros["size" => "shape"],
    "aten.zeros_like" => ops::zeros_like,
};
