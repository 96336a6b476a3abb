//! Elements in another order along a dim: rolled, turned around, repeated.

use crate::op;
use fx_core::Result;
use fx_core::value::Int;

use super::create::known;
use crate::error::{Fx, require, unfit};
use crate::kernels::{dim, places, shape, view};
use crate::room;
use crate::tensor::{Dims, Sizes, Tensor};

/// The elements moved along dims, those that leave one end to the other; without `dims` along the flattened tensor.
///
/// ```
/// use fx_nn::prelude::*;
/// let x = Tensor::arange(0, 6)?.reshape((2, 3))?;
/// assert_eq!(x.roll(1, 1)?.to_vec()?, [2.0, 0.0, 1.0, 5.0, 3.0, 4.0]);
/// assert_eq!(x.roll((1, -1), (0, 1))?.to_vec()?, [4.0, 5.0, 3.0, 1.0, 2.0, 0.0]);
/// assert_eq!(x.roll(2, ..)?.to_vec()?, [4.0, 5.0, 0.0, 1.0, 2.0, 3.0]);
/// # Ok::<(), fx_nn::Error>(())
/// ```
///
/// # Errors
/// Returns an error if there are not as many shifts as dims.
#[op(along, member, method, path = "fx_nn::ops::roll")]
pub fn roll(
    x: &Tensor,
    shifts: impl Into<Sizes>,
    #[default(None)] dims: impl Into<Dims>,
) -> Result<Tensor> {
    let op = "roll";
    let data = x.elements(op)?;
    let shifts = shifts.known()?;
    let named = match &dims {
        Dims::All => None,
        Dims::One(dim) => Some(vec![*dim]),
        Dims::Many(dims) if dims.is_empty() => None,
        Dims::Many(dims) => Some(dims.clone()),
    };
    require(op, shifts.len() == named.as_ref().map_or(1, Vec::len))?;
    let turned = |data: &candle_core::Tensor, at: usize, shift: i64| {
        let size = data.dims()[at] as i64;
        let start = (-(shift.rem_euclid(size.max(1)))).rem_euclid(size.max(1)) as usize;
        if start == 0 {
            return Ok(data.clone());
        }
        let parts = [
            view::narrow(data, at, start, data.dims()[at] - start)?,
            view::narrow(data, at, 0, start)?,
        ];
        shape::cat(&parts, at as i64)
    };
    let mut y = data.clone();
    match named {
        None if data.elem_count() > 0 => {
            let flat = data
                .flatten_all()
                .and_then(|flat| turned(&flat, 0, shifts[0]));
            y = flat.and_then(|flat| flat.reshape(data.dims())).fx()?;
        }
        None => {}
        Some(_) if data.elem_count() == 0 => {}
        Some(dims) => {
            for (d, shift) in dims.iter().zip(shifts) {
                let at = dim::dim(op, *d, data.rank()).fx()?;
                require("roll", data.rank() != 0)?;
                y = turned(&y, at, shift).fx()?;
            }
        }
    }
    Ok(x.with_data(y))
}

/// Dims turned around.
fn turn(op: &str, x: &Tensor, dims: &[usize]) -> Result<Tensor> {
    let mut y = x.elements(op)?.clone();
    for at in dims {
        let ids = (0..y.dims()[*at] as u32).rev().collect();
        y = places::along(op, &y, *at, ids).fx()?;
    }
    Ok(x.with_data(y))
}

/// The elements in the other order along each of the dims.
///
/// ```
/// use fx_nn::prelude::*;
/// let x = Tensor::arange(0, 6)?.reshape((2, 3))?;
/// assert_eq!(x.flip(1)?.to_vec()?, [2.0, 1.0, 0.0, 5.0, 4.0, 3.0]);
/// assert_eq!(x.flip((0, 1))?.to_vec()?, [5.0, 4.0, 3.0, 2.0, 1.0, 0.0]);
/// # Ok::<(), fx_nn::Error>(())
/// ```
///
/// # Errors
/// Returns an error if there are no such dims.
#[op(along, member, method, path = "fx_nn::ops::flip")]
pub fn flip(x: &Tensor, dims: impl Into<Dims>) -> Result<Tensor> {
    let dims = dims.resolve("flip", x.elements("flip")?.rank()).fx()?;
    turn("flip", x, &dims)
}

/// [`flip`] of the columns, dim 1.
///
/// # Errors
/// Returns an error if there are fewer than two dims.
#[op(method, path = "fx_nn::ops::fliplr")]
pub fn fliplr(x: &Tensor) -> Result<Tensor> {
    require("fliplr", x.dims()?.len() >= 2)?;
    turn("fliplr", x, &[1])
}

/// [`flip`] of the rows, dim 0.
///
/// # Errors
/// Returns an error if there are no dims.
#[op(method, path = "fx_nn::ops::flipud")]
pub fn flipud(x: &Tensor) -> Result<Tensor> {
    require("flipud", !x.dims()?.is_empty())?;
    turn("flipud", x, &[0])
}

/// Quarter turns in the plane of two dims, from the first towards the second; `k` of them, negative ones back.
///
/// ```
/// use fx_nn::prelude::*;
/// let x = Tensor::arange(0, 4)?.reshape((2, 2))?;
/// assert_eq!(x.rot90(1, (0, 1))?.to_vec()?, [1.0, 3.0, 0.0, 2.0]);
/// # Ok::<(), fx_nn::Error>(())
/// ```
///
/// # Errors
/// Returns an error if `dims` are not two.
#[op(view, member, method, path = "fx_nn::ops::rot90")]
pub fn rot90(x: &Tensor, k: impl Into<Int>, dims: impl Into<Dims>) -> Result<Tensor> {
    let op = "rot90";
    let data = x.elements(op)?;
    let [a, b] = dims.resolve(op, data.rank()).fx()?[..] else {
        return Err(unfit(op));
    };
    let swapped = |y: Tensor| -> Result<Tensor> {
        let turned = y.elements(op)?.transpose(a, b).fx()?;
        Ok(y.with_data(turned))
    };
    match known(op, k)?.rem_euclid(4) {
        1 => swapped(turn(op, x, &[b])?),
        2 => turn(op, x, &[a, b]),
        3 => swapped(turn(op, x, &[a])?),
        _ => Ok(x.clone()),
    }
}

/// Each element, or each slice along `dim`, so many times, one after another: `repeats` is one number for all or one for
/// each. Without `dim` the tensor is flattened.
///
/// ```
/// use fx_nn::prelude::*;
/// let x = Tensor::from_vec(vec![1i64, 2, 3, 4], (2, 2))?;
/// assert_eq!(x.repeat_interleave(2, None)?.to_vec()?, [1.0, 1.0, 2.0, 2.0, 3.0, 3.0, 4.0, 4.0]);
/// assert_eq!(x.repeat_interleave((1, 2), 0)?.to_vec()?, [1.0, 2.0, 3.0, 4.0, 3.0, 4.0]);
/// # Ok::<(), fx_nn::Error>(())
/// ```
///
/// # Errors
/// Returns an error if a number is negative, there is neither one number nor one per slice, or
/// there is no such dim.
#[op(member, method, path = "fx_nn::ops::repeat_interleave")]
pub fn repeat_interleave(
    x: &Tensor,
    repeats: impl Into<Sizes>,
    dim: impl Into<Option<i64>>,
) -> Result<Tensor> {
    let op = "repeat_interleave";
    let data = x.elements(op)?;
    let (data, at) = match dim {
        Some(_) if data.rank() == 0 => return Err(unfit(op)),
        Some(dim) => (data.clone(), dim::dim(op, dim, data.rank()).fx()?),
        None => (data.flatten_all().fx()?, 0),
    };
    let size = data.dims()[at];
    let repeats = repeats.known()?;
    let counts: Option<Vec<usize>> = repeats.iter().map(|n| usize::try_from(*n).ok()).collect();
    let counts = match counts.as_deref() {
        Some(&[all]) => vec![all; size],
        Some(each) if each.len() == size => each.to_vec(),
        _ => return Err(unfit(op)),
    };
    let total = counts.iter().try_fold(0usize, |sum, n| sum.checked_add(*n));
    room::of(op, &[total.unwrap_or(usize::MAX)], candle_core::DType::U32).fx()?;
    let ids = (0..size as u32)
        .zip(counts)
        .flat_map(|(i, count)| std::iter::repeat_n(i, count))
        .collect();
    places::along(op, &data, at, ids)
        .map(|data| x.with_data(data))
        .fx()
}

/// The whole tensor so many times along each dim; more numbers than dims make new dims in front.
fn repeated(op: &str, x: &Tensor, counts: &[i64]) -> Result<Tensor> {
    let data = x.elements(op)?;
    let known: Option<Vec<usize>> = counts.iter().map(|n| usize::try_from(*n).ok()).collect();
    let (Some(counts), Some(new)) = (known, counts.len().checked_sub(data.rank())) else {
        return Err(unfit(op));
    };
    let own: Vec<usize> = std::iter::repeat_n(1, new)
        .chain(data.dims().iter().copied())
        .collect();
    let sizes: Vec<usize> = own
        .iter()
        .zip(&counts)
        .map(|(n, k)| n.saturating_mul(*k))
        .collect();
    room::of(op, &sizes, data.dtype()).fx()?;
    if sizes.contains(&0) {
        let empty = candle_core::Tensor::zeros(sizes, data.dtype(), data.device());
        return empty.map(|data| x.with_data(data)).fx();
    }
    let mut y = data.reshape(own).fx()?;
    for (at, count) in counts
        .iter()
        .enumerate()
        .rev()
        .filter(|(_, count)| **count > 1)
    {
        let mut spread = y.dims().to_vec();
        spread.insert(at, *count);
        let mut joined = y.dims().to_vec();
        joined[at] *= count;
        let wide = y
            .contiguous()
            .and_then(|y| y.unsqueeze(at)?.broadcast_as(spread)?.contiguous());
        y = wide.and_then(|wide| wide.reshape(joined)).fx()?;
    }
    Ok(x.with_data(y))
}

/// The whole tensor so many times along each dim; more numbers than dims make new dims in front.
///
/// ```
/// use fx_nn::prelude::*;
/// let x = Tensor::from_vec(vec![1i64, 2], 2)?;
/// assert_eq!(x.repeat((2, 2))?.to_vec()?, [1.0, 2.0, 1.0, 2.0, 1.0, 2.0, 1.0, 2.0]);
/// # Ok::<(), fx_nn::Error>(())
/// ```
///
/// # Errors
/// Returns an error if there are fewer numbers than dims, one is negative, or the result does not
/// fit into memory.
#[op(view, member, method, path = "fx_nn::ops::repeat")]
pub fn repeat(x: &Tensor, repeats: impl Into<Sizes>) -> Result<Tensor> {
    repeated("repeat", x, &repeats.known()?)
}

/// As [`repeat`], but fewer numbers than dims are for the last ones.
///
/// # Errors
/// Returns an error if a number is negative, or the result does not fit into memory.
#[op(view, member, method, path = "fx_nn::ops::tile")]
pub fn tile(x: &Tensor, dims: impl Into<Sizes>) -> Result<Tensor> {
    let mut counts = dims.known()?;
    let missing = x.dims()?.len().saturating_sub(counts.len());
    counts.splice(0..0, std::iter::repeat_n(1, missing));
    repeated("tile", x, &counts)
}
