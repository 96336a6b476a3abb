//! The same elements in another shape or order: views, transpositions, new and lost dims, pieces.

use crate::op;
use fx_core::trace::List;
use fx_core::value::Int;
use fx_core::{Error, Result};

use super::create::count;
use crate::error::{Fx, require, unfit};
use crate::kernels::dim;
use crate::kernels::view::narrow;
use crate::room;
use crate::tensor::{Dims, Sizes, Tensor};

/// The sizes that a request with at most one -1 stands for.
fn resolve(op: &str, x: &Tensor, sizes: &Sizes) -> Result<Vec<usize>> {
    let data = x.elements(op)?;
    fitted(op, data.elem_count(), &sizes.known()?)
}

/// The sizes, of which at most one is -1, that `count` elements of `dims` have.
pub(super) fn fitted(op: &str, count: usize, sizes: &[i64]) -> Result<Vec<usize>> {
    let unknown = sizes.iter().filter(|n| **n == -1).count();
    require(op, unknown <= 1 && !sizes.iter().any(|n| *n < -1))?;
    let given: Vec<usize> = sizes
        .iter()
        .filter_map(|n| usize::try_from(*n).ok())
        .collect();
    let known = room::count(op, &given).fx()?;
    let fits = match unknown {
        0 => known == count,
        _ => known > 0 && count.is_multiple_of(known),
    };
    require(op, fits)?;
    Ok(sizes
        .iter()
        .map(|n| usize::try_from(*n).unwrap_or_else(|_| count / known.max(1)))
        .collect())
}

/// The elements in another shape; one size may be -1, for what is left over.
///
/// # Errors
/// Returns an error if the shapes have different numbers of elements.
///
/// ```
/// use fx_nn::prelude::*;
/// let x = Tensor::rand((2, 6))?;
/// assert_eq!(x.reshape((3, -1))?.dims()?, [3, 4]);
/// let f = traced!(|x: &Tensor| x.reshape((x.size(1)?, -1)));
/// assert_eq!(symbolic_trace(f)?.forward::<Tensor>(&x)?.dims()?, [6, 2]);
/// # Ok::<(), fx_nn::Error>(())
/// ```
#[op(view, member, method, path = "fx_nn::ops::reshape")]
pub fn reshape(x: &Tensor, shape: impl Into<Sizes>) -> Result<Tensor> {
    let sizes = resolve("reshape", x, &shape)?;
    x.elements("reshape")?
        .reshape(sizes)
        .map(|d| x.with_data(d))
        .fx()
}

/// As [`reshape`]; PyTorch's name for it where no copy is wanted. (Here a copy is made if one is
/// needed.)
///
/// # Errors
/// Returns an error if the shapes have different numbers of elements.
#[op(view, method, path = "fx_nn::ops::view")]
pub fn view(x: &Tensor, shape: impl Into<Sizes>) -> Result<Tensor> {
    let sizes = resolve("view", x, &shape)?;
    x.elements("view")?
        .reshape(sizes)
        .map(|d| x.with_data(d))
        .fx()
}

/// Dims of size 1 repeated to these sizes, new ones in front; -1 keeps a size.
///
/// # Errors
/// Returns an error if a dim of a size other than 1 would change, or results of so many elements do
/// not fit into memory.
#[op(view, member, method, path = "fx_nn::ops::expand")]
pub fn expand(x: &Tensor, size: impl Into<Sizes>) -> Result<Tensor> {
    expanded("expand", x, &size)
}

/// The same for the operation `op`.
pub(super) fn expanded(op: &str, x: &Tensor, size: &Sizes) -> Result<Tensor> {
    let data = x.elements(op)?;
    let wanted = size.known()?;
    let new = wanted.len().checked_sub(data.rank());
    let new = new.ok_or_else(|| unfit(op))?;
    let sizes = wanted
        .iter()
        .enumerate()
        .map(|(i, n)| {
            let own = i.checked_sub(new).and_then(|i| data.dims().get(i)).copied();
            match (own, usize::try_from(*n)) {
                (Some(own), Err(_)) if *n == -1 => Ok(own),
                (Some(own), Ok(n)) if own == n || own == 1 => Ok(n),
                (None, Ok(n)) => Ok(n),
                _ => Err(unfit(op)),
            }
        })
        .collect::<Result<Vec<_>>>()?;
    crate::kernels::expand::to(data, &sizes)
        .map(|d| x.with_data(d))
        .fx()
}

/// The dims in another order.
///
/// ```
/// use fx_nn::prelude::*;
/// let x = Tensor::arange(0, 6)?.reshape((1, 2, 3))?;
/// assert_eq!(x.permute((2, 0, 1))?.dims()?, [3, 1, 2]);
/// assert_eq!(x.permute([0, -1, 1])?.to_vec()?, [0.0, 3.0, 1.0, 4.0, 2.0, 5.0]);
/// # Ok::<(), fx_nn::Error>(())
/// ```
///
/// # Errors
/// Returns an error if `dims` are not all dims, each once.
#[op(view, member, method, path = "fx_nn::ops::permute")]
pub fn permute(x: &Tensor, dims: impl Into<Dims>) -> Result<Tensor> {
    let data = x.elements("permute")?;
    let order = dims.resolve("permute", data.rank()).fx()?;
    let names_more = matches!(&dims, Dims::Many(dims) if dims.len() != data.rank())
        || matches!(dims, Dims::One(_)) && data.rank() != 1;
    require("permute", order.len() == data.rank() && !names_more)?;
    data.permute(order).map(|d| x.with_data(d)).fx()
}

/// Two dims in each other's place.
///
/// # Errors
/// Returns an error if there are no such dims.
#[op(view, member, method, path = "fx_nn::ops::transpose")]
pub fn transpose(x: &Tensor, dim0: i64, dim1: i64) -> Result<Tensor> {
    let data = x.elements("transpose")?;
    let a = dim::dim("transpose", dim0, data.rank()).fx()?;
    let b = dim::dim("transpose", dim1, data.rank()).fx()?;
    if data.rank() == 0 {
        return Ok(x.clone());
    }
    data.transpose(a, b).map(|d| x.with_data(d)).fx()
}

/// A matrix with its dims in each other's place; a vector as it is.
///
/// # Errors
/// Returns an error if there are more than two dims.
#[op(view, member, method, path = "fx_nn::ops::t")]
pub fn t(x: &Tensor) -> Result<Tensor> {
    let data = x.elements("t")?;
    match data.rank() {
        0 | 1 => Ok(x.clone()),
        2 => data.t().map(|d| x.with_data(d)).fx(),
        _ => Err(unfit("t")),
    }
}

/// Without a dim of size 1; a dim of another size stays.
///
/// # Errors
/// Returns an error if there is no such dim.
#[op(view, member, method, path = "fx_nn::ops::squeeze")]
pub fn squeeze(x: &Tensor, dim: i64) -> Result<Tensor> {
    let data = x.elements("squeeze")?;
    let at = dim::dim("squeeze", dim, data.rank()).fx()?;
    if data.dims().get(at) != Some(&1) {
        return Ok(x.clone());
    }
    data.squeeze(at).map(|d| x.with_data(d)).fx()
}

/// With a new dim of size 1.
///
/// # Errors
/// Returns an error if there is no such position.
#[op(view, member, method, path = "fx_nn::ops::unsqueeze")]
pub fn unsqueeze(x: &Tensor, dim: i64) -> Result<Tensor> {
    let data = x.elements("unsqueeze")?;
    let at = dim::dim("unsqueeze", dim, data.rank() + 1).fx()?;
    data.unsqueeze(at).map(|d| x.with_data(d)).fx()
}

fn pieces(op: &str, x: &Tensor, size: usize, dim: i64) -> Result<List<Tensor>> {
    let data = x.elements(op)?;
    let at = dim::dim(op, dim, data.rank()).fx()?;
    let Some(total) = data.dims().get(at).copied() else {
        return Err(unfit(op));
    };
    let size = size.max(1);
    (0..total.div_ceil(size).max(1))
        .map(|i| {
            let start = i * size;
            narrow(data, at, start, size.min(total - start))
                .map(|d| x.with_data(d))
                .fx()
        })
        .collect()
}

/// Pieces of `split_size` along a dim, the last one smaller where it does not divide it.
///
/// # Errors
/// Returns an error if there is no such dim, or the size is 0 and the dim's is not.
#[op(view, member, method, path = "fx_nn::ops::split")]
pub fn split(
    x: &Tensor,
    split_size: impl Into<Int>,
    #[kw]
    #[default(0)]
    dim: i64,
) -> Result<List<Tensor>> {
    let split_size = count("split", split_size)?;
    let data = x.elements("split")?;
    let at = dim::dim("split", dim, data.rank()).fx()?;
    require("split", split_size != 0 || data.dims().get(at) == Some(&0))?;
    pieces("split", x, split_size, dim)
}

/// At most `chunks` pieces of one size along a dim, the last one smaller where they do not divide it; `chunks` empty
/// ones of an empty dim.
///
/// # Errors
/// Returns an error if there is no such dim, or zero chunks are requested.
#[op(view, member, method, path = "fx_nn::ops::chunk")]
pub fn chunk(x: &Tensor, chunks: impl Into<Int>, #[default(0)] dim: i64) -> Result<List<Tensor>> {
    let chunks = count("chunk", chunks)?;
    require("chunk", chunks != 0)?;
    let data = x.elements("chunk")?;
    let at = dim::dim("chunk", dim, data.rank()).fx()?;
    if data.dims().get(at) == Some(&0) {
        // `chunks` pieces, each of them the whole tensor, which is empty.
        room::of("chunk", &[chunks], candle_core::DType::I64).fx()?;
        return Ok((0..chunks).map(|_| x.clone()).collect());
    }
    let total = data.dims().get(at).copied().unwrap_or(0);
    if total == 0 && data.rank() > 0 {
        let mut pieces = Vec::new();
        if pieces.try_reserve_exact(chunks).is_err() {
            return Err(Error::msg(format_args!(
                "chunk: there is not enough memory for {chunks} pieces"
            )));
        }
        pieces.resize(chunks, x.clone());
        return Ok(pieces.into_iter().collect());
    }
    pieces("chunk", x, total.div_ceil(chunks), dim)
}

/// Pieces of the given sizes along a dim.
///
/// # Errors
/// Returns an error if there is no such dim, or the sizes do not add up to its size.
#[op(view, member, method, path = "fx_nn::ops::split_with_sizes")]
pub fn split_with_sizes(
    x: &Tensor,
    split_sizes: Vec<usize>,
    #[kw]
    #[default(0)]
    dim: i64,
) -> Result<List<Tensor>> {
    let op = "split_with_sizes";
    let data = x.elements(op)?;
    let at = dim::dim(op, dim, data.rank()).fx()?;
    let total = data.dims().get(at).copied();
    let sum = split_sizes
        .iter()
        .try_fold(0usize, |sum, n| sum.checked_add(*n));
    require(op, sum == total)?;
    let mut start = 0;
    split_sizes
        .iter()
        .map(|size| {
            let piece = narrow(data, at, start, *size).map(|d| x.with_data(d)).fx();
            start += size;
            piece
        })
        .collect()
}

/// The slices along a dim, without it.
///
/// ```
/// use fx_nn::prelude::*;
/// let x = Tensor::from_vec(vec![1i64, 2, 3, 4], (2, 2))?;
/// let [a, b] = x.unbind(1)?.unpack()?;
/// assert_eq!((a.to_vec()?, b.to_vec()?), (vec![1.0, 3.0], vec![2.0, 4.0]));
/// # Ok::<(), fx_nn::Error>(())
/// ```
///
/// # Errors
/// Returns an error if there is no such dim.
#[op(view, member, method, path = "fx_nn::ops::unbind")]
pub fn unbind(x: &Tensor, #[default(0)] dim: i64) -> Result<List<Tensor>> {
    let data = x.elements("unbind")?;
    let at = dim::dim("unbind", dim, data.rank()).fx()?;
    let Some(count) = data.dims().get(at).copied() else {
        return Err(unfit("unbind"));
    };
    (0..count)
        .map(|i| {
            let slice = narrow(data, at, i, 1).and_then(|d| d.squeeze(at));
            slice.map(|d| x.with_data(d)).fx()
        })
        .collect()
}

/// The same elements, next to each other in memory.
///
/// # Errors
/// Returns an error if they do not fit into memory.
#[op(unary, method, path = "fx_nn::ops::contiguous")]
pub fn contiguous(x: &Tensor) -> Result<Tensor> {
    x.elements("contiguous")?
        .contiguous()
        .map(|d| x.with_data(d))
        .fx()
}
