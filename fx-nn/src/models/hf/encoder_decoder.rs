//! What encoder-decoder models share: what a decoder's layer has seen, and attention of heads.

use fx_core::prelude::*;

use crate::ops;
use crate::tensor::Tensor;

/// What a layer of a decoder has seen of its own words, and what it sees of the encoder: keys and values
/// `[N, heads, length, head_dim]`.
#[derive(Tree, Clone, Debug)]
pub struct Cache {
    /// Keys of the words so far.
    pub k: Tensor,
    /// Values of the words so far.
    pub v: Tensor,
    /// Keys of what the encoder gave.
    pub cross_k: Tensor,
    /// Values of what the encoder gave.
    pub cross_v: Tensor,
}

impl Cache {
    /// Before the first word.
    pub(super) fn before(cross_k: Tensor, cross_v: Tensor) -> Result<Self> {
        Ok(Cache {
            k: cross_k.i((.., .., ..0))?,
            v: cross_v.i((.., .., ..0))?,
            cross_k,
            cross_v,
        })
    }

    /// With the keys and values of more words.
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

/// What queries find, `[N, T, heads · head_dim]`, of queries, keys and values `[N, heads, length, head_dim]`; scores are not
/// scaled.
pub(super) fn attend(q: &Tensor, k: &Tensor, v: &Tensor, mask: Option<&Tensor>) -> Result<Tensor> {
    let y = ops::scaled_dot_product_attention(q, k, v, mask, 0.0, false, Some(1.0), false)?;
    // Heads beside each other again.
    y.transpose(1, 2)?.flatten(2, -1)
}

/// Whether a key is after a query: queries are `seen..total`, keys `0..total`, `[queries, keys]`.
pub(super) fn later(seen: Int, total: Int) -> Result<Tensor> {
    let queries = Tensor::arange(seen, total)?.unsqueeze(1)?;
    let keys = Tensor::arange(0, total)?.unsqueeze(0)?;
    keys.gt(&queries)
}
