//! Qwen2: a decoder with grouped-query attention, rotary positions, and a cache of keys and values.

use std::sync::Arc;

use fx_nn::prelude::*;

#[derive(Debug, Clone, PartialEq, serde::Deserialize)]
pub struct Config {
    pub vocab_size: usize,
    pub hidden_size: usize,
    pub intermediate_size: usize,
    pub num_hidden_layers: usize,
    pub num_attention_heads: usize,
    pub num_key_value_heads: usize,
    pub max_position_embeddings: usize,
    pub sliding_window: usize,
    pub max_window_layers: usize,
    pub tie_word_embeddings: bool,
    pub rope_theta: f64,
    pub rms_norm_eps: f64,
    pub use_sliding_window: bool,
    pub hidden_act: String,
}

/// What a layer has seen: keys and values `[N, num_key_value_heads, length, head_dim]`.
pub type KvCache = (Tensor, Tensor);

fn linear_no_bias(in_features: usize, out_features: usize) -> Result<nn::Linear> {
    Ok(nn::Linear::new(in_features, out_features)?.bias(false))
}

fn activation(name: &str) -> Result<Box<dyn Module>> {
    Ok(match name {
        "silu" | "swish" => nn::SiLU::new().into(),
        "gelu" => nn::GELU::new().into(),
        "gelu_new" | "gelu_pytorch_tanh" => nn::GELU::tanh().into(),
        "relu" => nn::ReLU::new().into(),
        "sigmoid" => nn::Sigmoid::new().into(),
        "mish" => nn::Mish::new().into(),
        _ => return Err(Error::msg(format!("no activation is called `{name}`"))),
    })
}

/// The halves of each head, turned as the parts of complex numbers.
fn rope(xs: &Tensor, cos: &Tensor, sin: &Tensor) -> Result<Tensor> {
    let [re, im] = xs.chunk(2, -1)?.unpack()?;
    let turned_re = ((&re * cos)? - (&im * sin)?)?;
    let turned_im = ((&im * cos)? + (&re * sin)?)?;
    ops::cat(&[turned_re, turned_im], -1)
}

#[derive(Module, Clone, Debug)]
struct RotaryEmbedding {
    #[module(buffer, persistent = false)]
    sin: Tensor,
    #[module(buffer, persistent = false)]
    cos: Tensor,
}

impl RotaryEmbedding {
    fn new(cfg: &Config) -> Result<Self> {
        let dim = cfg.hidden_size / cfg.num_attention_heads;
        let max_seq_len = cfg.max_position_embeddings;
        let inv_freq: Vec<f32> = (0..dim)
            .step_by(2)
            .map(|i| 1.0 / cfg.rope_theta.powf(i as f64 / dim as f64) as f32)
            .collect();
        let inv_freq_len = inv_freq.len();
        let inv_freq = Tensor::from_vec(inv_freq, (1, inv_freq_len))?;
        let t = Tensor::arange(0, max_seq_len)?.reshape((max_seq_len, 1))?;
        let freqs = (t * inv_freq)?;
        Ok(Self {
            sin: freqs.sin()?,
            cos: freqs.cos()?,
        })
    }

    fn apply_rotary_emb_qkv(
        &self,
        q: &Tensor,
        k: &Tensor,
        seqlen_offset: Int,
    ) -> Result<(Tensor, Tensor)> {
        let seq_len = q.size(2)?;
        let cos = self.cos.narrow(0, seqlen_offset, seq_len)?;
        let sin = self.sin.narrow(0, seqlen_offset, seq_len)?;
        Ok((rope(q, &cos, &sin)?, rope(k, &cos, &sin)?))
    }
}

#[derive(Module, Clone, Debug)]
struct MLP {
    gate_proj: nn::Linear,
    up_proj: nn::Linear,
    down_proj: nn::Linear,
    act_fn: Box<dyn Module>,
}

impl MLP {
    fn new(cfg: &Config) -> Result<Self> {
        let hidden_sz = cfg.hidden_size;
        let intermediate_sz = cfg.intermediate_size;
        Ok(Self {
            gate_proj: linear_no_bias(hidden_sz, intermediate_sz)?,
            up_proj: linear_no_bias(hidden_sz, intermediate_sz)?,
            down_proj: linear_no_bias(intermediate_sz, hidden_sz)?,
            act_fn: activation(&cfg.hidden_act)?,
        })
    }
}

#[trace]
impl MLP {
    fn forward(&self, xs: &Tensor) -> Result<Tensor> {
        let lhs: Tensor = self.act_fn.forward(&self.gate_proj.forward(xs)?)?;
        let rhs = self.up_proj.forward(xs)?;
        self.down_proj.forward(&(lhs * rhs)?)
    }
}

#[derive(Module, Clone, Debug)]
struct Attention {
    q_proj: nn::Linear,
    k_proj: nn::Linear,
    v_proj: nn::Linear,
    o_proj: nn::Linear,
    num_heads: usize,
    num_kv_heads: usize,
    num_kv_groups: usize,
    head_dim: usize,
    hidden_size: usize,
    rotary_emb: Arc<RotaryEmbedding>,
}

impl Attention {
    fn new(rotary_emb: Arc<RotaryEmbedding>, cfg: &Config) -> Result<Self> {
        let hidden_sz = cfg.hidden_size;
        let num_heads = cfg.num_attention_heads;
        let num_kv_heads = cfg.num_key_value_heads;
        let head_dim = hidden_sz / num_heads;
        Ok(Self {
            q_proj: nn::Linear::new(hidden_sz, num_heads * head_dim)?,
            k_proj: nn::Linear::new(hidden_sz, num_kv_heads * head_dim)?,
            v_proj: nn::Linear::new(hidden_sz, num_kv_heads * head_dim)?,
            o_proj: linear_no_bias(num_heads * head_dim, hidden_sz)?,
            num_heads,
            num_kv_heads,
            num_kv_groups: num_heads / num_kv_heads,
            head_dim,
            hidden_size: hidden_sz,
            rotary_emb,
        })
    }

    fn empty_kv_cache(&self, b_size: usize) -> Result<KvCache> {
        let empty = Tensor::zeros((b_size, self.num_kv_heads, 0, self.head_dim))?;
        let empty = empty.type_as(&self.k_proj.weight)?;
        Ok((empty.clone(), empty))
    }
}

#[trace]
impl Attention {
    fn forward(
        &self,
        xs: &Tensor,
        attention_mask: &Tensor,
        seqlen_offset: Int,
        kv_cache: KvCache,
    ) -> Result<(Tensor, KvCache)> {
        let (b_sz, q_len, _) = xs.dims3()?;
        let query_states = self.q_proj.forward(xs)?;
        let key_states = self.k_proj.forward(xs)?;
        let value_states = self.v_proj.forward(xs)?;

        let query_states = query_states
            .reshape((b_sz, q_len, self.num_heads, self.head_dim))?
            .transpose(1, 2)?;
        let key_states = key_states
            .reshape((b_sz, q_len, self.num_kv_heads, self.head_dim))?
            .transpose(1, 2)?;
        let value_states = value_states
            .reshape((b_sz, q_len, self.num_kv_heads, self.head_dim))?
            .transpose(1, 2)?;

        let (query_states, key_states) =
            self.rotary_emb
                .apply_rotary_emb_qkv(&query_states, &key_states, seqlen_offset)?;

        let (prev_k, prev_v) = kv_cache;
        let key_states = ops::cat(&[prev_k, key_states], 2)?;
        let value_states = ops::cat(&[prev_v, value_states], 2)?;
        let kv_cache = (key_states.clone(), value_states.clone());

        let key_states = key_states.repeat_interleave(self.num_kv_groups, 1)?;
        let value_states = value_states.repeat_interleave(self.num_kv_groups, 1)?;

        let scale = 1.0 / (self.head_dim as f64).sqrt();
        let attn_weights = (query_states.matmul(&key_states.transpose(2, 3)?)? * scale)?;
        let attn_weights = ops::softmax(&(attn_weights + attention_mask)?, -1)?;
        let attn_output = attn_weights
            .matmul(&value_states)?
            .transpose(1, 2)?
            .reshape((b_sz, q_len, self.hidden_size))?;
        Ok((self.o_proj.forward(&attn_output)?, kv_cache))
    }
}

#[derive(Module, Clone, Debug)]
struct DecoderLayer {
    self_attn: Attention,
    mlp: MLP,
    input_layernorm: nn::RMSNorm,
    post_attention_layernorm: nn::RMSNorm,
}

impl DecoderLayer {
    fn new(rotary_emb: Arc<RotaryEmbedding>, cfg: &Config) -> Result<Self> {
        let norm = || -> Result<_> { Ok(nn::RMSNorm::new(cfg.hidden_size)?.eps(cfg.rms_norm_eps)) };
        Ok(Self {
            self_attn: Attention::new(rotary_emb, cfg)?,
            mlp: MLP::new(cfg)?,
            input_layernorm: norm()?,
            post_attention_layernorm: norm()?,
        })
    }
}

#[trace]
impl DecoderLayer {
    fn forward(
        &self,
        xs: &Tensor,
        attention_mask: &Tensor,
        seqlen_offset: Int,
        kv_cache: KvCache,
    ) -> Result<(Tensor, KvCache)> {
        let residual = xs;
        let xs = self.input_layernorm.forward(xs)?;
        let (xs, kv_cache) =
            self.self_attn
                .forward(&xs, attention_mask, seqlen_offset, kv_cache)?;
        let xs = (xs + residual)?;
        let residual = &xs;
        let xs = self
            .mlp
            .forward(&self.post_attention_layernorm.forward(&xs)?)?;
        Ok(((residual + xs)?, kv_cache))
    }
}

#[derive(Module, Clone, Debug)]
pub struct Model {
    embed_tokens: nn::Embedding,
    layers: Vec<DecoderLayer>,
    norm: nn::RMSNorm,
    sliding_window: usize,
}

impl Model {
    pub fn new(cfg: &Config) -> Result<Self> {
        let rotary_emb = Arc::new(RotaryEmbedding::new(cfg)?);
        let layers = (0..cfg.num_hidden_layers)
            .map(|_| DecoderLayer::new(rotary_emb.clone(), cfg))
            .collect::<Result<_>>()?;
        Ok(Self {
            embed_tokens: nn::Embedding::new(cfg.vocab_size, cfg.hidden_size)?,
            layers,
            norm: nn::RMSNorm::new(cfg.hidden_size)?.eps(cfg.rms_norm_eps),
            sliding_window: cfg.sliding_window,
        })
    }

    /// What each layer has seen before the first word: nothing.
    pub fn empty_kv_caches(&self, b_size: usize) -> Result<Vec<KvCache>> {
        let caches = self.layers.iter();
        caches
            .map(|layer| layer.self_attn.empty_kv_cache(b_size))
            .collect()
    }
}

#[trace]
impl Model {
    fn prepare_causal_attention_mask(&self, xs: &Tensor, seqlen_offset: Int) -> Result<Tensor> {
        let (b_size, tgt_len, _) = xs.dims3()?;
        let visible = xs
            .new_ones((tgt_len, tgt_len), None)?
            .tril(0)?
            .triu(-(self.sliding_window as i64))?;
        let mask = xs
            .new_zeros((tgt_len, tgt_len), None)?
            .masked_fill(&(visible == 0.0)?, f64::NEG_INFINITY)?;
        let mask0 = xs.new_zeros((tgt_len, seqlen_offset), None)?;
        ops::cat(&[mask0, mask], -1)?.expand((b_size, 1, tgt_len, (tgt_len + seqlen_offset)?))
    }

    fn prepare_attention_mask(&self, xs: &Tensor, attn_mask: &Tensor) -> Result<Tensor> {
        let (b_sz, sql_len) = attn_mask.dims2()?;
        let mask = attn_mask
            .i((.., NewAxis, NewAxis, ..))?
            .expand((b_sz, 1, sql_len, sql_len))?;
        xs.new_zeros((b_sz, 1, sql_len, sql_len), None)?
            .masked_fill(&(mask == 0)?, f64::NEG_INFINITY)
    }

    pub fn forward(
        &self,
        input_ids: &Tensor,
        seqlen_offset: Int,
        attn_mask: Option<&Tensor>,
        kv_caches: Vec<KvCache>,
    ) -> Result<(Tensor, Vec<KvCache>)> {
        assert!(kv_caches.len() == self.layers.len(), "a cache per layer");
        let mut xs = self.embed_tokens.forward(input_ids)?;
        let attention_mask = match attn_mask {
            Some(mask) => self.prepare_attention_mask(&xs, mask)?,
            None => self.prepare_causal_attention_mask(&xs, seqlen_offset)?,
        };
        let mut updated = Vec::with_capacity(kv_caches.len());
        for (layer, kv_cache) in self.layers.iter().zip(kv_caches) {
            let (ys, kv_cache) = layer.forward(&xs, &attention_mask, seqlen_offset, kv_cache)?;
            xs = ys;
            updated.push(kv_cache);
        }
        Ok((self.norm.forward(&xs)?, updated))
    }
}

#[derive(Module, Clone, Debug)]
pub struct ModelForCausalLM {
    #[module(name = "model")]
    base_model: Model,
    lm_head: nn::Linear,
}

impl ModelForCausalLM {
    pub fn new(cfg: &Config) -> Result<Self> {
        let base_model = Model::new(cfg)?;
        let mut lm_head = linear_no_bias(cfg.hidden_size, cfg.vocab_size)?;
        if cfg.tie_word_embeddings {
            lm_head.weight = base_model.embed_tokens.weight.clone();
        }
        Ok(Self {
            base_model,
            lm_head,
        })
    }

    pub fn empty_kv_caches(&self, b_size: usize) -> Result<Vec<KvCache>> {
        self.base_model.empty_kv_caches(b_size)
    }
}

#[trace]
impl ModelForCausalLM {
    pub fn forward(
        &self,
        input_ids: &Tensor,
        seqlen_offset: Int,
        kv_caches: Vec<KvCache>,
    ) -> Result<(Tensor, Vec<KvCache>)> {
        let (_b_size, seq_len) = input_ids.dims2()?;
        let (xs, kv_caches) = self
            .base_model
            .forward(input_ids, seqlen_offset, None, kv_caches)?;
        let last = xs.narrow(1, (seq_len - 1)?, 1)?;
        Ok((self.lm_head.forward(&last)?, kv_caches))
    }
}
