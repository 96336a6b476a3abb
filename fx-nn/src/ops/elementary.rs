//! Functions of each element: rounding, signs, angles, hyperbolic functions, exponentials and logarithms.

use crate::op;
use fx_core::Result;
use fx_core::tensor::Object;

use crate::error::{Fx, require};
use crate::kernels::elementary::{self, Elementary};
use crate::kernels::pointwise;
use crate::tensor::Tensor;

macro_rules! functions {
    ($($name:ident $($form:ident)? $path:literal $of:ident $does:literal;)*) => {$(
        #[doc = concat!($does, "; integers become `float32`.")]
        ///
        /// # Errors
        /// Returns the errors of the conversion to float.
        #[op(unary $(, $form)?, method, path = $path)]
        pub fn $name(x: &Tensor) -> Result<Tensor> {
            let x = x.as_float()?;
            Elementary::$of.of(x.data(stringify!($name))?).map(Tensor::made).fx()
        }
    )*};
}

functions! {
    tan member "fx_nn::ops::tan" Tan "The tangent of x in radians";
    asin member "fx_nn::ops::asin" Asin "The arc sine, in radians; nan outside of [-1, 1]";
    acos member "fx_nn::ops::acos" Acos "The arc cosine, in radians; nan outside of [-1, 1]";
    atan member "fx_nn::ops::atan" Atan "The arc tangent, in radians";
    sinh member "fx_nn::ops::sinh" Sinh "The hyperbolic sine";
    cosh member "fx_nn::ops::cosh" Cosh "The hyperbolic cosine";
    asinh member "fx_nn::ops::asinh" Asinh "The inverse of the hyperbolic sine";
    acosh member "fx_nn::ops::acosh" Acosh "The inverse of the hyperbolic cosine; nan below 1";
    atanh member "fx_nn::ops::atanh" Atanh "The inverse of the hyperbolic tangent; nan outside of [-1, 1]";
    log1p member "fx_nn::ops::log1p" Log1p "log(1 + x), precise where x is small";
    log2 "fx_nn::ops::log2" Log2 "The logarithm to the base 2";
    log10 "fx_nn::ops::log10" Log10 "The logarithm to the base 10";
    exp2 "fx_nn::ops::exp2" Exp2 "2 to the power of x";
    erfc member "fx_nn::ops::erfc" Erfc "1 - erf(x), precise where x is large";
    erfinv member "fx_nn::ops::erfinv" Erfinv "The inverse of the error function; nan outside of [-1, 1]";
    sinc "fx_nn::ops::sinc" Sinc "sin(πx) / πx, and 1 at 0";
}

/// exp(x) - 1, precise where x is small; integers become `float32`.
///
/// # Errors
/// Returns the errors of the conversion to float.
#[op(unary, member, method, path = "fx_nn::ops::expm1")]
pub fn expm1(x: &Tensor) -> Result<Tensor> {
    elementary::expm1(x.as_float()?.data("expm1")?)
        .map(Tensor::made)
        .fx()
}

/// log(x / (1 - x)), the inverse of `sigmoid`; with `eps`, x is held in [eps, 1 - eps] first.
///
/// ```
/// use fx_nn::prelude::*;
/// let x = Tensor::from_vec(vec![0.5f32, 1.0], 2)?;
/// assert_eq!(x.logit(None)?.to_vec()?, [0.0, f64::INFINITY]);
/// assert_eq!(x.logit(Some(0.25))?.to_vec()?[1], f64::from(3f32.ln()));
/// # Ok::<(), fx_nn::Error>(())
/// ```
///
/// # Errors
/// Returns the errors of the conversion to float.
#[op(unary, method, path = "fx_nn::ops::logit")]
pub fn logit(x: &Tensor, #[kw] eps: Option<f64>) -> Result<Tensor> {
    let x = x.as_float()?;
    elementary::logit(x.data("logit")?, eps)
        .map(Tensor::made)
        .fx()
}

/// Whole numbers of floats; integers are as they are.
fn whole(op: &str, x: &Tensor, of: Elementary) -> Result<Tensor> {
    require(op, !x.is_bool())?;
    match x.dtype()?.is_floating_point() {
        true => of.of(x.data(op)?).map(Tensor::made).fx(),
        false => Ok(x.clone()),
    }
}

/// The largest whole numbers that are not above x; integers stay as they are.
///
/// # Errors
/// Returns an error for bool tensors.
#[op(unary, member, flat = "is flat", method, path = "fx_nn::ops::floor")]
pub fn floor(x: &Tensor) -> Result<Tensor> {
    whole("floor", x, Elementary::Floor)
}

/// The smallest whole numbers that are not below x; integers stay as they are.
///
/// # Errors
/// Returns an error for bool tensors.
#[op(unary, member, flat = "is flat", method, path = "fx_nn::ops::ceil")]
pub fn ceil(x: &Tensor) -> Result<Tensor> {
    whole("ceil", x, Elementary::Ceil)
}

/// x without what is behind the point; integers stay as they are.
///
/// # Errors
/// Returns an error for bool tensors.
#[op(unary, member, flat = "is flat", method, path = "fx_nn::ops::trunc")]
pub fn trunc(x: &Tensor) -> Result<Tensor> {
    whole("trunc", x, Elementary::Trunc)
}

/// As [`trunc`](crate::ops::trunc()), PyTorch's other name for it.
///
/// # Errors
/// Returns an error for bool tensors.
#[op(unary, flat = "is flat", method, path = "fx_nn::ops::fix")]
pub fn fix(x: &Tensor) -> Result<Tensor> {
    whole("fix", x, Elementary::Trunc)
}

/// The nearest numbers of so many `decimals`, which may be below 0; of two as near, the even one.
///
/// ```
/// use fx_nn::prelude::*;
/// let x = Tensor::from_vec(vec![0.5f64, 1.5, 1234.567], 3)?;
/// assert_eq!(x.round(0)?.to_vec()?, [0.0, 2.0, 1235.0]);
/// assert_eq!(x.round(1)?.to_vec()?, [0.5, 1.5, 1234.6]);
/// assert_eq!(x.round(-2)?.to_vec()?, [0.0, 0.0, 1200.0]);
/// # Ok::<(), fx_nn::Error>(())
/// ```
///
/// # Errors
/// Returns an error for bool tensors, and for integers with `decimals` other than 0.
#[op(unary, member, flat = "is flat", method, path = "fx_nn::ops::round")]
pub fn round(
    x: &Tensor,
    #[kw]
    #[default(0)]
    decimals: i64,
) -> Result<Tensor> {
    if decimals == 0 {
        return whole("round", x, Elementary::Round);
    }
    floating("round to decimals", x)?;
    elementary::round_to(x.data("round")?, decimals)
        .map(Tensor::made)
        .fx()
}

/// Refuses what is not float.
pub(super) fn floating(op: &str, x: &Tensor) -> Result<()> {
    require(op, x.dtype()?.is_floating_point())
}

/// What is behind the point, with the sign of x.
///
/// # Errors
/// Returns an error if the tensor is not float.
#[op(unary, method, path = "fx_nn::ops::frac")]
pub fn frac(x: &Tensor) -> Result<Tensor> {
    floating("frac", x)?;
    Elementary::Frac.of(x.data("frac")?).map(Tensor::made).fx()
}

/// 1 where x is above 0, -1 where it is below, and 0 elsewhere, for nan too.
///
/// # Errors
/// Returns no errors of its own.
#[op(unary, member, flat = "is flat", method, path = "fx_nn::ops::sign")]
pub fn sign(x: &Tensor) -> Result<Tensor> {
    sign_of("sign", x)
}

/// As [`sign`](crate::ops::sign()): PyTorch's name for it that knows complex numbers.
///
/// # Errors
/// Returns no errors of its own.
#[op(unary, flat = "is flat", method, path = "fx_nn::ops::sgn")]
pub fn sgn(x: &Tensor) -> Result<Tensor> {
    sign_of("sgn", x)
}

fn sign_of(op: &str, x: &Tensor) -> Result<Tensor> {
    let dtype = x.dtype()?;
    if x.is_bool() {
        return Ok(x.clone());
    }
    if dtype.is_floating_point() {
        return Elementary::Sign.of(x.data(op)?).map(Tensor::made).fx();
    }
    x.gt(0)?.cast(dtype)? - x.lt(0)?.cast(dtype)?
}

/// The absolute values, PyTorch's function for `x.abs()`.
///
/// # Errors
/// Returns an error for bool tensors.
#[op(unary, path = "fx_nn::ops::absolute")]
pub fn absolute(x: &Tensor) -> Result<Tensor> {
    x.abs()
}

/// x itself.
///
/// # Errors
/// Returns an error for bool tensors.
#[op(unary, method, path = "fx_nn::ops::positive")]
pub fn positive(x: &Tensor) -> Result<Tensor> {
    require("positive", !x.is_bool())?;
    Ok(x.clone())
}

/// The same numbers, through which no gradient runs.
///
/// ```
/// use fx_nn::prelude::*;
/// let x = Tensor::ones(2)?.into_parameter()?;
/// let y = (&x * ops::detach(&x)?)?.sum(..)?;
/// assert_eq!(y.grad(&[&x])?[0].to_vec()?, [1.0, 1.0]);
/// # Ok::<(), fx_nn::Error>(())
/// ```
///
/// # Errors
/// Returns no errors of its own.
#[op(unary, member, flat = "stops gradients", path = "fx_nn::ops::detach")]
pub fn detach(x: &Tensor) -> Result<Tensor> {
    let data = x.elements("detach")?.detach();
    Ok(x.with_data(data))
}

impl Tensor {
    /// The same data, without its gradient history; of a traced tensor, [`ops::detach`](detach).
    ///
    /// # Errors
    /// Returns no errors of its own.
    #[track_caller]
    pub fn detach(&self) -> Result<Tensor> {
        match (self.as_fake(), Object::proxy(self)) {
            (Some(fake), _) => Ok(Tensor::of_fake(fake.with_grad(false))),
            (None, Some(_)) => detach(self),
            (None, None) => Ok(self.with_data(self.elements("detach")?.detach())),
        }
    }
}

/// Degrees as radians; integers become `float32`.
///
/// # Errors
/// Returns the errors of the conversion to float.
#[op(unary, method, path = "fx_nn::ops::deg2rad")]
pub fn deg2rad(x: &Tensor) -> Result<Tensor> {
    let x = x.as_float()?;
    pointwise::times(x.data("deg2rad")?, std::f64::consts::PI / 180.0)
        .map(Tensor::made)
        .fx()
}

/// Radians as degrees; integers become `float32`.
///
/// # Errors
/// Returns the errors of the conversion to float.
#[op(unary, method, path = "fx_nn::ops::rad2deg")]
pub fn rad2deg(x: &Tensor) -> Result<Tensor> {
    let x = x.as_float()?;
    pointwise::times(x.data("rad2deg")?, 180.0 / std::f64::consts::PI)
        .map(Tensor::made)
        .fx()
}
