//! Fourier transforms between real and complex tensors along several dims, those of Hermitian signals, and frequencies:
//! each is made of `rfft`, `irfft`, `fft` and `ifft`, here and in its decomposition alike.

use crate::op;
use fx_core::Result;
use fx_core::passes::DecomposedCall;
use fx_core::value::{DType, Int};

use super::create::arange;
use super::dims::narrow;
use super::fft::{fft, ifft, irfft, rfft};
use super::shape::cat;
use crate::error::{Fx, require, unfit};
use crate::tensor::{Dims, Sizes, Tensor};

/// The transform of a real tensor along several dims, of which the last becomes `n / 2 + 1` numbers: the others mirror
/// them. The result is complex.
///
/// `s` is the number of transformed elements of each, -1 for all. Dims `..` are the last ones, as many as `s` has, or
/// all. See [`fft`] for `norm`.
///
/// ```
/// use fx_nn::prelude::*;
/// let x = Tensor::ones((4, 6))?;
/// let y = ops::fft::rfftn(&x, None, .., None)?;
/// assert_eq!(y.dims()?, [4, 4, 2]);
/// assert_eq!(y.i((0, 0, 0))?.item()?, 24.0);
/// let again = ops::fft::irfftn(&y, None, .., None)?;
/// assert!(fx_nn::allclose(&again, &x, 1e-5, 1e-6)?.close);
/// # Ok::<(), fx_nn::Error>(())
/// ```
///
/// # Errors
/// Returns an error if the tensor is half precision, no dim is transformed, there is no such dim or norm, a size is
/// below 1, or there are not as many sizes as dims.
#[op(member, path = "fx_nn::ops::fft::rfftn")]
pub fn rfftn(
    x: &Tensor,
    s: Option<Sizes>,
    #[default(None)] dim: impl Into<Dims>,
    norm: Option<&str>,
) -> Result<Tensor> {
    let plan = Plan::new("rfftn", Some(x.dims()?.len()), known(s)?, &dim)?;
    real(x, &plan, norm)
}

/// [`rfftn`] along two dims; `..` is the last two.
///
/// # Errors
/// Returns the errors of `rfftn`.
#[op(decomposed = |call| real_of(call, None), path = "fx_nn::ops::fft::rfft2")]
pub fn rfft2(
    x: &Tensor,
    s: Option<Sizes>,
    #[default(None)] dim: impl Into<Dims>,
    norm: Option<&str>,
) -> Result<Tensor> {
    let plan = Plan::new("rfft2", Some(x.dims()?.len()), known(s)?, &dim)?;
    real(x, &plan, norm)
}

/// The inverse of [`rfftn`]: real numbers of a complex tensor, along the last of the dims twice as many as there are
/// without the first and the last, unless `s` says another.
///
/// # Errors
/// Returns an error if the tensor is not complex, no dim is transformed, there is no such dim or norm, a size is below
/// 1, or there are not as many sizes as dims.
#[op(along, member, path = "fx_nn::ops::fft::irfftn")]
pub fn irfftn(
    x: &Tensor,
    s: Option<Sizes>,
    #[default(None)] dim: impl Into<Dims>,
    norm: Option<&str>,
) -> Result<Tensor> {
    let plan = Plan::new("irfftn", Some(complex_rank("irfftn", x)?), known(s)?, &dim)?;
    to_real(x, &plan, norm)
}

/// [`irfftn`] along two dims; `..` is the last two.
///
/// # Errors
/// Returns the errors of `irfftn`.
#[op(along, decomposed = |call| to_real_of(call, None), path = "fx_nn::ops::fft::irfft2")]
pub fn irfft2(
    x: &Tensor,
    s: Option<Sizes>,
    #[default(None)] dim: impl Into<Dims>,
    norm: Option<&str>,
) -> Result<Tensor> {
    let plan = Plan::new("irfft2", Some(complex_rank("irfft2", x)?), known(s)?, &dim)?;
    to_real(x, &plan, norm)
}

/// The transform of a Hermitian signal, which is real: `n` numbers of the complex half of it that is there, by default
/// twice as many as there are without the first and the last.
///
/// ```
/// use fx_nn::prelude::*;
/// let x = Tensor::from_vec(vec![1.0f64, 0.0, 2.0, 0.0], (2, 2))?; // the signal 1, 2
/// assert_eq!(ops::fft::hfft(&x, None, -1, None)?.to_vec()?, [3.0, -1.0]);
/// # Ok::<(), fx_nn::Error>(())
/// ```
///
/// # Errors
/// Returns an error if the tensor is not complex, there is no such dim or norm, or `n` is below 1.
#[op(along, decomposed = hermitian_of, path = "fx_nn::ops::fft::hfft")]
pub fn hfft(
    x: &Tensor,
    n: Option<Int>,
    #[default(-1)] dim: i64,
    norm: Option<&str>,
) -> Result<Tensor> {
    complex_rank("hfft", x)?;
    hermitian(x, n, dim, norm)
}

/// The inverse of [`hfft`]: the first `n / 2 + 1` complex numbers of the signal of which a real tensor is the
/// transform.
///
/// # Errors
/// Returns an error if the tensor is half precision, there is no such dim or norm, or `n` is below 1.
#[op(decomposed = to_hermitian_of, path = "fx_nn::ops::fft::ihfft")]
pub fn ihfft(
    x: &Tensor,
    n: Option<Int>,
    #[default(-1)] dim: i64,
    norm: Option<&str>,
) -> Result<Tensor> {
    to_hermitian(x, n, dim, norm)
}

/// The transform of a signal that is Hermitian along the last of several dims: that of [`fft`] along the others, then
/// [`hfft`]. See [`irfftn`] for `s` and the dims.
///
/// # Errors
/// Returns the errors of `irfftn`.
#[op(along, member, path = "fx_nn::ops::fft::hfftn")]
pub fn hfftn(
    x: &Tensor,
    s: Option<Sizes>,
    #[default(None)] dim: impl Into<Dims>,
    norm: Option<&str>,
) -> Result<Tensor> {
    let plan = Plan::new("hfftn", Some(complex_rank("hfftn", x)?), known(s)?, &dim)?;
    hermitian_many(x, &plan, norm)
}

/// [`hfftn`] along two dims; `..` is the last two.
///
/// # Errors
/// Returns the errors of `irfftn`.
#[op(along, decomposed = |call| hermitian_many_of(call, None), path = "fx_nn::ops::fft::hfft2")]
pub fn hfft2(
    x: &Tensor,
    s: Option<Sizes>,
    #[default(None)] dim: impl Into<Dims>,
    norm: Option<&str>,
) -> Result<Tensor> {
    let plan = Plan::new("hfft2", Some(complex_rank("hfft2", x)?), known(s)?, &dim)?;
    hermitian_many(x, &plan, norm)
}

/// The inverse of [`hfftn`], of a real tensor. See [`rfftn`] for `s` and the dims.
///
/// # Errors
/// Returns the errors of `rfftn`.
#[op(member, path = "fx_nn::ops::fft::ihfftn")]
pub fn ihfftn(
    x: &Tensor,
    s: Option<Sizes>,
    #[default(None)] dim: impl Into<Dims>,
    norm: Option<&str>,
) -> Result<Tensor> {
    let plan = Plan::new("ihfftn", Some(x.dims()?.len()), known(s)?, &dim)?;
    to_hermitian_many(x, &plan, norm)
}

/// [`ihfftn`] along two dims; `..` is the last two.
///
/// # Errors
/// Returns the errors of `rfftn`.
#[op(decomposed = |call| to_hermitian_many_of(call, None), path = "fx_nn::ops::fft::ihfft2")]
pub fn ihfft2(
    x: &Tensor,
    s: Option<Sizes>,
    #[default(None)] dim: impl Into<Dims>,
    norm: Option<&str>,
) -> Result<Tensor> {
    let plan = Plan::new("ihfft2", Some(x.dims()?.len()), known(s)?, &dim)?;
    to_hermitian_many(x, &plan, norm)
}

/// The frequencies of the `n` numbers of [`fft`], in its order: from 0 up, then those below 0. `d` is the distance of
/// two elements; the type is `float32` unless one is given.
///
/// ```
/// use fx_nn::prelude::*;
/// assert_eq!(ops::fft::fftfreq(4, 1.0, None)?.to_vec()?, [0.0, 0.25, -0.5, -0.25]);
/// assert_eq!(ops::fft::rfftfreq(4, 1.0, None)?.to_vec()?, [0.0, 0.25, 0.5]);
/// # Ok::<(), fx_nn::Error>(())
/// ```
///
/// # Errors
/// Returns an error if the type is not float, or so many do not fit into memory.
#[op(
    create,
    decomposed = frequencies_of,
    flat = "has no tensor among its arguments",
    path = "fx_nn::ops::fft::fftfreq"
)]
pub fn fftfreq(n: usize, #[default(1.0)] d: f64, #[kw] dtype: Option<DType>) -> Result<Tensor> {
    require("fftfreq", dtype.is_none_or(DType::is_floating_point))?;
    frequencies(n, d, dtype)
}

/// The frequencies of the `n / 2 + 1` numbers of [`rfft`], as [`fftfreq`] gives them.
///
/// # Errors
/// Returns the errors of `fftfreq`.
#[op(
    create,
    decomposed = half_frequencies_of,
    flat = "has no tensor among its arguments",
    path = "fx_nn::ops::fft::rfftfreq"
)]
pub fn rfftfreq(n: usize, #[default(1.0)] d: f64, #[kw] dtype: Option<DType>) -> Result<Tensor> {
    require("rfftfreq", dtype.is_none_or(DType::is_floating_point))?;
    half_frequencies(n, d, dtype)
}

fn frequencies(n: usize, d: f64, dtype: Option<DType>) -> Result<Tensor> {
    let dtype = Some(dtype.unwrap_or(DType::F32));
    let (n, below) = (n as i64, (n / 2) as i64);
    let up = arange(0, n - below, 1, dtype)?;
    let all = match below {
        0 => up,
        below => cat(&[up, arange(-below, 0, 1, dtype)?], 0)?,
    };
    all * (1.0 / (n as f64 * d))
}

fn half_frequencies(n: usize, d: f64, dtype: Option<DType>) -> Result<Tensor> {
    let half = (n / 2) as i64 + 1;
    arange(0, half, 1, Some(dtype.unwrap_or(DType::F32)))? * (1.0 / (n as f64 * d))
}

/// The dims that are transformed, the last of which is the real one, with the numbers of elements.
struct Plan {
    others: Vec<(i64, Option<Int>)>,
    last: (i64, Option<Int>),
}

impl Plan {
    /// Without dims they are the last ones: two of a function of planes, or as many as there are sizes, or all. Where
    /// the number of dims is not known, they are as they are named.
    fn new(op: &str, rank: Option<usize>, sizes: Option<Vec<Int>>, dims: &Dims) -> Result<Plan> {
        let of_planes = op.ends_with('2').then_some(2);
        let places: Vec<i64> = match (dims, rank) {
            (Dims::All, rank) => {
                let many = of_planes.or(sizes.as_ref().map(Vec::len)).or(rank);
                let many = many.ok_or_else(|| unfit(op))?;
                require(op, rank.is_none_or(|rank| many <= rank))?;
                (-(many as i64)..0).collect()
            }
            (dims, Some(rank)) => {
                let places = dims.resolve(op, rank).fx()?;
                places.into_iter().map(|place| place as i64).collect()
            }
            (Dims::One(dim), None) => vec![*dim],
            (Dims::Many(dims), None) => dims.clone(),
        };
        let sizes = match sizes {
            Some(sizes) => sizes.into_iter().map(Some).collect(),
            None => vec![None; places.len()],
        };
        require(op, sizes.len() == places.len())?;
        let all = places.into_iter().zip(sizes).map(|(place, size)| {
            let is_whole = |size: &Int| size.concrete() == Some(-1);
            (place, size.filter(|size| !is_whole(size)))
        });
        let mut others: Vec<_> = all.collect();
        let last = others.pop().ok_or_else(|| unfit(op))?;
        Ok(Plan { others, last })
    }

    /// That of a call, of a tensor of so many dims without that of the parts.
    fn of(call: &DecomposedCall<'_>, rank: Option<usize>) -> Result<Plan> {
        let op = call.function().name();
        Plan::new(op, rank, call.arg("s")?, &call.arg("dim")?)
    }
}

fn known(sizes: Option<Sizes>) -> Result<Option<Vec<Int>>> {
    let sizes = sizes.map(|sizes| sizes.known()).transpose()?;
    Ok(sizes.map(|sizes| sizes.into_iter().map(Int::from).collect()))
}

/// How many dims a complex tensor has without that of the parts.
fn complex_rank(op: &str, x: &Tensor) -> Result<usize> {
    match x.dims()? {
        [rest @ .., 2] => Ok(rest.len()),
        _ => Err(unfit(op)),
    }
}

/// A complex tensor with the other signs of its imaginary parts.
fn conjugate(x: &Tensor) -> Result<Tensor> {
    cat(&[narrow(x, -1, 0, 1)?, (-narrow(x, -1, 1, 1)?)?], -1)
}

/// The way to divide of the inverse.
fn turned(norm: Option<&str>) -> Option<&str> {
    match norm {
        None | Some("backward") => Some("forward"),
        Some("forward") => Some("backward"),
        other => other,
    }
}

fn real(x: &Tensor, plan: &Plan, norm: Option<&str>) -> Result<Tensor> {
    let (last, n) = plan.last;
    let start = rfft(x, n, last, norm)?;
    plan.others
        .iter()
        .cloned()
        .try_fold(start, |x, (dim, n)| fft(&x, n, dim, norm))
}

fn to_real(x: &Tensor, plan: &Plan, norm: Option<&str>) -> Result<Tensor> {
    let (last, n) = plan.last;
    let mut others = plan.others.iter().cloned();
    let x = others.try_fold(x.clone(), |x, (dim, n)| ifft(&x, n, dim, norm))?;
    irfft(&x, n, last, norm)
}

fn hermitian(x: &Tensor, n: Option<Int>, dim: i64, norm: Option<&str>) -> Result<Tensor> {
    irfft(&conjugate(x)?, n, dim, turned(norm))
}

fn to_hermitian(x: &Tensor, n: Option<Int>, dim: i64, norm: Option<&str>) -> Result<Tensor> {
    conjugate(&rfft(x, n, dim, turned(norm))?)
}

fn hermitian_many(x: &Tensor, plan: &Plan, norm: Option<&str>) -> Result<Tensor> {
    let (last, n) = plan.last;
    let mut others = plan.others.iter().cloned();
    let x = others.try_fold(x.clone(), |x, (dim, n)| fft(&x, n, dim, norm))?;
    hermitian(&x, n, last, norm)
}

fn to_hermitian_many(x: &Tensor, plan: &Plan, norm: Option<&str>) -> Result<Tensor> {
    let (last, n) = plan.last;
    let start = to_hermitian(x, n, last, norm)?;
    plan.others
        .iter()
        .cloned()
        .try_fold(start, |x, (dim, n)| ifft(&x, n, dim, norm))
}

/// The tensor and the way to divide of a call.
fn arguments(call: &DecomposedCall<'_>) -> Result<(Tensor, Option<String>)> {
    Ok((call.arg("x")?, call.arg("norm")?))
}

/// What [`rfftn`], and that of planes, is written as; without the number of dims, of dims that are named.
pub(crate) fn real_of(call: &DecomposedCall<'_>, rank: Option<usize>) -> Result<Tensor> {
    let (x, norm) = arguments(call)?;
    real(&x, &Plan::of(call, rank)?, norm.as_deref())
}

/// What [`irfftn`], and that of planes, is written as; without the number of dims, of dims that are named.
pub(crate) fn to_real_of(call: &DecomposedCall<'_>, rank: Option<usize>) -> Result<Tensor> {
    let (x, norm) = arguments(call)?;
    to_real(&x, &Plan::of(call, rank)?, norm.as_deref())
}

fn hermitian_of(call: &DecomposedCall<'_>) -> Result<Tensor> {
    let (x, norm) = arguments(call)?;
    hermitian(&x, call.arg("n")?, call.arg("dim")?, norm.as_deref())
}

fn to_hermitian_of(call: &DecomposedCall<'_>) -> Result<Tensor> {
    let (x, norm) = arguments(call)?;
    to_hermitian(&x, call.arg("n")?, call.arg("dim")?, norm.as_deref())
}

/// What [`hfftn`], and that of planes, is written as; without the number of dims, of dims that are named.
pub(crate) fn hermitian_many_of(call: &DecomposedCall<'_>, rank: Option<usize>) -> Result<Tensor> {
    let (x, norm) = arguments(call)?;
    hermitian_many(&x, &Plan::of(call, rank)?, norm.as_deref())
}

/// What [`ihfftn`], and that of planes, is written as; without the number of dims, of dims that are named.
pub(crate) fn to_hermitian_many_of(
    call: &DecomposedCall<'_>,
    rank: Option<usize>,
) -> Result<Tensor> {
    let (x, norm) = arguments(call)?;
    to_hermitian_many(&x, &Plan::of(call, rank)?, norm.as_deref())
}

fn frequencies_of(call: &DecomposedCall<'_>) -> Result<Tensor> {
    frequencies(call.arg("n")?, call.arg("d")?, call.arg("dtype")?)
}

fn half_frequencies_of(call: &DecomposedCall<'_>) -> Result<Tensor> {
    half_frequencies(call.arg("n")?, call.arg("d")?, call.arg("dtype")?)
}
