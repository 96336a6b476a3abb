//! `torch.special`: the gamma function and its relatives, the normal distribution, Bessel functions and entropies.
//!
//! What PyTorch has outside of `torch.special` too (`erf`, `expm1`, `xlogy`, ..) is in [`ops`](crate::ops).
//!
//! ```
//! use fx_nn::prelude::*;
//! let x = Tensor::from_vec(vec![1.0f64, 5.0], 2)?;
//! let y = ops::special::gammaln(&x)?; // the logarithm of 4! = 24
//! assert!(fx_nn::allclose(&y, &Tensor::from_vec(vec![0.0f64, 24f64.ln()], 2)?, 1e-12, 1e-15)?.close);
//! # Ok::<(), fx_nn::Error>(())
//! ```

use crate::op;
use fx_core::Result;
use fx_core::value::DType;

use super::couples::{couple, floats, promoted};
use crate::error::{Fx, require};
use crate::kernels::couples::Couple;
use crate::kernels::special::Special;
use crate::tensor::{Tensor, TensorOrNumber};

fn each(of: Special, op: &str, x: &Tensor) -> Result<Tensor> {
    let x = x.as_float()?;
    of.of(x.data(op)?).map(Tensor::made).fx()
}

/// Functions that PyTorch does not compute in half precision.
fn each_single(of: Special, op: &str, x: &Tensor) -> Result<Tensor> {
    require(op, !matches!(x.dtype()?, DType::F16 | DType::BF16))?;
    each(of, op, x)
}

macro_rules! functions {
    ($($name:ident($($form:tt)*) $kernel:ident $of:ident $does:literal, $errors:literal;)*) => {$(
        #[doc = concat!($does, "; integers become `float32`.")]
        ///
        /// # Errors
        #[doc = $errors]
        #[op(unary, $($form)*)]
        pub fn $name(x: &Tensor) -> Result<Tensor> {
            $kernel(Special::$of, stringify!($name), x)
        }
    )*};
}

functions! {
    digamma(member, method, path = "fx_nn::ops::special::digamma") each Digamma
        "The slope of log Γ(x): an infinity at 0, nan at whole numbers below it",
        "Returns the errors of the conversion to float.";
    ndtr(path = "fx_nn::ops::special::ndtr") each Ndtr
        "The share of a normal distribution that is below x, of which PyTorch, too, has no digits below -8.3",
        "Returns the errors of the conversion to float.";
    ndtri(member, path = "fx_nn::ops::special::ndtri") each_single Ndtri
        "The inverse of `ndtr`: infinities at 0 and 1, nan outside of them",
        "Returns an error if the tensor is half precision.";
    log_ndtr(member, path = "fx_nn::ops::special::log_ndtr") each_single LogNdtr
        "log(ndtr(x)), precise where that is small",
        "Returns an error if the tensor is half precision.";
    i0(member, method, path = "fx_nn::ops::special::i0") each I0
        "The modified Bessel function of the first kind of order 0; nan at infinities, as in PyTorch",
        "Returns the errors of the conversion to float.";
    i0e(member, path = "fx_nn::ops::special::i0e") each I0e
        "exp(-|x|) · i0(x), which does not overflow",
        "Returns the errors of the conversion to float.";
    i1(member, path = "fx_nn::ops::special::i1") each I1
        "The modified Bessel function of the first kind of order 1; nan at infinities, as in PyTorch",
        "Returns the errors of the conversion to float.";
    i1e(member, path = "fx_nn::ops::special::i1e") each I1e
        "exp(-|x|) · i1(x), which does not overflow",
        "Returns the errors of the conversion to float.";
    entr(member, path = "fx_nn::ops::special::entr") each Entr
        "-x · log(x), of which a distribution's entropy is the sum: 0 at 0, minus infinity below it",
        "Returns the errors of the conversion to float.";
    erfcx(member, path = "fx_nn::ops::special::erfcx") each_single Erfcx
        "exp(x²) · erfc(x), precise where x is large",
        "Returns an error if the tensor is half precision.";
}

/// log |Γ(x)|, the logarithm of (x - 1)!; an infinity at 0 and at whole numbers below it. Integers become `float32`.
///
/// ```
/// use fx_nn::prelude::*;
/// let x = Tensor::from_vec(vec![1.0f64, 2.0, -3.0], 3)?;
/// assert_eq!(x.lgamma()?.to_vec()?, [0.0, 0.0, f64::INFINITY]);
/// # Ok::<(), fx_nn::Error>(())
/// ```
///
/// # Errors
/// Returns the errors of the conversion to float.
#[op(unary, member, method, path = "fx_nn::ops::special::lgamma")]
pub fn lgamma(x: &Tensor) -> Result<Tensor> {
    each(Special::Lgamma, "lgamma", x)
}

/// As [`lgamma`], under the name that `torch.special` has.
///
/// # Errors
/// Returns the errors of `lgamma`.
#[op(unary, path = "fx_nn::ops::special::gammaln")]
pub fn gammaln(x: &Tensor) -> Result<Tensor> {
    each(Special::Lgamma, "gammaln", x)
}

/// The `n`th slope of [`digamma`]; of 0 that itself. Integers become `float32`.
///
/// The first slope has PyTorch's digits, which are about 9.
///
/// ```
/// use fx_nn::prelude::*;
/// let x = Tensor::from_vec(vec![1.0f64], 1)?;
/// let y = ops::special::polygamma(1, &x)?.item()?;
/// assert!((y - std::f64::consts::PI.powi(2) / 6.0).abs() < 1e-8);
/// # Ok::<(), fx_nn::Error>(())
/// ```
///
/// # Errors
/// Returns an error if `n` is below 0.
#[op(unary, member, path = "fx_nn::ops::special::polygamma")]
pub fn polygamma(n: i64, x: &Tensor) -> Result<Tensor> {
    let op = "polygamma";
    require(op, n >= 0)?;
    each(
        Special::Polygamma(u32::try_from(n).unwrap_or(u32::MAX)),
        op,
        x,
    )
}

/// x · log(1 + other), and 0 where x is 0 and `other` a number; integers become `float32`.
///
/// ```
/// use fx_nn::prelude::*;
/// let x = Tensor::from_vec(vec![0.0f64, 2.0], 2)?;
/// assert_eq!(ops::special::xlog1py(&x, -1)?.to_vec()?, [0.0, f64::NEG_INFINITY]);
/// # Ok::<(), fx_nn::Error>(())
/// ```
///
/// # Errors
/// Returns an error if the shapes do not broadcast.
#[op(binary, member, path = "fx_nn::ops::special::xlog1py")]
pub fn xlog1py(x: &Tensor, other: impl Into<TensorOrNumber>) -> Result<Tensor> {
    let (x, other) = floats(x, &other.float_beside(x.dtype()?)?)?;
    couple(Couple::Xlog1py, "xlog1py", &x, &other)
}

/// Hurwitz's zeta function, the sum of (other + k)^-x for k = 0, 1, ..: of an `other` of 1 Riemann's. Integers become
/// `float32`.
///
/// It is an infinity where x is 1 or `other` a whole number below 1, and nan for an x below 1. The gradient of x, which
/// PyTorch has not, is nan.
///
/// ```
/// use fx_nn::prelude::*;
/// let x = Tensor::from_vec(vec![2.0f64], 1)?;
/// let y = ops::special::zeta(&x, 1)?.item()?;
/// assert!((y - std::f64::consts::PI.powi(2) / 6.0).abs() < 1e-14);
/// # Ok::<(), fx_nn::Error>(())
/// ```
///
/// # Errors
/// Returns an error if the shapes do not broadcast, or both are half precision.
#[op(binary, member, path = "fx_nn::ops::special::zeta")]
pub fn zeta(x: &Tensor, other: impl Into<TensorOrNumber>) -> Result<Tensor> {
    let (x, other) = floats(x, &other.float_beside(x.dtype()?)?)?;
    require("zeta", !matches!(x.dtype()?, DType::F16 | DType::BF16))?;
    couple(Couple::Zeta, "zeta", &x, &other)
}

fn gamma(of: Couple, op: &str, x: &Tensor, other: &Tensor) -> Result<Tensor> {
    let (x, other, common) = promoted(x, other)?;
    require(op, common.is_floating_point())?;
    couple(of, op, &x, &other)
}

/// The share of the integral of t^(x - 1) · exp(-t) that is below `other`, from 0 to 1; nan where x or `other` is below
/// 0.
///
/// Where both are above 20 and alike, it has PyTorch's digits, which are about 9. The gradient of x, which PyTorch has
/// not, is nan.
///
/// ```
/// use fx_nn::prelude::*;
/// let (a, x) = (Tensor::ones(2)?, Tensor::from_vec(vec![0.0f32, f32::INFINITY], 2)?);
/// assert_eq!(ops::special::gammainc(&a, &x)?.to_vec()?, [0.0, 1.0]);
/// assert_eq!(ops::special::gammaincc(&a, &x)?.to_vec()?, [1.0, 0.0]);
/// # Ok::<(), fx_nn::Error>(())
/// ```
///
/// # Errors
/// Returns an error if the shapes do not broadcast, or neither tensor is float.
#[op(binary, member, path = "fx_nn::ops::special::gammainc")]
pub fn gammainc(x: &Tensor, other: &Tensor) -> Result<Tensor> {
    gamma(Couple::GammaBelow, "gammainc", x, other)
}

/// What [`gammainc`] leaves, the share above `other`: precise where it is small.
///
/// # Errors
/// Returns the errors of `gammainc`.
#[op(binary, member, path = "fx_nn::ops::special::gammaincc")]
pub fn gammaincc(x: &Tensor, other: &Tensor) -> Result<Tensor> {
    gamma(Couple::GammaAbove, "gammaincc", x, other)
}
