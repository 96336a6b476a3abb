//! New tensors, and random numbers.

use fx_nn::prelude::*;
use fx_nn::value::Dim;

use super::rules;
use crate::dtype::code;
use crate::out::context::Cx;
use fx_nn::lowering::OpCall;
use fx_nn::lowering::{Name, Operand, Val};

rules! {
    full => |cx, call| filled(cx, call, Some("fill_value"), 0.0),
    full_like => |cx, call| filled(cx, call, Some("fill_value"), 0.0),
    new_full => |cx, call| filled(cx, call, Some("fill_value"), 0.0),
    zeros => |cx, call| filled(cx, call, None, 0.0), ones => |cx, call| filled(cx, call, None, 1.0),
    empty => |cx, call| filled(cx, call, None, 0.0),
    zeros_like => |cx, call| filled(cx, call, None, 0.0),
    ones_like => |cx, call| filled(cx, call, None, 1.0),
    empty_like => |cx, call| filled(cx, call, None, 0.0),
    new_zeros => |cx, call| filled(cx, call, None, 0.0),
    new_ones => |cx, call| filled(cx, call, None, 1.0),
    new_empty => |cx, call| filled(cx, call, None, 0.0),
    arange => |cx, call| {
        let dtype = call.dtype()?;
        let end = |cx: &mut Cx, name: &str| -> Result<Name> {
            Ok(cx.operand(&call.val(name)?, DType::I64)?.name)
        };
        let (start, stop, step) = (end(cx, "start")?, end(cx, "end")?, end(cx, "step")?);
        let name = cx.op("Range", &[&start, &stop, &step]);
        let made = Operand { name, dtype: DType::I64, shape: call.result()?.shape.clone() };
        Ok(Val::Tensor(cx.cast(&made, dtype)?))
    },
    eye => |cx, call| {
        let zero = cx.number(0.0, DType::F32);
        let none = Operand { name: zero, dtype: DType::F32, shape: Vec::new() };
        call.needs_no(&["n", "m"]);
        let zeros = cx.expand(&none, &call.result()?.shape)?;
        let dtype = i64::from(code(call.dtype()?)?);
        let name = cx.node("EyeLike").input(&zeros).int("dtype", dtype).output();
        call.given(name)
    },
    tril_indices => |cx, call| places(cx, call, |row, column, offset| column <= row + offset),
    triu_indices => |cx, call| places(cx, call, |row, column, offset| column >= row + offset),
    rand => |cx, call| drawn(cx, call, 0.0, 1.0, "RandomUniformLike"),
    rand_like => |cx, call| drawn(cx, call, 0.0, 1.0, "RandomUniformLike"),
    randn => |cx, call| drawn(cx, call, 0.0, 1.0, "RandomNormalLike"),
    randn_like => |cx, call| drawn(cx, call, 0.0, 1.0, "RandomNormalLike"),
    normal => |cx, call| drawn(cx, call, call.float("mean")?, call.float("std")?, "RandomNormalLike"),
    randint => whole, randint_like => whole,
    bernoulli => |cx, call| {
        cx.warn_of_random_numbers();
        let x = call.tensor("x")?;
        let name = cx.cast_op("Bernoulli", &[&x])?;
        call.given(name)
    },
    dropout => |cx, call| {
        let x = call.tensor("x")?;
        let p = call.float("p")?;
        if !call.flag("training")? || p == 0.0 {
            return Ok(Val::Tensor(x));
        }
        if p == 1.0 {
            // Engines take a share below one alone.
            let zero = cx.number(0.0, x.dtype);
            let name = cx.op("Mul", &[&x.name, &zero]);
            return call.given(name);
        }
        cx.warn_of_random_numbers();
        let ratio = cx.number(p, DType::F32);
        let training = cx.number(1.0, DType::Bool);
        let name = cx.op("Dropout", &[&x.name, &ratio, &training]);
        call.given(name)
    },
    dropout1d => idle, dropout2d => idle, dropout3d => idle, alpha_dropout => idle,
    feature_alpha_dropout => idle, stochastic_depth => idle,
    rrelu => |cx, call| {
        let x = call.tensor("x")?;
        if call.flag("training")? {
            return Err(fx_nn::Error::not_in_format("ONNX has no leaky ReLU with a random slope: export the model in evaluation mode"));
        }
        let slope = (call.float("lower")? + call.float("upper")?) / 2.0;
        let name = cx.node("LeakyRelu").input(&x.name).float("alpha", slope).output();
        call.given(name)
    },
}

/// What is left out in evaluation mode.
fn idle(_: &mut Cx, call: &OpCall<'_>) -> Result<Val> {
    let p = call.float("p")?;
    call.needs_no(&["mode"]);
    if call.flag("training")? && p != 0.0 {
        return Err(fx_nn::Error::not_in_format(format_args!(
            "ONNX has no `{}` in training: export the model in evaluation mode",
            call.function().name()
        )));
    }
    call.val("x")
}

fn filled(cx: &mut Cx, call: &OpCall<'_>, parameter: Option<&str>, number: f64) -> Result<Val> {
    call.needs_no(&["x", "shape", "size"]);
    let (meta, dtype) = (call.result()?, call.dtype()?);
    let name = match parameter {
        Some(name) => {
            let value = cx.operand(&call.val(name)?, dtype)?;
            cx.expand(&value, &meta.shape)?
        }
        None => cx.filled(&meta.shape, number, dtype)?,
    };
    call.given(name)
}

fn places(cx: &mut Cx, call: &OpCall<'_>, keeps: impl Fn(i64, i64, i64) -> bool) -> Result<Val> {
    let (rows, columns, offset) = (call.int("row")?, call.int("col")?, call.int("offset")?);
    let all = (0..rows).flat_map(|row| (0..columns).map(move |column| (row, column)));
    let kept: Vec<(i64, i64)> = all
        .filter(|(row, column)| keeps(*row, *column, offset))
        .collect();
    let flat: Vec<i64> = kept
        .iter()
        .map(|p| p.0)
        .chain(kept.iter().map(|p| p.1))
        .collect();
    let numbers = cx.i64s(&flat);
    let flat = Operand {
        name: numbers,
        dtype: DType::I64,
        shape: vec![Dim::from(flat.len())],
    };
    let name = cx.reshape(&flat, &call.result()?.shape)?;
    call.given(name)
}

/// A tensor of the shape of the result, which random numbers follow.
fn like(cx: &mut Cx, call: &OpCall<'_>) -> Result<Name> {
    call.needs_no(&["x", "shape", "size"]);
    let zero = Operand {
        name: cx.number(0.0, DType::F32),
        dtype: DType::F32,
        shape: Vec::new(),
    };
    cx.expand(&zero, &call.result()?.shape)
}

fn drawn(cx: &mut Cx, call: &OpCall<'_>, a: f64, b: f64, op: &str) -> Result<Val> {
    if b == 0.0 && op.contains("Normal") {
        // A deviation of 0 is none.
        let dtype = call.dtype()?;
        let mean = Operand {
            name: cx.number(a, dtype),
            dtype,
            shape: Vec::new(),
        };
        call.needs_no(&["x", "shape", "size"]);
        let name = cx.expand(&mean, &call.result()?.shape)?;
        return call.given(name);
    }
    cx.warn_of_random_numbers();
    let like = like(cx, call)?;
    let (first, second) = if op.contains("Uniform") {
        ("low", "high")
    } else {
        ("mean", "scale")
    };
    let name = cx
        .node(op)
        .input(&like)
        .float(first, a)
        .float(second, b)
        .output();
    let made = Operand {
        name,
        dtype: DType::F32,
        shape: call.result()?.shape.clone(),
    };
    Ok(Val::Tensor(cx.cast(&made, call.dtype()?)?))
}

fn whole(cx: &mut Cx, call: &OpCall<'_>) -> Result<Val> {
    cx.warn_of_random_numbers();
    let (low, high) = (call.int("low")?, call.int("high")?);
    let like = like(cx, call)?;
    let name = cx
        .node("RandomUniformLike")
        .input(&like)
        .float("low", low as f64)
        .float("high", high as f64)
        .output();
    let name = cx.op("Floor", &[&name]);
    let made = Operand {
        name,
        dtype: DType::F32,
        shape: call.result()?.shape.clone(),
    };
    Ok(Val::Tensor(cx.cast(&made, call.dtype()?)?))
}
