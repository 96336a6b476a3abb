//! Values that are computed as a whole, with a custom gradient: in `f64`, whatever the tensors'
//! type.

use candle_core::{DType, Result, Tensor};

use super::gradient::{of_one, of_two};

/// The `f64` value of something computed from `x`, as a tensor of its type; `pull` maps a gradient
/// of the value to one of `x`.
///
/// # Errors
/// Returns only candle's errors.
pub fn pulled(
    name: &'static str,
    x: &Tensor,
    value: &Tensor,
    pull: impl Fn(&Tensor) -> Result<Tensor> + Send + Sync + 'static,
) -> Result<Tensor> {
    let value = |x: &Tensor| value.to_dtype(x.dtype());
    of_one(name, x, value, move |x, _, gradient| {
        pull(&gradient.to_dtype(DType::F64)?)?.to_dtype(x.dtype())
    })
}

/// The same of something computed from two tensors of one type.
///
/// # Errors
/// Returns only candle's errors.
pub fn pulled_by_two(
    name: &'static str,
    a: &Tensor,
    b: &Tensor,
    value: &Tensor,
    pull: impl Fn(&Tensor) -> Result<(Tensor, Tensor)> + Send + Sync + 'static,
) -> Result<Tensor> {
    let value = |a: &Tensor, _: &Tensor| value.to_dtype(a.dtype());
    of_two(name, a, b, value, move |[a, b], gradient| {
        let (of_a, of_b) = pull(&gradient.to_dtype(DType::F64)?)?;
        Ok([of_a.to_dtype(a.dtype())?, of_b.to_dtype(b.dtype())?])
    })
}
