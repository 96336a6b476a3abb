//! Functions of pairs of elements: shapes broadcast, types are promoted, a number may replace the
//! second tensor.

use crate::op;
use fx_core::tensor::{Operand, OperandRef, Traced};
use fx_core::value::{DType, Operator};
use fx_core::{Error, Result};

use crate::error::{Fx, require};
use crate::kernels::couples::Couple;
use crate::kernels::{binary, comparison, expand, integers, select};
use crate::tensor::{Number, Tensor, TensorOrNumber};

/// Both operands as one type.
pub(super) fn promoted(x: &Tensor, other: &Tensor) -> Result<(Tensor, Tensor, DType)> {
    let common = x.common(other)?;
    Ok((x.cast(common)?, other.cast(common)?, common))
}

/// Both operands as one float type; integers become `float32`.
pub(super) fn floats(x: &Tensor, other: &Tensor) -> Result<(Tensor, Tensor)> {
    let common = match x.common(other)? {
        common if common.is_floating_point() => common,
        _ => DType::F32,
    };
    Ok((x.cast(common)?, other.cast(common)?))
}

pub(super) fn couple(of: Couple, op: &str, x: &Tensor, other: &Tensor) -> Result<Tensor> {
    of.of(x.data(op)?, other.data(op)?).map(Tensor::made).fx()
}

/// An operator on a tensor and a tensor or a number.
fn operator(op: Operator, x: &Tensor, other: &TensorOrNumber) -> Result<Tensor> {
    match other {
        TensorOrNumber::Tensor(other) => <Tensor as Traced>::apply(op, &[x.lend(), other.lend()]),
        TensorOrNumber::Number(number) => {
            let number = match *number {
                Number::Bool(b) => OperandRef::Bool(b),
                Number::Int(n) => OperandRef::Int(n),
                Number::Float(x) => OperandRef::Float(x),
            };
            <Tensor as Traced>::apply(op, &[x.lend(), number])
        }
    }
}

/// The angle of the point (`other`, `x`) in radians, in [-π, π]; integers become `float32`.
///
/// ```
/// use fx_nn::prelude::*;
/// let (y, x) = (Tensor::from_vec(vec![0.0f64, 1.0], 2)?, Tensor::from_vec(vec![-1.0f64, 0.0], 2)?);
/// assert_eq!(y.atan2(&x)?.to_vec()?, [std::f64::consts::PI, std::f64::consts::FRAC_PI_2]);
/// # Ok::<(), fx_nn::Error>(())
/// ```
///
/// # Errors
/// Returns an error if the shapes do not broadcast.
#[op(binary, member, method, path = "fx_nn::ops::atan2")]
pub fn atan2(x: &Tensor, other: &Tensor) -> Result<Tensor> {
    let (x, other) = floats(x, other)?;
    couple(Couple::Atan2, "atan2", &x, &other)
}

/// sqrt(x² + other²), without overflow on the way.
///
/// # Errors
/// Returns an error if the shapes do not broadcast, or neither tensor is float.
#[op(binary, member, method, path = "fx_nn::ops::hypot")]
pub fn hypot(x: &Tensor, other: &Tensor) -> Result<Tensor> {
    let (x, other, common) = promoted(x, other)?;
    require("hypot", common.is_floating_point())?;
    couple(Couple::Hypot, "hypot", &x, &other)
}

/// log(exp(x) + exp(other)), without overflow on the way.
///
/// # Errors
/// Returns an error if the shapes do not broadcast, or neither tensor is float.
#[op(binary, member, method, path = "fx_nn::ops::logaddexp")]
pub fn logaddexp(x: &Tensor, other: &Tensor) -> Result<Tensor> {
    let (x, other, common) = promoted(x, other)?;
    require("logaddexp", common.is_floating_point())?;
    couple(Couple::LogAddExp, "logaddexp", &x, &other)
}

/// log2(2^x + 2^other), without overflow on the way.
///
/// # Errors
/// Returns an error if the shapes do not broadcast, or neither tensor is float.
#[op(binary, member, method, path = "fx_nn::ops::logaddexp2")]
pub fn logaddexp2(x: &Tensor, other: &Tensor) -> Result<Tensor> {
    let (x, other, common) = promoted(x, other)?;
    require("logaddexp2", common.is_floating_point())?;
    couple(Couple::LogAddExp2, "logaddexp2", &x, &other)
}

/// x with the sign of `other`; integers become `float32`.
///
/// # Errors
/// Returns an error if the shapes do not broadcast.
#[op(binary, member, method, path = "fx_nn::ops::copysign")]
pub fn copysign(x: &Tensor, other: impl Into<TensorOrNumber>) -> Result<Tensor> {
    let (x, other) = floats(x, &other.float_beside(x.dtype()?)?)?;
    couple(Couple::Copysign, "copysign", &x, &other)
}

/// x · log(other), and 0 where x is 0 and `other` a number; integers become `float32`.
///
/// ```
/// use fx_nn::prelude::*;
/// let (x, y) = (Tensor::from_vec(vec![0.0f64, 2.0], 2)?, Tensor::from_vec(vec![0.0f64, 1.0], 2)?);
/// assert_eq!(x.xlogy(&y)?.to_vec()?, [0.0, 0.0]);
/// # Ok::<(), fx_nn::Error>(())
/// ```
///
/// # Errors
/// Returns an error if the shapes do not broadcast.
#[op(binary, member, method, path = "fx_nn::ops::xlogy")]
pub fn xlogy(x: &Tensor, other: impl Into<TensorOrNumber>) -> Result<Tensor> {
    let (x, other) = floats(x, &other.float_beside(x.dtype()?)?)?;
    couple(Couple::Xlogy, "xlogy", &x, &other)
}

/// The rest of x / other with the sign of x, as C's `fmod`.
///
/// ```
/// use fx_nn::prelude::*;
/// let x = Tensor::from_vec(vec![-7i64, 7], 2)?;
/// assert_eq!(x.fmod(4)?.to_vec()?, [-3.0, 3.0]);
/// assert_eq!(x.remainder(4)?.to_vec()?, [1.0, 3.0]);
/// # Ok::<(), fx_nn::Error>(())
/// ```
///
/// # Errors
/// Returns an error if the shapes do not broadcast, an integer is divided by zero, or both are of
/// truth values.
#[op(binary, member, method, path = "fx_nn::ops::fmod")]
pub fn fmod(x: &Tensor, other: impl Into<TensorOrNumber>) -> Result<Tensor> {
    let (x, other, common) = promoted(x, &other.beside(x.dtype()?)?)?;
    if common.is_floating_point() {
        return couple(Couple::Fmod, "fmod", &x, &other);
    }
    whole("fmod", &x, &other, common, |a, b| match b {
        0 => None,
        b => Some(a.wrapping_rem(b)),
    })
}

/// The greatest common divisors of integers.
///
/// # Errors
/// Returns an error if the shapes do not broadcast, or the tensors are not of integers.
#[op(
    binary,
    member,
    flat = "takes and gives integers",
    method,
    path = "fx_nn::ops::gcd"
)]
pub fn gcd(x: &Tensor, other: &Tensor) -> Result<Tensor> {
    let (x, other, common) = promoted(x, other)?;
    whole("gcd", &x, &other, common, |a, b| Some(divisor(a, b)))
}

/// The least common multiples of integers; what does not fit wraps around.
///
/// # Errors
/// Returns an error if the shapes do not broadcast, or the tensors are not of integers.
#[op(
    binary,
    member,
    flat = "takes and gives integers",
    method,
    path = "fx_nn::ops::lcm"
)]
pub fn lcm(x: &Tensor, other: &Tensor) -> Result<Tensor> {
    let (x, other, common) = promoted(x, other)?;
    whole("lcm", &x, &other, common, |a, b| {
        let divisor = divisor(a, b);
        Some(match divisor {
            0 => 0,
            divisor => a.wrapping_div(divisor).wrapping_mul(b).wrapping_abs(),
        })
    })
}

/// By Euclid's rule.
fn divisor(a: i64, b: i64) -> i64 {
    let (mut a, mut b) = (a, b);
    while b != 0 {
        (a, b) = (b, a.wrapping_rem(b));
    }
    a.wrapping_abs()
}

/// `of` each two integers, `None` where the second is zero and must not be.
fn whole(
    op: &str,
    x: &Tensor,
    other: &Tensor,
    common: DType,
    of: impl Fn(i64, i64) -> Option<i64>,
) -> Result<Tensor> {
    require(op, common != DType::Bool && !common.is_floating_point())?;
    let (x, other) = (x.data(op)?, other.data(op)?);
    let dims = expand::shape(op, x.dims(), other.dims()).fx()?;
    let all = |t: &candle_core::Tensor| {
        expand::to(t, &dims)
            .and_then(|t| integers::elements(&t))
            .fx()
    };
    let pairs = all(x)?.into_iter().zip(all(other)?);
    let numbers: Option<Vec<i64>> = pairs.map(|(a, b)| of(a, b)).collect();
    let numbers =
        numbers.ok_or_else(|| Error::msg(format_args!("{op}: an integer is divided by zero")))?;
    Tensor::from_vec(numbers, dims.as_slice())?.cast(common)
}

/// The rest of x / other with the sign of `other`, as Python's `%`.
///
/// # Errors
/// Returns an error if the shapes do not broadcast, an integer is divided by zero, or both are of
/// truth values.
#[op(binary, member, method, path = "fx_nn::ops::remainder")]
pub fn remainder(x: &Tensor, other: impl Into<TensorOrNumber>) -> Result<Tensor> {
    operator(Operator::Mod, x, &other)
}

/// The quotient rounded down, PyTorch's function for `x.floor_divide(other)`.
///
/// # Errors
/// Returns an error if the shapes do not broadcast, an integer is divided by zero, or both are of
/// truth values.
#[op(binary, member, flat = "is flat", path = "fx_nn::ops::floor_divide")]
pub fn floor_divide(x: &Tensor, other: impl Into<TensorOrNumber>) -> Result<Tensor> {
    operator(Operator::Floordiv, x, &other)
}

macro_rules! bits {
    ($($name:ident $path:literal $op:ident $does:literal;)*) => {$(
        #[doc = concat!($does, ", of integers; shapes broadcast.")]
        ///
        /// # Errors
        /// Returns an error if the shapes do not broadcast, or one of the two is float.
        #[op(binary, member, flat = "takes and gives integers", method, path = $path)]
        pub fn $name(x: &Tensor, other: impl Into<TensorOrNumber>) -> Result<Tensor> {
            operator(Operator::$op, x, &other)
        }
    )*};
}

bits! {
    bitwise_and "fx_nn::ops::bitwise_and" And "The bits that both have, or truth values that are both true";
    bitwise_or "fx_nn::ops::bitwise_or" Or "The bits that either has, or truth values of which one is true";
    bitwise_xor "fx_nn::ops::bitwise_xor" Xor "The bits that one of the two has, or where truth values differ";
    bitwise_left_shift "fx_nn::ops::bitwise_left_shift" Lshift "The bits moved up by `other`, which doubles so often";
    bitwise_right_shift "fx_nn::ops::bitwise_right_shift" Rshift "The bits moved down by `other`, the sign's copies behind";
}

/// The other bits of integers, or the other truth values.
///
/// # Errors
/// Returns an error if the tensor is float.
#[op(
    unary,
    member,
    flat = "takes and gives integers",
    method,
    path = "fx_nn::ops::bitwise_not"
)]
pub fn bitwise_not(x: &Tensor) -> Result<Tensor> {
    <Tensor as Traced>::apply(Operator::Invert, &[x.lend()])
}

macro_rules! logic {
    ($($name:ident $($form:ident)? $path:literal ($kernel:path) $does:literal;)*) => {$(
        #[doc = concat!("Where ", $does, ", as truth values; a number is true where it is not 0.")]
        ///
        /// # Errors
        /// Returns an error if the shapes do not broadcast.
        #[op(compare $(, $form)?, flat = "gives truth values", method, path = $path)]
        pub fn $name(x: &Tensor, other: &Tensor) -> Result<Tensor> {
            let (x, other) = (x.cast(DType::Bool)?, other.cast(DType::Bool)?);
            let op = stringify!($name);
            $kernel(x.data(op)?, other.data(op)?).map(Tensor::from_bools).fx()
        }
    )*};
}

logic! {
    logical_and member "fx_nn::ops::logical_and" (binary::mul) "both are true";
    logical_or member "fx_nn::ops::logical_or" (binary::maximum) "one or both are true";
    logical_xor "fx_nn::ops::logical_xor" (comparison::ne) "one is true and the other is not";
}

/// Where x is 0, as truth values.
///
/// # Errors
/// Returns no errors of its own.
#[op(
    unary,
    member,
    flat = "gives truth values",
    method,
    path = "fx_nn::ops::logical_not"
)]
pub fn logical_not(x: &Tensor) -> Result<Tensor> {
    <Tensor as Traced>::apply(Operator::Invert, &[x.cast(DType::Bool)?.lend()])
}

/// The larger of each two elements; of a nan and a number, the number.
///
/// # Errors
/// Returns an error if the shapes do not broadcast.
#[op(binary, method, path = "fx_nn::ops::fmax")]
pub fn fmax(x: &Tensor, other: &Tensor) -> Result<Tensor> {
    extreme("fmax", x, other, true)
}

/// The smaller of each two elements; of a nan and a number, the number.
///
/// # Errors
/// Returns an error if the shapes do not broadcast.
#[op(binary, method, path = "fx_nn::ops::fmin")]
pub fn fmin(x: &Tensor, other: &Tensor) -> Result<Tensor> {
    extreme("fmin", x, other, false)
}

fn extreme(op: &'static str, x: &Tensor, other: &Tensor, largest: bool) -> Result<Tensor> {
    let (x, other, _) = promoted(x, other)?;
    let result = binary::extreme_number(op, x.data(op)?, other.data(op)?, largest).fx()?;
    Ok(x.with_data(result))
}

/// 0 where x is below 0, 1 where it is above, and `values` where it is 0.
///
/// ```
/// use fx_nn::prelude::*;
/// let x = Tensor::from_vec(vec![-1.5f32, 0.0, 2.0], 3)?;
/// let half = Tensor::from_vec(vec![0.5f32], 1)?;
/// assert_eq!(x.heaviside(&half)?.to_vec()?, [0.0, 0.5, 1.0]);
/// # Ok::<(), fx_nn::Error>(())
/// ```
///
/// # Errors
/// Returns an error if the shapes do not broadcast, or the types differ.
#[op(binary, flat = "is flat", method, path = "fx_nn::ops::heaviside")]
pub fn heaviside(x: &Tensor, values: &Tensor) -> Result<Tensor> {
    let dtype = x.dtype()?;
    require("heaviside", dtype == values.dtype()?)?;
    let step = x.gt(0)?.cast(dtype)?;
    let (at, step) = (x.eq(0)?, step.data("heaviside")?.clone());
    select::choose(
        "heaviside",
        at.data("heaviside")?,
        values.data("heaviside")?,
        &step,
    )
    .map(|data| x.with_data(data))
    .fx()
}
