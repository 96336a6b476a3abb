//! Tensors put side by side by NumPy's names, as blocks, and in all combinations.

use crate::op;
use std::borrow::Borrow;

use fx_core::Result;
use fx_core::trace::List;
use fx_core::value::DType;

use super::dims::{atleast_1d, atleast_2d, atleast_3d};
use super::shape::joined;
use crate::error::{Fx, require, unfit};
use crate::kernels::{pad, shape};
use crate::room;
use crate::tensor::Tensor;

fn each(tensors: &[Tensor], f: impl Fn(&Tensor) -> Result<Tensor>) -> Result<Vec<Tensor>> {
    tensors.iter().map(f).collect()
}

/// Tensors beside each other: along dim 1, vectors along their only one.
///
/// # Errors
/// Returns an error if there are no tensors, or their other sizes differ.
#[op(member, path = "fx_nn::ops::hstack")]
pub fn hstack(tensors: &[impl Borrow<Tensor>]) -> Result<Tensor> {
    let tensors = each(tensors, |x| atleast_1d(x))?;
    let vectors = tensors
        .first()
        .is_none_or(|x| x.dims().is_ok_and(|d| d.len() == 1));
    joined("hstack", &tensors, |data| {
        shape::cat(data, if vectors { 0 } else { 1 })
    })
}

/// Tensors below each other, along dim 0; vectors are rows.
///
/// # Errors
/// Returns an error if there are no tensors, or their other sizes differ.
#[op(member, path = "fx_nn::ops::vstack")]
pub fn vstack(tensors: &[impl Borrow<Tensor>]) -> Result<Tensor> {
    let tensors = each(tensors, |x| atleast_2d(x))?;
    joined("vstack", &tensors, |data| shape::cat(data, 0))
}

/// [`vstack`] under another name.
///
/// # Errors
/// Returns an error if there are no tensors, or their other sizes differ.
#[op(path = "fx_nn::ops::row_stack")]
pub fn row_stack(tensors: &[impl Borrow<Tensor>]) -> Result<Tensor> {
    let tensors = each(tensors, |x| atleast_2d(x))?;
    joined("row_stack", &tensors, |data| shape::cat(data, 0))
}

/// Tensors behind each other, along dim 2.
///
/// # Errors
/// Returns an error if there are no tensors, or their other sizes differ.
#[op(member, path = "fx_nn::ops::dstack")]
pub fn dstack(tensors: &[impl Borrow<Tensor>]) -> Result<Tensor> {
    let tensors = each(tensors, |x| atleast_3d(x))?;
    joined("dstack", &tensors, |data| shape::cat(data, 2))
}

/// Tensors beside each other, along dim 1; vectors are columns.
///
/// # Errors
/// Returns an error if there are no tensors, or their other sizes differ.
#[op(member, path = "fx_nn::ops::column_stack")]
pub fn column_stack(tensors: &[impl Borrow<Tensor>]) -> Result<Tensor> {
    let tensors = each(tensors, |x| match x.dims()?.len() {
        0 | 1 => x.reshape((-1, 1)),
        _ => Ok(x.clone()),
    })?;
    joined("column_stack", &tensors, |data| shape::cat(data, 1))
}

/// Matrices along the diagonal of one, zeros elsewhere; vectors are rows, numbers are matrices of one.
///
/// ```
/// use fx_nn::prelude::*;
/// let (a, b) = (Tensor::ones((1, 2))?, Tensor::ones((2, 1))?);
/// assert_eq!(ops::block_diag(&[a, b])?.to_vec()?, [1.0, 1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 1.0]);
/// # Ok::<(), fx_nn::Error>(())
/// ```
///
/// # Errors
/// Returns an error if a tensor has more than two dims.
#[op(member, path = "fx_nn::ops::block_diag")]
pub fn block_diag(tensors: &[impl Borrow<Tensor>]) -> Result<Tensor> {
    let op = "block_diag";
    let fits = |x: &Tensor| x.dims().is_ok_and(|dims| dims.len() <= 2);
    require(op, tensors.iter().all(fits))?;
    if tensors.is_empty() {
        return Tensor::zeros((1, 0));
    }
    let common = of_all(tensors)?;
    let blocks = each(tensors, |x| atleast_2d(&x.cast(common)?))?;
    let wide: usize = blocks.iter().filter_map(|x| Some(x.dims().ok()?[1])).sum();
    let high: usize = blocks.iter().filter_map(|x| Some(x.dims().ok()?[0])).sum();
    joined(op, &blocks, |data| {
        room::of(op, &[high, wide], data[0].dtype())?;
        let zero = candle_core::Tensor::zeros((), data[0].dtype(), data[0].device())?;
        let mut before = 0;
        let rows = data.iter().map(|block| {
            let after = wide - before - block.dims()[1];
            let row = pad::constant(op, block, &[(before as i64, after as i64)], &zero);
            before += block.dims()[1];
            row
        });
        shape::cat(&rows.collect::<candle_core::Result<Vec<_>>>()?, 0)
    })
}

/// The type of all tensors, where one without dims does not decide it within its category.
fn of_all(tensors: &[Tensor]) -> Result<DType> {
    let (mut all, mut dims) = (None::<Tensor>, None::<Tensor>);
    for x in tensors {
        let kind = if x.dims()?.is_empty() {
            &mut all
        } else {
            &mut dims
        };
        let joint = match kind.take() {
            Some(other) => x.cast(other.dtype()?.promote(x.dtype()?))?,
            None => x.clone(),
        };
        *kind = Some(joint);
    }
    match (all, dims) {
        (Some(a), Some(b)) => a.common(&b),
        (Some(one), None) | (None, Some(one)) => one.dtype(),
        (None, None) => Ok(DType::F32),
    }
}

/// The coordinates of a grid: each of the vectors along a dim of its own, repeated along the others. `indexing` of
/// `"ij"` takes the first vector for the rows, `"xy"` for the columns.
///
/// ```
/// use fx_nn::prelude::*;
/// let (a, b) = (Tensor::arange(0, 2)?, Tensor::arange(0, 3)?);
/// let [rows, columns] = ops::meshgrid(&[a, b], "ij")?.unpack()?;
/// assert_eq!(rows.to_vec()?, [0.0, 0.0, 0.0, 1.0, 1.0, 1.0]);
/// assert_eq!(columns.to_vec()?, [0.0, 1.0, 2.0, 0.0, 1.0, 2.0]);
/// # Ok::<(), fx_nn::Error>(())
/// ```
///
/// # Errors
/// Returns an error if there are no tensors, one has more than one dim, their types differ, or
/// `indexing` is anything else.
#[op(view, member, path = "fx_nn::ops::meshgrid")]
pub fn meshgrid(
    tensors: &[impl Borrow<Tensor>],
    #[kw]
    #[default("ij")]
    indexing: &str,
) -> Result<List<Tensor>> {
    let op = "meshgrid";
    let swap = match indexing {
        "ij" => false,
        "xy" => tensors.len() > 1,
        _ => return Err(unfit(op)),
    };
    let mut sizes = Vec::with_capacity(tensors.len());
    let mut dtype = None;
    for x in tensors {
        match x.dims()? {
            [] => sizes.push(1),
            &[n] => sizes.push(n),
            _ => return Err(unfit(op)),
        }
        require(op, *dtype.get_or_insert(x.dtype()?) == x.dtype()?)?;
    }
    require(op, !sizes.is_empty())?;
    if swap {
        sizes.swap(0, 1);
    }
    tensors
        .iter()
        .enumerate()
        .map(|(at, x)| {
            let at = if swap && at < 2 { 1 - at } else { at };
            let mut shape = vec![1; sizes.len()];
            shape[at] = sizes[at];
            let data = x.elements(op)?.reshape(shape);
            data.and_then(|data| crate::kernels::expand::to(&data, &sizes))
                .map(|data| x.with_data(data))
                .fx()
        })
        .collect()
}

/// All combinations of an element of each vector, a row each; one vector as it is.
///
/// ```
/// use fx_nn::prelude::*;
/// let (a, b) = (Tensor::arange(1, 3)?, Tensor::arange(4, 6)?);
/// assert_eq!(ops::cartesian_prod(&[a, b])?.to_vec()?, [1.0, 4.0, 1.0, 5.0, 2.0, 4.0, 2.0, 5.0]);
/// # Ok::<(), fx_nn::Error>(())
/// ```
///
/// # Errors
/// Returns an error if one is not a vector, or the types differ.
#[op(member, path = "fx_nn::ops::cartesian_prod")]
pub fn cartesian_prod(tensors: &[impl Borrow<Tensor>]) -> Result<Tensor> {
    let op = "cartesian_prod";
    let is_vector = |x: &Tensor| x.dims().is_ok_and(|dims| dims.len() == 1);
    require(op, tensors.iter().all(is_vector))?;
    if let [one] = tensors {
        return Ok(one.clone());
    }
    let grid = meshgrid(tensors, "ij")?;
    let columns = each(grid.known(), |x| x.reshape(-1))?;
    joined(op, &columns, |data| shape::stack(data, 1))
}

/// All combinations of `r` elements of a vector, a row each, in its order.
///
/// ```
/// use fx_nn::prelude::*;
/// let x = Tensor::arange(1, 4)?;
/// assert_eq!(ops::combinations(&x, 2, false)?.to_vec()?, [1.0, 2.0, 1.0, 3.0, 2.0, 3.0]);
/// # Ok::<(), fx_nn::Error>(())
/// ```
///
/// # Errors
/// Returns an error if `x` is not a vector, or so many rows do not fit into memory.
#[op(member, path = "fx_nn::ops::combinations")]
pub fn combinations(
    x: &Tensor,
    #[default(2)] r: usize,
    #[default(false)] with_replacement: bool,
) -> Result<Tensor> {
    let op = "combinations";
    let data = x.elements(op)?;
    let &[size] = data.dims() else {
        return Err(unfit(op));
    };
    if r == 0 {
        let none = candle_core::Tensor::zeros(0, data.dtype(), data.device());
        return none.map(|data| x.with_data(data)).fx();
    }
    // Rows grow by one element at a time: a later element than the last one, or that one again.
    let mut rows: Vec<Vec<u32>> = (0..size as u32).map(|i| vec![i]).collect();
    for _ in 1..r {
        let mut longer = Vec::new();
        for row in &rows {
            let last = row.last().copied().unwrap_or(0);
            let from = if with_replacement { last } else { last + 1 };
            for i in from..size as u32 {
                longer.push(row.iter().copied().chain([i]).collect());
            }
        }
        room::of(op, &[longer.len(), r], candle_core::DType::I64).fx()?;
        rows = longer;
    }
    let count = rows.len();
    crate::kernels::places::along(op, data, 0, rows.into_iter().flatten().collect())
        .and_then(|data| data.reshape((count, r)))
        .map(|data| x.with_data(data))
        .fx()
}
