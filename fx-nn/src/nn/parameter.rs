//! The parameters of new layers: PyTorch's initial values, or none where they are not wanted.

use std::cell::Cell;

use candle_core::{DType, Var};
use fx_core::Result;

use crate::device;
use crate::error::Fx;
use crate::tensor::Tensor;
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
    let var = match SKIPPED.get() {
        0 => values().and_then(|values| Var::from_tensor(&values)),
        _ => room::of("a parameter", shape, DType::F32)
            .and_then(|_| Var::zeros(shape, DType::F32, &device::current())),
    };
    var.map(|var| var.as_tensor().clone().into()).fx()
}

/// The bound of layers with this many inputs to an output: 1 / sqrt(fan_in), 0 for none.
pub(super) fn fan_in_bound(fan_in: usize) -> f64 {
    if fan_in == 0 {
        0.0
    } else {
        1.0 / (fan_in as f64).sqrt()
    }
}
