//! `torch.fft`: discrete Fourier transforms. A complex tensor is a real one with a last dim of 2, the real and the
//! imaginary part, as by `torch.view_as_real`; `dim` counts the dims without it.
//!
//! Transforms are of `float32` or `float64`; [`rfft`] takes integers and truth values as `float32`.
//!
//! ```
//! use fx_nn::prelude::*;
//! // A wave that comes twice in 8 points, of which the transform has one line.
//! let x = Tensor::from_vec((0..8).map(|i| (i as f64 * std::f64::consts::PI / 2.0).cos()).collect::<Vec<_>>(), 8)?;
//! let spectrum = ops::fft::rfft(&x, None, -1, None)?;
//! assert_eq!(spectrum.dims()?, [5, 2]);
//! let power = spectrum.square()?.sum(-1)?;
//! assert_eq!(power.argmax(0, false)?.item()?, 2.0);
//! let again = ops::fft::irfft(&spectrum, None, -1, None)?;
//! assert!(fx_nn::allclose(&again, &x, 1e-5, 1e-8)?.close);
//! # Ok::<(), fx_nn::Error>(())
//! ```

use crate::op;
use fx_core::Result;
use fx_core::value::Int;
use rustfft::FftDirection;

pub use super::hermitian::*;

use super::create::count;
use super::order::roll;
use crate::error::{Fx, require, unfit};
use crate::kernels::{dim, fourier as kernels};
use crate::tensor::{Dims, Sizes, Tensor};

/// The place of a dim among those that there are.
fn place(op: &str, d: i64, dims: &[usize]) -> Result<usize> {
    require(op, !dims.is_empty())?;
    dim::dim(op, d, dims.len()).fx()
}

fn one(
    op: &str,
    x: &Tensor,
    n: Option<Int>,
    d: i64,
    norm: Option<&str>,
    direction: FftDirection,
) -> Result<Tensor> {
    let data = x.data(op)?;
    let dims = kernels::complex(op, data).fx()?;
    let at = place(op, d, dims)?;
    let n = n.map_or(Ok(dims[at]), |n| count(op, n))?;
    let norm = kernels::Norm::named(op, norm).fx()?;
    kernels::fft(op, data, at, n, direction, norm)
        .map(Tensor::made)
        .fx()
}

/// The transform of a complex tensor along `dim`: sums of `x` with the weights `exp(-2πi jk / n)`.
///
/// `n` is the number of transformed elements: the first ones, or all of them padded with zeros.
/// `norm` decides where the sums are divided: `"backward"` (the default) at [`ifft`] by `n`,
/// `"forward"` here, `"ortho"` at both by its root.
///
/// ```
/// use fx_nn::prelude::*;
/// let x = Tensor::from_vec(vec![1.0f64, 0.0, 3.0, 0.0], (2, 2))?;
/// assert_eq!(ops::fft::fft(&x, None, -1, None)?.to_vec()?, [4.0, 0.0, -2.0, 0.0]);
/// # Ok::<(), fx_nn::Error>(())
/// ```
///
/// # Errors
/// Returns an error if the tensor is not complex, there is no such dim or norm, or `n` is below 1.
#[op(along, member, path = "fx_nn::ops::fft::fft")]
pub fn fft(
    x: &Tensor,
    n: Option<Int>,
    #[default(-1)] dim: i64,
    norm: Option<&str>,
) -> Result<Tensor> {
    one("fft", x, n, dim, norm, FftDirection::Forward)
}

/// The inverse of [`fft`].
///
/// # Errors
/// Returns the errors of `fft`.
#[op(along, member, path = "fx_nn::ops::fft::ifft")]
pub fn ifft(
    x: &Tensor,
    n: Option<Int>,
    #[default(-1)] dim: i64,
    norm: Option<&str>,
) -> Result<Tensor> {
    one("ifft", x, n, dim, norm, FftDirection::Inverse)
}

/// The first `n / 2 + 1` numbers of the [`fft`] of a real tensor, which the others mirror; the result is complex.
///
/// # Errors
/// Returns an error if the tensor is half precision, there is no such dim or norm, or `n` is
/// below 1.
#[op(along, member, path = "fx_nn::ops::fft::rfft")]
pub fn rfft(
    x: &Tensor,
    n: Option<Int>,
    #[default(-1)] dim: i64,
    norm: Option<&str>,
) -> Result<Tensor> {
    let op = "rfft";
    let x = x.as_float()?;
    let data = x.data(op)?;
    let at = place(op, dim, data.dims())?;
    let n = n.map_or(Ok(data.dims()[at]), |n| count(op, n))?;
    let norm = kernels::Norm::named(op, norm).fx()?;
    kernels::rfft(op, data, at, n, norm).map(Tensor::made).fx()
}

/// The inverse of [`rfft`]: `n` real numbers of a complex tensor, twice as many as there are without the first and the
/// last unless `n` says another.
///
/// # Errors
/// Returns an error if the tensor is not complex, there is no such dim or norm, or `n` is below 1.
#[op(along, member, path = "fx_nn::ops::fft::irfft")]
pub fn irfft(
    x: &Tensor,
    n: Option<Int>,
    #[default(-1)] dim: i64,
    norm: Option<&str>,
) -> Result<Tensor> {
    let op = "irfft";
    let data = x.data(op)?;
    let dims = kernels::complex(op, data).fx()?;
    let at = place(op, dim, dims)?;
    let twice = 2 * dims[at].saturating_sub(1);
    let n = n.map_or(Ok(twice), |n| count(op, n))?;
    let norm = kernels::Norm::named(op, norm).fx()?;
    kernels::irfft(op, data, at, n, norm).map(Tensor::made).fx()
}

/// The transform along each of several dims. Without dims they are the last ones, as many as there are sizes, or all.
fn several(
    op: &str,
    x: &Tensor,
    sizes: Option<Sizes>,
    dims: &Dims,
    norm: Option<&str>,
    direction: FftDirection,
) -> Result<Tensor> {
    let data = x.data(op)?;
    let own = kernels::complex(op, data).fx()?;
    let sizes = sizes.map(|sizes| sizes.known()).transpose()?;
    let at = match (dims, &sizes) {
        (Dims::All, Some(sizes)) => match own.len().checked_sub(sizes.len()) {
            Some(first) => (first..own.len()).collect(),
            _ => return Err(unfit(op)),
        },
        (dims, _) => dims.resolve(op, own.len()).fx()?,
    };
    let sizes = sizes.unwrap_or_else(|| vec![-1; at.len()]);
    require(op, sizes.len() == at.len())?;
    let norm = kernels::Norm::named(op, norm).fx()?;
    let mut y = data.clone();
    for (at, size) in at.into_iter().zip(sizes) {
        let n = match size {
            -1 => own[at],
            size => count(op, size.into())?,
        };
        y = kernels::fft(op, &y, at, n, direction, norm).fx()?;
    }
    Ok(Tensor::made(y))
}

/// The last two dims, where none are named.
fn planes(op: &str, x: &Tensor, dims: Dims) -> Result<Dims> {
    let rank = x.dims()?.len().saturating_sub(1);
    match dims {
        Dims::All if rank < 2 => Err(unfit(op)),
        Dims::All => Ok(Dims::Many(vec![-2, -1])),
        other => Ok(other),
    }
}

/// The transform of a complex tensor along two dims; `..` is the last two. See [`fftn`] for `s`,
/// and [`fft`] for `norm`.
///
/// # Errors
/// Returns the errors of `fftn`.
#[op(along, member, path = "fx_nn::ops::fft::fft2")]
pub fn fft2(
    x: &Tensor,
    s: Option<Sizes>,
    #[default(None)] dim: impl Into<Dims>,
    norm: Option<&str>,
) -> Result<Tensor> {
    let dim = planes("fft2", x, dim)?;
    several("fft2", x, s, &dim, norm, FftDirection::Forward)
}

/// The inverse of [`fft2`].
///
/// # Errors
/// Returns the errors of `fftn`.
#[op(along, member, path = "fx_nn::ops::fft::ifft2")]
pub fn ifft2(
    x: &Tensor,
    s: Option<Sizes>,
    #[default(None)] dim: impl Into<Dims>,
    norm: Option<&str>,
) -> Result<Tensor> {
    let dim = planes("ifft2", x, dim)?;
    several("ifft2", x, s, &dim, norm, FftDirection::Inverse)
}

/// The transform of a complex tensor along several dims, each as by [`fft`].
///
/// `s` is the number of transformed elements of each, -1 for all. Dims `..` are the last ones, as
/// many as `s` has, or all.
///
/// # Errors
/// Returns an error if the tensor is not complex, there is no such dim or norm, a size is below 1,
/// or there are not as many sizes as dims.
#[op(along, member, path = "fx_nn::ops::fft::fftn")]
pub fn fftn(
    x: &Tensor,
    s: Option<Sizes>,
    #[default(None)] dim: impl Into<Dims>,
    norm: Option<&str>,
) -> Result<Tensor> {
    several("fftn", x, s, &dim, norm, FftDirection::Forward)
}

/// The inverse of [`fftn`].
///
/// # Errors
/// Returns the errors of `fftn`.
#[op(along, member, path = "fx_nn::ops::fft::ifftn")]
pub fn ifftn(
    x: &Tensor,
    s: Option<Sizes>,
    #[default(None)] dim: impl Into<Dims>,
    norm: Option<&str>,
) -> Result<Tensor> {
    several("ifftn", x, s, &dim, norm, FftDirection::Inverse)
}

/// A complex tensor, rolled along its dims by a part of each size.
fn shifted(op: &str, x: &Tensor, dims: &Dims, by: impl Fn(usize) -> i64) -> Result<Tensor> {
    let [own @ .., 2] = x.dims()? else {
        return Err(unfit(op));
    };
    let at = match dims {
        // A dim that is named twice is rolled twice.
        Dims::Many(dims) if !own.is_empty() => {
            let dims = dims.iter().map(|d| dim::dim(op, *d, own.len()));
            dims.collect::<candle_core::Result<_>>().fx()?
        }
        dims => dims.resolve(op, own.len()).fx()?,
    };
    let by: Vec<i64> = at.iter().map(|d| by(own[*d])).collect();
    let at: Vec<i64> = at.into_iter().map(|d| d as i64).collect();
    match at.is_empty() {
        true => Ok(x.clone()),
        false => roll(x, by, at),
    }
}

/// A complex tensor with what belongs to frequency 0 in the middle of each dim; `..` is all.
///
/// A real tensor, such as the magnitudes of a spectrum, is rolled: `x.roll(x.size(0)? / 2, 0)`.
///
/// # Errors
/// Returns an error if the last dim is not 2, or there is no such dim.
#[op(along, member, path = "fx_nn::ops::fft::fftshift")]
pub fn fftshift(x: &Tensor, #[default(None)] dim: impl Into<Dims>) -> Result<Tensor> {
    shifted("fftshift", x, &dim, |n| (n / 2) as i64)
}

/// The inverse of [`fftshift`].
///
/// # Errors
/// Returns the errors of `fftshift`.
#[op(along, member, path = "fx_nn::ops::fft::ifftshift")]
pub fn ifftshift(x: &Tensor, #[default(None)] dim: impl Into<Dims>) -> Result<Tensor> {
    shifted("ifftshift", x, &dim, |n| n.div_ceil(2) as i64)
}
