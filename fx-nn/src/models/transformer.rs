//! A layer of a transformer's encoder (Vaswani et al. 2017), made of linear layers, layer norm and softmax.

use fx_core::{Module, Result, trace};

use crate::tensor::Tensor;
use crate::{nn, ops};

/// Attention in several heads.
#[derive(Module, Clone, Debug)]
pub struct Attention {
    /// Queries.
    pub q: nn::Linear,
    /// Keys.
    pub k: nn::Linear,
    /// Values.
    pub v: nn::Linear,
    /// Over the heads.
    pub o: nn::Linear,
    /// Number of heads.
    pub heads: usize,
    /// The width of a head.
    pub dh: usize,
}

#[trace]
impl Attention {
    /// Applies the attention to `[N, length, width]`.
    ///
    /// # Errors
    /// Returns an error if the shape differs.
    pub fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let [b, t, d] = x.shape()?.unpack()?;
        let per_head = |x: Tensor| x.view((b, t, self.heads, self.dh))?.transpose(1, 2);
        let q = per_head(self.q.forward(x)?)?;
        let k = per_head(self.k.forward(x)?)?;
        let v = per_head(self.v.forward(x)?)?;
        let scores = (ops::matmul(&q, &k.transpose(-2, -1)?)? / (self.dh as f64).sqrt())?;
        let att = ops::softmax(&scores, -1)?;
        let y = ops::matmul(&att, &v)?.transpose(1, 2)?.reshape((b, t, d))?;
        self.o.forward(&y)
    }
}

/// Attention and two linear layers, each with a residual connection.
#[derive(Module, Clone, Debug)]
pub struct TransformerEncoderLayer {
    /// The attention.
    pub attn: Attention,
    /// After the attention.
    pub norm1: nn::LayerNorm,
    /// After the linear layers.
    pub norm2: nn::LayerNorm,
    /// The first linear layer.
    pub lin1: nn::Linear,
    /// The second one.
    pub lin2: nn::Linear,
}

impl TransformerEncoderLayer {
    /// A layer of a width, with `intermediate` numbers between the linear layers.
    ///
    /// # Errors
    /// Returns an error if the heads do not divide the width.
    pub fn new(width: usize, heads: usize, intermediate: usize) -> Result<Self> {
        if heads == 0 || !width.is_multiple_of(heads) {
            return Err(fx_core::Error::msg(format_args!(
                "transformer: {heads} heads do not divide a width of {width}"
            )));
        }
        Ok(TransformerEncoderLayer {
            attn: Attention {
                q: nn::Linear::new(width, width)?,
                k: nn::Linear::new(width, width)?,
                v: nn::Linear::new(width, width)?,
                o: nn::Linear::new(width, width)?,
                heads,
                dh: width / heads,
            },
            norm1: nn::LayerNorm::new(width)?,
            norm2: nn::LayerNorm::new(width)?,
            lin1: nn::Linear::new(width, intermediate)?,
            lin2: nn::Linear::new(intermediate, width)?,
        })
    }
}

#[trace]
impl TransformerEncoderLayer {
    /// Applies the layer to `[N, length, width]`.
    ///
    /// # Errors
    /// Returns an error if the shape differs.
    pub fn forward(&self, src: &Tensor) -> Result<Tensor> {
        let src = self.norm1.forward(&(src + self.attn.forward(src)?)?)?;
        let h = ops::gelu(&self.lin1.forward(&src)?, "none")?;
        self.norm2.forward(&(&src + self.lin2.forward(&h)?)?)
    }
}
