//! The parameters of new layers: PyTorch's initial values, or none where they are not wanted.

use std::cell::Cell;

use candle_core::{DType, Var};
use fx_core::{Error, Result};

use crate::device;
use crate::error::Fx;
use crate::tensor::Tensor;
use crate::tensor::fake::faked;
use crate::{random, room, scope};

thread_local! {
    /// How many scopes without initial values the thread is in.
    static SKIPPED: Cell<usize> = const { Cell::new(0) };
}

/// Runs `body`, in which new layers draw no random numbers: their parameters are zeros, for a checkpoint to fill.
///
/// ```
/// use fx_nn::prelude::*;
/// let layer = nn::skip_init(|| nn::Linear::new(1000, 1000))?;
/// assert_eq!(layer.weight.abs()?.sum(..)?.item()?, 0.0);
/// # Ok::<(), fx_nn::Error>(())
/// ```
pub fn skip_init<R>(body: impl FnOnce() -> R) -> R {
    scope::within(&SKIPPED, body)
}

/// A parameter of uniform random numbers in [-bound, bound].
pub(super) fn uniform(shape: &[usize], bound: f64) -> Result<Tensor> {
    parameter(shape, || {
        random::uniform(shape, -bound as f32, bound as f32)
    })
}

/// A parameter of one number everywhere.
pub(super) fn constant(shape: &[usize], value: f32) -> Result<Tensor> {
    parameter(shape, || {
        let number = candle_core::Tensor::new(value, &device::current())?;
        room::full("a parameter", shape, &number)
    })
}

/// A parameter of normal random numbers: mean 0, deviation 1.
pub(super) fn normal(shape: &[usize]) -> Result<Tensor> {
    parameter(shape, || random::normal(shape))
}

fn parameter(
    shape: &[usize],
    values: impl FnOnce() -> candle_core::Result<candle_core::Tensor>,
) -> Result<Tensor> {
    if let Some(fake) = faked(shape, fx_core::value::DType::F32) {
        return fake.into_parameter();
    }
    let var = match SKIPPED.get() {
        0 => values().and_then(|values| Var::from_tensor(&values)),
        _ => room::of("a parameter", shape, DType::F32)
            .and_then(|_| Var::zeros(shape, DType::F32, &device::current())),
    };
    var.map(|var| var.as_tensor().clone().into()).fx()
}

/// The weight and the bias of a convolution from some channels to others.
///
/// # Errors
/// Returns an error if `groups` does not divide both channel counts, or the parameters do not fit
/// into memory.
pub(super) fn convolution(
    op: &str,
    (in_channels, out_channels): (usize, usize),
    kernel: &[usize],
    groups: usize,
) -> Result<(Tensor, Tensor)> {
    is_divided(op, in_channels, out_channels, groups)?;
    filters(out_channels, in_channels / groups, kernel, out_channels)
}

/// The weight and the bias of a transposed convolution from some channels to others.
///
/// # Errors
/// Returns an error if `groups` does not divide both channel counts, or the parameters do not fit
/// into memory.
pub(super) fn transposed_convolution(
    op: &str,
    (in_channels, out_channels): (usize, usize),
    kernel: &[usize],
    groups: usize,
) -> Result<(Tensor, Tensor)> {
    is_divided(op, in_channels, out_channels, groups)?;
    filters(in_channels, out_channels / groups, kernel, out_channels)
}

fn is_divided(op: &str, inputs: usize, outputs: usize, groups: usize) -> Result<()> {
    match groups > 0 && inputs.is_multiple_of(groups) && outputs.is_multiple_of(groups) {
        true => Ok(()),
        false => Err(Error::msg(format_args!(
            "{op}: groups must divide in_channels and out_channels, and {groups} does not divide {inputs} and {outputs}"
        ))),
    }
}

/// A weight `[rows, columns, ..kernel]` and a bias, PyTorch's bound being that of what a row sees.
fn filters(
    rows: usize,
    columns: usize,
    kernel: &[usize],
    biases: usize,
) -> Result<(Tensor, Tensor)> {
    let shape = [&[rows, columns], kernel].concat();
    let fan_in = shape[1..].iter().fold(1usize, |n, d| n.saturating_mul(*d));
    let bound = fan_in_bound(fan_in);
    Ok((uniform(&shape, bound)?, uniform(&[biases], bound)?))
}

/// The bound of layers with this many inputs to an output: 1 / sqrt(fan_in), 0 for none.
pub(super) fn fan_in_bound(fan_in: usize) -> f64 {
    if fan_in == 0 {
        0.0
    } else {
        1.0 / (fan_in as f64).sqrt()
    }
}
