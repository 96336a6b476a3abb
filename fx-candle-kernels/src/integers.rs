//! Integer tensors of any width as numbers of 64 bits, in which they wrap around.

use candle_core::{DType, Result, Shape, Tensor};

/// The elements of an integer tensor, row-major.
///
/// # Errors
/// Returns only candle's errors.
pub fn elements(x: &Tensor) -> Result<Vec<i64>> {
    x.to_dtype(DType::I64)?.flatten_all()?.to_vec1()
}

/// A tensor of `like`'s dtype with these elements, truncated to its width.
///
/// # Errors
/// Returns an error if there are more or fewer elements than the shape has.
pub fn tensor(elements: Vec<i64>, shape: impl Into<Shape>, like: &Tensor) -> Result<Tensor> {
    Tensor::from_vec(elements, shape, like.device())?.to_dtype(like.dtype())
}
