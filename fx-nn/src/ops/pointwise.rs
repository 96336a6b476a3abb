//! Operations on each element alone.

use crate::op;
use fx_core::value::{DType, Device};
use fx_core::{Error, Result};

use crate::device;
use crate::error::{Fx, require};
use crate::kernels::{binary, pointwise};
use crate::room;
use crate::tensor::{Bound, Number, Tensor};

/// -x.
///
/// # Errors
/// Returns an error for bool tensors.
#[op(unary, method, path = "fx_nn::ops::neg")]
pub fn neg(x: &Tensor) -> Result<Tensor> {
    -x
}

macro_rules! functions {
    ($($name:ident $path:literal $does:literal;)*) => {$(
        #[doc = concat!($does, "; integers become `float32`.")]
        ///
        /// # Errors
        /// Returns the errors of the conversion to float.
        #[op(unary, member, method, path = $path)]
        pub fn $name(x: &Tensor) -> Result<Tensor> {
            let x = x.as_float()?;
            x.data(stringify!($name))?.$name().map(Tensor::made).fx()
        }
    )*};
}

functions! {
    exp "fx_nn::ops::exp" "e to the power of x";
    log "fx_nn::ops::log" "The natural logarithm";
    sqrt "fx_nn::ops::sqrt" "The square root";
    sin "fx_nn::ops::sin" "The sine of x in radians";
    cos "fx_nn::ops::cos" "The cosine of x in radians";
    erf "fx_nn::ops::erf" "The error function";
}

/// 1 / sqrt(x); integers become `float32`.
///
/// # Errors
/// Returns the errors of the conversion to float.
#[op(unary, member, method, path = "fx_nn::ops::rsqrt")]
pub fn rsqrt(x: &Tensor) -> Result<Tensor> {
    pointwise::rsqrt(x.as_float()?.data("rsqrt")?)
        .map(Tensor::made)
        .fx()
}

/// 1 / x; integers become `float32`.
///
/// # Errors
/// Returns the errors of the conversion to float.
#[op(unary, member, method, path = "fx_nn::ops::reciprocal")]
pub fn reciprocal(x: &Tensor) -> Result<Tensor> {
    x.as_float()?
        .data("reciprocal")?
        .recip()
        .map(Tensor::made)
        .fx()
}

/// x²; truth values become `int64`.
///
/// # Errors
/// Returns no errors of its own.
#[op(unary, method, path = "fx_nn::ops::square")]
pub fn square(x: &Tensor) -> Result<Tensor> {
    if x.is_bool() {
        return x.cast(DType::I64);
    }
    x * x
}

/// Where an element is not a number, as truth values.
///
/// # Errors
/// Returns no errors of its own.
#[op(
    unary,
    member,
    flat = "gives truth values",
    method,
    path = "fx_nn::ops::isnan"
)]
pub fn isnan(x: &Tensor) -> Result<Tensor> {
    x.ne(x)
}

/// Where an element is neither infinite nor nan, as truth values.
///
/// # Errors
/// Returns no errors of its own.
#[op(
    unary,
    member,
    flat = "gives truth values",
    method,
    path = "fx_nn::ops::isfinite"
)]
pub fn isfinite(x: &Tensor) -> Result<Tensor> {
    if !x.dtype()?.is_floating_point() {
        let all = x.data("isfinite")?.ones_like();
        return Tensor::from(all.fx()?).cast(DType::Bool);
    }
    x.abs()?.lt(f64::INFINITY)
}

/// The same elements as another type; a number is true where it is not 0.
///
/// ```
/// use fx_nn::prelude::*;
/// let x = Tensor::from_vec(vec![-1.5f32, 0.0, 2.5], 3)?;
/// assert_eq!(x.to_dtype(DType::I64)?.to_vec()?, [-1.0, 0.0, 2.0]);
/// assert_eq!(x.to_dtype(DType::Bool)?.to_vec()?, [1.0, 0.0, 1.0]);
/// # Ok::<(), fx_nn::Error>(())
/// ```
///
/// # Errors
/// Returns an error if candle has no such type.
#[op(unary, member, method, path = "fx_nn::ops::to_dtype")]
pub fn to_dtype(x: &Tensor, dtype: DType) -> Result<Tensor> {
    x.cast(dtype)
}

/// The same elements on a device.
///
/// ```
/// use fx_nn::prelude::*;
/// let x = Tensor::ones(3)?;
/// assert_eq!(x.to_device(Device::Cpu)?.device()?, Device::Cpu);
/// assert!(x.to_device(Device::Cuda(100)).is_err());
/// # Ok::<(), fx_nn::Error>(())
/// ```
///
/// # Errors
/// Returns an error if there is no such device, or the crate was built without the feature that
/// drives it (`cuda`, `metal`).
#[op(unary, member, method, path = "fx_nn::ops::to_device")]
pub fn to_device(x: &Tensor, device: Device) -> Result<Tensor> {
    let device = device::open(device)?;
    let data = x.elements("to_device")?.to_device(&device).fx()?;
    Ok(x.with_data(data))
}

/// The same elements as the type of another tensor.
///
/// ```
/// use fx_nn::prelude::*;
/// let half = Tensor::ones(2)?.to_dtype(DType::BF16)?;
/// assert_eq!(Tensor::zeros(3)?.type_as(&half)?.dtype()?, DType::BF16);
/// # Ok::<(), fx_nn::Error>(())
/// ```
///
/// # Errors
/// Returns no errors of its own.
#[op(unary, member, method, path = "fx_nn::ops::type_as")]
pub fn type_as(x: &Tensor, other: &Tensor) -> Result<Tensor> {
    x.cast(other.dtype()?)
}

/// Each element held between `min` and `max`, integers or floats; `None` leaves that side open.
///
/// A float beside integers makes them `float32`; a NaN makes every element NaN.
///
/// # Errors
/// Returns an error if both sides are open, the tensor and the bounds are of truth values, or a
/// float's type does not hold a bound.
///
/// ```
/// use fx_nn::prelude::*;
/// let x = Tensor::from_vec(vec![-1.0f32, 0.5, 2.0], 3)?;
/// assert_eq!(x.clamp(0.0, 1.0)?.to_vec()?, [0.0, 0.5, 1.0]);
/// assert_eq!(x.clamp(0.0, None)?.to_vec()?, [0.0, 0.5, 2.0]);
/// let n = Tensor::from_vec(vec![i64::MIN, 0, i64::MAX], 3)?;
/// assert_eq!(n.clamp(-1, i64::MAX - 1)?.dtype()?, DType::I64);
/// # Ok::<(), fx_nn::Error>(())
/// ```
#[op(binary, member, method, path = "fx_nn::ops::clamp")]
pub fn clamp(
    x: &Tensor,
    #[kw]
    #[default(None)]
    min: impl Into<Bound>,
    #[kw]
    #[default(None)]
    max: impl Into<Bound>,
) -> Result<Tensor> {
    let (Bound(min), Bound(max)) = (min, max);
    require("clamp", min.is_some() || max.is_some())?;
    let bounds = || [min, max].into_iter().flatten();
    let dtype = bounds().try_fold(x.dtype()?, |dtype, bound| {
        Ok::<_, Error>(bound.beside(dtype))
    })?;
    require("clamp", dtype != DType::Bool)?;
    let x = x.cast(dtype)?;
    if let Some(nan) = bounds().find(|bound| bound.is_nan()) {
        let nan = nan.wrapped(dtype)?;
        return room::full("clamp", x.dims()?, &nan).map(Tensor::made).fx();
    }
    let one = |bound: Option<Number>, lower: bool| {
        bound.map(|n| n.bound("clamp", dtype, lower)).transpose()
    };
    let (lower, upper) = (one(min, true)?, one(max, false)?);
    pointwise::bounded(x.data("clamp")?, lower.as_ref(), upper.as_ref())
        .map(Tensor::made)
        .fx()
}

/// The larger of each two elements; shapes broadcast.
///
/// # Errors
/// Returns an error if the shapes do not broadcast.
#[op(binary, member, method, path = "fx_nn::ops::maximum")]
pub fn maximum(x: &Tensor, other: &Tensor) -> Result<Tensor> {
    extreme("maximum", x, other, binary::maximum)
}

/// The smaller of each two elements; shapes broadcast.
///
/// # Errors
/// Returns an error if the shapes do not broadcast.
#[op(binary, member, method, path = "fx_nn::ops::minimum")]
pub fn minimum(x: &Tensor, other: &Tensor) -> Result<Tensor> {
    extreme("minimum", x, other, binary::minimum)
}

/// The larger or smaller of two tensors of one type.
fn extreme(
    what: &str,
    x: &Tensor,
    other: &Tensor,
    kernel: fn(
        &candle_core::Tensor,
        &candle_core::Tensor,
    ) -> candle_core::Result<candle_core::Tensor>,
) -> Result<Tensor> {
    let common = x.common(other)?;
    let (x, other) = (x.cast(common)?, other.cast(common)?);
    let result = kernel(x.data(what)?, other.data(what)?).fx()?;
    Ok(x.with_data(result))
}
