//! GPT-2 as `train_models.py` has it: with attention as one function.

use fx_nn::models::gpt2::Mlp;
use fx_nn::prelude::*;

#[derive(Module, Clone)]
struct Attention {
    c_attn: nn::Linear,
    c_proj: nn::Linear,
    heads: i64,
}

#[trace]
impl Attention {
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let [batch, length, width] = x.sizes()?.unpack()?;
        let size = width.floordiv(self.heads)?;
        let parts = self.c_attn.forward(x)?.chunk(3, 2)?;
        let [q, k, v] = parts.unpack()?;
        let of_heads = |x: &Tensor| {
            x.reshape((batch, length, self.heads, size))?
                .transpose(1, 2)
        };
        let (q, k, v) = (of_heads(&q)?, of_heads(&k)?, of_heads(&v)?);
        let y = ops::scaled_dot_product_attention(&q, &k, &v, None, 0.0, true, None, false)?;
        let y = y.transpose(1, 2)?.reshape((batch, length, width))?;
        self.c_proj.forward(&y)
    }
}

#[derive(Module, Clone)]
struct Block {
    ln_1: nn::LayerNorm,
    attn: Attention,
    ln_2: nn::LayerNorm,
    mlp: Mlp,
}

#[trace]
impl Block {
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let x = (x + self.attn.forward(&self.ln_1.forward(x)?)?)?;
        &x + self.mlp.forward(&self.ln_2.forward(&x)?)?
    }
}

/// A language model over `[N, T]` words: scores `[N, T, vocabulary]`.
#[derive(Module, Clone)]
pub struct Gpt2 {
    wte: nn::Embedding,
    wpe: nn::Embedding,
    h: Vec<Block>,
    ln_f: nn::LayerNorm,
    lm_head: nn::Linear,
    #[module(buffer)]
    pos: Tensor,
}

impl Gpt2 {
    /// The smallest published one, for texts of up to `length` tokens.
    pub fn new(length: usize) -> Result<Self> {
        const WIDTH: usize = 768;
        let block = || -> Result<Block> {
            Ok(Block {
                ln_1: nn::LayerNorm::new(WIDTH)?,
                attn: Attention {
                    c_attn: nn::Linear::new(WIDTH, 3 * WIDTH)?,
                    c_proj: nn::Linear::new(WIDTH, WIDTH)?,
                    heads: 12,
                },
                ln_2: nn::LayerNorm::new(WIDTH)?,
                mlp: Mlp {
                    c_fc: nn::Linear::new(WIDTH, 4 * WIDTH)?,
                    act: nn::GELU::tanh(),
                    c_proj: nn::Linear::new(4 * WIDTH, WIDTH)?,
                    dropout: nn::Dropout::new(0.0)?,
                },
            })
        };
        Ok(Gpt2 {
            wte: nn::Embedding::new(50257, WIDTH)?,
            wpe: nn::Embedding::new(length, WIDTH)?,
            h: (0..12).map(|_| block()).collect::<Result<_>>()?,
            ln_f: nn::LayerNorm::new(WIDTH)?,
            lm_head: nn::Linear::new(WIDTH, 50257)?.bias(false),
            pos: Tensor::arange(0, length)?,
        })
    }
}

#[trace]
impl Gpt2 {
    fn forward(&self, ids: &Tensor) -> Result<Tensor> {
        let pos = self.pos.narrow(0, 0, ids.size(1)?)?;
        let mut x = (self.wte.forward(ids)? + self.wpe.forward(&pos)?)?;
        for block in &self.h {
            x = block.forward(&x)?;
        }
        self.lm_head.forward(&self.ln_f.forward(&x)?)
    }
}
