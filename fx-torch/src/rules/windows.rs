//! Windows of signals, and the frequencies of transforms: numbers that the sizes of a program decide.
//!
//! Invariant: they are computed in `f64` and rounded once.

use std::f64::consts::TAU;

use fx_nn::Result;
use fx_nn::prelude::*;

use super::entry::{Entry, by};
use crate::call::Call;

fn made(call: &Call<'_>, all: Vec<f64>) -> Result<Value> {
    let count = all.len();
    let dtype = call.or::<DType>("dtype", DType::F32)?;
    Ok(Value::object(ops::to_dtype(
        &Tensor::from_vec(all, count)?,
        dtype,
    )?))
}

/// A window by what it is at each part of its length.
fn window(call: &Call<'_>, of: impl Fn(f64) -> f64) -> Result<Value> {
    let count = call.of::<usize>("window_length")?;
    let whole = match call.or("periodic", true)? {
        true => count,
        false => count.saturating_sub(1),
    };
    let whole = whole.max(1) as f64;
    made(
        call,
        (0..count)
            .map(|at| {
                if count == 1 {
                    1.0
                } else {
                    of(at as f64 / whole)
                }
            })
            .collect(),
    )
}

fn hamming(call: &Call<'_>) -> Result<Value> {
    let (alpha, beta) = (call.or("alpha", 0.54)?, call.or("beta", 0.46)?);
    window(call, |at| alpha - beta * (TAU * at).cos())
}

/// The frequencies of a transform, from 0 up, and then those below 0.
fn frequencies(call: &Call<'_>, is_real: bool) -> Result<Value> {
    let (count, step) = (call.of::<usize>("n")?, call.or("d", 1.0)?);
    let up = if is_real {
        count / 2 + 1
    } else {
        count.div_ceil(2)
    };
    let down = if is_real { 0 } else { count / 2 };
    let all = (0..up as i64).chain(-(down as i64)..0);
    made(
        call,
        all.map(|at| at as f64 / (count as f64 * step)).collect(),
    )
}

pub(crate) const RULES: &[Entry] = by! {
    "aten.bartlett_window" => |call| window(call, |at| 1.0 - (2.0 * at - 1.0).abs()),
    "aten.blackman_window" => |call| {
        window(call, |at| 0.42 - 0.5 * (TAU * at).cos() + 0.08 * (2.0 * TAU * at).cos())
    },
    "aten.fft_fftfreq" => |call| frequencies(call, false),
    "aten.fft_rfftfreq" => |call| frequencies(call, true),
    "aten.hamming_window" => hamming,
    "aten.hann_window" => |call| window(call, |at| 0.5 - 0.5 * (TAU * at).cos()),
};
