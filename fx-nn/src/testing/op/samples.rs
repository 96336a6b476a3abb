//! Samples that many functions take: numbers of every type, special ones, and every kind of shape.

use fx_core::Result;
use fx_core::ir::Function;
use fx_core::value::{DType, IntoValue, Value};

use super::Sample;
use crate::tensor::Tensor;

/// Numbers of both signs, zeros of both signs, infinities, NaN, and large and tiny ones.
const NUMBERS: [f64; 12] = [
    0.5,
    -1.5,
    0.0,
    -0.0,
    2.25,
    f64::INFINITY,
    f64::NEG_INFINITY,
    f64::NAN,
    3e30,
    -1e-30,
    1.0,
    -0.75,
];

/// The float types.
const FLOATS: [DType; 4] = [DType::F64, DType::F32, DType::F16, DType::BF16];

/// A tensor whose elements are [`NUMBERS`] from `first` on.
fn filled(shape: &[usize], first: usize, dtype: DType) -> Result<Tensor> {
    let many: usize = shape.iter().product();
    let numbers = (0..many).map(|at| NUMBERS[(at * 5 + first) % NUMBERS.len()]);
    Tensor::from_vec(numbers.collect::<Vec<f64>>(), shape)?.to_dtype(dtype)
}

/// A tensor of finite numbers that are not 0.
fn plain(shape: &[usize], first: usize, dtype: DType) -> Result<Tensor> {
    let many: usize = shape.iter().product();
    let numbers = (0..many).map(|at| ((at * 7 + first * 3) % 11) as f64 / 4.0 - 1.3);
    Tensor::from_vec(numbers.collect::<Vec<f64>>(), shape)?.to_dtype(dtype)
}

/// The shapes of one tensor: without dims, with one element, with none, and with several dims.
const SHAPES: [&[usize]; 5] = [&[], &[1], &[0, 3], &[12], &[2, 3]];

/// Samples of a function of one float tensor: every float type, special numbers, and every kind of
/// shape, also of a transposed view.
///
/// # Errors
/// Returns an error if the function refuses one.
pub fn one_float(function: Function) -> Result<Vec<Sample<'static>>> {
    let mut samples = Vec::new();
    for dtype in FLOATS {
        for (at, shape) in SHAPES.iter().enumerate() {
            samples.push(of(function, [filled(shape, at, dtype)?])?);
        }
        samples.push(of(function, [plain(&[3, 4], 1, dtype)?.transpose(0, 1)?])?);
    }
    samples.push(of(function, [plain(&[2, 3], 2, DType::F64)?])?);
    Ok(samples)
}

/// Samples of a function of two float tensors: as [`one_float`], and broadcast.
///
/// # Errors
/// Returns an error if the function refuses one.
pub fn two_floats(function: Function) -> Result<Vec<Sample<'static>>> {
    let mut samples = Vec::new();
    for dtype in FLOATS {
        for (at, shape) in SHAPES.iter().enumerate() {
            let both = [filled(shape, at, dtype)?, filled(shape, at + 5, dtype)?];
            samples.push(of(function, both)?);
        }
        let view = plain(&[3, 4], 1, dtype)?.transpose(0, 1)?;
        samples.push(of(function, [view, plain(&[4, 3], 2, dtype)?])?);
        let broadcast = [plain(&[2, 1, 3], 1, dtype)?, plain(&[4, 1], 2, dtype)?];
        samples.push(of(function, broadcast)?);
    }
    let apart = [plain(&[2], 0, DType::F64)?, plain(&[3], 0, DType::F64)?];
    samples.push(Sample::refused(function, values(apart))?);
    Ok(samples)
}

fn values<const N: usize>(tensors: [Tensor; N]) -> Vec<Value> {
    tensors.into_iter().map(IntoValue::into_value).collect()
}

fn of<const N: usize>(function: Function, tensors: [Tensor; N]) -> Result<Sample<'static>> {
    Sample::of(function, values(tensors))
}
