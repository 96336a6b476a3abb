//! Running functions along a dim: products, extremes, logarithms of sums, differences; and norms
//! and products of dims.

use crate::op;
use fx_core::Result;

use super::reduce::reduced;
use crate::error::{Fx, require};
use crate::kernels::{self, dim, lanes, norms, select, view};
use crate::tensor::{Dims, Tensor};

/// The product of each element and those before it along `dim`; of truth values and integers as `int64`.
///
/// ```
/// use fx_nn::prelude::*;
/// let x = Tensor::from_vec(vec![2i64, 3, 4], 3)?;
/// assert_eq!(x.cumprod(0)?.to_vec()?, [2.0, 6.0, 24.0]);
/// assert_eq!(x.prod(None, false)?.to_vec()?, [24.0]);
/// # Ok::<(), fx_nn::Error>(())
/// ```
///
/// # Errors
/// Returns an error if there is no such dim.
#[op(along, member, method, path = "fx_nn::ops::cumprod")]
pub fn cumprod(x: &Tensor, dim: i64) -> Result<Tensor> {
    lanes::cumprod(x.data("cumprod")?, dim)
        .map(Tensor::made)
        .fx()
}

/// The logarithm of the sum of exponentials of each element and those before it along `dim`, without overflow.
///
/// # Errors
/// Returns an error if there is no such dim, or the tensor is not float.
#[op(along, member, method, path = "fx_nn::ops::logcumsumexp")]
pub fn logcumsumexp(x: &Tensor, dim: i64) -> Result<Tensor> {
    super::elementary::floating("logcumsumexp", x)?;
    lanes::log_cum_sum_exp(x.data("logcumsumexp")?, dim)
        .map(Tensor::made)
        .fx()
}

/// The largest of each element and those before it along `dim`, and where it is (`int64`): the last of several.
///
/// ```
/// use fx_nn::prelude::*;
/// let (values, indices) = Tensor::from_vec(vec![1.0f32, 3.0, 2.0], 3)?.cummax(0)?;
/// assert_eq!((values.to_vec()?, indices.to_vec()?), (vec![1.0, 3.0, 3.0], vec![0.0, 1.0, 1.0]));
/// # Ok::<(), fx_nn::Error>(())
/// ```
///
/// # Errors
/// Returns an error if there is no such dim.
#[op(along, member, method, path = "fx_nn::ops::cummax")]
pub fn cummax(x: &Tensor, dim: i64) -> Result<(Tensor, Tensor)> {
    let (values, places) = lanes::extremes("cummax", x.data("cummax")?, dim, true).fx()?;
    Ok((x.with_data(values), places.into()))
}

/// The smallest of each element and those before it along `dim`, and where it is (`int64`): the last of several.
///
/// # Errors
/// Returns an error if there is no such dim.
#[op(along, member, method, path = "fx_nn::ops::cummin")]
pub fn cummin(x: &Tensor, dim: i64) -> Result<(Tensor, Tensor)> {
    let (values, places) = lanes::extremes("cummin", x.data("cummin")?, dim, false).fx()?;
    Ok((x.with_data(values), places.into()))
}

/// The product of the elements along `dim`, or of all; of truth values and integers as `int64`.
///
/// # Errors
/// Returns an error if there is no such dim.
#[op(reduce, member, method, path = "fx_nn::ops::prod")]
pub fn prod(
    x: &Tensor,
    #[kw] dim: Option<i64>,
    #[kw]
    #[default(false)]
    keepdim: bool,
) -> Result<Tensor> {
    let data = x.data("prod")?;
    let product =
        |x: &candle_core::Tensor, at: usize| -> candle_core::Result<candle_core::Tensor> {
            kernels::widen::widened(x, x, |x| {
                let mut shape = x.dims().to_vec();
                if let Some(size) = shape.get_mut(at) {
                    *size = 1;
                }
                match x.dims().get(at) {
                    Some(0) => {
                        let ones = candle_core::Tensor::ones(shape, x.dtype(), x.device())?;
                        lanes::cumprod(&ones, 0)
                    }
                    Some(size) if x.elem_count() > 0 => {
                        lanes::cumprod(&x, at as i64)?.narrow(at, size - 1, 1)
                    }
                    Some(_) => {
                        let empty = candle_core::Tensor::zeros(shape, x.dtype(), x.device())?;
                        lanes::cumprod(&empty, 0)
                    }
                    None => lanes::cumprod(&x, 0),
                }
            })
        };
    let result = match dim {
        None => data
            .flatten_all()
            .and_then(|x| product(&x, 0))
            .and_then(|y| match keepdim {
                true => y.reshape(vec![1; data.rank()]),
                false => y.reshape(()),
            }),
        Some(d) => dim::dim("prod", d, data.rank())
            .and_then(|at| Ok((product(data, at)?, at)))
            .and_then(|(y, at)| match keepdim || data.rank() == 0 {
                true => Ok(y),
                false => y.squeeze(at),
            }),
    };
    result.map(Tensor::made).fx()
}

/// The differences of neighbours along `dim`, `n` times, of x between `prepend` and `append`.
///
/// ```
/// use fx_nn::prelude::*;
/// let x = Tensor::from_vec(vec![1i64, 4, 9, 16], 4)?;
/// assert_eq!(x.diff(1, -1, None, None)?.to_vec()?, [3.0, 5.0, 7.0]);
/// assert_eq!(x.diff(2, -1, None, None)?.to_vec()?, [2.0, 2.0]);
/// # Ok::<(), fx_nn::Error>(())
/// ```
///
/// # Errors
/// Returns an error if there is no such dim, `n` is below 0, or the shapes differ elsewhere.
#[op(along, member, method, path = "fx_nn::ops::diff")]
pub fn diff(
    x: &Tensor,
    #[default(1)] n: i64,
    #[default(-1)] dim: i64,
    #[kw] prepend: Option<&Tensor>,
    #[kw] append: Option<&Tensor>,
) -> Result<Tensor> {
    let rank = x.dims()?.len();
    require("diff", rank != 0 && n >= 0)?;
    if n == 0 && prepend.is_none() && append.is_none() {
        return Ok(x.clone());
    }
    let at = dim::dim("diff", dim, rank).fx()?;
    for part in [prepend, append].into_iter().flatten() {
        let (own, dims) = (x.dims()?, part.dims()?);
        let mut others = own.iter().zip(dims).enumerate();
        require(
            "diff",
            dims.len() == rank && others.all(|(dim, (a, b))| dim == at || a == b),
        )?;
    }
    if n == 0 {
        return Ok(x.clone());
    }
    let parts = [prepend, Some(x), append];
    let parts: Vec<Tensor> = parts.into_iter().flatten().cloned().collect();
    let mut y = match parts.as_slice() {
        [one] => one.clone(),
        _ => super::shape::cat(&parts, dim)?,
    };
    for _ in 0..n {
        let data = y.data("diff")?;
        let size = data.dims()[at];
        if size == 0 {
            break;
        }
        let part = |start| {
            view::narrow(data, at, start, size - 1)
                .map(|d| y.with_data(d))
                .fx()
        };
        let (before, after) = (part(0)?, part(1)?);
        y = match y.is_bool() {
            true => after.ne(&before)?,
            false => (after - before)?,
        };
    }
    Ok(y)
}

/// The logarithm of the sum of exponentials over `dim`, without overflow; integers become `float32`.
///
/// ```
/// use fx_nn::prelude::*;
/// let x = Tensor::from_vec(vec![1000.0f64, 1000.0], 2)?;
/// assert_eq!(x.logsumexp(0, false)?.item()?, 1000.0 + 2f64.ln());
/// # Ok::<(), fx_nn::Error>(())
/// ```
///
/// # Errors
/// Returns an error if there is no such dim.
#[op(reduce, member, method, path = "fx_nn::ops::logsumexp")]
pub fn logsumexp(
    x: &Tensor,
    dim: impl Into<Dims>,
    #[kw]
    #[default(false)]
    keepdim: bool,
) -> Result<Tensor> {
    let x = x.as_float()?;
    let data = x.data("logsumexp")?;
    let dims = reduced("logsumexp", &dim, data)?;
    norms::log_sum_exp(data, &dims, keepdim)
        .map(Tensor::made)
        .fx()
}

/// The `ord`-norm over `dim`: (Σ |x|^ord)^(1/ord), the largest |x| for infinity, the least for minus infinity, and for 0
/// how many elements are not 0.
///
/// ```
/// use fx_nn::prelude::*;
/// let x = Tensor::from_vec(vec![3.0f64, -4.0], 2)?;
/// assert_eq!(ops::vector_norm(&x, 2.0, .., false)?.item()?, 5.0);
/// assert_eq!(ops::vector_norm(&x, f64::INFINITY, .., false)?.item()?, 4.0);
/// # Ok::<(), fx_nn::Error>(())
/// ```
///
/// # Errors
/// Returns an error if there is no such dim, the tensor is not float, or there is no element to be
/// the largest.
#[op(reduce, path = "fx_nn::ops::vector_norm")]
pub fn vector_norm(
    x: &Tensor,
    #[default(2.0)] ord: f64,
    #[default(None)] dim: impl Into<Dims>,
    #[kw]
    #[default(false)]
    keepdim: bool,
) -> Result<Tensor> {
    norm_of("vector_norm", x, ord, &dim, keepdim)
}

/// The `p`-norm over `dim`, by [`vector_norm`]: of all elements that of 2, unless specified.
///
/// # Errors
/// Returns the errors of `vector_norm`.
#[op(reduce, method, path = "fx_nn::ops::norm")]
pub fn norm(
    x: &Tensor,
    #[default(2.0)] p: f64,
    #[default(None)] dim: impl Into<Dims>,
    #[default(false)] keepdim: bool,
) -> Result<Tensor> {
    norm_of("norm", x, p, &dim, keepdim)
}

fn norm_of(op: &str, x: &Tensor, p: f64, dim: &Dims, keepdim: bool) -> Result<Tensor> {
    super::elementary::floating(op, x)?;
    let data = x.data(op)?;
    let dims = reduced(op, dim, data)?;
    norms::norm(op, data, p, &dims, keepdim)
        .map(Tensor::made)
        .fx()
}

/// x divided by its `p`-norm along `dim`, or by `eps` where that is larger.
///
/// ```
/// use fx_nn::prelude::*;
/// let x = Tensor::from_vec(vec![3.0f64, -4.0], 2)?;
/// assert_eq!(ops::normalize(&x, 2.0, 0, 1e-12)?.to_vec()?, [0.6, -0.8]);
/// # Ok::<(), fx_nn::Error>(())
/// ```
///
/// # Errors
/// Returns an error if there is no such dim, or the tensor is not float.
#[op(along, path = "fx_nn::ops::normalize")]
pub fn normalize(
    x: &Tensor,
    #[default(2.0)] p: f64,
    #[default(1)] dim: impl Into<Dims>,
    #[default(1e-12)] eps: f64,
) -> Result<Tensor> {
    let norm = norm_of("normalize", x, p, &dim, true)?;
    let norm = super::pointwise::clamp(&norm, eps, None)?;
    x / norm
}

/// Elements that are nan as zeros.
pub(super) fn without_nan(op: &str, x: &Tensor) -> Result<Tensor> {
    if !x.dtype()?.is_floating_point() {
        return Ok(x.clone());
    }
    let data = x.data(op)?;
    let zero = data.zeros_like().fx()?;
    let is_nan = x.ne(x)?;
    select::choose(op, is_nan.data(op)?, &zero, data)
        .map(Tensor::made)
        .fx()
}
