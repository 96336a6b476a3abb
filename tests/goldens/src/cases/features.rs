//! One feature of tracing each: operators, indices, shapes, pieces, methods and functions.

use fx_core::prelude::*;
use fx_core::tensor::binary;
use fx_core::value::Operator;
use fx_nn::prelude::*;

use super::documentation::value;
use super::{Row, function};
use crate::exception::Exception;
use crate::golden::Literal;

#[trace]
fn operators(x: &Tensor, y: &Tensor) -> Result<Vec<Tensor>> {
    let a = (x + 1)?;
    let b = (1 - y)?;
    let c = binary::<Tensor>(Operator::Pow, &2, &x)?;
    let d = (-&a)?;
    let e = ((x > y)? & (x != 0)?)?;
    let f = (!&e)?;
    let g = x.matmul(&y.t()?)?;
    let h = (x.floor_divide(2)? + (x % 3)?)?;
    let i = (1.5 / (y.abs()? + 1)?)?;
    let j = ((x <= y)? | (x >= 1)?)?;
    Ok(vec![a, b, c, d, e, f, g, h, i, j])
}

/// The golden of that name.
///
/// # Errors
/// When it cannot be traced or run.
pub fn feat_operators(name: &'static str) -> Result<Row> {
    let gm = symbolic_trace(traced!(operators))?;
    let exceptions = [
        Exception::MethodForFunction {
            theirs: "matmul",
            ours: "matmul",
            why: "Rust has no sign for it",
        },
        Exception::ListForTuple,
    ];
    function(name, &gm, &exceptions, |t| {
        operators(&t[0], &t[1]).map(value)
    })
}

#[trace]
fn slicing(x: &Tensor) -> Result<(Tensor, Tensor, Tensor, Tensor)> {
    Ok((
        x.i((.., 1..3, NewAxis, Ellipsis))?,
        x.i(0)?,
        x.i((Ellipsis, -1))?,
        x.i(every(2))?,
    ))
}

/// The golden of that name.
///
/// # Errors
/// When it cannot be traced or run.
pub fn feat_slicing(name: &'static str) -> Result<Row> {
    let gm = symbolic_trace(traced!(slicing))?;
    function(name, &gm, &[], |t| slicing(&t[0]).map(value))
}

#[trace]
fn shaped(x: &Tensor) -> Result<Tensor> {
    x.view((x.shape()?.get(0)?, -1))? * x.ndim()?
}

/// The golden of that name.
///
/// # Errors
/// When it cannot be traced or run.
pub fn feat_shape_getattr(name: &'static str) -> Result<Row> {
    let gm = symbolic_trace(traced!(shaped))?;
    function(name, &gm, &[Exception::VariadicAsOneSequence], |t| {
        shaped(&t[0]).map(value)
    })
}

#[trace]
fn unpacked(x: &Tensor) -> Result<Tensor> {
    let [a, b] = x.chunk(2, 0)?.unpack()?;
    let [c, d, e] = ops::split(&a, 1, 0)?.unpack()?;
    let (v, i) = ops::max(&b, 0, false)?;
    let first = a.sum(..)?;
    let first = (first + ((c * d)? * e)?.sum(..)?)?;
    (first + v.sum(..)?)? + i.sum(..)?
}

/// The golden of that name.
///
/// # Errors
/// When it cannot be traced or run.
pub fn feat_unpack(name: &'static str) -> Result<Row> {
    let gm = symbolic_trace(traced!(unpacked))?;
    function(name, &gm, &[], |t| unpacked(&t[0]).map(value))
}

#[trace]
fn methods_and_functions(x: &Tensor) -> Result<Tensor> {
    let sum = (ops::relu(x)? + x.relu()?)?;
    (sum + ops::relu(x)?)? + ops::silu(x)?
}

/// The golden of that name.
///
/// # Errors
/// When it cannot be traced or run.
pub fn feat_methods_vs_functions(name: &'static str) -> Result<Row> {
    let gm = symbolic_trace(traced!(methods_and_functions))?;
    function(name, &gm, &[Exception::PythonInplaceFlag], |t| {
        methods_and_functions(&t[0]).map(value)
    })
}

/// One unused node, and a claim.
///
/// # Errors
/// When `x` is not a matrix.
#[trace]
pub fn dead_code(x: &Tensor) -> Result<Tensor> {
    let _a = (x + 1)?;
    assert!(x.ndim()? == 2, "rank 2 wanted");
    x * 2
}

/// The golden of that name.
///
/// # Errors
/// When it cannot be traced or run.
pub fn feat_dead_code(name: &'static str) -> Result<Row> {
    let gm = symbolic_trace(traced!(dead_code))?;
    function(name, &gm, &[], |t| dead_code(&t[0]).map(value))
}

#[trace]
fn deep_names(x: &Tensor) -> Result<Tensor> {
    let mut x = x.clone();
    for _ in 0..12 {
        x = ops::relu(&x)?;
    }
    Ok(x)
}

/// The golden of that name.
///
/// # Errors
/// When it cannot be traced or run.
pub fn feat_deep_names(name: &'static str) -> Result<Row> {
    let gm = symbolic_trace(traced!(deep_names))?;
    function(name, &gm, &[], |t| deep_names(&t[0]).map(value))
}

/// The golden of that name.
///
/// # Errors
/// When it cannot be traced or run.
pub fn feat_strings(name: &'static str) -> Result<Row> {
    let f = traced!(|x: &Tensor| {
        ops::interpolate(x, Some([4, 4].into()), None, "bilinear", Some(false))
    });
    let python_only = |keyword, value| Exception::PythonOnlyArgument {
        callee: "interpolate",
        name: keyword,
        value,
        why: "it changes how PyTorch computes a size or a filter that is not offered here",
    };
    let exceptions = [
        python_only("recompute_scale_factor", Literal::None),
        python_only("antialias", Literal::Bool(false)),
    ];
    function(name, &symbolic_trace(f)?, &exceptions, |t| {
        ops::interpolate(&t[0], Some([4, 4].into()), None, "bilinear", Some(false)).map(value)
    })
}
