//! `Attention` of grouped heads, with a cache of keys and values.

use fx_core::prelude::*;
use fx_core::value::DType;

use super::config::{Config, QkNorm};
use super::norm::Norm;
use super::rotary::rotate;
use crate::tensor::Tensor;
use crate::{nn, ops};

/// A layer's cache: keys and values `[N, key_value_heads, length, head_dim]`.
#[derive(Tree, Clone, Debug)]
pub struct Cache {
    /// Keys, rotated.
    pub k: Tensor,
    /// Values.
    pub v: Tensor,
}

impl Cache {
    /// The argument of a trace for the caches of all layers.
    pub(in super::super) fn traced(layers: usize) -> Value {
        Value::List(vec![tree!({"k": PH, "v": PH}); layers].into())
    }
}

/// The tables that all layers need for the positions of a forward. The words of several texts lie behind each other.
#[derive(Tree, Clone, Debug)]
pub(super) struct Positions {
    /// `[T, rotary_dim / 2]`.
    pub cos: Tensor,
    pub sin: Tensor,
    /// Whether a query sees a key, `[T, S]` of each text.
    pub masks: Vec<Tensor>,
    /// Where the words of each text end; empty for one text.
    pub ends: Vec<Int>,
}

/// Attention of grouped heads.
#[derive(Module, Clone, Debug)]
pub struct Attention {
    /// Queries.
    pub q_proj: nn::Linear,
    /// Keys.
    pub k_proj: nn::Linear,
    /// Values.
    pub v_proj: nn::Linear,
    /// Results.
    pub o_proj: nn::Linear,
    /// Of queries, before they are rotated.
    pub q_norm: Option<Norm>,
    /// Of keys, before they are rotated.
    pub k_norm: Option<Norm>,
    sizes: Sizes,
}

/// The numbers that an attention needs.
#[derive(Module, Clone, Copy, Debug)]
struct Sizes {
    head_dim: usize,
    /// Number of heads of keys and values.
    groups: usize,
    /// Whether norms of queries and keys read all heads together.
    has_wide_norms: bool,
    /// How many dims of a head are not rotated.
    unrotated: usize,
    /// The factor of scores.
    scale: Option<f64>,
    /// The bound of scores.
    softcap: Option<f64>,
}

impl Attention {
    pub(super) fn new(config: &Config) -> Result<Self> {
        let (width, head_dim) = (config.hidden_size, config.head_dim);
        let queries = config.num_attention_heads * head_dim;
        let keys = config.num_key_value_heads * head_dim;
        let norm = |width: usize| {
            let width = match config.qk_norm? {
                QkNorm::Head => head_dim,
                QkNorm::Width => width,
            };
            Some(Norm::new(config, width))
        };
        Ok(Attention {
            q_proj: nn::Linear::new(width, queries)?.bias(config.qkv_bias),
            k_proj: nn::Linear::new(width, keys)?.bias(config.qkv_bias),
            v_proj: nn::Linear::new(width, keys)?.bias(config.qkv_bias),
            o_proj: nn::Linear::new(queries, width)?.bias(config.out_bias),
            q_norm: norm(queries).transpose()?,
            k_norm: norm(keys).transpose()?,
            sizes: Sizes {
                head_dim,
                groups: config.num_key_value_heads,
                has_wide_norms: config.qk_norm == Some(QkNorm::Width),
                unrotated: config.head_dim - config.rotary_dim,
                scale: config.attention_multiplier,
                softcap: config.attn_logit_softcapping,
            },
        })
    }

    /// x `[N, T, heads * head_dim]`, normalized, as `[N, heads, T, head_dim]`.
    fn heads(&self, x: Tensor, norm: Option<&Norm>) -> Result<Tensor> {
        let [n, t, _] = x.shape()?.unpack()?;
        let split = |x: Tensor| x.view((n, t, -1, self.sizes.head_dim))?.transpose(1, 2);
        match norm {
            Some(norm) if self.sizes.has_wide_norms => split(norm.forward(&x)?),
            Some(norm) => norm.forward(&split(x)?),
            None => split(x),
        }
    }

    /// The results for the queries of a text, `[N, heads, T, head_dim]`, and its cache with its new keys and values.
    fn attend(
        &self,
        [q, k, v]: [&Tensor; 3],
        mask: &Tensor,
        cache: Cache,
    ) -> Result<(Tensor, Cache)> {
        let k = ops::cat(&[&cache.k, k], 2)?;
        let v = ops::cat(&[&cache.v, v], 2)?;
        let y = match self.sizes.softcap {
            Some(cap) => self.capped(cap, [q, &k, &v], mask)?,
            None => ops::scaled_dot_product_attention(
                q,
                &k,
                &v,
                Some(mask),
                0.0,
                false,
                self.sizes.scale,
                true,
            )?,
        };
        Ok((y, Cache { k, v }))
    }

    /// Attention whose scores are bounded.
    fn capped(&self, cap: f64, [q, k, v]: [&Tensor; 3], mask: &Tensor) -> Result<Tensor> {
        let [n, _, t, width] = q.shape()?.unpack()?;
        let groups = self.sizes.groups;
        let rows = q.reshape((n, groups, -1, width))?;
        let scale = self
            .sizes
            .scale
            .unwrap_or((self.sizes.head_dim as f64).powf(-0.5));
        let scores = (rows.matmul(&k.transpose(2, 3)?)? * scale)?;
        let scores = (ops::tanh(&(scores / cap)?)? * cap)?;
        let total = k.size(2)?;
        let scores = scores.view((n, groups, -1, t, total))?;
        let scores = ops::r#where(mask, &scores.to_dtype(DType::F32)?, f64::NEG_INFINITY)?;
        let shares = ops::softmax(&scores, -1)?.type_as(v)?;
        let y = shares.view((n, groups, -1, total))?.matmul(v)?;
        y.view((n, -1, t, width))
    }
}

#[trace(path = "fx_nn::models::hf::decoder::Attention")]
impl Attention {
    /// The results, and a cache for each text.
    pub(super) fn forward(
        &self,
        x: &Tensor,
        at: Positions,
        caches: Vec<Cache>,
    ) -> Result<(Tensor, Vec<Cache>)> {
        let [n, t, _] = x.shape()?.unpack()?;
        let q = self.heads(self.q_proj.forward(x)?, self.q_norm.as_ref())?;
        let q = rotate(&q, &at.cos, &at.sin, self.sizes.unrotated)?;
        let k = self.heads(self.k_proj.forward(x)?, self.k_norm.as_ref())?;
        let k = rotate(&k, &at.cos, &at.sin, self.sizes.unrotated)?;
        let v = self.heads(self.v_proj.forward(x)?, None)?;
        let (mut parts, mut updated) = (Vec::new(), Vec::new());
        let mut start = Int::from(0);
        for (text, (mask, cache)) in at.masks.iter().zip(caches).enumerate() {
            let [q, k, v] = match at.ends.get(text) {
                None => [q.clone(), k.clone(), v.clone()],
                Some(end) => {
                    let of_text = |x: &Tensor| x.i((.., .., start..*end));
                    let parts = [of_text(&q)?, of_text(&k)?, of_text(&v)?];
                    start = *end;
                    parts
                }
            };
            let (y, cache) = self.attend([&q, &k, &v], mask, cache)?;
            parts.push(y);
            updated.push(cache);
        }
        let y = match &parts[..] {
            [y] => y.clone(),
            parts => ops::cat(parts, 2)?,
        };
        let y = y.transpose(1, 2)?.reshape((n, t, -1))?;
        Ok((self.o_proj.forward(&y)?, updated))
    }
}
