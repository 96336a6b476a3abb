//! Attention: products of queries and keys, as weights of values.

use candle_core::{DType, Result, Tensor, bail};

use super::choice::where_cond;
use super::comparison;
use super::expand;
use super::matmul::matmul;
use super::pointwise::dropout_mask;
use super::reduce::{Side, any};
use super::scale::Scale;
use super::select::{masked_fill, triangle};
use super::softmax::softmax;
use super::widen::widened;

/// The keys that a query may see.
#[derive(Clone, Copy)]
pub enum Mask<'a> {
    /// All keys.
    None,
    /// Keys that are not after it.
    Causal,
    /// Keys where truth values (`u8`) are true.
    Truth(&'a Tensor),
    /// Numbers that are added to the products.
    Numbers(&'a Tensor),
}

/// `softmax(q kᵀ * scale + mask) v`, for `q [.., l, e]`, `k [.., s, e]` and `v [.., s, w]` of one floating point dtype;
/// the mask broadcasts to `[.., l, s]`. Weights are dropped with probability `dropout`.
///
/// The result of a query that may see no key is zeros.
///
/// # Errors
/// Returns an error if the shapes do not fit.
pub fn attention(
    op: &str,
    q: &Tensor,
    k: &Tensor,
    v: &Tensor,
    mask: Mask<'_>,
    scale: f64,
    dropout: f64,
) -> Result<Tensor> {
    widened(q, (q, k, v), |(q, k, v)| {
        let scores = matmul(&q.times(scale)?, &k.t()?)?;
        let scores = match added(mask, &scores)? {
            None if matches!(mask, Mask::Causal) => without_later(op, &scores)?,
            None => scores,
            Some(added) => {
                let dims = expand::shape(op, scores.dims(), added.dims())?;
                if dims != scores.dims() {
                    bail!(
                        "{op}: a mask {:?} does not broadcast to scores {:?}",
                        added.dims(),
                        scores.dims()
                    )
                }
                scores.add(&expand::to(&added, &dims)?)?
            }
        };
        let weights = safe_softmax(&scores)?;
        let weights = match dropout > 0.0 {
            true => weights.mul(&dropout_mask(
                weights.dims(),
                dropout,
                weights.dtype(),
                weights.device(),
            )?)?,
            false => weights,
        };
        matmul(&weights, &v)
    })
}

/// The mask as numbers to add to `scores`.
fn added(mask: Mask<'_>, scores: &Tensor) -> Result<Option<Tensor>> {
    let hidden = |hide: &Tensor| -> Result<Tensor> {
        let like =
            |value: f64| Tensor::full(value, hide.dims(), hide.device())?.to_dtype(scores.dtype());
        where_cond(hide, &like(f64::NEG_INFINITY)?, &like(0.0)?)
    };
    Ok(match mask {
        Mask::None | Mask::Causal => None,
        Mask::Truth(truth) => Some(hidden(&comparison::eq(truth, &truth.zeros_like()?)?)?),
        Mask::Numbers(numbers) => Some(numbers.to_dtype(scores.dtype())?),
    })
}

/// `scores` with minus infinity where the key is after the query.
fn without_later(op: &str, scores: &Tensor) -> Result<Tensor> {
    let (rows, columns) = (scores.rank() - 2, scores.rank() - 1);
    let dims = (scores.dims()[rows], scores.dims()[columns]);
    let ones = Tensor::ones(dims, DType::U8, scores.device())?;
    let later = triangle(op, &ones, 1, false)?;
    let hidden = Tensor::new(f64::NEG_INFINITY, scores.device())?.to_dtype(scores.dtype())?;
    masked_fill(scores, &later, &hidden)
}

/// [`softmax`] along the last dimension, but zeros in rows that are all minus infinity.
fn safe_softmax(scores: &Tensor) -> Result<Tensor> {
    let last = scores.rank() - 1;
    if scores.elem_count() == 0 {
        return Ok(scores.clone());
    }
    let top = Side::Max.values(&scores.detach().contiguous()?, last)?;
    let lowest = top.ones_like()?.times(f64::NEG_INFINITY)?;
    let dead = comparison::eq(&top, &lowest)?;
    if !any(&dead)? {
        return softmax(scores, last);
    }
    // A maximum passes over NaN, with which a row is not minus infinity all along.
    let lowest = lowest.broadcast_as(scores.dims())?;
    let dead = Side::Min.values(&comparison::eq(&scores.detach(), &lowest)?, last)?;
    let dead = dead.broadcast_as(scores.dims())?;
    let zero = scores.zeros_like()?;
    // NaN is neither computed nor differentiated in the rows that are not used.
    let weights = softmax(&where_cond(&dead, &zero, scores)?, last)?;
    where_cond(&dead, &zero, &weights)
}
