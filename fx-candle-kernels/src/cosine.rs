//! The cosine similarity of vectors.

use candle_core::{Result, Tensor};

use super::expand::{self, broadcast_dims};
use super::norms::norm;
use super::pointwise::{abs, clamp};
use super::reduce;
use super::widen::widened;

/// The cosine of the angle between the vectors of `a` and `b` (floats of one dtype) along `dim`; shapes broadcast.
///
/// Lengths below `eps` count as `eps`, rounded to their type: in `float16` the usual one is 0, as
/// in PyTorch.
///
/// # Errors
/// Returns an error if the shapes do not broadcast.
pub fn cosine_similarity(op: &str, a: &Tensor, b: &Tensor, dim: usize, eps: f64) -> Result<Tensor> {
    let dims = broadcast_dims(op, a, b)?;
    let eps = Tensor::new(eps, a.device())?
        .to_dtype(a.dtype())?
        .to_dtype(candle_core::DType::F64)?
        .to_scalar::<f64>()?;
    let axes: &[usize] = if dims.is_empty() { &[] } else { &[dim] };
    widened(a, (a, b), |(a, b)| {
        let direction = |x: &Tensor| -> Result<Tensor> {
            let x = expand::to(x, &dims)?;
            let length = match dims.get(dim) {
                Some(1) => abs(&x)?,
                _ => norm(op, &x, 2.0, axes, true)?,
            };
            let length = clamp(&length, Some(eps), None)?;
            x.div(&length.broadcast_as(dims.as_slice())?)
        };
        reduce::sum(&direction(&a)?.mul(&direction(&b)?)?, axes, false)
    })
}
