//! GPT-2 with a cache, under the names and with the weights of Hugging Face's `GPT2LMHeadModel`.
//!
//! [`gpt2`](super::gpt2) is the same network without a cache and with weights `[out, in]`. As in
//! [`decoder`](super::decoder), one traced graph reads a prompt and writes word after word.
//!
//! ```
//! use fx_nn::models::hf::decoder::Cache;
//! use fx_nn::models::hf::gpt2::{Config, GPT2LMHeadModel};
//! use fx_nn::prelude::*;
//! let config = r#"{
//!     "model_type": "gpt2", "vocab_size": 32, "n_positions": 64, "n_embd": 16, "n_layer": 2, "n_head": 4
//! }"#;
//! let model = GPT2LMHeadModel::new(&Config::from_json(config)?)?;
//! let gm = model.trace()?;
//! let prompt = Tensor::from_vec(vec![3i64, 1, 4], (1, 3))?;
//! let (scores, caches): (Tensor, Vec<Cache>) = gm.forward((&prompt, model.caches(1)?))?;
//! let word = scores.i((.., -1))?.argmax(-1, false)?.unsqueeze(1)?;
//! let (next, _): (Tensor, Vec<Cache>) = gm.forward((&word, caches))?;
//! assert_eq!((scores.dims()?, next.dims()?), (&[1, 3, 32][..], &[1, 1, 32][..]));
//!
//! let odd = config.replace("\"n_head\": 4", "\"n_head\": 3, \"add_cross_attention\": true");
//! let error = Config::from_json(&odd).unwrap_err().to_string();
//! assert!(error.contains("`add_cross_attention` is true: supported is false"), "{error}");
//! assert!(error.contains("3 heads do not divide a width of 16"), "{error}");
//! # Ok::<(), fx_nn::Error>(())
//! ```

use std::path::Path;

use fx_core::prelude::*;
use fx_core::value::DType;

use super::activation::Activation;
use super::config::{Fields, loaded};
use super::decoder::{Cache, empty_caches};
use super::encoder::{heads_divide, layer_norm};
use crate::tensor::Tensor;
use crate::weights::Checkpoint;
use crate::{nn, ops};

/// The configuration of a GPT-2, as in its `config.json`.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Config {
    /// Number of words in the vocabulary.
    pub vocab_size: usize,
    /// Number of positions.
    pub n_positions: usize,
    /// The width between layers.
    pub n_embd: usize,
    /// Number of layers.
    pub n_layer: usize,
    /// Number of attention heads.
    pub n_head: usize,
    /// The inner width of a layer's `mlp`.
    pub n_inner: usize,
    /// The activation inside an `mlp`.
    pub activation_function: Activation,
    /// The epsilon that layer norms add to the variance.
    pub layer_norm_epsilon: f64,
    /// Whether scores are divided by the root of a head's width.
    pub scale_attn_weights: bool,
    /// Whether scores are divided by the number of the layer, the first being 1.
    pub scale_attn_by_inverse_layer_idx: bool,
    /// Whether the head's weights are the embedding's.
    pub tie_word_embeddings: bool,
    /// The type to load the checkpoint in.
    pub dtype: DType,
}

impl Config {
    /// Reads a `config.json`.
    ///
    /// # Errors
    /// Returns an error if a field is missing, has the wrong kind or an unsupported value, with a
    /// line for each.
    pub fn from_json(text: &str) -> Result<Self> {
        let mut fields = Fields::parse(text)?;
        fields.only("model_type", "gpt2");
        fields.only_false("add_cross_attention");
        let n_embd = fields.size("n_embd");
        let config = Config {
            vocab_size: fields.size("vocab_size"),
            n_positions: fields.size("n_positions"),
            n_embd,
            n_layer: fields.size("n_layer"),
            n_head: fields.size("n_head"),
            n_inner: fields.size_or("n_inner", n_embd.saturating_mul(4)),
            activation_function: Activation::of(&mut fields, "activation_function", "gelu_new"),
            layer_norm_epsilon: fields.number_or("layer_norm_epsilon", 1e-5),
            scale_attn_weights: fields.flag_or("scale_attn_weights", true),
            scale_attn_by_inverse_layer_idx: fields
                .flag_or("scale_attn_by_inverse_layer_idx", false),
            tie_word_embeddings: fields.flag_or("tie_word_embeddings", true),
            dtype: fields.dtype(),
        };
        heads_divide(&mut fields, config.n_head, n_embd);
        fields.finish()?;
        Ok(config)
    }
}

/// A linear layer whose weights are `[inputs, outputs]`.
#[derive(Module, Clone, Debug)]
pub struct Conv1D {
    /// `[inputs, outputs]`.
    pub weight: Tensor,
    /// `[outputs]`.
    pub bias: Tensor,
}

impl Conv1D {
    fn new(inputs: usize, outputs: usize) -> Result<Self> {
        Ok(Conv1D {
            // The weights of a layer with swapped sizes have this shape.
            weight: nn::Linear::new(outputs, inputs)?.weight,
            bias: Tensor::zeros(outputs)?.into_parameter()?,
        })
    }
}

#[trace(path = "fx_nn::models::hf::gpt2::Conv1D")]
impl Conv1D {
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        ops::linear(x, &self.weight.t()?, Some(&self.bias))
    }
}

/// Attention of each position to itself and those before it.
#[derive(Module, Clone, Debug)]
pub struct Attention {
    /// Queries, keys and values.
    pub c_attn: Conv1D,
    /// Over the heads.
    pub c_proj: Conv1D,
    head_dim: usize,
    /// The factor of scores.
    scale: f64,
}

#[trace(path = "fx_nn::models::hf::gpt2::Attention")]
impl Attention {
    fn forward(&self, x: &Tensor, mask: &Tensor, cache: Cache) -> Result<(Tensor, Cache)> {
        let [n, t, _] = x.shape()?.unpack()?;
        let heads = |x: Tensor| x.reshape((n, t, -1, self.head_dim))?.transpose(1, 2);
        let [q, k, v] = self.c_attn.forward(x)?.chunk(3, -1)?.unpack()?;
        let q = heads(q)?;
        let k = ops::cat(&[cache.k, heads(k)?], 2)?;
        let v = ops::cat(&[cache.v, heads(v)?], 2)?;
        let scale = Some(self.scale);
        let y =
            ops::scaled_dot_product_attention(&q, &k, &v, Some(mask), 0.0, false, scale, false)?;
        let y = y.transpose(1, 2)?.reshape((n, t, -1))?;
        Ok((self.c_proj.forward(&y)?, Cache { k, v }))
    }
}

/// Two linear layers, with the activation between them.
#[derive(Module, Clone, Debug)]
pub struct Mlp {
    /// To the inner width.
    pub c_fc: Conv1D,
    /// And back.
    pub c_proj: Conv1D,
    activation: Activation,
}

#[trace(path = "fx_nn::models::hf::gpt2::Mlp")]
impl Mlp {
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let x = self.activation.apply(&self.c_fc.forward(x)?)?;
        self.c_proj.forward(&x)
    }
}

/// Attention and `mlp`, each after a norm and added to its input.
#[derive(Module, Clone, Debug)]
pub struct Block {
    /// Before the attention.
    pub ln_1: nn::LayerNorm,
    /// The attention.
    pub attn: Attention,
    /// Before the `mlp`.
    pub ln_2: nn::LayerNorm,
    /// The linear layers.
    pub mlp: Mlp,
}

impl Block {
    fn new(config: &Config, at: usize) -> Result<Self> {
        let (width, eps) = (config.n_embd, config.layer_norm_epsilon);
        let head_dim = (width / config.n_head).max(1);
        let mut scale = match config.scale_attn_weights {
            true => 1.0 / (head_dim as f64).sqrt(),
            false => 1.0,
        };
        if config.scale_attn_by_inverse_layer_idx {
            scale /= (at + 1) as f64;
        }
        Ok(Block {
            ln_1: layer_norm(width, eps)?,
            attn: Attention {
                c_attn: Conv1D::new(width, 3 * width)?,
                c_proj: Conv1D::new(width, width)?,
                head_dim,
                scale,
            },
            ln_2: layer_norm(width, eps)?,
            mlp: Mlp {
                c_fc: Conv1D::new(width, config.n_inner)?,
                c_proj: Conv1D::new(config.n_inner, width)?,
                activation: config.activation_function,
            },
        })
    }
}

#[trace(path = "fx_nn::models::hf::gpt2::Block")]
impl Block {
    fn forward(&self, x: &Tensor, mask: &Tensor, cache: Cache) -> Result<(Tensor, Cache)> {
        let y = self.ln_1.forward(x)?;
        let (y, cache) = self.attn.forward(&y, mask, cache)?;
        let x = (y + x)?;
        let y = self.mlp.forward(&self.ln_2.forward(&x)?)?;
        Ok(((x + y)?, cache))
    }
}

/// The layers between the embeddings and the head.
#[derive(Module, Clone, Debug)]
pub struct GPT2Model {
    /// Of words.
    pub wte: nn::Embedding,
    /// Of positions.
    pub wpe: nn::Embedding,
    /// The layers.
    pub h: Vec<Block>,
    /// After the last layer.
    pub ln_f: nn::LayerNorm,
}

#[trace(path = "fx_nn::models::hf::gpt2::GPT2Model")]
impl GPT2Model {
    fn forward(&self, tokens: &Tensor, caches: Vec<Cache>) -> Result<(Tensor, Vec<Cache>)> {
        let seen = match caches.first() {
            Some(cache) => cache.k.size(2)?,
            None => 0.into(),
        };
        let total = (seen + tokens.size(1)?)?;
        let positions = Tensor::arange(seen, total)?;
        let keys = Tensor::arange(0, total)?.unsqueeze(0)?;
        let mask = positions.unsqueeze(1)?.ge(&keys)?;
        let positions = self.wpe.forward(&positions.unsqueeze(0)?)?;
        let mut x = (self.wte.forward(tokens)? + positions)?;
        let mut updated = Vec::new();
        for (block, cache) in self.h.iter().zip(caches) {
            let (y, cache) = block.forward(&x, &mask, cache)?;
            x = y;
            updated.push(cache);
        }
        Ok((self.ln_f.forward(&x)?, updated))
    }
}

/// A GPT-2 with a head that scores the next word.
#[derive(Module, Clone, Debug)]
pub struct GPT2LMHeadModel {
    /// The layers.
    pub transformer: GPT2Model,
    /// The head; `None` if it shares the embedding's weights.
    pub lm_head: Option<nn::Linear>,
    heads: usize,
    head_dim: usize,
}

impl GPT2LMHeadModel {
    /// A model of a configuration, in `float32`.
    ///
    /// # Errors
    /// Returns an error if it does not fit into memory.
    pub fn new(config: &Config) -> Result<Self> {
        let width = config.n_embd;
        let head = || -> Result<_> { Ok(nn::Linear::new(width, config.vocab_size)?.bias(false)) };
        Ok(GPT2LMHeadModel {
            transformer: GPT2Model {
                wte: nn::Embedding::new(config.vocab_size, width)?,
                wpe: nn::Embedding::new(config.n_positions, width)?,
                h: (0..config.n_layer)
                    .map(|at| Block::new(config, at))
                    .collect::<Result<_>>()?,
                ln_f: layer_norm(width, config.layer_norm_epsilon)?,
            },
            lm_head: (!config.tie_word_embeddings).then(head).transpose()?,
            heads: config.n_head,
            head_dim: (width / config.n_head).max(1),
        })
    }

    /// The model of a Hugging Face folder with `config.json` and weights, in the type that it was
    /// saved in, frozen for inference. Weights may be those of a `GPT2Model`, without
    /// `transformer.` before their names; masks that old checkpoints have among them are left out.
    ///
    /// # Errors
    /// Returns all problems of the configuration, or of the weights; see [`Checkpoint`].
    pub fn from_folder(folder: impl AsRef<Path>) -> Result<Self> {
        let folder = folder.as_ref();
        let config = Fields::of_folder(folder, Config::from_json)?;
        let checkpoint = Checkpoint::open(folder)?;
        let is_bare = !checkpoint
            .names()
            .any(|name| name.starts_with("transformer."));
        let is_tied = config.tie_word_embeddings;
        let checkpoint = checkpoint
            .retain(|name| {
                let is_mask = name.ends_with(".attn.bias") || name.ends_with(".attn.masked_bias");
                let is_twice = is_tied && name == "lm_head.weight";
                !is_mask && !is_twice
            })
            .rename(|name| match is_bare && name != "lm_head.weight" {
                true => format!("transformer.{name}"),
                false => name.to_string(),
            })?;
        GPT2LMHeadModel::load(&config, &checkpoint)
    }

    /// The model of a configuration with the weights of a checkpoint, frozen for inference.
    ///
    /// # Errors
    /// Returns all problems of the weights.
    pub fn load(config: &Config, checkpoint: &Checkpoint) -> Result<Self> {
        loaded(|| GPT2LMHeadModel::new(config), config.dtype, checkpoint)
    }

    /// The caches before the first word: empty, for each layer.
    ///
    /// # Errors
    /// Returns no errors of its own.
    pub fn caches(&self, batch: usize) -> Result<Vec<Cache>> {
        let dtype = self.transformer.wte.weight.dtype()?;
        let layers = self.transformer.h.len();
        empty_caches(layers, [batch, self.heads], [self.head_dim; 2], dtype)
    }

    /// The traced model: one graph for prompts of any length and for the words after them.
    ///
    /// # Errors
    /// Returns the errors of tracing.
    pub fn trace(&self) -> Result<GraphModule> {
        Trace::new(self)
            .concrete("caches", Cache::traced(self.transformer.h.len()))
            .graph_module()
    }
}

#[trace(path = "fx_nn::models::hf::gpt2::GPT2LMHeadModel")]
impl GPT2LMHeadModel {
    /// Scores `[N, T, vocab_size]` of the word after each of `tokens` `[N, T]`, and the caches so
    /// far.
    ///
    /// # Errors
    /// Returns an error if there are more positions than the model has.
    pub fn forward(&self, tokens: &Tensor, caches: Vec<Cache>) -> Result<(Tensor, Vec<Cache>)> {
        let (x, caches) = self.transformer.forward(tokens, caches)?;
        let scores = match &self.lm_head {
            Some(head) => head.forward(&x)?,
            None => ops::linear(&x, &self.transformer.wte.weight, None)?,
        };
        Ok((scores, caches))
    }
}
