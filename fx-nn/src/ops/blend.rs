//! Weighted sums of tensors, and bounds.

use crate::op;
use fx_core::Result;
use fx_core::value::DType;

use crate::error::{Fx, require};
use crate::kernels::blend;
use crate::tensor::{Bound, Number, Tensor, TensorOrNumber, common_of};

/// What lies `weight` of the way from x to `end`.
///
/// ```
/// use fx_nn::prelude::*;
/// let (x, end) = (Tensor::from_vec(vec![1.0f32, 2.0], 2)?, Tensor::from_vec(vec![3.0f32, 6.0], 2)?);
/// assert_eq!(x.lerp(&end, 0.25)?.to_vec()?, [1.5, 3.0]);
/// # Ok::<(), fx_nn::Error>(())
/// ```
///
/// # Errors
/// Returns an error if the shapes do not broadcast, or the tensors are not of one float type.
#[op(binary, method, path = "fx_nn::ops::lerp")]
pub fn lerp(x: &Tensor, end: &Tensor, weight: impl Into<TensorOrNumber>) -> Result<Tensor> {
    super::elementary::floating("lerp", x)?;
    let dtype = x.dtype()?;
    require("lerp", end.dtype()? == dtype)?;
    let (x, end) = (x.data("lerp")?, end.data("lerp")?);
    match weight {
        TensorOrNumber::Tensor(weight) => {
            require("lerp", weight.dtype()? == dtype)?;
            blend::lerp(x, end, weight.data("lerp")?)
        }
        TensorOrNumber::Number(weight) => blend::lerp_by(x, end, weight.as_f64()),
    }
    .map(Tensor::made)
    .fx()
}

/// x + value · tensor1 · tensor2; shapes broadcast, types are promoted.
///
/// ```
/// use fx_nn::prelude::*;
/// let x = Tensor::from_vec(vec![1.0f32, 2.0], 2)?;
/// assert_eq!(x.addcmul(&x, &x, 0.5)?.to_vec()?, [1.5, 4.0]);
/// assert_eq!(x.addcdiv(&x, &x, 0.5)?.to_vec()?, [1.5, 2.5]);
/// # Ok::<(), fx_nn::Error>(())
/// ```
///
/// # Errors
/// Returns an error if the shapes do not broadcast, or all are of truth values.
#[op(binary, method, path = "fx_nn::ops::addcmul")]
pub fn addcmul(
    x: &Tensor,
    tensor1: &Tensor,
    tensor2: &Tensor,
    #[kw]
    #[default(1)]
    value: impl Into<Number>,
) -> Result<Tensor> {
    let common = common_of(&[x, tensor1, tensor2])?;
    require("addcmul", common != DType::Bool)?;
    let (x, a, b) = (
        x.cast(common)?,
        tensor1.cast(common)?,
        tensor2.cast(common)?,
    );
    if !common.is_floating_point() {
        let value = Tensor::from(value.checked("addcmul", common)?);
        return x + ((a * value)? * b)?;
    }
    let (x, a, b) = (x.data("addcmul")?, a.data("addcmul")?, b.data("addcmul")?);
    blend::add_product(x, a, b, value.as_f64())
        .map(Tensor::made)
        .fx()
}

/// x + value · tensor1 / tensor2; shapes broadcast, types are promoted.
///
/// # Errors
/// Returns an error if the shapes do not broadcast, or integers are divided by integers.
#[op(binary, method, path = "fx_nn::ops::addcdiv")]
pub fn addcdiv(
    x: &Tensor,
    tensor1: &Tensor,
    tensor2: &Tensor,
    #[kw]
    #[default(1)]
    value: impl Into<Number>,
) -> Result<Tensor> {
    require(
        "addcdiv",
        tensor1.dtype()?.is_floating_point() || tensor2.dtype()?.is_floating_point(),
    )?;
    let common = common_of(&[x, tensor1, tensor2])?;
    let (x, a, b) = (
        x.cast(common)?,
        tensor1.cast(common)?,
        tensor2.cast(common)?,
    );
    let (x, a, b) = (x.data("addcdiv")?, a.data("addcdiv")?, b.data("addcdiv")?);
    blend::add_quotient(x, a, b, value.as_f64())
        .map(Tensor::made)
        .fx()
}

/// Each element held between `min` and `max`: PyTorch's other name of [`clamp`](crate::ops::clamp()).
///
/// # Errors
/// Returns the errors of `clamp`.
#[op(binary, method, path = "fx_nn::ops::clip")]
pub fn clip(
    x: &Tensor,
    #[kw]
    #[default(None)]
    min: impl Into<Bound>,
    #[kw]
    #[default(None)]
    max: impl Into<Bound>,
) -> Result<Tensor> {
    super::pointwise::clamp(x, min, max)
}
