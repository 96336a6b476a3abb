//! Tests of elements: which are infinite, which are close, whether all of them are.

use crate::op;
use fx_core::Result;
use fx_core::value::{Bool, DType};

use crate::error::{Fx, require};
use crate::kernels::{reduce, select};
use crate::tensor::{Number, Tensor};

/// A truth value for each element.
fn all_of(x: &Tensor, truth: bool) -> Result<Tensor> {
    let data = x.data("compare")?;
    let like = match truth {
        true => data.ones_like(),
        false => data.zeros_like(),
    };
    Tensor::from(like.fx()?).cast(DType::Bool)
}

/// Where an element is infinite, as truth values.
///
/// # Errors
/// Returns no errors of its own.
#[op(
    unary,
    member,
    flat = "gives truth values",
    method,
    path = "fx_nn::ops::isinf"
)]
pub fn isinf(x: &Tensor) -> Result<Tensor> {
    match x.dtype()?.is_floating_point() {
        true => x.abs()?.eq(f64::INFINITY),
        false => all_of(x, false),
    }
}

/// Where an element is infinite and above 0, as truth values.
///
/// # Errors
/// Returns no errors of its own.
#[op(
    unary,
    flat = "gives truth values",
    method,
    path = "fx_nn::ops::isposinf"
)]
pub fn isposinf(x: &Tensor) -> Result<Tensor> {
    match x.dtype()?.is_floating_point() {
        true => x.eq(f64::INFINITY),
        false => all_of(x, false),
    }
}

/// Where an element is infinite and below 0, as truth values.
///
/// # Errors
/// Returns no errors of its own.
#[op(
    unary,
    flat = "gives truth values",
    method,
    path = "fx_nn::ops::isneginf"
)]
pub fn isneginf(x: &Tensor) -> Result<Tensor> {
    match x.dtype()?.is_floating_point() {
        true => x.eq(f64::NEG_INFINITY),
        false => all_of(x, false),
    }
}

/// Where an element has the sign -, a zero of it and nan too, as truth values.
///
/// # Errors
/// Returns no errors of its own.
#[op(
    unary,
    member,
    flat = "gives truth values",
    method,
    path = "fx_nn::ops::signbit"
)]
pub fn signbit(x: &Tensor) -> Result<Tensor> {
    if !x.dtype()?.is_floating_point() {
        return x.lt(0);
    }
    let data = x.data("signbit")?;
    let numbers = data
        .to_dtype(candle_core::DType::F64)
        .and_then(|x| x.flatten_all())
        .and_then(|x| x.to_vec1::<f64>())
        .fx()?;
    let signs: Vec<u8> = numbers
        .iter()
        .map(|x| u8::from(x.is_sign_negative()))
        .collect();
    candle_core::Tensor::from_vec(signs, data.dims(), data.device())
        .map(Tensor::from_bools)
        .fx()
}

/// `nan` in place of nan, `posinf` of infinity and `neginf` of minus infinity: 0, the largest and the least number of
/// the type unless given.
///
/// ```
/// use fx_nn::prelude::*;
/// let x = Tensor::from_vec(vec![f64::NAN, f64::INFINITY, 1.5], 3)?;
/// assert_eq!(x.nan_to_num(None, Some(9.0), None)?.to_vec()?, [0.0, 9.0, 1.5]);
/// assert_eq!(x.nan_to_num(None, None, None)?.to_vec()?, [0.0, f64::MAX, 1.5]);
/// # Ok::<(), fx_nn::Error>(())
/// ```
///
/// # Errors
/// Returns no errors of its own.
#[op(unary, member, method, path = "fx_nn::ops::nan_to_num")]
pub fn nan_to_num(
    x: &Tensor,
    #[kw] nan: Option<f64>,
    #[kw] posinf: Option<f64>,
    #[kw] neginf: Option<f64>,
) -> Result<Tensor> {
    let dtype = x.dtype()?;
    if !dtype.is_floating_point() {
        return Ok(x.clone());
    }
    let most = Number::limits(dtype).map_or(f64::MAX, |(_, most, ..)| most);
    let cases = [
        (x.ne(x)?, nan.unwrap_or(0.0)),
        (x.eq(f64::INFINITY)?, posinf.unwrap_or(most)),
        (x.eq(f64::NEG_INFINITY)?, neginf.unwrap_or(-most)),
    ];
    let mut data = x.data("nan_to_num")?.clone();
    for (at, number) in cases {
        let number = Number::Float(number).wrapped(dtype)?;
        data = select::masked_fill(&data, at.data("nan_to_num")?, &number).fx()?;
    }
    Ok(Tensor::made(data))
}

/// Where |x - other| is at most `atol` + `rtol` · |other|, as truth values; equal infinities are close, and with
/// `equal_nan` two nans are.
///
/// ```
/// use fx_nn::prelude::*;
/// let x = Tensor::from_vec(vec![1.0f32, 2.0], 2)?;
/// let y = Tensor::from_vec(vec![1.00001f32, 2.1], 2)?;
/// assert_eq!(x.isclose(&y, 1e-3, 1e-8, false)?.to_vec()?, [1.0, 0.0]);
/// assert_eq!(x.allclose(&y, 1e-3, 1e-8, false)?.concrete(), Some(false));
/// # Ok::<(), fx_nn::Error>(())
/// ```
///
/// # Errors
/// Returns an error if the types differ, the shapes do not broadcast, or a tolerance is below 0.
#[op(
    compare,
    member,
    flat = "gives truth values",
    method,
    path = "fx_nn::ops::isclose"
)]
pub fn isclose(
    x: &Tensor,
    other: &Tensor,
    #[default(1e-5)] rtol: f64,
    #[default(1e-8)] atol: f64,
    #[default(false)] equal_nan: bool,
) -> Result<Tensor> {
    close("isclose", x, other, [rtol, atol], equal_nan)
}

fn close(
    op: &str,
    x: &Tensor,
    other: &Tensor,
    [rtol, atol]: [f64; 2],
    equal_nan: bool,
) -> Result<Tensor> {
    let (own, theirs) = (x.dtype()?, other.dtype()?);
    require(op, own == theirs)?;
    require(op, rtol >= 0.0 && atol >= 0.0)?;
    let mut found = x.eq(other)?;
    if equal_nan && own.is_floating_point() {
        found = (found | (x.ne(x)? & other.ne(other)?)?)?;
    }
    if rtol == 0.0 && atol == 0.0 {
        return Ok(found);
    }
    let (x, other) = (x.as_float()?, other.as_float()?);
    let allowed = ((&other * rtol)?.abs()? + atol)?;
    let distance = (x - other)?.abs()?;
    let is_within = (distance.le(&allowed)? & distance.lt(f64::INFINITY)?)?;
    found | is_within
}

/// Whether all elements are close, by [`isclose`].
///
/// # Errors
/// Returns the errors of `isclose`.
#[op(
    member,
    flat = "gives truth values",
    method,
    path = "fx_nn::ops::allclose"
)]
pub fn allclose(
    x: &Tensor,
    other: &Tensor,
    #[default(1e-5)] rtol: f64,
    #[default(1e-8)] atol: f64,
    #[default(false)] equal_nan: bool,
) -> Result<Bool> {
    let close = close("allclose", x, other, [rtol, atol], equal_nan)?;
    reduce::all(close.data("allclose")?).map(Bool::from).fx()
}

/// Whether both tensors have one shape and equal elements; a nan equals nothing.
///
/// # Errors
/// Returns no errors of its own.
#[op(
    member,
    flat = "gives truth values",
    method,
    path = "fx_nn::ops::equal"
)]
pub fn equal(x: &Tensor, other: &Tensor) -> Result<Bool> {
    if x.dims()? != other.dims()? {
        return Ok(Bool::from(false));
    }
    reduce::all(x.eq(other)?.data("equal")?)
        .map(Bool::from)
        .fx()
}
