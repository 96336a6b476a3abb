//! Attention, and cosine similarity.

use super::cost;
use crate::op;
use fx_core::Result;
use fx_core::value::DType;

use crate::error::{Fx, require, unfit};
use crate::kernels::attention::{self, Mask};
use crate::kernels::{cosine, dim};
use crate::tensor::Tensor;

/// softmax(q kᵀ · scale + mask) v, for `query` `[.., L, E]`, `key` `[.., S, E]` and `value` `[.., S, V]`.
///
/// The mask broadcasts to `[.., L, S]`: truth values keep the keys where they are true, numbers are
/// added. `is_causal` keeps the keys that are not after the query; `scale` is 1 / sqrt(E) by
/// default; with `enable_gqa` several heads of the query (dim -3) share one of key and value. The
/// result of a query that may see no key is zeros.
///
/// ```
/// use fx_nn::prelude::*;
/// let (q, k) = (Tensor::rand((1, 1, 3, 8))?, Tensor::zeros((1, 1, 3, 8))?);
/// let v = Tensor::from_vec(vec![1.0f32, 3.0, 8.0], (1, 1, 3, 1))?;
/// // All scores are equal: each row is the mean of the values up to its own.
/// let y = ops::scaled_dot_product_attention(&q, &k, &v, None, 0.0, true, None, false)?;
/// let expected = Tensor::from_vec(vec![1.0f32, 2.0, 4.0], (1, 1, 3, 1))?;
/// assert!(fx_nn::allclose(&y, &expected, 0.0, 1e-6)?.close);
/// # Ok::<(), fx_nn::Error>(())
/// ```
///
/// # Errors
/// Returns an error if the shapes do not fit, or a mask is given together with `is_causal`.
#[op(cost = cost::attention, random, path = "fx_nn::ops::scaled_dot_product_attention")]
#[allow(clippy::too_many_arguments, reason = "PyTorch's parameters")]
pub fn scaled_dot_product_attention(
    query: &Tensor,
    key: &Tensor,
    value: &Tensor,
    #[kw] attn_mask: Option<&Tensor>,
    #[kw]
    #[default(0.0)]
    dropout_p: f64,
    #[kw]
    #[default(false)]
    is_causal: bool,
    #[kw] scale: Option<f64>,
    #[kw]
    #[default(false)]
    enable_gqa: bool,
) -> Result<Tensor> {
    let op = "scaled_dot_product_attention";
    let (q, k, v) = (query.dims()?, key.dims()?, value.dims()?);
    let (&[.., _, width], &[.., columns, key_width], &[.., values, _]) = (q, k, v) else {
        return Err(unfit(op));
    };
    require(op, width == key_width && columns == values)?;
    require(op, attn_mask.is_none() || !is_causal)?;
    let (key, value) = if enable_gqa {
        (repeated(key, q)?, repeated(value, q)?)
    } else {
        (key.clone(), value.clone())
    };
    let mask = match attn_mask {
        Some(mask) if mask.is_bool() => Mask::Truth(mask.data(op)?),
        Some(mask) => {
            let given = mask.dtype()?;
            require(op, given == query.dtype()? || given == DType::F32)?;
            Mask::Numbers(mask.data(op)?)
        }
        None if is_causal => Mask::Causal,
        None => Mask::None,
    };
    let own = query.dtype()?;
    require(
        op,
        own.is_floating_point() && key.dtype()? == own && value.dtype()? == own,
    )?;
    require(op, (0.0..=1.0).contains(&dropout_p))?;
    attention::attention(
        op,
        query.data(op)?,
        key.data(op)?,
        value.data(op)?,
        mask,
        scale.unwrap_or(1.0 / (width as f64).sqrt()),
        dropout_p,
    )
    .map(Tensor::made)
    .fx()
}

/// Scores of attention with a mask: minus infinity where truth values hold, or numbers added; the mask broadcasts.
///
/// # Errors
/// Returns an error if the mask does not broadcast.
#[op(binary, member, path = "fx_nn::ops::mask_scores")]
pub fn mask_scores(scores: &Tensor, mask: &Tensor) -> Result<Tensor> {
    if mask.is_bool() {
        scores.masked_fill(mask, f64::NEG_INFINITY)
    } else {
        scores + mask
    }
}

/// Each head of `x` `[.., heads, S, E]` as often as the query has heads for it.
fn repeated(x: &Tensor, query: &[usize]) -> Result<Tensor> {
    let dims = x.dims()?;
    let (&[.., many, _, _], &[ref batch @ .., heads, rows, width]) = (query, dims) else {
        return Err(unfit("scaled_dot_product_attention"));
    };
    require(
        "scaled_dot_product_attention",
        heads != 0 && many.is_multiple_of(heads),
    )?;
    let each = many / heads;
    let with = |tail: &[usize]| [batch, tail].concat();
    let data = x.data("scaled_dot_product_attention")?;
    data.reshape(with(&[heads, 1, rows, width]))
        .and_then(|t| t.broadcast_as(with(&[heads, each, rows, width])))
        .and_then(|t| t.contiguous()?.reshape(with(&[many, rows, width])))
        .map(Tensor::made)
        .fx()
}

/// The cosine of the angle between vectors along `dim`; shapes broadcast, and lengths below `eps` count as `eps`.
///
/// # Errors
/// Returns an error if the shapes do not broadcast, there is no such dim, or neither tensor is
/// float.
#[op(path = "fx_nn::ops::cosine_similarity")]
pub fn cosine_similarity(
    x1: &Tensor,
    x2: &Tensor,
    #[default(1)] dim: i64,
    #[default(1e-8)] eps: f64,
) -> Result<Tensor> {
    let op = "cosine_similarity";
    let common = x1.common(x2)?;
    require(op, common.is_floating_point())?;
    let (x1, x2) = (x1.cast(common)?, x2.cast(common)?);
    let rank = x1.dims()?.len().max(x2.dims()?.len());
    let at = dim::dim(op, dim, rank).fx()?;
    cosine::cosine_similarity(op, x1.data(op)?, x2.data(op)?, at, eps)
        .map(Tensor::made)
        .fx()
}
