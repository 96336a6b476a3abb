//! `MultiheadAttention`: attention in several heads, between two linear layers.

use fx_core::{Error, Module, Result, trace};

use super::options::options;
use super::recurrent::is_share;
use super::{Linear, parameter};
use crate::ops;
use crate::tensor::Tensor;

/// softmax(Q Kᵀ / sqrt(d)) V in each head, of queries, keys and values that linear layers make, and a linear layer
/// over the heads side by side.
///
/// `query` is `[L, N, E]`, `key` and `value` are `[S, N, E]`; with `batch_first` the batch is the first dim of all.
///
/// ```
/// use fx_nn::prelude::*;
/// let layer = nn::MultiheadAttention::new(8, 2)?.batch_first(true);
/// let x = Tensor::rand((3, 5, 8))?;
/// let (y, weights) = layer.forward(&x, &x, &x, None, true, None)?;
/// assert_eq!((y.dims()?, weights.dims()?), (&[3, 5, 8][..], &[3, 5, 5][..]));
/// assert!(fx_nn::allclose(&weights.sum(-1)?, &Tensor::ones((3, 5))?, 0.0, 1e-6)?.close);
/// # Ok::<(), fx_nn::Error>(())
/// ```
#[derive(Module, Clone, Debug)]
pub struct MultiheadAttention {
    /// Of queries, keys and values, `[3 · embed_dim, embed_dim]`.
    pub in_proj_weight: Tensor,
    /// `[3 · embed_dim]`.
    pub in_proj_bias: Option<Tensor>,
    /// Over the heads.
    pub out_proj: Linear,
    /// Number of heads.
    pub num_heads: usize,
    /// The share of attention weights that is dropped in training.
    pub dropout: f64,
    /// Whether the batch is the first dim.
    pub batch_first: bool,
    /// Whether anything is dropped.
    pub training: bool,
}

impl MultiheadAttention {
    /// A layer in training mode, initialised as PyTorch's: no dropout, the batch second.
    ///
    /// # Errors
    /// Returns an error if `num_heads` does not divide `embed_dim`.
    pub fn new(embed_dim: usize, num_heads: usize) -> Result<Self> {
        if num_heads == 0 || !embed_dim.is_multiple_of(num_heads) {
            return Err(Error::msg(format_args!(
                "multihead_attention: {num_heads} heads do not divide embed_dim {embed_dim}"
            )));
        }
        // Xavier: sqrt(6 / (inputs + outputs)).
        let width = embed_dim.saturating_mul(3);
        let bound = (6.0 / (4.0 * embed_dim as f64)).sqrt();
        Ok(MultiheadAttention {
            in_proj_weight: parameter::uniform(&[width, embed_dim], bound)?,
            in_proj_bias: Some(parameter::constant(&[width], 0.0)?),
            out_proj: Linear {
                bias: Some(parameter::constant(&[embed_dim], 0.0)?),
                ..Linear::new(embed_dim, embed_dim)?
            },
            num_heads,
            dropout: 0.0,
            batch_first: false,
            training: true,
        })
    }

    /// Sets the option [`dropout`](MultiheadAttention#structfield.dropout).
    ///
    /// # Errors
    /// Returns an error if it is not in [0, 1].
    pub fn dropout(self, dropout: f64) -> Result<Self> {
        let dropout = is_share("multihead_attention", dropout)?;
        Ok(MultiheadAttention { dropout, ..self })
    }

    /// Whether the projections keep their biases; what was taken off does not come back.
    #[must_use]
    pub fn bias(mut self, bias: bool) -> Self {
        self.in_proj_bias = self.in_proj_bias.filter(|_| bias);
        self.out_proj = self.out_proj.bias(bias);
        self
    }

    fn draws(&self) -> bool {
        self.training && self.dropout > 0.0
    }

    /// The projections of queries, keys and values.
    fn projections(&self) -> Result<[(Tensor, Option<Tensor>); 3]> {
        let weights: [Tensor; 3] = self.in_proj_weight.chunk(3, 0)?.unpack()?;
        let biases = match &self.in_proj_bias {
            Some(bias) => bias.chunk(3, 0)?.unpack()?.map(Some),
            None => [None, None, None],
        };
        let mut biases = biases.into_iter();
        Ok(weights.map(|weight| (weight, biases.next().flatten())))
    }

    /// `[N, length, E]` as `[N, heads, length, E / heads]`.
    fn heads(&self, x: &Tensor, (weight, bias): &(Tensor, Option<Tensor>)) -> Result<Tensor> {
        let x = if self.batch_first {
            x.clone()
        } else {
            x.transpose(0, 1)?
        };
        let x = ops::linear(&x, weight, bias.as_ref())?;
        let (batch, length) = (x.size(0)?, x.size(1)?);
        x.view((batch, length, self.num_heads, -1))?.transpose(1, 2)
    }
}

options!(MultiheadAttention { batch_first: bool });

#[trace(leaf, impure = draws, path = "fx_nn::nn::MultiheadAttention")]
impl MultiheadAttention {
    /// What each query takes from the values, and its weights over the keys `[N, L, S]`, the mean of all heads
    /// (an empty tensor without `need_weights`).
    ///
    /// Truth values in a mask are true where a key must *not* be seen, numbers are added to the
    /// scores: `key_padding_mask` is `[N, S]`, `attn_mask` is `[L, S]` or broadcasts to
    /// `[N, heads, L, S]`.
    ///
    /// # Errors
    /// Returns an error if a shape does not fit.
    pub fn forward(
        &self,
        query: &Tensor,
        key: &Tensor,
        value: &Tensor,
        #[kw] key_padding_mask: Option<&Tensor>,
        #[kw]
        #[default(true)]
        need_weights: bool,
        #[kw] attn_mask: Option<&Tensor>,
    ) -> Result<(Tensor, Tensor)> {
        let [q, k, v] = self.projections()?;
        let (q, k, v) = (
            self.heads(query, &q)?,
            self.heads(key, &k)?,
            self.heads(value, &v)?,
        );
        let width = self.width()? / self.num_heads as f64;
        let scores = ops::matmul(&(q / width.sqrt())?, &k.transpose(-2, -1)?)?;
        let scores = match attn_mask {
            Some(mask) => ops::mask_scores(&scores, mask)?,
            None => scores,
        };
        let scores = match key_padding_mask {
            Some(mask) => ops::mask_scores(&scores, &mask.unsqueeze(1)?.unsqueeze(2)?)?,
            None => scores,
        };
        let weights = ops::softmax(&scores, -1)?;
        let dropped = ops::dropout(&weights, self.dropout, self.training)?;
        let heads = ops::matmul(&dropped, &v)?.transpose(1, 2)?;
        let y = self.out_proj.forward(&heads.flatten(2, -1)?)?;
        let y = if self.batch_first {
            y
        } else {
            y.transpose(0, 1)?
        };
        let weights = if need_weights {
            weights.mean(1)?
        } else {
            weights.flatten(0, -1)?.i(0..0)?
        };
        Ok((y, weights))
    }
}

impl MultiheadAttention {
    /// `embed_dim`.
    fn width(&self) -> Result<f64> {
        // A symbolic weight, as `functional_call` puts it here, has a shape too.
        let known = fx_core::tensor::Object::shape(&self.in_proj_weight);
        let width = match known.and_then(|shape| shape.last().copied()) {
            Some(width) => Some(width as f64),
            None => self
                .in_proj_weight
                .size(-1)?
                .concrete()
                .map(|width| width as f64),
        };
        width.ok_or_else(|| Error::msg("multihead_attention: in_proj_weight must be [3 * E, E]"))
    }
}
