//! Elements in order, the distinct ones among them, and the place of a value in a sequence.

use crate::op;
use fx_core::Result;
use fx_core::value::DType;

use super::selection::{condition, indices};
use crate::error::{Fx, require, unfit};
use crate::kernels::unique::{self as kernels, Elements};
use crate::kernels::{dim, expand, places, select, topk};
use crate::tensor::Tensor;

fn sorted(op: &str, x: &Tensor, d: i64, descending: bool) -> Result<(Tensor, Tensor)> {
    let data = x.data(op)?;
    let at = dim::dim(op, d, data.rank()).fx()?;
    let size = data.dims().get(at).copied().unwrap_or(1);
    let (values, order) = topk::topk(data, size, at, descending, true).fx()?;
    Ok((x.with_data(values), order.into()))
}

/// The elements in order along `dim`, from the smallest or, under `descending`, from the largest, and where they were
/// (`int64`). Equal ones keep their order, and NaN is larger than all numbers.
///
/// ```
/// use fx_nn::prelude::*;
/// let x = Tensor::from_vec(vec![3.0f32, 1.0, 2.0], 3)?;
/// let (values, indices) = x.sort(-1, false)?;
/// assert_eq!((values.to_vec()?, indices.to_vec()?), (vec![1.0, 2.0, 3.0], vec![1.0, 2.0, 0.0]));
/// # Ok::<(), fx_nn::Error>(())
/// ```
///
/// # Errors
/// Returns an error if there is no such dim.
#[op(along, member, method, path = "fx_nn::ops::sort")]
pub fn sort(
    x: &Tensor,
    #[default(-1)] dim: i64,
    #[default(false)] descending: bool,
) -> Result<(Tensor, Tensor)> {
    sorted("sort", x, dim, descending)
}

/// Where the elements of [`sort`] were.
///
/// # Errors
/// Returns an error if there is no such dim.
#[op(along, flat = "gives places", method, path = "fx_nn::ops::argsort")]
pub fn argsort(
    x: &Tensor,
    #[default(-1)] dim: i64,
    #[default(false)] descending: bool,
) -> Result<Tensor> {
    Ok(sorted("argsort", x, dim, descending)?.1)
}

/// The elements in order along the first dim.
///
/// # Errors
/// Returns only candle's errors.
#[op(along, method, path = "fx_nn::ops::msort")]
pub fn msort(x: &Tensor) -> Result<Tensor> {
    Ok(sorted("msort", x, 0, false)?.0)
}

/// What was not asked for: nothing.
fn or_nothing(is_wanted: bool, data: candle_core::Tensor) -> Result<Tensor> {
    match is_wanted {
        true => Ok(data.into()),
        false => candle_core::Tensor::zeros(0, data.dtype(), data.device())
            .map(Tensor::from)
            .fx(),
    }
}

fn different(
    op: &str,
    x: &Tensor,
    sorted: bool,
    inverse: bool,
    counts: bool,
    dim: Option<i64>,
) -> Result<(Tensor, Tensor, Tensor)> {
    let [y, of, sizes] = kernels::unique(op, x.data(op)?, dim, sorted).fx()?;
    Ok((
        x.with_data(y),
        or_nothing(inverse, of)?,
        or_nothing(counts, sizes)?,
    ))
}

/// The different elements, or the different slices along `dim`, in order; where each element is among them, and how often
/// each comes (`int64`; empty where it is not asked for). They are in order without `sorted` too.
///
/// ```
/// use fx_nn::prelude::*;
/// let x = Tensor::from_vec(vec![3i64, 1, 3], 3)?;
/// let (values, inverse, counts) = x.unique(true, true, true, None)?;
/// assert_eq!(values.to_vec()?, [1.0, 3.0]);
/// assert_eq!((inverse.to_vec()?, counts.to_vec()?), (vec![1.0, 0.0, 1.0], vec![1.0, 2.0]));
/// # Ok::<(), fx_nn::Error>(())
/// ```
///
/// # Errors
/// Returns an error if there is no such dim, or its slices have no elements.
#[op(pick, member, method, path = "fx_nn::ops::unique")]
pub fn unique(
    x: &Tensor,
    #[default(true)] sorted: bool,
    #[default(false)] return_inverse: bool,
    #[default(false)] return_counts: bool,
    dim: impl Into<Option<i64>>,
) -> Result<(Tensor, Tensor, Tensor)> {
    let _ = sorted;
    different("unique", x, true, return_inverse, return_counts, dim)
}

/// The elements, or the slices along `dim`, without those that are equal to the one before; otherwise as [`unique`].
///
/// # Errors
/// Returns an error if there is no such dim, or its slices have no elements.
#[op(pick, member, method, path = "fx_nn::ops::unique_consecutive")]
pub fn unique_consecutive(
    x: &Tensor,
    #[default(false)] return_inverse: bool,
    #[default(false)] return_counts: bool,
    dim: impl Into<Option<i64>>,
) -> Result<(Tensor, Tensor, Tensor)> {
    different(
        "unique_consecutive",
        x,
        false,
        return_inverse,
        return_counts,
        dim,
    )
}

/// How often each integer from 0 on comes in a vector, for at least `minlength` of them (`int64`); with `weights` the sums
/// of the weights of those elements (`float32` of such weights, else `float64`).
///
/// # Errors
/// Returns an error if `x` is not a vector of integers from 0 on, or there are not as many weights.
#[op(
    member,
    flat = "counts integers",
    method,
    path = "fx_nn::ops::bincount"
)]
pub fn bincount(
    x: &Tensor,
    weights: Option<&Tensor>,
    #[default(0)] minlength: usize,
) -> Result<Tensor> {
    let op = "bincount";
    require(op, !x.is_bool() && !x.dtype()?.is_floating_point())?;
    let weights = weights.map(|w| w.data(op)).transpose()?;
    kernels::bincount(x.data(op)?, weights, minlength)
        .map(Tensor::from)
        .fx()
}

fn searched(
    op: &str,
    sorted: &Tensor,
    values: &Tensor,
    out_int32: bool,
    right: bool,
    sorter: Option<&Tensor>,
) -> Result<Tensor> {
    let common = sorted.dtype()?.promote(values.dtype()?);
    let (sorted, values) = (sorted.cast(common)?, values.cast(common)?);
    let (rows, data) = (sorted.data(op)?, values.data(op)?);
    let Some((size, lead)) = rows.dims().split_last() else {
        return Err(unfit(op));
    };
    let each = match (lead, data.dims().split_last()) {
        ([], _) => 0,
        (lead, Some((each, other))) if lead == other => *each,
        _ => return Err(unfit(op)),
    };
    let order = sorter
        .map(|sorter| {
            require(
                op,
                sorter.dims()? == rows.dims() && sorter.dtype()? == DType::I64,
            )?;
            places::indices(op, sorter.data(op)?, *size, false).fx()
        })
        .transpose()?;
    let places = kernels::search(
        &Elements::of(rows).fx()?,
        &Elements::of(data).fx()?,
        *size,
        each,
        order.as_deref(),
        right,
    );
    let places = candle_core::Tensor::from_vec(places, data.dims(), data.device());
    let dtype = match out_int32 {
        true => candle_core::DType::I32,
        false => candle_core::DType::I64,
    };
    places
        .and_then(|places| places.to_dtype(dtype))
        .map(Tensor::from)
        .fx()
}

/// For each of `values` the first place in `sorted_sequence`, or in its row of it, that is not before it; under `right`
/// (or `side` `"right"`) the first that is after it: `int64`, or `int32` under `out_int32`.
///
/// `sorter` names the element at each place of a sequence that is not in order.
///
/// ```
/// use fx_nn::prelude::*;
/// let edges = Tensor::from_vec(vec![1.0f32, 3.0, 5.0], 3)?;
/// let values = Tensor::from_vec(vec![3.0f32, 6.0], 2)?;
/// assert_eq!(ops::searchsorted(&edges, &values, false, false, None, None)?.to_vec()?, [1.0, 3.0]);
/// assert_eq!(ops::searchsorted(&edges, &values, false, true, None, None)?.to_vec()?, [2.0, 3.0]);
/// # Ok::<(), fx_nn::Error>(())
/// ```
///
/// # Errors
/// Returns an error if the shapes do not fit, or `right` and `side` contradict each other.
#[op(pick, member, flat = "gives places", path = "fx_nn::ops::searchsorted")]
pub fn searchsorted(
    sorted_sequence: &Tensor,
    values: &Tensor,
    #[kw]
    #[default(false)]
    out_int32: bool,
    #[kw]
    #[default(false)]
    right: bool,
    #[kw] side: Option<&str>,
    #[kw] sorter: Option<&Tensor>,
) -> Result<Tensor> {
    let op = "searchsorted";
    let right = match side {
        None => right,
        Some("right") => true,
        Some("left") if !right => false,
        Some(_) => return Err(unfit(op)),
    };
    searched(op, sorted_sequence, values, out_int32, right, sorter)
}

/// For each element the number of `boundaries` before it, and under `right` those that are equal to it too.
///
/// # Errors
/// Returns an error if the boundaries are not a vector.
#[op(pick, member, flat = "gives places", path = "fx_nn::ops::bucketize")]
pub fn bucketize(
    x: &Tensor,
    boundaries: &Tensor,
    #[kw]
    #[default(false)]
    out_int32: bool,
    #[kw]
    #[default(false)]
    right: bool,
) -> Result<Tensor> {
    let op = "bucketize";
    require(op, boundaries.dims()?.len() == 1)?;
    searched(op, boundaries, x, out_int32, right, None)
}

/// Which elements are among `test_elements`; under `invert` which are not.
///
/// # Errors
/// Returns an error if one of them is of truth values.
#[op(pick, member, flat = "gives truth values", path = "fx_nn::ops::isin")]
pub fn isin(
    elements: &Tensor,
    test_elements: &Tensor,
    #[kw]
    #[default(false)]
    assume_unique: bool,
    #[kw]
    #[default(false)]
    invert: bool,
) -> Result<Tensor> {
    let op = "isin";
    let _ = assume_unique;
    require(op, !elements.is_bool() && !test_elements.is_bool())?;
    let common = elements.common(test_elements)?;
    let (x, others) = (elements.cast(common)?, test_elements.cast(common)?);
    let data = x.data(op)?;
    let found = kernels::is_in(
        &Elements::of(data).fx()?,
        &Elements::of(others.data(op)?).fx()?,
    );
    let found = found
        .into_iter()
        .map(|is| u8::from((is != 0) != invert))
        .collect::<Vec<_>>();
    candle_core::Tensor::from_vec(found, data.dims(), data.device())
        .map(Tensor::from_bools)
        .fx()
}

/// The coordinates of the elements that are not 0 or false, a row for each (`int64`).
///
/// ```
/// use fx_nn::prelude::*;
/// let x = Tensor::from_vec(vec![0i64, 7, 8, 0], (2, 2))?;
/// assert_eq!(x.nonzero()?.to_vec()?, [0.0, 1.0, 1.0, 0.0]);
/// # Ok::<(), fx_nn::Error>(())
/// ```
///
/// # Errors
/// Returns only candle's errors.
#[op(
    pick,
    member,
    flat = "gives places",
    method,
    path = "fx_nn::ops::nonzero"
)]
pub fn nonzero(x: &Tensor) -> Result<Tensor> {
    kernels::nonzero(x.data("nonzero")?).map(Tensor::from).fx()
}

/// [`nonzero`] under NumPy's name.
///
/// # Errors
/// Returns only candle's errors.
#[op(
    pick,
    member,
    flat = "gives places",
    method,
    path = "fx_nn::ops::argwhere"
)]
pub fn argwhere(x: &Tensor) -> Result<Tensor> {
    kernels::nonzero(x.data("argwhere")?).map(Tensor::from).fx()
}

/// The elements of the flattened `x` at the places of `index` (`int64`), which may count from the end.
///
/// # Errors
/// Returns an error if an index is out of range.
#[op(pick, member, method, path = "fx_nn::ops::take")]
pub fn take(x: &Tensor, index: &Tensor) -> Result<Tensor> {
    let op = "take";
    require(op, index.dtype()? == DType::I64)?;
    let (data, at) = (x.data(op)?, index.data(op)?);
    let found = match at.elem_count() {
        0 => Vec::new(),
        _ => places::indices(op, at, data.elem_count(), true).fx()?,
    };
    places::pick(op, data, found, at.dims())
        .map(|data| x.with_data(data))
        .fx()
}

/// [`gather`](super::gather) with shapes that broadcast beside `dim`; without `dim` of the flattened tensors.
///
/// # Errors
/// Returns an error if the shapes do not broadcast, or an index is out of range.
#[op(pick, member, method, path = "fx_nn::ops::take_along_dim")]
pub fn take_along_dim(x: &Tensor, indices: &Tensor, dim: impl Into<Option<i64>>) -> Result<Tensor> {
    let op = "take_along_dim";
    let (data, index) = (x.data(op)?, self::indices(op, indices)?);
    require(op, indices.dtype()? == DType::I64)?;
    let Some(dim) = dim else {
        let flat = |t: &candle_core::Tensor| t.flatten_all();
        return flat(data)
            .and_then(|x| select::gather(&x, 0, &flat(index)?))
            .map(|data| x.with_data(data))
            .fx();
    };
    let at = dim::dim(op, dim, data.rank()).fx()?;
    require(op, data.rank() == index.rank())?;
    let without = |dims: &[usize]| -> Vec<usize> {
        let all = dims.iter().enumerate();
        all.map(|(i, n)| if i == at { 1 } else { *n }).collect()
    };
    let common = expand::shape(op, &without(data.dims()), &without(index.dims())).fx()?;
    let wide = |t: &candle_core::Tensor| {
        let mut dims = common.clone();
        if let (Some(own), Some(size)) = (t.dims().get(at), dims.get_mut(at)) {
            *size = *own;
        }
        expand::to(t, &dims)
    };
    // An index wraps around, as in PyTorch.
    let index = match data.dims().get(at) {
        Some(size) if *size > 0 => super::couples::remainder(indices, *size as i64)?,
        _ => indices.clone(),
    };
    let index = index.data(op)?;
    wide(data)
        .and_then(|data| select::gather(&data, dim, &wide(index)?))
        .map(|data| x.with_data(data))
        .fx()
}

/// The elements where `mask` holds, as a vector; the shapes broadcast.
///
/// ```
/// use fx_nn::prelude::*;
/// let x = Tensor::from_vec(vec![1.0f32, -2.0, 3.0], 3)?;
/// assert_eq!(x.masked_select(&x.gt(0.0)?)?.to_vec()?, [1.0, 3.0]);
/// # Ok::<(), fx_nn::Error>(())
/// ```
///
/// # Errors
/// Returns an error if the mask is not of truth values, or the shapes do not broadcast.
#[op(pick, member, method, path = "fx_nn::ops::masked_select")]
pub fn masked_select(x: &Tensor, mask: &Tensor) -> Result<Tensor> {
    let op = "masked_select";
    let truth = condition(op, mask)?;
    let data = x.data(op)?;
    let dims = expand::shape(op, data.dims(), truth.dims()).fx()?;
    let at = super::scattering::true_places(truth, &dims).fx()?;
    let count = at.len();
    expand::to(data, &dims)
        .and_then(|data| places::pick(op, &data, at, &[count]))
        .map(|data| x.with_data(data))
        .fx()
}
