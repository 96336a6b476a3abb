//! Whisper's audio encoder: two convolutions over a mel spectrogram, then attention blocks.

use fx_nn::prelude::*;

#[derive(Debug, Clone, PartialEq, serde::Deserialize)]
pub struct Config {
    pub num_mel_bins: usize,
    pub max_source_positions: usize,
    pub d_model: usize,
    pub encoder_attention_heads: usize,
    pub encoder_layers: usize,
    pub vocab_size: usize,
    pub max_target_positions: usize,
    pub decoder_attention_heads: usize,
    pub decoder_layers: usize,
    #[serde(default)]
    pub suppress_tokens: Vec<u32>,
}

/// The keys and values of what cross-attention looks at.
pub type KvCache = (Tensor, Tensor);

#[derive(Module, Clone, Debug)]
struct MultiHeadAttention {
    #[module(name = "q_proj")]
    query: nn::Linear,
    #[module(name = "k_proj")]
    key: nn::Linear,
    #[module(name = "v_proj")]
    value: nn::Linear,
    #[module(name = "out_proj")]
    out: nn::Linear,
    n_head: usize,
}

impl MultiHeadAttention {
    fn new(n_state: usize, n_head: usize) -> Result<Self> {
        Ok(Self {
            query: nn::Linear::new(n_state, n_state)?,
            key: nn::Linear::new(n_state, n_state)?.bias(false),
            value: nn::Linear::new(n_state, n_state)?,
            out: nn::Linear::new(n_state, n_state)?,
            n_head,
        })
    }
}

#[trace]
impl MultiHeadAttention {
    fn forward(
        &self,
        x: &Tensor,
        xa: Option<&Tensor>,
        mask: Option<&Tensor>,
        kv_cache: Option<KvCache>,
    ) -> Result<(Tensor, Option<KvCache>)> {
        let q = self.query.forward(x)?;
        let (k, v) = match (xa, kv_cache) {
            (Some(_), Some(kv_cache)) => kv_cache,
            (xa, _) => {
                let x = xa.unwrap_or(x);
                (self.key.forward(x)?, self.value.forward(x)?)
            }
        };
        let wv = self.qkv_attention(&q, &k, &v, mask)?;
        Ok((self.out.forward(&wv)?, xa.map(|_| (k, v))))
    }

    fn reshape_head(&self, x: &Tensor) -> Result<Tensor> {
        let (n_batch, n_ctx, n_state) = x.dims3()?;
        let head = n_state.floordiv(self.n_head as i64)?;
        x.reshape((n_batch, n_ctx, self.n_head, head))?
            .transpose(1, 2)
    }

    fn qkv_attention(
        &self,
        q: &Tensor,
        k: &Tensor,
        v: &Tensor,
        mask: Option<&Tensor>,
    ) -> Result<Tensor> {
        let (_, n_ctx, n_state) = q.dims3()?;
        let scale = n_state.floordiv(self.n_head as i64)?.pow(-0.25)?;
        let q = (self.reshape_head(q)? * scale)?;
        let k = (self.reshape_head(k)?.transpose(2, 3)? * scale)?;
        let v = self.reshape_head(v)?;
        let mut qk = q.matmul(&k)?;
        if let Some(mask) = mask {
            qk = (qk + mask.i((0..n_ctx, 0..n_ctx))?)?;
        }
        let w = ops::softmax(&qk, -1)?;
        w.matmul(&v)?.transpose(1, 2)?.flatten_from(2)
    }
}

#[derive(Module, Clone, Debug)]
struct ResidualAttentionBlock {
    #[module(name = "self_attn")]
    attn: MultiHeadAttention,
    #[module(name = "self_attn_layer_norm")]
    attn_ln: nn::LayerNorm,
    #[module(name = "encoder_attn")]
    cross_attn: Option<MultiHeadAttention>,
    #[module(name = "encoder_attn_layer_norm")]
    cross_attn_ln: Option<nn::LayerNorm>,
    #[module(name = "fc1")]
    mlp_linear1: nn::Linear,
    #[module(name = "fc2")]
    mlp_linear2: nn::Linear,
    #[module(name = "final_layer_norm")]
    mlp_ln: nn::LayerNorm,
}

impl ResidualAttentionBlock {
    fn new(n_state: usize, n_head: usize, ca: bool) -> Result<Self> {
        let cross_attn = ca.then(|| MultiHeadAttention::new(n_state, n_head));
        let cross_attn_ln = ca.then(|| nn::LayerNorm::new(n_state));
        let n_mlp = n_state * 4;
        Ok(Self {
            attn: MultiHeadAttention::new(n_state, n_head)?,
            attn_ln: nn::LayerNorm::new(n_state)?,
            cross_attn: cross_attn.transpose()?,
            cross_attn_ln: cross_attn_ln.transpose()?,
            mlp_linear1: nn::Linear::new(n_state, n_mlp)?,
            mlp_linear2: nn::Linear::new(n_mlp, n_state)?,
            mlp_ln: nn::LayerNorm::new(n_state)?,
        })
    }
}

#[trace]
impl ResidualAttentionBlock {
    fn forward(
        &self,
        x: &Tensor,
        xa: Option<&Tensor>,
        mask: Option<&Tensor>,
        kv_cache: Option<KvCache>,
    ) -> Result<(Tensor, Option<KvCache>)> {
        let (attn, _) = self
            .attn
            .forward(&self.attn_ln.forward(x)?, None, mask, None)?;
        let mut x = (x + attn)?;
        let mut updated = None;
        if let (Some(attn), Some(ln)) = (&self.cross_attn, &self.cross_attn_ln) {
            let (attn, kv_cache) = attn.forward(&ln.forward(&x)?, xa, None, kv_cache)?;
            x = (x + attn)?;
            updated = kv_cache;
        }
        let mlp = self.mlp_linear1.forward(&self.mlp_ln.forward(&x)?)?;
        let mlp = self.mlp_linear2.forward(&ops::gelu(&mlp, "tanh")?)?;
        Ok(((x + mlp)?, updated))
    }
}

fn sinusoids(length: usize, channels: usize) -> Result<Tensor> {
    let max_timescale = 10000f32;
    let log_timescale_increment = max_timescale.ln() / (channels / 2 - 1) as f32;
    let inv_timescales = (0..channels / 2)
        .map(|i| (i as f32 * (-log_timescale_increment)).exp())
        .collect();
    let inv_timescales = Tensor::from_vec(inv_timescales, (1, channels / 2))?;
    let scaled_time = (Tensor::arange(0, length)?.unsqueeze(1)? * inv_timescales)?;
    ops::cat(&[scaled_time.sin()?, scaled_time.cos()?], 1)
}

#[derive(Module, Clone, Debug)]
pub struct AudioEncoder {
    conv1: nn::Conv1d,
    conv2: nn::Conv1d,
    #[module(buffer, persistent = false)]
    positional_embedding: Tensor,
    #[module(name = "layers")]
    blocks: Vec<ResidualAttentionBlock>,
    #[module(name = "layer_norm")]
    ln_post: nn::LayerNorm,
}

impl AudioEncoder {
    pub fn new(cfg: &Config) -> Result<Self> {
        let n_state = cfg.d_model;
        let n_head = cfg.encoder_attention_heads;
        let blocks = (0..cfg.encoder_layers)
            .map(|_| ResidualAttentionBlock::new(n_state, n_head, false))
            .collect::<Result<_>>()?;
        Ok(Self {
            conv1: nn::Conv1d::new(cfg.num_mel_bins, n_state, 3)?.padding(1),
            conv2: nn::Conv1d::new(n_state, n_state, 3)?.padding(1).stride(2),
            positional_embedding: sinusoids(cfg.max_source_positions, n_state)?,
            blocks,
            ln_post: nn::LayerNorm::new(n_state)?,
        })
    }
}

#[trace]
impl AudioEncoder {
    pub fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let x = ops::gelu(&self.conv1.forward(x)?, "tanh")?;
        let x = ops::gelu(&self.conv2.forward(&x)?, "tanh")?;
        let x = x.transpose(1, 2)?;
        let (_bsize, seq_len, _hidden) = x.dims3()?;
        let mut x = (x + self.positional_embedding.narrow(0, 0, seq_len)?)?;
        for block in &self.blocks {
            (x, _) = block.forward(&x, None, None, None)?;
        }
        self.ln_post.forward(&x)
    }
}
