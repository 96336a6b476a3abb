//! Picking elements: by a condition, by their place in a matrix, by index.

use candle_core::{DType, Result, Tensor, bail};

use super::choice::where_cond;
use super::comparison;
use super::dim::dim;
use super::expand;
use super::view::narrow;
use crate::dtype::dtype_name;
use crate::room;

/// `a` where `condition` (`u8`) is not 0, `b` elsewhere, in the shape that all three broadcast to.
///
/// # Errors
/// Returns an error if the shapes do not broadcast or the dtypes of `a` and `b` differ.
pub fn choose(op: &str, condition: &Tensor, a: &Tensor, b: &Tensor) -> Result<Tensor> {
    let dims = expand::shape(op, a.dims(), b.dims())?;
    let dims = expand::shape(op, condition.dims(), &dims)?;
    let condition = expand::to(condition, &dims)?;
    if condition.elem_count() == 0 {
        return expand::to(a, &dims);
    }
    where_cond(&condition, &expand::to(a, &dims)?, &expand::to(b, &dims)?)
}

/// `x` with `value`, one of its dtype, where `mask` (`u8`) is not 0; the shapes broadcast.
///
/// # Errors
/// Returns an error if the shapes do not broadcast.
pub fn masked_fill(x: &Tensor, mask: &Tensor, value: &Tensor) -> Result<Tensor> {
    choose("masked_fill", mask, value, x)
}

/// The part of each matrix of `x [.., m, n]` on and below its `diagonal` (`lower`), or on and above it; zeros elsewhere.
///
/// # Errors
/// Returns an error if `x` has fewer than 2 dimensions.
pub fn triangle(op: &str, x: &Tensor, diagonal: i64, lower: bool) -> Result<Tensor> {
    let &[.., m, n] = x.dims() else {
        bail!("{op}: input {:?} must have at least 2 dimensions", x.dims())
    };
    let keep = |row: usize, column: usize| {
        // Sizes of what is in memory are far from the ends of an i64.
        let above = column as i64 - row as i64;
        if lower {
            above <= diagonal
        } else {
            above >= diagonal
        }
    };
    room::of(op, &[m, n], DType::U8)?;
    let mask: Vec<u8> = (0..m)
        .flat_map(|row| (0..n).map(move |column| u8::from(keep(row, column))))
        .collect();
    let mask = Tensor::from_vec(mask, (m, n), x.device())?;
    choose(op, &mask, x, &Tensor::zeros((), x.dtype(), x.device())?)
}

/// The values of an integer tensor that index `size` things, as candle expects them; negative ones
/// are refused, as in PyTorch.
fn indices(op: &str, index: &Tensor, size: usize) -> Result<Tensor> {
    if !index.dtype().is_int() {
        bail!(
            "{op}: index {:?} of dtype {} must be of integers",
            index.dims(),
            dtype_name(index.dtype())
        )
    }
    let values = index
        .to_dtype(DType::I64)?
        .flatten_all()?
        .to_vec1::<i64>()?;
    if let Some(out) = values.iter().find(|&&i| i < 0 || i as u64 >= size as u64) {
        bail!("{op}: index {out} is out of range, there are {size}")
    }
    Tensor::from_vec(values, index.dims(), index.device())
}

/// Rows of `weight [n, d]` for each element of `ids`, of shape `[.., d]`.
///
/// No gradient reaches the row `padding`.
///
/// # Errors
/// Returns an error if `weight` is not a matrix, or an id is not an integer below `n`.
pub fn embedding(ids: &Tensor, weight: &Tensor, padding: Option<usize>) -> Result<Tensor> {
    let op = "embedding";
    let &[rows, width] = weight.dims() else {
        bail!("{op}: weight {:?} must be [n, d]", weight.dims())
    };
    if let Some(padding) = padding
        && padding >= rows
    {
        bail!("{op}: padding_idx {padding} is not one of {rows} rows")
    }
    let mut shape = ids.dims().to_vec();
    shape.push(width);
    room::of(op, &shape, weight.dtype())?;
    let at = indices(op, ids, rows)?.flatten_all()?;
    if at.elem_count() == 0 || width == 0 {
        return Tensor::zeros(shape, weight.dtype(), weight.device());
    }
    let mut found = weight.contiguous()?.index_select(&at, 0)?;
    if let Some(padding) = padding
        && weight.track_op()
    {
        let padding = Tensor::new(padding as i64, at.device())?;
        let is_padding = comparison::eq(&at, &padding.broadcast_as(at.dims())?)?.unsqueeze(1)?;
        found = choose(op, &is_padding, &found.detach(), &found)?;
    }
    found.reshape(shape)
}

/// For each element of `index` the element of `x` at its own place, except along `dim`, where it is
/// at the index.
///
/// Without dims, either is read as having one dim, as in PyTorch.
///
/// # Errors
/// Returns an error if the ranks differ, `index` is larger than `x` elsewhere than in `dim`, or an
/// index is out of range.
pub fn gather(x: &Tensor, d: i64, index: &Tensor) -> Result<Tensor> {
    let op = "gather";
    let at = dim(op, d, x.rank())?;
    room::of(op, index.dims(), x.dtype())?;
    if index.elem_count() == 0 {
        return Tensor::zeros(index.dims(), x.dtype(), x.device());
    }
    let of_one = |t: &Tensor| match t.rank() {
        0 => t.reshape(1),
        _ => Ok(t.clone()),
    };
    let (source, ids) = (of_one(x)?, of_one(index)?);
    let rank = source.rank();
    let fits =
        rank == ids.rank() && (0..rank).all(|i| i == at || ids.dims()[i] <= source.dims()[i]);
    if !fits {
        bail!(
            "{op}: index {:?} must have the rank of input {:?}, and no larger size elsewhere than in dim {at}",
            index.dims(),
            x.dims()
        )
    }
    let ids = indices(op, &ids, source.dims()[at])?;
    let mut source = source;
    for i in (0..rank).filter(|&i| i != at) {
        source = narrow(&source, i, 0, ids.dims()[i])?;
    }
    source.contiguous()?.gather(&ids, at)?.reshape(index.dims())
}

/// The slices of `x` along `dim` that `index [k]` names, in its order; a scalar is its own only slice.
///
/// # Errors
/// Returns an error if `index` is not one-dimensional, or an index is out of range.
pub fn index_select(x: &Tensor, d: i64, index: &Tensor) -> Result<Tensor> {
    let op = "index_select";
    let at = dim(op, d, x.rank())?;
    if index.rank() > 1 || (x.rank() == 0 && index.elem_count() != 1) {
        bail!(
            "{op}: index {:?} must have one dimension, and one element for an input without: {:?}",
            index.dims(),
            x.dims()
        )
    }
    if x.rank() == 0 {
        indices(op, index, 1)?;
        return Ok(x.clone());
    }
    let ids = indices(op, index, x.dims()[at])?.flatten_all()?;
    let mut shape = x.dims().to_vec();
    shape[at] = ids.elem_count();
    room::of(op, &shape, x.dtype())?;
    if shape.contains(&0) {
        return Tensor::zeros(shape, x.dtype(), x.device());
    }
    x.contiguous()?.index_select(&ids, at)
}

/// For each element of `x` (`i64`) a row of `classes` zeros with a one at the element, as `i64`.
///
/// Without `classes` there are as many as the largest element asks for.
///
/// # Errors
/// Returns an error if an element is not in `[0, classes)`, there is neither an element nor
/// `classes`, or the rows do not fit into memory.
pub fn one_hot(x: &Tensor, classes: Option<usize>) -> Result<Tensor> {
    let op = "one_hot";
    let values = match x.elem_count() {
        0 => Vec::new(),
        _ => x.flatten_all()?.to_vec1::<i64>()?,
    };
    let classes = match (classes, values.iter().max()) {
        (Some(classes), largest) if classes > 0 || largest.is_some() => classes,
        (None, Some(largest)) => usize::try_from(*largest).map_or(0, |n| n.saturating_add(1)),
        _ => bail!(
            "{op}: an input without elements {:?} does not tell how many classes there are",
            x.dims()
        ),
    };
    if let Some(out) = values
        .iter()
        .find(|&&at| usize::try_from(at).map_or(true, |at| at >= classes))
    {
        bail!("{op}: index {out} is out of range, there are {classes}")
    }
    let mut shape = x.dims().to_vec();
    shape.push(classes);
    let mut rows = vec![0i64; room::of(op, &shape, DType::I64)?];
    for (row, at) in values.iter().enumerate() {
        // In range, as checked above.
        rows[row * classes + *at as usize] = 1;
    }
    Tensor::from_vec(rows, shape, x.device())
}
