//! Elements written to, and added to, places that an index names.

use crate::op;
use std::borrow::Borrow;

use fx_core::value::{DType, Int};
use fx_core::{Error, Result};

use super::create::known;
use super::dims::position;
use super::selection::indices;
use crate::error::{Fx, require, unfit};
use crate::kernels::diagonal::Diagonal;
use crate::kernels::{self, dim, expand, places, scatter as kernels_of};
use crate::tensor::{Number, Tensor};

/// Refuses two element types where PyTorch promotes none.
fn same(op: &str, x: &Tensor, source: &Tensor) -> Result<()> {
    require(op, x.dtype()? == source.dtype()?)
}

/// Refuses truth values, which have no sums.
fn no_truth(op: &str, x: &Tensor) -> Result<()> {
    x.data(op)?;
    require(op, !x.is_bool())
}

/// `x` with the elements of `src` put at their own place, but for `dim`, where it is at the `index`.
///
/// The last of several at one place stays, and has the gradient. For one number instead of `src`
/// see [`scatter_value`].
///
/// ```
/// use fx_nn::prelude::*;
/// let x = Tensor::zeros((1, 4))?;
/// let index = Tensor::from_vec(vec![3i64, 0], (1, 2))?;
/// let source = Tensor::from_vec(vec![5.0f32, 6.0], (1, 2))?;
/// assert_eq!(x.scatter(1, &index, &source)?.to_vec()?, [6.0, 0.0, 0.0, 5.0]);
/// # Ok::<(), fx_nn::Error>(())
/// ```
///
/// # Errors
/// Returns an error if the shapes do not fit, the types differ, or an index is out of range.
#[op(pick, member, method, path = "fx_nn::ops::scatter")]
pub fn scatter(x: &Tensor, dim: i64, index: &Tensor, src: &Tensor) -> Result<Tensor> {
    let op = "scatter";
    same(op, x, src)?;
    let data = x.elements(op)?;
    let (part, at) =
        kernels_of::at(op, data, dim, indices(op, index)?, Some(src.elements(op)?)).fx()?;
    let Some(part) = part else {
        return Ok(x.clone());
    };
    places::put(op, data, &part, &at)
        .map(|data| x.with_data(data))
        .fx()
}

/// `x` with a number put at the places of [`scatter`].
///
/// # Errors
/// Returns an error if the shapes do not fit, an index is out of range, or the type of `x` does not
/// hold the number.
#[op(pick, member, path = "fx_nn::ops::scatter_value")]
pub fn scatter_value(
    x: &Tensor,
    dim: i64,
    index: &Tensor,
    value: impl Into<Number>,
) -> Result<Tensor> {
    let op = "scatter_value";
    let data = x.elements(op)?;
    let value = value.checked(op, x.dtype()?)?;
    let (_, at) = kernels_of::at(op, data, dim, indices(op, index)?, None).fx()?;
    filled(op, x, data, &value, &at)
}

/// One number at all the places.
fn filled(
    op: &str,
    x: &Tensor,
    data: &candle_core::Tensor,
    value: &candle_core::Tensor,
    at: &[i64],
) -> Result<Tensor> {
    if at.is_empty() {
        return Ok(x.clone());
    }
    let source = value.broadcast_as(at.len()).fx()?;
    places::put(op, data, &source, at)
        .map(|data| x.with_data(data))
        .fx()
}

/// `x` with the elements of `src` added at the places of [`scatter`]; integers wrap around.
///
/// # Errors
/// Returns an error if the shapes do not fit, the types differ, or an index is out of range.
#[op(pick, member, method, path = "fx_nn::ops::scatter_add")]
pub fn scatter_add(x: &Tensor, dim: i64, index: &Tensor, src: &Tensor) -> Result<Tensor> {
    let op = "scatter_add";
    same(op, x, src)?;
    no_truth(op, x)?;
    let data = x.elements(op)?;
    let (part, at) =
        kernels_of::at(op, data, dim, indices(op, index)?, Some(src.elements(op)?)).fx()?;
    let Some(part) = part else {
        return Ok(x.clone());
    };
    kernels_of::reduce(data, &part, at, kernels_of::Reduce::Sum, true)
        .map(|data| x.with_data(data))
        .fx()
}

/// `x` with the elements of `src` that go to a place of [`scatter`] made one: their `"sum"`, `"prod"`, `"mean"`, the
/// largest (`"amax"`) or the smallest (`"amin"`), with what `x` has there unless `include_self` is false.
///
/// ```
/// use fx_nn::prelude::*;
/// let x = Tensor::ones(3)?;
/// let index = Tensor::from_vec(vec![0i64, 0, 2], 3)?;
/// let source = Tensor::from_vec(vec![5.0f32, 6.0, -7.0], 3)?;
/// assert_eq!(x.scatter_reduce(0, &index, &source, "amax", true)?.to_vec()?, [6.0, 1.0, 1.0]);
/// assert_eq!(x.scatter_reduce(0, &index, &source, "prod", false)?.to_vec()?, [30.0, 1.0, -7.0]);
/// # Ok::<(), fx_nn::Error>(())
/// ```
///
/// # Errors
/// Returns an error if the shapes do not fit, the types differ, an index is out of range, or
/// `reduce` is unknown.
#[op(pick, member, method, path = "fx_nn::ops::scatter_reduce")]
pub fn scatter_reduce(
    x: &Tensor,
    dim: i64,
    index: &Tensor,
    src: &Tensor,
    reduce: &str,
    #[kw]
    #[default(true)]
    include_self: bool,
) -> Result<Tensor> {
    let op = "scatter_reduce";
    same(op, x, src)?;
    no_truth(op, x)?;
    let how = kernels_of::Reduce::parse(op, reduce).fx()?;
    let data = x.elements(op)?;
    let (part, at) =
        kernels_of::at(op, data, dim, indices(op, index)?, Some(src.elements(op)?)).fx()?;
    let Some(part) = part else {
        return Ok(x.clone());
    };
    kernels_of::reduce(data, &part, at, how, include_self)
        .map(|data| x.with_data(data))
        .fx()
}

/// The slices of `source` in the order of the places of an index along a dim.
fn sliced(
    op: &str,
    x: &Tensor,
    dim: i64,
    index: &Tensor,
    source: &Tensor,
) -> Result<(candle_core::Tensor, Vec<i64>)> {
    same(op, x, source)?;
    let data = x.elements(op)?;
    let of = dim::dim(op, dim, data.rank()).fx()?;
    let (dims, at) = kernels_of::slices(op, data, of, indices(op, index)?, false).fx()?;
    let source = source.elements(op)?;
    // A number is a slice of a vector, and of a number.
    let fits = source.dims() == dims || source.rank() == 0 && data.rank() <= 1 && at.len() == 1;
    require(op, fits)?;
    Ok((source.clone(), at))
}

/// `x` with the slices of `source`, times `alpha`, added at the places of the vector `index` along `dim`.
///
/// # Errors
/// Returns an error if the shapes do not fit, the types differ, or an index is out of range.
#[op(pick, member, method, path = "fx_nn::ops::index_add")]
pub fn index_add(
    x: &Tensor,
    dim: i64,
    index: &Tensor,
    source: &Tensor,
    #[kw]
    #[default(1)]
    alpha: impl Into<Number>,
) -> Result<Tensor> {
    let op = "index_add";
    no_truth(op, x)?;
    let source = match alpha {
        Number::Int(1) => source.clone(),
        alpha if x.dtype()?.is_floating_point() => (source * alpha.as_f64())?,
        Number::Int(alpha) => (source * alpha)?,
        _ => return Err(unfit(op)),
    };
    let (source, at) = sliced(op, x, dim, index, &source)?;
    require(op, source.rank() == x.elements(op)?.rank())?;
    kernels_of::reduce(x.elements(op)?, &source, at, kernels_of::Reduce::Sum, true)
        .map(|data| x.with_data(data))
        .fx()
}

/// `x` with the slices of `source` at the places of the vector `index` along `dim`; of several at one the last stays.
///
/// # Errors
/// Returns an error if the shapes do not fit, the types differ, or an index is out of range.
#[op(pick, member, method, path = "fx_nn::ops::index_copy")]
pub fn index_copy(x: &Tensor, dim: i64, index: &Tensor, source: &Tensor) -> Result<Tensor> {
    let op = "index_copy";
    require(op, index.dtype()? == DType::I64)?;
    let (source, at) = sliced(op, x, dim, index, source)?;
    places::put(op, x.elements(op)?, &source, &at)
        .map(|data| x.with_data(data))
        .fx()
}

/// `x` with a number in the slices that the vector `index` names along `dim`, which may count from the end.
///
/// # Errors
/// Returns an error if an index is out of range, or the type of `x` does not hold the number.
#[op(pick, member, method, path = "fx_nn::ops::index_fill")]
pub fn index_fill(
    x: &Tensor,
    dim: i64,
    index: &Tensor,
    value: impl Into<Number>,
) -> Result<Tensor> {
    let op = "index_fill";
    require(op, index.dtype()? == DType::I64)?;
    let data = x.elements(op)?;
    let value = value.checked(op, x.dtype()?)?;
    let of = dim::dim(op, dim, data.rank()).fx()?;
    let (_, at) = kernels_of::slices(op, data, of, index.elements(op)?, true).fx()?;
    filled(op, x, data, &value, &at)
}

/// `x` with `values`, which broadcast, at the places that the indices name together, one for each of the first dims;
/// under `accumulate` they are added, else of several at one place the last stays.
///
/// ```
/// use fx_nn::prelude::*;
/// let x = Tensor::zeros((2, 2))?;
/// let (rows, columns) = (Tensor::from_vec(vec![0i64, 1], 2)?, Tensor::from_vec(vec![1i64, -1], 2)?);
/// let y = x.index_put(&[rows, columns], &Tensor::ones(())?, false)?;
/// assert_eq!(y.to_vec()?, [0.0, 1.0, 0.0, 1.0]);
/// # Ok::<(), fx_nn::Error>(())
/// ```
///
/// # Errors
/// Returns an error if there are more indices than dims, the shapes do not broadcast, the types
/// differ, or an index is out of range.
#[op(pick, member, method, path = "fx_nn::ops::index_put")]
pub fn index_put(
    x: &Tensor,
    indices: &[impl Borrow<Tensor>],
    values: &Tensor,
    #[default(false)] accumulate: bool,
) -> Result<Tensor> {
    let op = "index_put";
    same(op, x, values)?;
    let data = x.elements(op)?;
    require(op, !indices.is_empty() && indices.len() <= data.rank())?;
    let mut shape = Vec::new();
    for index in indices {
        shape = expand::shape(op, &shape, index.dims()?).fx()?;
    }
    let strides = places::strides(data.dims());
    let mut starts = vec![0i64; crate::room::of(op, &shape, candle_core::DType::I64).fx()?];
    for (dim, index) in indices.iter().enumerate() {
        let wide = expand::to(self::indices(op, index)?, &shape).fx()?;
        let ids = places::indices(op, &wide, data.dims()[dim], true).fx()?;
        for (start, id) in starts.iter_mut().zip(ids) {
            *start += id * strides[dim] as i64;
        }
    }
    let rest = indices.len();
    let inner = places::view(op, 0, &data.dims()[rest..], &strides[rest..]).fx()?;
    shape.extend(&data.dims()[rest..]);
    crate::room::of(op, &shape, candle_core::DType::I64).fx()?;
    let at: Vec<i64> = starts
        .iter()
        .flat_map(|start| inner.iter().map(move |place| start + place))
        .collect();
    let values = values.elements(op)?;
    require(op, expand::shape(op, &shape, values.dims()).fx()? == shape)?;
    let values = expand::to(values, &shape).fx()?;
    match accumulate {
        true => {
            no_truth(op, x)?;
            kernels_of::reduce(data, &values, at, kernels_of::Reduce::Sum, true)
        }
        false => places::put(op, data, &values, &at),
    }
    .map(|data| x.with_data(data))
    .fx()
}

/// `x` with the elements of a vector `source` at the places where `mask` holds, in their order.
///
/// # Errors
/// Returns an error if the mask is not of truth values or does not broadcast to `x`, the types
/// differ, or `source` has too few elements.
#[op(pick, member, method, path = "fx_nn::ops::masked_scatter")]
pub fn masked_scatter(x: &Tensor, mask: &Tensor, source: &Tensor) -> Result<Tensor> {
    let op = "masked_scatter";
    same(op, x, source)?;
    let truth = super::selection::condition(op, mask)?;
    let dims = expand::shape(op, x.dims()?, truth.dims()).fx()?;
    let at = true_places(truth, &dims).fx()?;
    let source = source.elements(op)?;
    if source.elem_count() < at.len() {
        return Err(Error::msg(format_args!(
            "{op}: {} elements for the {} places where the mask holds",
            source.elem_count(),
            at.len()
        )));
    }
    let data = expand::to(x.elements(op)?, &dims).fx()?;
    let used = source
        .flatten_all()
        .and_then(|flat| kernels::view::narrow(&flat, 0, 0, at.len()))
        .fx()?;
    places::put(op, &data, &used, &at)
        .map(|data| x.with_data(data))
        .fx()
}

/// Where a condition that is broadcast to `dims` holds.
pub(super) fn true_places(
    truth: &candle_core::Tensor,
    dims: &[usize],
) -> candle_core::Result<Vec<i64>> {
    let wide = expand::to(truth, dims)?;
    let all = (0i64..).zip(wide.flatten_all()?.to_vec1::<u8>()?);
    Ok(all
        .filter(|(_, holds)| *holds != 0)
        .map(|(at, _)| at)
        .collect())
}

/// `x` with `src` instead of a part of the given sizes, and steps of its own.
fn part(op: &str, x: &Tensor, src: &Tensor, dims: &[usize], at: &[i64]) -> Result<Tensor> {
    same(op, x, src)?;
    let source = src.elements(op)?;
    require(op, source.dims() == dims)?;
    places::put(op, x.elements(op)?, source, at)
        .map(|data| x.with_data(data))
        .fx()
}

/// `x` with `src` instead of the slice at `index` of a dim.
///
/// # Errors
/// Returns an error if there is no such slice, or its shape or type differs.
#[op(pick, member, method, path = "fx_nn::ops::select_scatter")]
pub fn select_scatter(x: &Tensor, src: &Tensor, dim: i64, index: impl Into<Int>) -> Result<Tensor> {
    let op = "select_scatter";
    let own = x.dims()?;
    let of = dim::dim(op, dim, own.len()).fx()?;
    let index = position(op, own, of, known(op, index)?)?;
    let (mut dims, mut strides) = (own.to_vec(), places::strides(own));
    let start = index * strides[of];
    dims.remove(of);
    strides.remove(of);
    let at = places::view(op, start, &dims, &strides).fx()?;
    part(op, x, src, &dims, &at)
}

/// `x` with `src` instead of the slices of a dim from `start` to before `end`, by `step`.
///
/// ```
/// use fx_nn::prelude::*;
/// let x = Tensor::zeros(5)?;
/// assert_eq!(x.slice_scatter(&Tensor::ones(2)?, 0, 1, None, 2)?.to_vec()?, [0.0, 1.0, 0.0, 1.0, 0.0]);
/// # Ok::<(), fx_nn::Error>(())
/// ```
///
/// # Errors
/// Returns an error if the shape or type of `src` differs, or `step` is not positive.
#[op(pick, member, method, path = "fx_nn::ops::slice_scatter")]
pub fn slice_scatter(
    x: &Tensor,
    src: &Tensor,
    #[default(0)] dim: i64,
    start: impl Into<Option<i64>>,
    end: impl Into<Option<i64>>,
    #[default(1)] step: usize,
) -> Result<Tensor> {
    let op = "slice_scatter";
    let own = x.dims()?;
    let of = dim::dim(op, dim, own.len()).fx()?;
    let Some(size) = own.get(of).copied().filter(|_| step > 0) else {
        return Err(unfit(op));
    };
    let place = |n: i64| match n < 0 {
        true => size.saturating_sub(usize::try_from(n.unsigned_abs()).unwrap_or(usize::MAX)),
        false => usize::try_from(n).unwrap_or(usize::MAX).min(size),
    };
    let (start, end) = (start.map_or(0, place), end.map_or(size, place));
    let (mut dims, mut strides) = (own.to_vec(), places::strides(own));
    let first = start * strides[of];
    dims[of] = end.saturating_sub(start).div_ceil(step);
    strides[of] = strides[of].saturating_mul(step);
    let at = places::view(op, first, &dims, &strides).fx()?;
    part(op, x, src, &dims, &at)
}

/// `x` with `src` instead of a [`diagonal`](super::diagonal).
///
/// # Errors
/// Returns an error if there is no such diagonal, or its shape or type differs.
#[op(pick, member, method, path = "fx_nn::ops::diagonal_scatter")]
pub fn diagonal_scatter(
    x: &Tensor,
    src: &Tensor,
    #[default(0)] offset: i64,
    #[default(0)] dim1: i64,
    #[default(1)] dim2: i64,
) -> Result<Tensor> {
    let op = "diagonal_scatter";
    let of = Diagonal::of(op, x.dims()?, offset, dim1, dim2).fx()?;
    part(op, x, src, &of.dims, &of.places)
}
