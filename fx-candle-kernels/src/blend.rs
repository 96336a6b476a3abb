//! Sums of tensors with weights: between two, and with a product or a quotient.

use candle_core::{Result, Tensor};

use super::binary::{add, div, mul, sub};
use super::comparison;
use super::scale::Scale;
use super::select::choose;
use super::widen::widened;

/// `start + weight (end - start)`, computed from the nearer of both ends; all are floats of one dtype, shapes broadcast.
///
/// # Errors
/// Returns an error if the shapes do not broadcast.
pub fn lerp(start: &Tensor, end: &Tensor, weight: &Tensor) -> Result<Tensor> {
    widened(start, (start, end, weight), |(start, end, weight)| {
        let way = sub(&end, &start)?;
        let from_start = add(&start, &mul(&way, &weight)?)?;
        let from_end = sub(&end, &mul(&way, &weight.affine(-1.0, 1.0)?)?)?;
        let half = weight.ones_like()?.times(0.5)?;
        let is_near = comparison::lt(&weight.detach().abs()?, &half)?;
        choose("lerp", &is_near, &from_start, &from_end)
    })
}

/// [`lerp`] by one number, which is not rounded to half precision first.
///
/// # Errors
/// Returns an error if the shapes do not broadcast.
pub fn lerp_by(start: &Tensor, end: &Tensor, weight: f64) -> Result<Tensor> {
    widened(start, (start, end), |(start, end)| {
        let way = sub(&end, &start)?;
        match weight.abs() < 0.5 {
            true => add(&start, &way.times(weight)?),
            false => sub(&end, &way.times(1.0 - weight)?),
        }
    })
}

/// `x + value a b`, of one dtype; shapes broadcast.
///
/// # Errors
/// Returns an error if the shapes do not broadcast.
pub fn add_product(x: &Tensor, a: &Tensor, b: &Tensor, value: f64) -> Result<Tensor> {
    widened(x, (x, a, b), |(x, a, b)| {
        add(&x, &mul(&a.times(value)?, &b)?)
    })
}

/// `x + value a / b`, floats of one dtype; shapes broadcast.
///
/// # Errors
/// Returns an error if the shapes do not broadcast.
pub fn add_quotient(x: &Tensor, a: &Tensor, b: &Tensor, value: f64) -> Result<Tensor> {
    widened(x, (x, a, b), |(x, a, b)| {
        add(&x, &div(&a.times(value)?, &b)?)
    })
}
