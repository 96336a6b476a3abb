//! GPT-2 (Radford et al. 2019), under its checkpoint's names; the linear layers' weights are
//! `[out, in]`, unlike the original's.

use fx_core::{Module, Result, trace};

use crate::tensor::Tensor;
use crate::{nn, ops};

/// The sizes of a GPT-2.
#[derive(Clone, Debug)]
pub struct Config {
    /// Number of words.
    pub vocab_size: usize,
    /// Number of positions: the length of the longest text.
    pub block_size: usize,
    /// Number of blocks.
    pub n_layer: usize,
    /// Number of attention heads.
    pub n_head: usize,
    /// The width of the vectors.
    pub n_embd: usize,
    /// The share of zeros in training.
    pub dropout: f64,
}

impl Default for Config {
    /// The smallest published one: 124 million parameters.
    fn default() -> Self {
        Config {
            vocab_size: 50257,
            block_size: 1024,
            n_layer: 12,
            n_head: 12,
            n_embd: 768,
            dropout: 0.1,
        }
    }
}

/// Attention of each position to those before it.
#[derive(Module, Clone, Debug)]
pub struct CausalSelfAttention {
    /// Queries, keys and values.
    pub c_attn: nn::Linear,
    /// Over the heads.
    pub c_proj: nn::Linear,
    /// On the weights.
    pub attn_dropout: nn::Dropout,
    /// `[1, 1, block_size, block_size]`: true where a position may attend.
    #[module(buffer)]
    pub mask: Tensor,
    /// Number of heads.
    pub n_head: usize,
    /// The width of the vectors.
    pub n_embd: usize,
}

#[trace]
impl CausalSelfAttention {
    /// Applies the attention to `[N, T, n_embd]`, where `T` is `block_size` at most.
    ///
    /// # Errors
    /// Returns an error if the shape differs, or the text is longer.
    pub fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let [b, t, c] = x.sizes()?.unpack()?;
        let heads = self.n_head as i64;
        let split = self.c_attn.forward(x)?.split(self.n_embd, 2)?;
        let [q, k, v] = split.unpack()?;
        let per_head = |x: &Tensor| {
            let width = c.floordiv(heads)?;
            x.view((b, t, heads, width))?.transpose(1, 2)
        };
        let (k, q, v) = (per_head(&k)?, per_head(&q)?, per_head(&v)?);
        let scale = 1.0 / ((self.n_embd / self.n_head) as f64).sqrt();
        let att = (ops::matmul(&q, &k.transpose(-2, -1)?)? * scale)?;
        let hidden = (!&self.mask)?.narrow(2, 0, t)?.narrow(3, 0, t)?;
        let att = att.masked_fill(&hidden, f64::NEG_INFINITY)?;
        let att = ops::softmax(&att, -1)?;
        let y = ops::matmul(&self.attn_dropout.forward(&att)?, &v)?;
        let y = y.transpose(1, 2)?.contiguous()?.view((b, t, c))?;
        self.c_proj.forward(&y)
    }
}

/// Two linear layers.
#[derive(Module, Clone, Debug)]
pub struct Mlp {
    /// To four times the width.
    pub c_fc: nn::Linear,
    /// With the tanh approximation.
    pub act: nn::GELU,
    /// And back.
    pub c_proj: nn::Linear,
    /// At the end.
    pub dropout: nn::Dropout,
}

#[trace]
impl Mlp {
    /// Applies the layers to `[.., n_embd]`.
    ///
    /// # Errors
    /// Returns an error if the width differs.
    pub fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let x = self.act.forward(&self.c_fc.forward(x)?)?;
        self.dropout.forward(&self.c_proj.forward(&x)?)
    }
}

/// Attention and linear layers, each with a residual connection.
#[derive(Module, Clone, Debug)]
pub struct Block {
    /// Before the attention.
    pub ln_1: nn::LayerNorm,
    /// The attention.
    pub attn: CausalSelfAttention,
    /// Before the linear layers.
    pub ln_2: nn::LayerNorm,
    /// The linear layers.
    pub mlp: Mlp,
}

#[trace]
impl Block {
    /// Applies the block.
    ///
    /// # Errors
    /// Returns an error if the shape differs.
    pub fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let x = (x + self.attn.forward(&self.ln_1.forward(x)?)?)?;
        &x + self.mlp.forward(&self.ln_2.forward(&x)?)?
    }
}

/// A language model over words `[N, T]` (`int64`), where `T` is `block_size` at most; returns scores `[N, T, vocab_size]`.
#[derive(Module, Clone, Debug)]
pub struct Gpt2 {
    /// Words.
    pub wte: nn::Embedding,
    /// Positions.
    pub wpe: nn::Embedding,
    /// After both.
    pub drop: nn::Dropout,
    /// The blocks.
    pub h: Vec<Block>,
    /// At the end.
    pub ln_f: nn::LayerNorm,
    /// Scores of the words.
    pub lm_head: nn::Linear,
    /// `[block_size]`: the positions.
    #[module(buffer)]
    pub pos: Tensor,
}

impl Gpt2 {
    /// A model in training mode.
    ///
    /// # Errors
    /// Returns an error if the heads do not divide the width.
    pub fn new(config: &Config) -> Result<Self> {
        let &Config {
            block_size,
            n_head,
            n_embd,
            dropout,
            ..
        } = config;
        if n_head == 0 || !n_embd.is_multiple_of(n_head) {
            return Err(fx_core::Error::msg(format_args!(
                "gpt2: {n_head} heads do not divide a width of {n_embd}"
            )));
        }
        let block = || -> Result<Block> {
            let mask = Tensor::ones((1, 1, block_size, block_size))?.tril(0)?;
            Ok(Block {
                ln_1: nn::LayerNorm::new(n_embd)?,
                attn: CausalSelfAttention {
                    c_attn: nn::Linear::new(n_embd, 3 * n_embd)?,
                    c_proj: nn::Linear::new(n_embd, n_embd)?,
                    attn_dropout: nn::Dropout::new(dropout)?,
                    mask: mask.to_dtype(fx_core::value::DType::Bool)?,
                    n_head,
                    n_embd,
                },
                ln_2: nn::LayerNorm::new(n_embd)?,
                mlp: Mlp {
                    c_fc: nn::Linear::new(n_embd, 4 * n_embd)?,
                    act: nn::GELU::tanh(),
                    c_proj: nn::Linear::new(4 * n_embd, n_embd)?,
                    dropout: nn::Dropout::new(dropout)?,
                },
            })
        };
        Ok(Gpt2 {
            wte: nn::Embedding::new(config.vocab_size, n_embd)?,
            wpe: nn::Embedding::new(block_size, n_embd)?,
            drop: nn::Dropout::new(dropout)?,
            h: (0..config.n_layer)
                .map(|_| block())
                .collect::<Result<_>>()?,
            ln_f: nn::LayerNorm::new(n_embd)?,
            lm_head: nn::Linear::new(n_embd, config.vocab_size)?.bias(false),
            pos: Tensor::arange(0, block_size)?,
        })
    }
}

#[trace]
impl Gpt2 {
    /// Scores of the next word at each position.
    ///
    /// # Errors
    /// Returns an error if `idx` is not `[N, T]`, or `T` is more than `block_size`.
    pub fn forward(&self, idx: &Tensor) -> Result<Tensor> {
        let pos = self.pos.narrow(0, 0, idx.size(1)?)?;
        let x = (self.wte.forward(idx)? + self.wpe.forward(&pos)?)?;
        let mut x = self.drop.forward(&x)?;
        for block in &self.h {
            x = block.forward(&x)?;
        }
        self.lm_head.forward(&self.ln_f.forward(&x)?)
    }
}
