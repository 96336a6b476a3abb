//! Norms of layers without running statistics, and attention.

use fx_core::value::DType;
use fx_core::{Error, Result};

use super::{decompose, dtype_of, is_empty, widened};
use crate::tensor::Tensor;
use crate::{Dims, Shape, ops};

decompose! {
    ops::layer_norm(x: Tensor, normalized_shape: Shape, weight: Option<Tensor>, bias: Option<Tensor>, eps: f64) |call| =>
        widened(call, ("x", &x), |x| layer_norm(x, &normalized_shape, weight.as_ref(), bias.as_ref(), eps));
    ops::rms_norm(x: Tensor, normalized_shape: Shape, weight: Option<Tensor>, eps: f64) |call| =>
        widened(call, ("x", &x), |x| rms_norm(x, &normalized_shape, weight.as_ref(), eps));
    ops::group_norm(x: Tensor, num_groups: i64, weight: Option<Tensor>, bias: Option<Tensor>, eps: f64) |call| =>
        match is_empty(call, "x") {
            true => Ok(x),
            false => widened(call, ("x", &x), |x| group_norm(x, num_groups, weight.as_ref(), bias.as_ref(), eps)),
        };
    ops::normalize(x: Tensor, p: f64, dim: Dims, eps: f64) =>
        &x / ops::clamp(&ops::vector_norm(&x, p, dim, true)?, eps, None)?;
    ops::scaled_dot_product_attention(
        query: Tensor, key: Tensor, value: Tensor, attn_mask: Option<Tensor>, dropout_p: f64, is_causal: bool,
        scale: Option<f64>, enable_gqa: bool
    ) |call| => {
        // Scores of no numbers are 0; the power of their count is no number for Rust.
        let scale = scale.or(is_empty(call, "query").then_some(1.0));
        let options = Attention { dropout_p, is_causal, scale, enable_gqa };
        let mask = match &attn_mask {
            Some(mask) => Some((mask, dtype_of(call, "attn_mask").ok_or_else(unknown_mask)?)),
            None => None,
        };
        widened(call, ("query", &query), |query| {
            let alike = |x: &Tensor| match dtype_of(call, "query") {
                Some(DType::F16 | DType::BF16) => ops::type_as(x, query),
                _ => Ok(x.clone()),
            };
            attention(query, &alike(&key)?, &alike(&value)?, mask, &options)
        })
    };
}

/// The last dims, as many as a shape has.
fn last(shape: &Shape) -> Vec<i64> {
    let count = i64::try_from(shape.0.len()).unwrap_or(i64::MAX);
    (-count..0).collect()
}

/// Mean 0 and variance 1 over dims.
fn standardized(x: &Tensor, dims: &[i64], eps: f64) -> Result<Tensor> {
    let centred = (x - ops::mean(x, dims.to_vec(), true)?)?;
    let var = ops::mean(&(&centred * &centred)?, dims.to_vec(), true)?;
    centred * ops::rsqrt(&(var + eps)?)?
}

/// Times a weight, plus a bias.
fn affine(x: Tensor, weight: Option<&Tensor>, bias: Option<&Tensor>) -> Result<Tensor> {
    let scaled = match weight {
        Some(weight) => (x * weight)?,
        None => x,
    };
    match bias {
        Some(bias) => scaled + bias,
        None => Ok(scaled),
    }
}

fn layer_norm(
    x: &Tensor,
    shape: &Shape,
    weight: Option<&Tensor>,
    bias: Option<&Tensor>,
    eps: f64,
) -> Result<Tensor> {
    affine(standardized(x, &last(shape), eps)?, weight, bias)
}

fn rms_norm(x: &Tensor, shape: &Shape, weight: Option<&Tensor>, eps: f64) -> Result<Tensor> {
    let square = ops::mean(&(x * x)?, last(shape), true)?;
    affine((x * ops::rsqrt(&(square + eps)?)?)?, weight, None)
}

fn group_norm(
    x: &Tensor,
    groups: i64,
    weight: Option<&Tensor>,
    bias: Option<&Tensor>,
    eps: f64,
) -> Result<Tensor> {
    let (batch, channels) = (x.size(0)?, x.size(1)?);
    // A row for each sample, whatever the number of dims. A size that is left open is not found where there are no
    // elements.
    let rows = ops::flatten(x, 1, -1)?;
    let elements = rows.size(1)?;
    let grouped = ops::reshape(&rows, [batch, groups.into(), elements.floordiv(groups)?])?;
    let normed = standardized(&grouped, &[-1], eps)?;
    // A column of each channel.
    let columns = ops::reshape(&normed, [batch, channels, elements.floordiv(channels)?])?;
    let column = |of: Option<&Tensor>| of.map(|of| ops::unsqueeze(of, 1)).transpose();
    let (weight, bias) = (column(weight)?, column(bias)?);
    ops::reshape(
        &affine(columns, weight.as_ref(), bias.as_ref())?,
        x.shape()?,
    )
}

/// The options of attention.
pub(crate) struct Attention {
    pub dropout_p: f64,
    pub is_causal: bool,
    pub scale: Option<f64>,
    pub enable_gqa: bool,
}

pub(crate) fn unknown_mask() -> Error {
    Error::msg(
        "whether attn_mask holds truth values or numbers is not known: infer or propagate shapes first",
    )
}

fn attention(
    query: &Tensor,
    key: &Tensor,
    value: &Tensor,
    mask: Option<(&Tensor, DType)>,
    options: &Attention,
) -> Result<Tensor> {
    let own = |x: &Tensor| for_heads(x, query, options);
    let (key, value) = (own(key)?, own(value)?);
    let shares = attention_shares(query, &key, mask, options)?;
    let shares = match options.dropout_p > 0.0 {
        true => ops::dropout(&shares, options.dropout_p, true)?,
        false => shares,
    };
    ops::matmul(&shares, &value)
}

/// Keys or values for each head of the queries.
pub(crate) fn for_heads(x: &Tensor, query: &Tensor, options: &Attention) -> Result<Tensor> {
    match options.enable_gqa {
        true => {
            let times = query.size(-3)?.floordiv(x.size(-3)?)?;
            ops::repeat_interleave(x, times, Some(-3))
        }
        false => Ok(x.clone()),
    }
}

/// What products of queries and keys are multiplied by.
pub(crate) fn scaled(x: Tensor, query: &Tensor, options: &Attention) -> Result<Tensor> {
    match options.scale {
        Some(scale) => x * scale,
        None => x * query.size(-1)?.pow(-0.5)?,
    }
}

/// The share of each key in what a query gets: the softmax of its scores, or zeros.
pub(crate) fn attention_shares(
    query: &Tensor,
    key: &Tensor,
    mask: Option<(&Tensor, DType)>,
    options: &Attention,
) -> Result<Tensor> {
    if mask.is_some() && options.is_causal {
        return Err(Error::msg("a mask is given together with is_causal"));
    }
    let scores = ops::matmul(query, &ops::transpose(key, -2, -1)?)?;
    let scores = scaled(scores, query, options)?;
    let scores = match (mask, options.is_causal) {
        // PyTorch adds the mask: what is infinite or no number is none where it is masked.
        (Some((mask, DType::Bool)), _) => {
            let is_low = scores.lt(f64::INFINITY)?;
            let none = ops::r#where(&is_low, f64::NEG_INFINITY, &(&scores * 0.0)?)?;
            ops::r#where(mask, &scores, &none)?
        }
        (Some((mask, _)), _) => (scores + mask)?,
        (None, true) => {
            let ones = ops::new_full(&scores, [query.size(-2)?, key.size(-2)?], 1, None)?;
            ops::r#where(&ops::tril(&ones, 0)?.ne(0)?, &scores, f64::NEG_INFINITY)?
        }
        (None, false) => scores,
    };
    let shares = ops::softmax(&scores, -1)?;
    // A query that may see no key.
    let sees_none = ops::all(&scores.eq(f64::NEG_INFINITY)?, -1, true)?;
    ops::masked_fill(&shares, &sees_none, 0.0)
}
