//! Elements by their places in a row-major tensor: reading them, writing others.

use candle_core::{DType, Result, Tensor, bail};

use super::integers;
use crate::room;

/// The place that is read as a zero.
pub const NOWHERE: i64 = i64::MAX;

/// How far apart the neighbours along each dimension are.
pub fn strides(dims: &[usize]) -> Vec<usize> {
    let mut strides = vec![1usize; dims.len()];
    for at in (1..dims.len()).rev() {
        strides[at - 1] = strides[at].saturating_mul(dims[at]);
    }
    strides
}

/// The places of a view of the given sizes and strides, row by row.
///
/// # Errors
/// Returns an error if they do not fit into memory.
pub fn view(op: &str, start: usize, dims: &[usize], strides: &[usize]) -> Result<Vec<i64>> {
    let count = room::of(op, dims, DType::I64)?;
    let mut places = Vec::with_capacity(count);
    if count == 0 {
        return Ok(places);
    }
    places.push(start as i64);
    // From the last dimension on, each repeats the places inside it.
    for (size, stride) in dims.iter().zip(strides).rev() {
        let inner = places.len();
        for step in 1..*size {
            let by = (step * stride) as i64;
            places.extend_from_within(..inner);
            let from = places.len() - inner;
            places[from..].iter_mut().for_each(|place| *place += by);
        }
    }
    Ok(places)
}

/// The elements of `x` at `places`, in the shape `dims`.
///
/// # Errors
/// Returns an error if they do not fit into memory.
pub fn pick(op: &str, x: &Tensor, places: Vec<i64>, dims: &[usize]) -> Result<Tensor> {
    let count = room::of(op, dims, x.dtype())?;
    if count == 0 || x.elem_count() == 0 {
        return Tensor::zeros(dims, x.dtype(), x.device());
    }
    let places = Tensor::from_vec(places, count, x.device())?;
    x.contiguous()?
        .flatten_all()?
        .index_select(&places, 0)?
        .reshape(dims)
}

/// The slices of `x` along `dim` at `ids`; [`NOTHING`](super::window::NOTHING) gives zeros.
///
/// # Errors
/// Returns an error if they do not fit into memory.
pub fn along(op: &str, x: &Tensor, dim: usize, ids: Vec<u32>) -> Result<Tensor> {
    let mut shape = x.dims().to_vec();
    shape[dim] = ids.len();
    let count = room::of(op, &shape, x.dtype())?;
    if count == 0 || x.elem_count() == 0 {
        return Tensor::zeros(shape, x.dtype(), x.device());
    }
    let ids = Tensor::from_vec(ids, shape[dim], x.device())?;
    x.contiguous()?.index_select(&ids, dim)
}

/// `x` with the elements of `source` at `places`, one after another: the last of several at one
/// place stays.
///
/// The gradient of a place goes to the element that stays there.
///
/// # Errors
/// Returns only candle's errors.
pub fn put(op: &str, x: &Tensor, source: &Tensor, places: &[i64]) -> Result<Tensor> {
    if places.is_empty() {
        return Ok(x.clone());
    }
    let count = room::of(op, x.dims(), DType::I64)?;
    let mut from: Vec<i64> = (0..count as i64).collect();
    for (at, place) in places.iter().enumerate() {
        from[*place as usize] = (count + at) as i64;
    }
    let flat = |t: &Tensor| t.contiguous()?.flatten_all();
    let both = Tensor::cat(&[flat(x)?, flat(source)?], 0)?;
    pick(op, &both, from, x.dims())
}

/// The integers of an index into `size` things; negative ones are errors, or count from the end
/// under `from_end`.
///
/// # Errors
/// Returns an error if an index is out of range.
pub fn indices(op: &str, index: &Tensor, size: usize, from_end: bool) -> Result<Vec<i64>> {
    let mut found = integers::elements(index)?;
    for at in &mut found {
        let place = match *at < 0 && from_end {
            true => at.saturating_add_unsigned(size as u64),
            false => *at,
        };
        if place < 0 || place as u64 >= size as u64 {
            bail!("{op}: index {at} is out of range, there are {size}")
        }
        *at = place;
    }
    Ok(found)
}
