//! `Attention`: heads whose keys and values are made from one narrow vector of each word.

use fx_core::prelude::*;
use fx_core::value::DType;

use super::super::decoder::Cache;
use super::super::norm::Norm;
use super::config::Config;
use crate::tensor::Tensor;
use crate::{nn, ops};

/// The tables that all layers need for the positions of a forward.
#[derive(Tree, Clone, Debug)]
pub(super) struct Positions {
    /// `[T, qk_rope_head_dim / 2]`.
    pub cos: Tensor,
    pub sin: Tensor,
    /// Whether a query sees a key, `[T, S]`.
    pub mask: Tensor,
}

/// x `[N, heads, T, width]` rotated by its position: neighbours are real and imaginary parts. Computed in single precision,
/// as Hugging Face's model does.
fn rotate(x: &Tensor, at: &Positions) -> Result<Tensor> {
    let pairs = x.to_dtype(DType::F32)?.unflatten(-1, (-1, 2))?;
    let [a, b] = pairs.unbind(-1)?.unpack()?;
    let real = ((&a * &at.cos)? - (&b * &at.sin)?)?;
    let imaginary = ((a * &at.sin)? + (b * &at.cos)?)?;
    ops::stack(&[real, imaginary], -1)?
        .flatten(-2, -1)?
        .type_as(x)
}

/// Attention whose queries, keys and values are made from narrower vectors. The cache holds what they are widened to.
#[derive(Module, Clone, Debug)]
pub struct Attention {
    /// Queries, where they are not made from a narrower vector.
    pub q_proj: Option<nn::Linear>,
    /// The vector that queries are made from.
    pub q_a_proj: Option<nn::Linear>,
    /// Of it.
    pub q_a_layernorm: Option<Norm>,
    /// Queries from it.
    pub q_b_proj: Option<nn::Linear>,
    /// The vector that keys and values are made from, and the rotated part of keys, which all heads share.
    pub kv_a_proj_with_mqa: nn::Linear,
    /// Of the vector.
    pub kv_a_layernorm: Norm,
    /// The other part of keys, and values, from it.
    pub kv_b_proj: nn::Linear,
    /// Results.
    pub o_proj: nn::Linear,
    sizes: Sizes,
}

/// The numbers that an attention needs.
#[derive(Module, Clone, Copy, Debug)]
struct Sizes {
    heads: usize,
    latent: usize,
    unrotated: usize,
    rotated: usize,
    values: usize,
    /// The factor of scores.
    scale: f64,
}

/// The epsilon of the norms between two linear layers, whatever the others have.
const EPS: f64 = 1e-6;

impl Attention {
    pub(super) fn new(config: &Config) -> Result<Self> {
        let sizes = Sizes {
            heads: config.num_attention_heads,
            latent: config.kv_lora_rank,
            unrotated: config.qk_nope_head_dim,
            rotated: config.qk_rope_head_dim,
            values: config.v_head_dim,
            scale: config.scaling,
        };
        let linear = |from: usize, to: usize, bias: bool| -> Result<_> {
            Ok(nn::Linear::new(from, to)?.bias(bias))
        };
        let (width, bias, rank) = (
            config.hidden_size,
            config.attention_bias,
            config.q_lora_rank,
        );
        let queries = sizes.heads * config.qk_head_dim();
        let whole = rank.is_none().then(|| linear(width, queries, false));
        Ok(Attention {
            q_proj: whole.transpose()?,
            q_a_proj: rank.map(|rank| linear(width, rank, bias)).transpose()?,
            q_a_layernorm: rank.map(|rank| Norm::new(rank, EPS)).transpose()?,
            q_b_proj: rank.map(|rank| linear(rank, queries, false)).transpose()?,
            kv_a_proj_with_mqa: linear(width, sizes.latent + sizes.rotated, bias)?,
            kv_a_layernorm: Norm::new(sizes.latent, EPS)?,
            kv_b_proj: linear(
                sizes.latent,
                sizes.heads * (sizes.unrotated + sizes.values),
                false,
            )?,
            o_proj: linear(sizes.heads * sizes.values, width, bias)?,
            sizes,
        })
    }

    /// Queries `[N, T, heads · width]`.
    fn queries(&self, x: &Tensor) -> Result<Tensor> {
        match (
            &self.q_proj,
            &self.q_a_proj,
            &self.q_a_layernorm,
            &self.q_b_proj,
        ) {
            (Some(whole), ..) => whole.forward(x),
            (None, Some(narrow), Some(norm), Some(wide)) => {
                wide.forward(&norm.forward(&narrow.forward(x)?)?)
            }
            _ => Err(Error::msg(
                "there is no layer that makes queries: set `q_proj`",
            )),
        }
    }
}

#[trace(path = "fx_nn::models::hf::deepseek::Attention")]
impl Attention {
    pub(super) fn forward(
        &self,
        x: &Tensor,
        at: Positions,
        cache: Cache,
    ) -> Result<(Tensor, Cache)> {
        let [n, t, _] = x.shape()?.unpack()?;
        let sizes = &self.sizes;
        let heads = |x: &Tensor| x.view((n, t, sizes.heads, -1))?.transpose(1, 2);
        let parts = |x: &Tensor, first: usize, second: usize| {
            x.split_with_sizes(vec![first, second], -1)?.unpack::<2>()
        };
        let q = heads(&self.queries(x)?)?;
        let [q, turned] = parts(&q, sizes.unrotated, sizes.rotated)?;
        let q = ops::cat(&[q, rotate(&turned, &at)?], -1)?;
        let [latent, turned] = parts(
            &self.kv_a_proj_with_mqa.forward(x)?,
            sizes.latent,
            sizes.rotated,
        )?;
        let latent = self.kv_a_layernorm.forward(&latent)?;
        let wide = heads(&self.kv_b_proj.forward(&latent)?)?;
        let [k, v] = parts(&wide, sizes.unrotated, sizes.values)?;
        let turned = rotate(&turned.unsqueeze(1)?, &at)?;
        let turned = turned.expand((-1, sizes.heads, -1, -1))?;
        let k = ops::cat(&[k, turned], -1)?;
        let k = ops::cat(&[cache.k, k], 2)?;
        let v = ops::cat(&[cache.v, v], 2)?;
        let (mask, scale) = (Some(&at.mask), Some(sizes.scale));
        let y = ops::scaled_dot_product_attention(&q, &k, &v, mask, 0.0, false, scale, false)?;
        let y = y.transpose(1, 2)?.reshape((n, t, -1))?;
        Ok((self.o_proj.forward(&y)?, Cache { k, v }))
    }
}
