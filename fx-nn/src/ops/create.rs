//! New tensors.

use candle_core::{DType as C, Device, Tensor as Data};
use fx_core::{Result, wrap};

use crate::error::Fx;
use crate::tensor::{Shape, Tensor};

/// Zeros, as `float32`.
///
/// # Errors
/// When candle has no room for it.
#[wrap(path = "fx_nn::ops::zeros")]
pub fn zeros(shape: impl Into<Shape>) -> Result<Tensor> {
    Data::zeros(shape.0, C::F32, &Device::Cpu)
        .map(Tensor::from)
        .fx()
}

/// Ones, as `float32`.
///
/// # Errors
/// When candle has no room for it.
#[wrap(path = "fx_nn::ops::ones")]
pub fn ones(shape: impl Into<Shape>) -> Result<Tensor> {
    Data::ones(shape.0, C::F32, &Device::Cpu)
        .map(Tensor::from)
        .fx()
}

/// Uniform random numbers in [0, 1), as `float32`. Recorded while tracing, so that each run draws anew.
///
/// # Errors
/// When candle has no room for it.
#[wrap(random, always, path = "fx_nn::ops::rand")]
pub fn rand(shape: impl Into<Shape>) -> Result<Tensor> {
    Data::rand(0f32, 1f32, shape.0, &Device::Cpu)
        .map(Tensor::from)
        .fx()
}
