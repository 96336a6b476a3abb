//! Statistics: counts, truth over dims, extremes of both kinds, medians and quantiles, covariances, histograms.

use crate::op;
use candle_core::Tensor as Data;
use fx_core::value::DType;
use fx_core::{Error, Result};

use super::elementary::floating;
use super::reduce::{amax, amin, mean, no_truth, reduced, std, sum, var};
use super::scan::without_nan;
use crate::error::{Fx, require, unfit};
use crate::kernels::ranks::{self, Between};
use crate::kernels::{dim, reduce};
use crate::room;
use crate::tensor::{Dims, Tensor, TensorOrNumber};

/// The sum over `dim` without nans; of truth values and integers as `int64`.
///
/// # Errors
/// Returns an error if there is no such dim.
#[op(reduce, method, path = "fx_nn::ops::nansum")]
pub fn nansum(
    x: &Tensor,
    #[kw]
    #[default(None)]
    dim: impl Into<Dims>,
    #[kw]
    #[default(false)]
    keepdim: bool,
) -> Result<Tensor> {
    sum(&without_nan("nansum", x)?, dim, keepdim)
}

/// The mean over `dim` without nans; nan where nothing is left.
///
/// ```
/// use fx_nn::prelude::*;
/// let x = Tensor::from_vec(vec![1.0f32, f32::NAN, 3.0], 3)?;
/// assert_eq!((x.nanmean(.., false)?.item()?, x.nansum(.., false)?.item()?), (2.0, 4.0));
/// # Ok::<(), fx_nn::Error>(())
/// ```
///
/// # Errors
/// Returns an error if there is no such dim, or the tensor is not float.
#[op(reduce, method, path = "fx_nn::ops::nanmean")]
pub fn nanmean(
    x: &Tensor,
    #[kw]
    #[default(None)]
    dim: impl Into<Dims>,
    #[kw]
    #[default(false)]
    keepdim: bool,
) -> Result<Tensor> {
    floating("nanmean", x)?;
    let total = sum(&without_nan("nanmean", x)?, dim.clone(), keepdim)?;
    let count = sum(&x.eq(x)?, dim, keepdim)?;
    total / count
}

/// How many elements over `dim` are not 0, as `int64`.
///
/// # Errors
/// Returns an error if there is no such dim.
#[op(
    reduce,
    flat = "gives numbers of elements",
    method,
    path = "fx_nn::ops::count_nonzero"
)]
pub fn count_nonzero(x: &Tensor, #[default(None)] dim: impl Into<Dims>) -> Result<Tensor> {
    sum(&x.cast(DType::Bool)?, dim, false)
}

/// Truth over dims, of the type that PyTorch gives it.
fn truth(
    op: &str,
    x: &Tensor,
    dim: &Dims,
    keepdim: bool,
    empty: bool,
    of: fn(&Data, &[usize], bool) -> candle_core::Result<Data>,
) -> Result<Tensor> {
    let truths = x.cast(DType::Bool)?;
    let data = truths.data(op)?;
    let dims = reduced(op, dim, data)?;
    let count: usize = dims.iter().map(|d| data.dims()[*d]).product();
    let found = match count {
        // No element is reduced: the sum has the right shape.
        0 => reduce::sum(data, &dims, keepdim).and_then(|y| {
            let y = y.to_dtype(candle_core::DType::U8)?;
            if empty { y.ones_like() } else { y.zeros_like() }
        }),
        _ => of(data, &dims, keepdim),
    };
    let found = Tensor::from_bools(found.fx()?);
    match x.dtype()? {
        DType::U8 => found.cast(DType::U8),
        _ => Ok(found),
    }
}

/// Whether one of the elements over `dim` is true, a number that is not 0; of `uint8` as 0 and 1 of it.
///
/// ```
/// use fx_nn::prelude::*;
/// let x = Tensor::from_vec(vec![0.0f32, 0.0, 1.0, 2.0], (2, 2))?;
/// assert_eq!(x.any(1, false)?.to_vec()?, [0.0, 1.0]);
/// assert_eq!(x.all(.., false)?.to_vec()?, [0.0]);
/// # Ok::<(), fx_nn::Error>(())
/// ```
///
/// # Errors
/// Returns an error if there is no such dim.
#[op(
    reduce,
    member,
    flat = "gives truth values",
    method,
    path = "fx_nn::ops::any"
)]
pub fn any(
    x: &Tensor,
    #[kw]
    #[default(None)]
    dim: impl Into<Dims>,
    #[kw]
    #[default(false)]
    keepdim: bool,
) -> Result<Tensor> {
    truth("any", x, &dim, keepdim, false, reduce::max)
}

/// Whether all elements over `dim` are true, numbers that are not 0; of `uint8` as 0 and 1 of it.
///
/// # Errors
/// Returns an error if there is no such dim.
#[op(
    reduce,
    member,
    flat = "gives truth values",
    method,
    path = "fx_nn::ops::all"
)]
pub fn all(
    x: &Tensor,
    #[kw]
    #[default(None)]
    dim: impl Into<Dims>,
    #[kw]
    #[default(false)]
    keepdim: bool,
) -> Result<Tensor> {
    truth("all", x, &dim, keepdim, true, reduce::min)
}

/// The least and the largest elements along `dim`, or of all.
///
/// # Errors
/// Returns an error if there is no such dim, or no element to compare.
#[op(reduce, method, path = "fx_nn::ops::aminmax")]
pub fn aminmax(
    x: &Tensor,
    #[kw] dim: Option<i64>,
    #[kw]
    #[default(false)]
    keepdim: bool,
) -> Result<(Tensor, Tensor)> {
    Ok((amin(x, dim, keepdim)?, amax(x, dim, keepdim)?))
}

/// The standard deviation and the mean over `dim`.
///
/// # Errors
/// Returns an error if there is no such dim, or the tensor is not float.
#[op(reduce, path = "fx_nn::ops::std_mean")]
pub fn std_mean(
    x: &Tensor,
    #[kw]
    #[default(None)]
    dim: impl Into<Dims>,
    #[kw]
    #[default(true)]
    unbiased: bool,
    #[kw]
    #[default(false)]
    keepdim: bool,
) -> Result<(Tensor, Tensor)> {
    Ok((
        std(x, dim.clone(), unbiased, keepdim)?,
        mean(x, dim, keepdim)?,
    ))
}

/// The variance and the mean over `dim`.
///
/// # Errors
/// Returns an error if there is no such dim, or the tensor is not float.
#[op(reduce, path = "fx_nn::ops::var_mean")]
pub fn var_mean(
    x: &Tensor,
    #[kw]
    #[default(None)]
    dim: impl Into<Dims>,
    #[kw]
    #[default(true)]
    unbiased: bool,
    #[kw]
    #[default(false)]
    keepdim: bool,
) -> Result<(Tensor, Tensor)> {
    Ok((
        var(x, dim.clone(), unbiased, keepdim)?,
        mean(x, dim, keepdim)?,
    ))
}

/// `of` the rows along `dim`, or of one row of all elements, and the shape of what it gives a row.
fn rows<R>(
    op: &str,
    x: &Data,
    d: Option<i64>,
    of: impl FnOnce(&Data) -> candle_core::Result<R>,
) -> candle_core::Result<(R, Vec<usize>, usize)> {
    let at = dim::dim(op, d.unwrap_or(0), if d.is_none() { 0 } else { x.rank() })?;
    let (turned, mut shape) = match d {
        Some(_) if x.rank() > 0 => {
            let mut order: Vec<usize> = (0..x.rank()).filter(|i| *i != at).collect();
            let shape: Vec<usize> = order.iter().map(|i| x.dims()[*i]).collect();
            order.push(at);
            (x.permute(order)?.contiguous()?, shape)
        }
        _ => (x.clone(), Vec::new()),
    };
    let count: usize = shape.iter().product();
    let size = match d {
        Some(_) if x.rank() > 0 => x.dims()[at],
        _ => x.elem_count(),
    };
    if size == 0 {
        candle_core::bail!(
            "{op}: nothing is left of shape {:?} to choose from",
            x.dims()
        )
    }
    let found = of(&turned.reshape((count, size))?)?;
    shape.shrink_to_fit();
    Ok((found, shape, at))
}

/// Values and places along a dim, with the dim kept or not.
fn chosen(
    op: &str,
    x: &Tensor,
    d: i64,
    keepdim: bool,
    of: impl FnOnce(&Data) -> candle_core::Result<(Data, Data)>,
) -> Result<(Tensor, Tensor)> {
    let data = x.data(op)?;
    let ((values, places), mut shape, at) = rows(op, data, Some(d), of).fx()?;
    if keepdim && data.rank() > 0 {
        shape.insert(at, 1);
    }
    let values = values.reshape(shape.as_slice()).fx()?;
    let places = places
        .to_dtype(candle_core::DType::I64)
        .and_then(|p| p.reshape(shape))
        .fx()?;
    Ok((x.with_data(values), places.into()))
}

/// The lower median along `dim`, nan where there is one, and where it is (`int64`).
///
/// ```
/// use fx_nn::prelude::*;
/// let x = Tensor::from_vec(vec![3.0f32, 1.0, 4.0, 2.0], 4)?;
/// let (value, index) = x.median(0, false)?;
/// assert_eq!((value.item()?, index.item()?), (2.0, 3.0));
/// # Ok::<(), fx_nn::Error>(())
/// ```
///
/// # Errors
/// Returns an error if there is no such dim, it is empty, or the tensor is of truth values.
#[op(reduce, member, method, path = "fx_nn::ops::median")]
pub fn median(x: &Tensor, dim: i64, #[default(false)] keepdim: bool) -> Result<(Tensor, Tensor)> {
    no_truth("median", x)?;
    chosen("median", x, dim, keepdim, |rows| ranks::median(rows, false))
}

/// The lower median of the numbers along `dim`, without nans, and where it is (`int64`).
///
/// # Errors
/// Returns an error if there is no such dim, it is empty, or the tensor is of truth values.
#[op(reduce, member, method, path = "fx_nn::ops::nanmedian")]
pub fn nanmedian(
    x: &Tensor,
    dim: i64,
    #[default(false)] keepdim: bool,
) -> Result<(Tensor, Tensor)> {
    no_truth("nanmedian", x)?;
    chosen("nanmedian", x, dim, keepdim, |rows| {
        ranks::median(rows, true)
    })
}

/// The most frequent element along `dim`, the smallest of several, and where it last is (`int64`).
///
/// # Errors
/// Returns an error if there is no such dim, or it is empty.
#[op(reduce, member, method, path = "fx_nn::ops::mode")]
pub fn mode(
    x: &Tensor,
    #[default(-1)] dim: i64,
    #[default(false)] keepdim: bool,
) -> Result<(Tensor, Tensor)> {
    chosen("mode", x, dim, keepdim, ranks::mode)
}

/// The `k`-th smallest element along `dim`, from 1, and where it is (`int64`).
///
/// # Errors
/// Returns an error if there is no such dim or element, or the tensor is of truth values.
#[op(reduce, member, method, path = "fx_nn::ops::kthvalue")]
pub fn kthvalue(
    x: &Tensor,
    k: usize,
    #[default(-1)] dim: i64,
    #[default(false)] keepdim: bool,
) -> Result<(Tensor, Tensor)> {
    no_truth("kthvalue", x)?;
    chosen("kthvalue", x, dim, keepdim, |rows| {
        ranks::kth("kthvalue", rows, k)
    })
}

fn quantiles(
    op: &str,
    x: &Tensor,
    q: &TensorOrNumber,
    d: Option<i64>,
    keepdim: bool,
    interpolation: &str,
    skip_nan: bool,
) -> Result<Tensor> {
    let between = Between::parse(op, interpolation).fx()?;
    require(op, !x.dims()?.contains(&0))?;
    let dtype = x.dtype()?;
    require(op, matches!(dtype, DType::F32 | DType::F64))?;
    let (q, learning, many) = match q {
        TensorOrNumber::Number(q) => (vec![q.as_f64()], None, None),
        TensorOrNumber::Tensor(q) => {
            let count = match (q.dtype()? == dtype, q.dims()?) {
                (true, []) => None,
                (true, [count]) => Some(*count),
                _ => return Err(unfit(op)),
            };
            let data = q.data(op)?;
            (q.to_vec()?, data.track_op().then_some(data), count)
        }
    };
    if let Some(q) = q.iter().find(|q| !(0.0..=1.0).contains(*q)) {
        return Err(Error::msg(format_args!("{op}: q is in [0, 1], not {q}")));
    }
    let data = x.data(op)?;
    let (found, mut shape, at) = rows(op, data, d, |rows| {
        ranks::quantiles(rows, (&q, learning), between, skip_nan)
    })
    .fx()?;
    if keepdim && data.rank() > 0 {
        match d {
            Some(_) => shape.insert(at, 1),
            None => shape = vec![1; data.rank()],
        }
    }
    if let Some(count) = many {
        shape.insert(0, count);
    }
    found
        .t()
        .and_then(|found| found.contiguous()?.reshape(shape))
        .map(Tensor::made)
        .fx()
}

/// The elements of rank `q` · (n - 1) along `dim`, or of all, between two by `interpolation`: `"linear"`, `"lower"`,
/// `"higher"`, `"midpoint"` or `"nearest"`. Several `q` give a dim in front.
///
/// ```
/// use fx_nn::prelude::*;
/// let x = Tensor::from_vec(vec![0.0f64, 1.0, 2.0, 3.0], 4)?;
/// assert_eq!(x.quantile(0.5, None, false, "linear")?.item()?, 1.5);
/// let q = Tensor::from_vec(vec![0.0f64, 1.0], 2)?;
/// assert_eq!(x.quantile(&q, Some(0), false, "linear")?.to_vec()?, [0.0, 3.0]);
/// # Ok::<(), fx_nn::Error>(())
/// ```
///
/// # Errors
/// Returns an error if there is no such dim, there are no elements, or the tensor is neither
/// `float32` nor `float64`.
#[op(reduce, member, method, path = "fx_nn::ops::quantile")]
pub fn quantile(
    x: &Tensor,
    q: impl Into<TensorOrNumber>,
    dim: Option<i64>,
    #[default(false)] keepdim: bool,
    #[kw]
    #[default("linear")]
    interpolation: &str,
) -> Result<Tensor> {
    quantiles("quantile", x, &q, dim, keepdim, interpolation, false)
}

/// As [`quantile`], of the elements that are not nan.
///
/// # Errors
/// Returns the errors of `quantile`.
#[op(reduce, member, method, path = "fx_nn::ops::nanquantile")]
pub fn nanquantile(
    x: &Tensor,
    q: impl Into<TensorOrNumber>,
    dim: Option<i64>,
    #[default(false)] keepdim: bool,
    #[kw]
    #[default("linear")]
    interpolation: &str,
) -> Result<Tensor> {
    quantiles("nanquantile", x, &q, dim, keepdim, interpolation, true)
}

/// The covariances of the rows of x `[variables, observations]` (or of one row): `correction` is taken off the count of
/// observations.
///
/// ```
/// use fx_nn::prelude::*;
/// let x = Tensor::from_vec(vec![1.0f64, 2.0, 3.0, 3.0, 2.0, 1.0], (2, 3))?;
/// assert_eq!(x.cov(1)?.to_vec()?, [1.0, -1.0, -1.0, 1.0]);
/// assert_eq!(x.corrcoef()?.to_vec()?, [1.0, -1.0, -1.0, 1.0]);
/// # Ok::<(), fx_nn::Error>(())
/// ```
///
/// # Errors
/// Returns an error if the tensor has more than 2 dims, or is of truth values.
#[op(member, method, path = "fx_nn::ops::cov")]
pub fn cov(
    x: &Tensor,
    #[kw]
    #[default(1)]
    correction: i64,
) -> Result<Tensor> {
    covariances("cov", x, correction)
}

fn covariances(op: &str, x: &Tensor, correction: i64) -> Result<Tensor> {
    let rank = x.dims()?.len();
    require(op, rank <= 2 && !x.is_bool())?;
    let x = x.as_float()?;
    let data = x.data(op)?;
    let result = crate::kernels::widen::widened(data, data, |x| {
        let rows = match x.dims() {
            [_, _] => x.clone(),
            _ => x.reshape((1, x.elem_count()))?,
        };
        let (_, count) = rows.dims2()?;
        let centred = crate::kernels::binary::sub(&rows, &reduce::mean(&rows, &[1], true)?)?;
        let products = crate::kernels::matmul::matmul(&centred, &centred.t()?)?;
        let left = (count as i64).saturating_sub(correction).max(0);
        let found = crate::kernels::binary::div(
            &products,
            &Tensor::full((), left, DType::F64)
                .and_then(|n| n.data(op).cloned())
                .map_err(candle_core::Error::wrap)?
                .to_dtype(products.dtype())?,
        )?;
        match found.dims() {
            [1, 1] => found.reshape(()),
            _ => Ok(found),
        }
    });
    result.map(Tensor::made).fx()
}

/// The correlations of the rows of x `[variables, observations]`: their covariances divided by both deviations, held in
/// [-1, 1].
///
/// # Errors
/// Returns an error if the tensor has more than 2 dims, or is of truth values.
#[op(member, method, path = "fx_nn::ops::corrcoef")]
pub fn corrcoef(x: &Tensor) -> Result<Tensor> {
    let found = covariances("corrcoef", x, 1)?;
    let [count, _] = *found.dims()? else {
        let variance = found.clone();
        return found / variance;
    };
    let diagonal: Vec<i64> = (0..count as i64)
        .map(|at| at * (count as i64 + 1))
        .collect();
    let at = Data::from_vec(diagonal, count, found.data("corrcoef")?.device()).fx()?;
    let deviations = found
        .data("corrcoef")?
        .flatten_all()
        .and_then(|x| x.index_select(&at, 0))
        .and_then(|x| x.sqrt())
        .map(Tensor::made)
        .fx()?;
    let part = |x: &Tensor, d| x.data("corrcoef")?.unsqueeze(d).map(Tensor::made).fx();
    let found = ((found / part(&deviations, 1)?)? / part(&deviations, 0)?)?;
    super::pointwise::clamp(&found, -1.0, 1.0)
}

/// How many elements lie in each of `bins` equal parts of [min, max], or of their own range where both are equal.
///
/// ```
/// use fx_nn::prelude::*;
/// let x = Tensor::from_vec(vec![0.0f32, 1.0, 2.0, 3.0, 4.0], 5)?;
/// assert_eq!(x.histc(2, 0.0, 0.0)?.to_vec()?, [2.0, 3.0]);
/// # Ok::<(), fx_nn::Error>(())
/// ```
///
/// # Errors
/// Returns an error if there are no bins, the range is not finite or reversed, or the tensor is not
/// float.
#[op(
    member,
    flat = "gives numbers of elements",
    method,
    path = "fx_nn::ops::histc"
)]
pub fn histc(
    x: &Tensor,
    #[default(100)] bins: usize,
    #[default(0.0)] min: f64,
    #[default(0.0)] max: f64,
) -> Result<Tensor> {
    floating("histc", x)?;
    let dtype = x.dtype()?;
    room::of("histc", &[bins], candle_core::DType::F64).fx()?;
    let numbers = x.to_vec()?;
    let (mut low, mut high) = (min, max);
    if low == high && !numbers.is_empty() {
        let nan = |a: f64, b: f64, of: fn(f64, f64) -> f64| {
            if a.is_nan() || b.is_nan() {
                f64::NAN
            } else {
                of(a, b)
            }
        };
        low = numbers
            .iter()
            .fold(f64::INFINITY, |a, b| nan(a, *b, f64::min));
        high = numbers
            .iter()
            .fold(f64::NEG_INFINITY, |a, b| nan(a, *b, f64::max));
    }
    if low == high {
        (low, high) = (low - 1.0, high + 1.0);
    }
    if bins == 0 || !(low.is_finite() && high.is_finite() && low < high) {
        return Err(Error::msg(format_args!(
            "histc: {bins} bins from {low} to {high}: there is one at least, from a finite number to a larger one"
        )));
    }
    let mut counts = vec![0f64; bins];
    for x in numbers.into_iter().filter(|x| (low..=high).contains(x)) {
        let place = ((x - low) * bins as f64 / (high - low)) as usize;
        counts[place.min(bins - 1)] += 1.0;
    }
    Tensor::from_vec(counts, bins)?.cast(dtype)
}
