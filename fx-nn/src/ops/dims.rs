//! Moving, adding, splitting and merging dims, and parts of a dim.

use crate::op;
use std::borrow::Borrow;

use fx_core::Result;
use fx_core::trace::List;
use fx_core::value::Int;

use super::create::known;
use super::views;
use crate::error::{Fx, require, unfit};
use crate::kernels::{self, expand as kernel, view::narrow as part};
use crate::tensor::{Dims, Sizes, Tensor};

/// The dims in an order where those of `source` are at `destination`, and the others keep theirs.
fn moved(op: &str, x: &Tensor, source: &Dims, destination: &Dims) -> Result<Tensor> {
    let data = x.elements(op)?;
    let of = |dims: &Dims| dims.resolve(op, data.rank()).fx();
    let (from, to) = (of(source)?, of(destination)?);
    let count = |dims: &Dims| match dims {
        Dims::All => None,
        Dims::One(_) => Some(1),
        Dims::Many(dims) => Some(dims.len()),
    };
    require(
        op,
        count(source).is_some() && count(source) == count(destination),
    )?;
    let mut order: Vec<Option<usize>> = vec![None; data.rank()];
    for (from, to) in from.iter().zip(to) {
        order[to] = Some(*from);
    }
    let mut others = (0..data.rank()).filter(|d| !from.contains(d));
    let order: Vec<usize> = order
        .into_iter()
        .filter_map(|at| at.or_else(|| others.next()))
        .collect();
    data.permute(order).map(|data| x.with_data(data)).fx()
}

/// The dims of `source` moved to the places of `destination`; the others keep their order.
///
/// ```
/// use fx_nn::prelude::*;
/// let x = Tensor::rand((2, 3, 4))?;
/// assert_eq!(x.movedim(0, -1)?.dims()?, [3, 4, 2]);
/// assert_eq!(x.movedim((0, 1), (2, 0))?.dims()?, [3, 4, 2]);
/// # Ok::<(), fx_nn::Error>(())
/// ```
///
/// # Errors
/// Returns an error if there are no such dims, or the two lists differ in length.
#[op(view, member, method, path = "fx_nn::ops::movedim")]
pub fn movedim(
    x: &Tensor,
    source: impl Into<Dims>,
    destination: impl Into<Dims>,
) -> Result<Tensor> {
    moved("movedim", x, &source, &destination)
}

/// [`movedim`] under NumPy's name.
///
/// # Errors
/// Returns an error if there are no such dims, or the two lists differ in length.
#[op(view, method, path = "fx_nn::ops::moveaxis")]
pub fn moveaxis(
    x: &Tensor,
    source: impl Into<Dims>,
    destination: impl Into<Dims>,
) -> Result<Tensor> {
    moved("moveaxis", x, &source, &destination)
}

fn swapped(op: &str, x: &Tensor, a: i64, b: i64) -> Result<Tensor> {
    let data = x.elements(op)?;
    let a = kernels::dim::dim(op, a, data.rank()).fx()?;
    let b = kernels::dim::dim(op, b, data.rank()).fx()?;
    if data.rank() == 0 {
        return Ok(x.clone());
    }
    data.transpose(a, b).map(|d| x.with_data(d)).fx()
}

/// [`transpose`](super::transpose) under NumPy's name.
///
/// # Errors
/// Returns an error if there are no such dims.
#[op(view, method, path = "fx_nn::ops::swapaxes")]
pub fn swapaxes(x: &Tensor, axis0: i64, axis1: i64) -> Result<Tensor> {
    swapped("swapaxes", x, axis0, axis1)
}

/// [`transpose`](super::transpose) under another name.
///
/// # Errors
/// Returns an error if there are no such dims.
#[op(view, method, path = "fx_nn::ops::swapdims")]
pub fn swapdims(x: &Tensor, dim0: i64, dim1: i64) -> Result<Tensor> {
    swapped("swapdims", x, dim0, dim1)
}

fn least(op: &str, x: &Tensor, rank: usize) -> Result<Tensor> {
    let data = x.elements(op)?;
    let shape: Vec<usize> = match (data.dims(), rank) {
        (dims, rank) if dims.len() >= rank => return Ok(x.clone()),
        (&[n], 3) => vec![1, n, 1],
        (&[m, n], 3) => vec![m, n, 1],
        (&[n], _) => vec![1, n],
        (_, rank) => vec![1; rank],
    };
    data.reshape(shape).map(|data| x.with_data(data)).fx()
}

/// The tensor, with a dim where it has none.
///
/// # Errors
/// Returns only candle's errors.
#[op(view, member, path = "fx_nn::ops::atleast_1d")]
pub fn atleast_1d(x: &Tensor) -> Result<Tensor> {
    least("atleast_1d", x, 1)
}

/// The tensor with at least two dims: a vector is a row.
///
/// # Errors
/// Returns only candle's errors.
#[op(view, member, path = "fx_nn::ops::atleast_2d")]
pub fn atleast_2d(x: &Tensor) -> Result<Tensor> {
    least("atleast_2d", x, 2)
}

/// The tensor with at least three dims: a vector is the middle one, a matrix the first two.
///
/// # Errors
/// Returns only candle's errors.
#[op(view, member, path = "fx_nn::ops::atleast_3d")]
pub fn atleast_3d(x: &Tensor) -> Result<Tensor> {
    least("atleast_3d", x, 3)
}

/// One dim as several, of which one size may be -1, for what is left over.
///
/// ```
/// use fx_nn::prelude::*;
/// let x = Tensor::rand((2, 12))?;
/// assert_eq!(x.unflatten(1, (3, -1))?.dims()?, [2, 3, 4]);
/// # Ok::<(), fx_nn::Error>(())
/// ```
///
/// # Errors
/// Returns an error if there is no such dim, or the sizes do not make up its size.
#[op(view, member, method, path = "fx_nn::ops::unflatten")]
pub fn unflatten(x: &Tensor, dim: i64, sizes: impl Into<Sizes>) -> Result<Tensor> {
    let op = "unflatten";
    let data = x.elements(op)?;
    let at = kernels::dim::dim(op, dim, data.rank()).fx()?;
    let inner = sizes.known()?;
    let Some(size) = data.dims().get(at).copied().filter(|_| !inner.is_empty()) else {
        return Err(unfit(op));
    };
    // The sizes of that dim alone, so that an empty one beside it does not matter.
    let inner = views::fitted(op, size, &inner)?;
    let mut shape = data.dims().to_vec();
    shape.splice(at..=at, inner);
    data.reshape(shape).map(|data| x.with_data(data)).fx()
}

/// All dims as one.
///
/// # Errors
/// Returns only candle's errors.
#[op(view, method, path = "fx_nn::ops::ravel")]
pub fn ravel(x: &Tensor) -> Result<Tensor> {
    kernels::shape::flatten(x.elements("ravel")?, 0, -1)
        .map(|data| x.with_data(data))
        .fx()
}

/// [`expand`](super::expand) under NumPy's name.
///
/// # Errors
/// Returns an error if a dim of a size other than 1 would change, or results of so many elements do
/// not fit into memory.
#[op(view, method, path = "fx_nn::ops::broadcast_to")]
pub fn broadcast_to(x: &Tensor, size: impl Into<Sizes>) -> Result<Tensor> {
    views::expanded("broadcast_to", x, &size)
}

/// The tensors in the shape that they all broadcast to.
///
/// # Errors
/// Returns an error if they do not broadcast.
#[op(view, member, path = "fx_nn::ops::broadcast_tensors")]
pub fn broadcast_tensors(tensors: &[impl Borrow<Tensor>]) -> Result<List<Tensor>> {
    let op = "broadcast_tensors";
    let mut shape = Vec::new();
    for x in tensors {
        shape = kernel::shape(op, &shape, x.dims()?).fx()?;
    }
    tensors
        .iter()
        .map(|x| {
            kernel::to(x.elements(op)?, &shape)
                .map(|data| x.with_data(data))
                .fx()
        })
        .collect()
}

/// `length` slices along a dim, from `start` on, which may count from the end.
///
/// ```
/// use fx_nn::prelude::*;
/// let x = Tensor::arange(0, 5)?;
/// assert_eq!(x.narrow(0, 1, 3)?.to_vec()?, [1.0, 2.0, 3.0]);
/// let f = traced!(|x: &Tensor| x.narrow(0, 1, (x.size(0)? - 1)?));
/// assert_eq!(symbolic_trace(f)?.forward::<Tensor>(&Tensor::arange(0, 3)?)?.to_vec()?, [1.0, 2.0]);
/// # Ok::<(), fx_nn::Error>(())
/// ```
///
/// # Errors
/// Returns an error if there is no such dim, or the slices are not all in it.
#[op(view, member, method, path = "fx_nn::ops::narrow")]
pub fn narrow(
    x: &Tensor,
    dim: i64,
    start: impl Into<Int>,
    length: impl Into<Int>,
) -> Result<Tensor> {
    let op = "narrow";
    let data = x.elements(op)?;
    let at = kernels::dim::dim(op, dim, data.rank()).fx()?;
    let (start, length) = (known(op, start)?, known(op, length)?);
    let inside = data.dims().get(at).and_then(|size| {
        let size = i64::try_from(*size).ok()?;
        let first = if start < 0 {
            start.checked_add(size)?
        } else {
            start
        };
        let end = first.checked_add(length)?;
        (first >= 0 && first <= size && length >= 0 && end <= size).then_some((first, length))
    });
    let Some((first, length)) = inside else {
        return Err(unfit(op));
    };
    part(data, at, first as usize, length as usize)
        .map(|data| x.with_data(data))
        .fx()
}

/// The slice at `index` of a dim, without the dim; negative ones count from the end.
///
/// # Errors
/// Returns an error if there is no such dim, or no such slice.
#[op(view, member, method, path = "fx_nn::ops::select")]
pub fn select(x: &Tensor, dim: i64, index: impl Into<Int>) -> Result<Tensor> {
    let op = "select";
    let data = x.elements(op)?;
    let at = kernels::dim::dim(op, dim, data.rank()).fx()?;
    let at_index = position(op, data.dims(), at, known(op, index)?)?;
    part(data, at, at_index, 1)
        .and_then(|data| data.squeeze(at))
        .map(|data| x.with_data(data))
        .fx()
}

/// The slice of a dim that an index means.
pub(super) fn position(op: &str, dims: &[usize], at: usize, index: i64) -> Result<usize> {
    let found = dims.get(at).and_then(|size| {
        let index = match index < 0 {
            true => index.checked_add_unsigned(*size as u64)?,
            false => index,
        };
        usize::try_from(index).ok().filter(|index| index < size)
    });
    found.ok_or_else(|| unfit(op))
}
