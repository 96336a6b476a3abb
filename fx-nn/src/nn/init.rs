//! Initial values of parameters, PyTorch's defaults.

use candle_core::{Device, Var};
use fx_core::Result;

use crate::error::Fx;
use crate::tensor::Tensor;
use crate::{random, room};

/// A parameter of uniform random numbers in [-bound, bound].
pub(super) fn uniform(shape: &[usize], bound: f64) -> Result<Tensor> {
    parameter(random::uniform(shape, -bound as f32, bound as f32))
}

/// A parameter of one number everywhere.
pub(super) fn constant(shape: &[usize], value: f32) -> Result<Tensor> {
    let number = candle_core::Tensor::new(value, &Device::Cpu).fx()?;
    parameter(room::full("a parameter", shape, &number))
}

/// A parameter of normal random numbers: mean 0, deviation 1.
pub(super) fn normal(shape: &[usize]) -> Result<Tensor> {
    parameter(random::normal(shape))
}

fn parameter(values: candle_core::Result<candle_core::Tensor>) -> Result<Tensor> {
    values
        .and_then(|t| Var::from_tensor(&t))
        .map(|var| var.as_tensor().clone().into())
        .fx()
}

/// The bound of layers with this many inputs to an output: 1 / sqrt(fan_in), 0 for none.
pub(super) fn fan_in_bound(fan_in: usize) -> f64 {
    if fan_in == 0 {
        0.0
    } else {
        1.0 / (fan_in as f64).sqrt()
    }
}
