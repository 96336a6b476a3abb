//! Picking elements: by a condition, by their place in a matrix, by index.

use crate::op;
use fx_core::Result;
use fx_core::value::DType;

use crate::error::{Fx, require, unfit};
use crate::kernels::select;
use crate::tensor::{Number, Tensor, TensorOrNumber};

/// Truth values, as zeros and ones.
pub(super) fn condition<'a>(op: &str, mask: &'a Tensor) -> Result<&'a candle_core::Tensor> {
    require(op, mask.is_bool())?;
    mask.data(op)
}

/// Places, which are of the types that PyTorch takes for them.
pub(super) fn indices<'a>(op: &str, index: &'a Tensor) -> Result<&'a candle_core::Tensor> {
    match index.dtype()? {
        DType::I32 | DType::I64 => index.data(op),
        _ => Err(unfit(op)),
    }
}

/// `input` where `condition` holds, `other` elsewhere; shapes broadcast and types are promoted.
///
/// ```
/// use fx_nn::prelude::*;
/// let x = Tensor::from_vec(vec![-1.0f32, 0.5, 2.0], 3)?;
/// let y = ops::r#where(&x.gt(0.0)?, &x, &Tensor::zeros(1)?)?;
/// assert_eq!(y.to_vec()?, [0.0, 0.5, 2.0]);
/// assert_eq!(ops::r#where(&x.gt(0.0)?, &x, 0.0)?.to_vec()?, y.to_vec()?);
/// # Ok::<(), fx_nn::Error>(())
/// ```
///
/// # Errors
/// Returns an error if `condition` is not of truth values, or the shapes do not broadcast.
#[op(binary, member, path = "fx_nn::ops::r#where")]
pub fn r#where(
    condition: &Tensor,
    input: impl Into<TensorOrNumber>,
    other: impl Into<TensorOrNumber>,
) -> Result<Tensor> {
    let truth = self::condition("where", condition)?;
    let (input, other) = TensorOrNumber::both("where", &input, &other)?;
    let common = input.common(&other)?;
    let (input, other) = (input.cast(common)?, other.cast(common)?);
    select::choose(
        "where",
        truth,
        input.elements("where")?,
        other.elements("where")?,
    )
    .map(|data| input.with_data(data))
    .fx()
}

/// `x` with `value` where `mask` holds; the mask broadcasts. The type stays: a float's fraction is cut off for integers.
///
/// # Errors
/// Returns an error if the mask is not of truth values, or does not broadcast to the shape of `x`,
/// or the type of `x` does not hold the value.
#[op(binary, member, method, path = "fx_nn::ops::masked_fill")]
pub fn masked_fill(x: &Tensor, mask: &Tensor, value: impl Into<Number>) -> Result<Tensor> {
    let truth = condition("masked_fill", mask)?;
    let value = value.checked("masked_fill", x.dtype()?)?;
    select::masked_fill(x.elements("masked_fill")?, truth, &value)
        .map(|data| x.with_data(data))
        .fx()
}

/// The lower triangle of each matrix, with `diagonal` more dims above the main one; zeros elsewhere.
///
/// # Errors
/// Returns an error if there are fewer than two dims.
#[op(member, method, path = "fx_nn::ops::tril")]
pub fn tril(x: &Tensor, #[default(0)] diagonal: i64) -> Result<Tensor> {
    select::triangle("tril", x.elements("tril")?, diagonal, true)
        .map(|data| x.with_data(data))
        .fx()
}

/// The upper triangle of each matrix, from `diagonal` dims above the main one on; zeros elsewhere.
///
/// # Errors
/// Returns an error if there are fewer than two dims.
#[op(member, method, path = "fx_nn::ops::triu")]
pub fn triu(x: &Tensor, #[default(0)] diagonal: i64) -> Result<Tensor> {
    select::triangle("triu", x.elements("triu")?, diagonal, false)
        .map(|data| x.with_data(data))
        .fx()
}

/// The elements of `x` at the places of `index` (`int64`), whose values are the places along `dim`.
///
/// # Errors
/// Returns an error if the ranks differ, or an index is out of range.
#[op(pick, member, method, path = "fx_nn::ops::gather")]
pub fn gather(x: &Tensor, dim: i64, index: &Tensor) -> Result<Tensor> {
    let at = match index.dims()?.contains(&0) {
        // PyTorch does not check the type of an empty index.
        true => index.cast(DType::I64)?,
        false => index.clone(),
    };
    select::gather(x.elements("gather")?, dim, indices("gather", &at)?)
        .map(|data| x.with_data(data))
        .fx()
}

/// The slices of `x` along `dim` that the vector `index` (`int64`) names.
///
/// # Errors
/// Returns an error if `index` is not a vector, or an index is out of range.
#[op(pick, member, method, path = "fx_nn::ops::index_select")]
pub fn index_select(x: &Tensor, dim: i64, index: &Tensor) -> Result<Tensor> {
    let at = indices("index_select", index)?;
    select::index_select(x.elements("index_select")?, dim, at)
        .map(|data| x.with_data(data))
        .fx()
}

/// For each integer of `x` (`int64`) a row with a one at it and zeros elsewhere, as `int64`; `num_classes` of -1 takes as
/// many as the largest needs.
///
/// # Errors
/// Returns an error if `x` is not of `int64`, an element is not in `[0, num_classes)`, or so many
/// classes do not fit into memory.
#[op(
    pick,
    member,
    flat = "takes and gives integers",
    path = "fx_nn::ops::one_hot"
)]
pub fn one_hot(x: &Tensor, #[default(-1)] num_classes: i64) -> Result<Tensor> {
    require("one_hot", x.dtype()? == DType::I64)?;
    let classes = match num_classes {
        -1 => None,
        n => Some(usize::try_from(n).map_err(|_| unfit("one_hot"))?),
    };
    select::one_hot(x.data("one_hot")?, classes)
        .map(Tensor::made)
        .fx()
}

/// The rows of `weight` `[n, d]` that `x` (`int64` or `int32`) names, of shape `[.., d]`; none of its gradient reaches the
/// row `padding_idx`.
///
/// # Errors
/// Returns an error if an element of `x` or `padding_idx` is not the index of a row.
#[op(pick, member, path = "fx_nn::ops::embedding")]
pub fn embedding(x: &Tensor, weight: &Tensor, #[kw] padding_idx: Option<usize>) -> Result<Tensor> {
    let at = indices("embedding", x)?;
    select::embedding(at, weight.elements("embedding")?, padding_idx)
        .map(|data| weight.with_data(data))
        .fx()
}
