//! The common parts of encoder-decoder models: the cache of a decoder's layer, and attention of
//! heads.

use fx_core::prelude::*;

use crate::ops;
use crate::tensor::Tensor;

/// The cache of a decoder's layer: keys and values of its own words and of the encoder's results,
/// `[N, heads, length, head_dim]`.
#[derive(Tree, Clone, Debug)]
pub struct Cache {
    /// Keys of the words so far.
    pub k: Tensor,
    /// Values of the words so far.
    pub v: Tensor,
    /// Keys of the encoder's results.
    pub cross_k: Tensor,
    /// Values of the encoder's results.
    pub cross_v: Tensor,
}

impl Cache {
    /// The cache before the first word.
    pub(super) fn before(cross_k: Tensor, cross_v: Tensor) -> Result<Self> {
        Ok(Cache {
            k: cross_k.i((.., .., ..0))?,
            v: cross_v.i((.., .., ..0))?,
            cross_k,
            cross_v,
        })
    }

    /// The cache with the keys and values of more words.
    pub(super) fn and(self, k: Tensor, v: Tensor) -> Result<Self> {
        Ok(Cache {
            k: ops::cat(&[self.k, k], 2)?,
            v: ops::cat(&[self.v, v], 2)?,
            ..self
        })
    }

    /// How many words were seen, by the first layer's cache.
    pub(super) fn seen(caches: &[Cache]) -> Result<Int> {
        match caches.first() {
            Some(cache) => cache.k.size(2),
            None => Ok(0.into()),
        }
    }

    /// The argument of a trace for the caches of all layers.
    pub(super) fn traced(layers: usize) -> Value {
        let cache = tree!({"k": PH, "v": PH, "cross_k": PH, "cross_v": PH});
        Value::List(vec![cache; layers].into())
    }
}

/// `[N, T, heads · head_dim]` as `[N, heads, T, head_dim]`.
pub(super) fn heads(x: &Tensor, head_dim: usize) -> Result<Tensor> {
    let [n, t, _] = x.shape()?.unpack()?;
    x.view((n, t, -1, head_dim))?.transpose(1, 2)
}

/// The results `[N, T, heads · head_dim]` of attention with queries, keys and values
/// `[N, heads, length, head_dim]`; scores are not scaled.
pub(super) fn attend(q: &Tensor, k: &Tensor, v: &Tensor, mask: Option<&Tensor>) -> Result<Tensor> {
    let y = ops::scaled_dot_product_attention(q, k, v, mask, 0.0, false, Some(1.0), false)?;
    // Heads next to each other again.
    y.transpose(1, 2)?.flatten(2, -1)
}

/// Whether a key is after a query: queries are `seen..total`, keys `0..total`, `[queries, keys]`.
pub(super) fn later(seen: Int, total: Int) -> Result<Tensor> {
    let queries = Tensor::arange(seen, total)?.unsqueeze(1)?;
    let keys = Tensor::arange(0, total)?.unsqueeze(0)?;
    keys.gt(&queries)
}
