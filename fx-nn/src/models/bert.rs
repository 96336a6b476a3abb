//! BERT (Devlin et al. 2018): a transformer over texts, with a classifier on its first word.

use fx_core::{Module, Result, trace};

use crate::tensor::Tensor;
use crate::{nn, ops};

/// The sizes of a BERT.
#[derive(Clone, Debug)]
pub struct Config {
    /// Number of words.
    pub vocab_size: usize,
    /// Number of positions.
    pub max_positions: usize,
    /// The length of a text.
    pub length: usize,
    /// The width of the vectors.
    pub width: usize,
    /// Number of attention heads.
    pub heads: usize,
    /// The width between two linear layers.
    pub intermediate: usize,
    /// Number of layers.
    pub layers: usize,
    /// Number of classes.
    pub labels: usize,
    /// The share of zeros in training.
    pub dropout: f64,
}

fn layer_norm(width: usize) -> Result<nn::LayerNorm> {
    Ok(nn::LayerNorm {
        eps: 1e-12,
        ..nn::LayerNorm::new(width)?
    })
}

/// Attention of all words to all.
#[derive(Module, Clone, Debug)]
pub struct SelfAttention {
    /// Queries.
    pub query: nn::Linear,
    /// Keys.
    pub key: nn::Linear,
    /// Values.
    pub value: nn::Linear,
    /// On the weights.
    pub dropout: nn::Dropout,
    /// Number of heads.
    pub num_attention_heads: usize,
    /// The width of a head.
    pub attention_head_size: usize,
}

impl SelfAttention {
    fn transpose_for_scores(&self, x: &Tensor) -> Result<Tensor> {
        let heads = [self.num_attention_heads, self.attention_head_size];
        let shape = x.sizes()?.slice(None, -1)?;
        let shape = shape.concat(heads.map(fx_core::value::Int::from).to_vec())?;
        x.view(shape)?.permute((0, 2, 1, 3))
    }
}

#[trace]
impl SelfAttention {
    /// Applies the attention to `[N, length, width]`, with numbers to add to the scores.
    ///
    /// # Errors
    /// Returns an error if the shapes do not fit.
    pub fn forward(&self, hidden_states: &Tensor, attention_mask: &Tensor) -> Result<Tensor> {
        let q = self.transpose_for_scores(&self.query.forward(hidden_states)?)?;
        let k = self.transpose_for_scores(&self.key.forward(hidden_states)?)?;
        let v = self.transpose_for_scores(&self.value.forward(hidden_states)?)?;
        let scores = ops::matmul(&q, &k.transpose(-1, -2)?)?;
        let scores = (scores / (self.attention_head_size as f64).sqrt())?;
        let scores = (scores + attention_mask)?;
        let probs = ops::softmax(&scores, -1)?;
        let probs = self.dropout.forward(&probs)?;
        let context = ops::matmul(&probs, &v)?.permute((0, 2, 1, 3))?;
        let context = context.contiguous()?;
        let width = self.num_attention_heads * self.attention_head_size;
        let shape = context.sizes()?.slice(None, -2)?;
        context.view(shape.concat(vec![width.into()])?)
    }
}

/// Attention and two linear layers, each with a residual connection.
#[derive(Module, Clone, Debug)]
pub struct Layer {
    /// The attention.
    pub attention: SelfAttention,
    /// Over its heads.
    pub attn_out: nn::Linear,
    /// After the attention.
    pub attn_ln: nn::LayerNorm,
    /// The first linear layer.
    pub inter: nn::Linear,
    /// The second one.
    pub out: nn::Linear,
    /// After both.
    pub out_ln: nn::LayerNorm,
    /// Used twice.
    pub dropout: nn::Dropout,
}

#[trace]
impl Layer {
    /// Applies the layer.
    ///
    /// # Errors
    /// Returns an error if the shapes do not fit.
    pub fn forward(&self, x: &Tensor, mask: &Tensor) -> Result<Tensor> {
        let a = self.attention.forward(x, mask)?;
        let a = self.dropout.forward(&self.attn_out.forward(&a)?)?;
        let x = self.attn_ln.forward(&(a + x)?)?;
        let h = ops::gelu(&self.inter.forward(&x)?, "none")?;
        let h = self.dropout.forward(&self.out.forward(&h)?)?;
        self.out_ln.forward(&(h + x)?)
    }
}

/// A transformer over words `[N, length]` (`int64`); returns scores `[N, labels]` and states
/// `[N, length, width]`.
#[derive(Module, Clone, Debug)]
pub struct Bert {
    /// Words.
    pub word: nn::Embedding,
    /// Positions.
    pub position: nn::Embedding,
    /// Which of two texts a word is in.
    pub token_type: nn::Embedding,
    /// After the embeddings.
    pub ln: nn::LayerNorm,
    /// After `ln`.
    pub dropout: nn::Dropout,
    /// The layers.
    pub layers: Vec<Layer>,
    /// Over the first word.
    pub pooler: nn::Linear,
    /// Scores of the labels.
    pub classifier: nn::Linear,
    /// The length of a text.
    pub length: usize,
}

impl Bert {
    /// A model in training mode.
    ///
    /// # Errors
    /// Returns an error if the heads do not divide the width.
    pub fn new(config: &Config) -> Result<Self> {
        let &Config {
            width,
            heads,
            intermediate,
            dropout,
            ..
        } = config;
        if heads == 0 || !width.is_multiple_of(heads) {
            return Err(fx_core::Error::msg(format_args!(
                "bert: {heads} heads do not divide a width of {width}"
            )));
        }
        let layer = || -> Result<Layer> {
            Ok(Layer {
                attention: SelfAttention {
                    query: nn::Linear::new(width, width)?,
                    key: nn::Linear::new(width, width)?,
                    value: nn::Linear::new(width, width)?,
                    dropout: nn::Dropout::new(dropout)?,
                    num_attention_heads: heads,
                    attention_head_size: width / heads,
                },
                attn_out: nn::Linear::new(width, width)?,
                attn_ln: layer_norm(width)?,
                inter: nn::Linear::new(width, intermediate)?,
                out: nn::Linear::new(intermediate, width)?,
                out_ln: layer_norm(width)?,
                dropout: nn::Dropout::new(dropout)?,
            })
        };
        Ok(Bert {
            word: nn::Embedding::new(config.vocab_size, width)?.padding_idx(0)?,
            position: nn::Embedding::new(config.max_positions, width)?,
            token_type: nn::Embedding::new(2, width)?,
            ln: layer_norm(width)?,
            dropout: nn::Dropout::new(dropout)?,
            layers: (0..config.layers).map(|_| layer()).collect::<Result<_>>()?,
            pooler: nn::Linear::new(width, width)?,
            classifier: nn::Linear::new(width, config.labels)?,
            length: config.length,
        })
    }
}

#[trace]
impl Bert {
    /// Scores of the labels, and the states of all words; `attention_mask` is 1 where there is a word.
    ///
    /// # Errors
    /// Returns an error if the inputs are not `[N, length]`.
    pub fn forward(
        &self,
        input_ids: &Tensor,
        attention_mask: &Tensor,
        token_type_ids: &Tensor,
    ) -> Result<(Tensor, Tensor)> {
        let mask = attention_mask.unsqueeze(1)?.unsqueeze(2)?;
        let mask = ((1.0 - mask)? * -10000.0)?;
        let positions = Tensor::arange(0, self.length)?.unsqueeze(0)?;
        let x = (self.word.forward(input_ids)? + self.position.forward(&positions)?)?;
        let x = (x + self.token_type.forward(token_type_ids)?)?;
        let mut x = self.dropout.forward(&self.ln.forward(&x)?)?;
        for layer in &self.layers {
            x = layer.forward(&x, &mask)?;
        }
        let pooled = ops::tanh(&self.pooler.forward(&x.i((.., 0))?)?)?;
        Ok((self.classifier.forward(&pooled)?, x))
    }
}
