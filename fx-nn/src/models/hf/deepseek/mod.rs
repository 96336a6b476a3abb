//! DeepSeek-V2 under the names of Hugging Face's `DeepseekV2ForCausalLM`: words, and the scores of the words after them.
//!
//! Keys and values of a word are made from one narrow vector; most layers have experts, of which each word uses a few.
//!
//! ```
//! use fx_nn::models::hf::decoder::Cache;
//! use fx_nn::models::hf::deepseek::{Config, DeepseekV2ForCausalLM};
//! use fx_nn::prelude::*;
//! let config = r#"{
//!     "model_type": "deepseek_v2", "vocab_size": 32, "hidden_size": 16, "intermediate_size": 24, "num_hidden_layers": 2,
//!     "num_attention_heads": 4, "q_lora_rank": null, "kv_lora_rank": 12, "qk_nope_head_dim": 6, "qk_rope_head_dim": 4,
//!     "v_head_dim": 5, "first_k_dense_replace": 1, "n_routed_experts": 6, "num_experts_per_tok": 2,
//!     "moe_intermediate_size": 8, "max_position_embeddings": 64
//! }"#;
//! let model = DeepseekV2ForCausalLM::new(&Config::from_json(config)?)?;
//! let gm = model.trace()?;
//! let prompt = Tensor::from_vec(vec![3i64, 1, 4], (1, 3))?;
//! let (scores, caches): (Tensor, Vec<Cache>) = gm.forward((&prompt, model.caches(1)?))?;
//! let word = scores.i((.., -1))?.argmax(-1, false)?.unsqueeze(1)?;
//! let (next, _): (Tensor, Vec<Cache>) = gm.forward((&word, caches))?;
//! assert_eq!((scores.dims()?, next.dims()?), (&[1, 3, 32][..], &[1, 1, 32][..]));
//!
//! let odd = config.replace("64", "64, \"topk_method\": \"noaux_tc\", \"norm_topk_prob\": true");
//! let error = Config::from_json(&odd).unwrap_err().to_string();
//! assert!(error.contains("`topk_method` is `noaux_tc`: supported are greedy and group_limited_greedy"), "{error}");
//! assert!(error.contains("`norm_topk_prob` is true: supported is false"), "{error}");
//! # Ok::<(), fx_nn::Error>(())
//! ```

mod attention;
mod config;
mod layer;

use std::path::Path;

use fx_core::prelude::*;

pub use attention::Attention;
pub use config::{Config, ExpertsConfig, Groups};
pub use layer::{FeedForward, Layer, Moe, Router};

use attention::Positions;

use super::config::{Fields, loaded};
use super::decoder::{Angles, Cache, empty_caches, stacked};
use super::norm::Norm;
use crate::tensor::Tensor;
use crate::weights::Checkpoint;
use crate::{nn, ops};

/// The layers between the embedding and the head.
#[derive(Module, Clone, Debug)]
pub struct DeepseekV2Model {
    /// Of words.
    pub embed_tokens: nn::Embedding,
    /// The layers.
    pub layers: Vec<Layer>,
    /// After the last layer.
    pub norm: Norm,
    angles: Angles,
}

fn angles(config: &Config) -> Result<Angles> {
    Angles::new(
        config.max_position_embeddings,
        config.rope_theta,
        config.qk_rope_head_dim,
        &config.rope_scaling,
    )
}

impl DeepseekV2Model {
    fn new(config: &Config) -> Result<Self> {
        let layers = (0..config.num_hidden_layers).map(|at| Layer::new(config, at));
        Ok(DeepseekV2Model {
            embed_tokens: nn::Embedding::new(config.vocab_size, config.hidden_size)?,
            layers: layers.collect::<Result<_>>()?,
            norm: Norm::new(config.hidden_size, config.rms_norm_eps)?,
            angles: angles(config)?,
        })
    }
}

#[trace(path = "fx_nn::models::hf::deepseek::DeepseekV2Model")]
impl DeepseekV2Model {
    fn forward(&self, tokens: &Tensor, caches: Vec<Cache>) -> Result<(Tensor, Vec<Cache>)> {
        let seen = match caches.first() {
            Some(cache) => cache.k.size(2)?,
            None => 0.into(),
        };
        let total = (seen + tokens.size(1)?)?;
        let queries = Tensor::arange(seen, total)?.unsqueeze(1)?;
        let keys = Tensor::arange(0, total)?.unsqueeze(0)?;
        let at = Positions {
            cos: self.angles.cos.i(seen..total)?,
            sin: self.angles.sin.i(seen..total)?,
            mask: queries.ge(&keys)?,
        };
        let mut x = self.embed_tokens.forward(tokens)?;
        let mut updated = Vec::new();
        for (layer, cache) in self.layers.iter().zip(caches) {
            let (y, cache) = layer.forward(&x, at.clone(), cache)?;
            x = y;
            updated.push(cache);
        }
        Ok((self.norm.forward(&x)?, updated))
    }
}

/// A DeepSeek-V2 with a head that scores the next word.
#[derive(Module, Clone, Debug)]
pub struct DeepseekV2ForCausalLM {
    /// The decoder.
    pub model: DeepseekV2Model,
    /// The head; `None` if it shares the embedding's weights.
    pub lm_head: Option<nn::Linear>,
    cache: CacheShape,
}

/// The sizes of a cache's tensors.
#[derive(Module, Clone, Copy, Debug)]
struct CacheShape {
    heads: usize,
    keys: usize,
    values: usize,
}

impl DeepseekV2ForCausalLM {
    /// A model of a configuration, in `float32`.
    ///
    /// # Errors
    /// Returns an error if it does not fit into memory.
    pub fn new(config: &Config) -> Result<Self> {
        let head = || -> Result<_> {
            Ok(nn::Linear::new(config.hidden_size, config.vocab_size)?.bias(false))
        };
        Ok(DeepseekV2ForCausalLM {
            model: DeepseekV2Model::new(config)?,
            lm_head: (!config.tie_word_embeddings).then(head).transpose()?,
            cache: CacheShape {
                heads: config.num_attention_heads,
                keys: config.qk_head_dim(),
                values: config.v_head_dim,
            },
        })
    }

    /// The model of a Hugging Face folder with `config.json` and weights, in the type that it was
    /// saved in, frozen for inference.
    ///
    /// # Errors
    /// Returns all problems of the configuration, or of the weights; see [`Checkpoint`].
    pub fn from_folder(folder: impl AsRef<Path>) -> Result<Self> {
        let folder = folder.as_ref();
        let config = Fields::of_folder(folder, Config::from_json)?;
        // A tied head may be in the file too.
        let is_tied = config.tie_word_embeddings;
        let checkpoint = Checkpoint::open(folder)?;
        let checkpoint = checkpoint.retain(|name| !(is_tied && name == "lm_head.weight"));
        let layers = config.first_k_dense_replace..config.num_hidden_layers;
        let checkpoint = stacked(checkpoint, layers, config.experts.n_routed_experts)?;
        DeepseekV2ForCausalLM::load(&config, &checkpoint)
    }

    /// The model of a configuration with the weights of a checkpoint, in which all experts of a layer are one tensor, frozen
    /// for inference.
    ///
    /// # Errors
    /// Returns all problems of the weights.
    pub fn load(config: &Config, checkpoint: &Checkpoint) -> Result<Self> {
        let new = || DeepseekV2ForCausalLM::new(config);
        let mut model = loaded(new, config.dtype, checkpoint)?;
        // In single precision, whatever the weights are.
        model.model.angles = angles(config)?;
        Ok(model)
    }

    /// The caches before the first word: empty, for each layer.
    ///
    /// # Errors
    /// Returns no errors of its own.
    pub fn caches(&self, batch: usize) -> Result<Vec<Cache>> {
        let dtype = self.model.norm.weight.dtype()?;
        let CacheShape {
            heads,
            keys,
            values,
        } = self.cache;
        empty_caches(
            self.model.layers.len(),
            [batch, heads],
            [keys, values],
            dtype,
        )
    }

    /// The traced model: one graph for prompts of any length and for the words after them.
    ///
    /// # Errors
    /// Returns the errors of tracing.
    pub fn trace(&self) -> Result<GraphModule> {
        Trace::new(self)
            .concrete("caches", Cache::traced(self.model.layers.len()))
            .graph_module()
    }
}

#[trace(path = "fx_nn::models::hf::deepseek::DeepseekV2ForCausalLM")]
impl DeepseekV2ForCausalLM {
    /// Scores `[N, T, vocab_size]` of the word after each of `tokens` `[N, T]`, and the caches so
    /// far.
    ///
    /// # Errors
    /// Returns an error if there are more positions than the model has.
    pub fn forward(&self, tokens: &Tensor, caches: Vec<Cache>) -> Result<(Tensor, Vec<Cache>)> {
        let (x, caches) = self.model.forward(tokens, caches)?;
        let scores = match &self.lm_head {
            Some(head) => head.forward(&x)?,
            None => ops::linear(&x, &self.model.embed_tokens.weight, None)?,
        };
        Ok((scores, caches))
    }
}
