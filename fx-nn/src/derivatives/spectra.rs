//! Derivatives of discrete Fourier transforms: each is linear, and its adjoint is a transform the other way.

use fx_core::Result;
use fx_core::ir::Function;
use fx_core::value::{Int, IntoValue, Value};
use fx_core::{Error, function};

use super::derivatives;
use crate::func::{Pullback, args_of, known};
use crate::ops::{self, fft};
use crate::tensor::{Dims, Tensor};

derivatives! {
    ops::fft::fft => |call| one(call, function!(fft::ifft));
    ops::fft::ifft => |call| one(call, function!(fft::fft));
    ops::fft::fft2 => |call| several(call, function!(fft::ifftn), Some(2));
    ops::fft::ifft2 => |call| several(call, function!(fft::fftn), Some(2));
    ops::fft::fftn => |call| several(call, function!(fft::ifftn), None);
    ops::fft::ifftn => |call| several(call, function!(fft::fftn), None);
    ops::fft::fftshift => |call| call.give("x", |call| fft::ifftshift(&call.grad()?, call.arg::<Dims>("dim")?));
    ops::fft::ifftshift => |call| call.give("x", |call| fft::fftshift(&call.grad()?, call.arg::<Dims>("dim")?));
    ops::fft::rfft => |call| {
        let (x, dim): (Tensor, i64) = (call.arg("x")?, call.arg("dim")?);
        call.give("x", |call| {
            let grad = call.grad()?;
            let rank = known::rank(&x)?;
            let at = known::place(dim, rank)? as i64;
            let n = length(call, &x, at)?;
            // The other half has no gradient.
            let full = sized(&grad, at, n)?;
            let back: Tensor = function!(fft::ifft).call_as(args_of(vec![
                full.into(), Value::None, Value::Int(at), turned(call)?,
            ]))?;
            sized(&ops::select(&back, -1, 0)?, at, known::size(&x, at)?)
        })
    };
    ops::fft::irfft => |call| {
        let (x, dim): (Tensor, i64) = (call.arg("x")?, call.arg("dim")?);
        call.give("x", |call| {
            let grad = call.grad()?;
            let at = known::place(dim, known::rank(&grad)?)? as i64;
            let Some(n) = known::shape(&grad, "the derivative of `irfft`")?.get(at as usize).copied() else {
                return Err(Error::msg("`irfft` has no such dim"));
            };
            let spectrum: Tensor = function!(fft::rfft).call_as(args_of(vec![
                grad.clone().into(), Value::None, Value::Int(at), turned(call)?,
            ]))?;
            // Those between the first and the middle one stand for two.
            let half = n / 2 + 1;
            let twice = |line: usize| if line == 0 || 2 * line == n { 1.0 } else { 2.0 };
            let weights: Vec<f64> = (0..half).flat_map(|line| {
                // The imaginary parts of the first and the middle one count for nothing.
                let is_real = line == 0 || 2 * line == n;
                [twice(line), if is_real { 0.0 } else { 2.0 }]
            }).collect();
            let mut shape = vec![1i64; known::rank(&spectrum)?];
            shape[at as usize] = half as i64;
            *shape.last_mut().ok_or_else(|| Error::msg("a spectrum has dims"))? = 2;
            let weights = ops::to_dtype(&Tensor::from_vec(weights, (half, 2))?, known::dtype(&spectrum)?)?;
            sized(&(spectrum * ops::reshape(&weights, shape)?)?, at, known::size(&x, at)?)
        })
    };
}

/// The way to divide of the adjoint.
fn turned(call: &Pullback<'_>) -> Result<Value> {
    let norm: Option<String> = call.arg("norm")?;
    Ok(match norm.as_deref() {
        None | Some("backward") => "forward".into_value(),
        Some("forward") => "backward".into_value(),
        _ => "ortho".into_value(),
    })
}

/// How many elements are transformed.
fn length(call: &Pullback<'_>, x: &Tensor, dim: i64) -> Result<Int> {
    match call.arg::<Option<Int>>("n")? {
        Some(n) => Ok(n),
        None => known::size(x, dim),
    }
}

/// The first elements along a dim, or all with zeros behind them.
fn sized(x: &Tensor, dim: i64, to: Int) -> Result<Tensor> {
    let from = known::size(x, dim)?;
    match (known::number(&from), known::number(&to)) {
        (Some(from), Some(to)) if from == to => Ok(x.clone()),
        (Some(from), Some(to)) if from > to => ops::narrow(x, dim, 0, to),
        (Some(from), Some(to)) => {
            let behind = known::rank(x)? - 1 - known::place(dim, known::rank(x)?)?;
            let mut pads = vec![0i64; 2 * behind];
            pads.extend([0, to - from]);
            ops::pad(x, pads, "constant", None)
        }
        _ => Err(Error::msg(
            "the derivative of a transform needs sizes that are numbers",
        )),
    }
}

fn one(call: &mut Pullback<'_>, adjoint: Function) -> Result<()> {
    let (x, dim): (Tensor, i64) = (call.arg("x")?, call.arg("dim")?);
    call.give("x", |call| {
        let at = known::place(dim, known::rank(&x)? - 1)? as i64;
        let args = vec![
            call.grad()?.into(),
            Value::None,
            Value::Int(at),
            turned(call)?,
        ];
        sized(
            &adjoint.call_as::<Tensor>(args_of(args))?,
            at,
            known::size(&x, at)?,
        )
    })
}

fn several(call: &mut Pullback<'_>, adjoint: Function, last: Option<usize>) -> Result<()> {
    let x: Tensor = call.arg("x")?;
    call.give("x", |call| {
        let rank = known::rank(&x)? - 1;
        let lengths: Value = call.arg("s")?;
        let dims = match (call.arg("dim")?, &lengths) {
            (Dims::All, Value::List(s) | Value::Tuple(s)) => (rank - s.len()..rank).collect(),
            (Dims::All, _) => (rank - last.unwrap_or(rank)..rank).collect(),
            (dims, _) => known::places(dims, rank)?,
        };
        let dims: Vec<i64> = dims.into_iter().map(|at| at as i64).collect();
        let along = Value::List(dims.iter().map(|dim| Value::Int(*dim)).collect());
        let args = vec![call.grad()?.into(), Value::None, along, turned(call)?];
        let mut back: Tensor = adjoint.call_as(args_of(args))?;
        for dim in dims {
            back = sized(&back, dim, known::size(&x, dim)?)?;
        }
        Ok(back)
    })
}
