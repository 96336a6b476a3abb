//! Decoders with rotary positions: Llama, Mistral, Qwen2 and Gemma, under the names of Hugging Face's checkpoints.
//!
//! One forward reads a prompt and writes word after word: the cache is an argument and a result of
//! it, so that one traced graph does both.
//!
//! ```
//! use fx_nn::models::hf::decoder::{CausalLM, Config};
//! use fx_nn::prelude::*;
//! let config = Config::from_json(r#"{
//!     "model_type": "qwen2", "vocab_size": 32, "hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 2,
//!     "num_attention_heads": 4, "num_key_value_heads": 2, "max_position_embeddings": 64, "tie_word_embeddings": true
//! }"#)?;
//! let model = CausalLM::new(&config)?;
//! let gm = model.trace()?;
//! let prompt = Tensor::from_vec(vec![3i64, 1, 4], (1, 3))?;
//! let (scores, caches): (Tensor, Vec<fx_nn::models::hf::decoder::Cache>) = gm.forward((&prompt, model.caches(1)?))?;
//! let word = scores.i((.., -1))?.argmax(-1, false)?.unsqueeze(1)?;
//! let (next, _): (Tensor, Vec<fx_nn::models::hf::decoder::Cache>) = gm.forward((&word, caches))?;
//! assert_eq!((scores.dims()?, next.dims()?), (&[1, 3, 32][..], &[1, 1, 32][..]));
//! # Ok::<(), fx_nn::Error>(())
//! ```

use std::path::Path;

use fx_core::ir::Argument;
use fx_core::prelude::*;
use fx_core::value::DType;
use serde_json::Value as Json;

use super::activation::Activation;
use super::config::{Fields, loaded};
use crate::tensor::Tensor;
use crate::weights::Checkpoint;
use crate::{nn, ops};

/// The configuration of a decoder, as in its `config.json`.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Config {
    /// Number of words in the vocabulary.
    pub vocab_size: usize,
    /// The width between layers.
    pub hidden_size: usize,
    /// The inner width of a layer's `mlp`.
    pub intermediate_size: usize,
    /// Number of layers.
    pub num_hidden_layers: usize,
    /// Number of query heads.
    pub num_attention_heads: usize,
    /// Number of key and value heads, each shared by several query heads.
    pub num_key_value_heads: usize,
    /// The width of a head.
    pub head_dim: usize,
    /// Number of positions.
    pub max_position_embeddings: usize,
    /// The epsilon that norms add to the mean square.
    pub rms_norm_eps: f64,
    /// The base of the rotary angles.
    pub rope_theta: f64,
    /// How angles are scaled for longer texts.
    pub rope_scaling: RopeScaling,
    /// What each of the `head_dim / 2` rotary frequencies is divided by too, where a file lists it.
    pub rope_factors: Option<Vec<f64>>,
    /// Whether the head's weights are the embedding's.
    pub tie_word_embeddings: bool,
    /// Whether queries, keys and values have a bias.
    pub qkv_bias: bool,
    /// Whether the attention's results have a bias.
    pub out_bias: bool,
    /// Whether the layers of `mlp` have a bias.
    pub mlp_bias: bool,
    /// How many positions each layer sees, including its own; `None` for all.
    pub windows: Vec<Option<usize>>,
    /// The activation of the gate of an `mlp`.
    pub activation: Activation,
    /// Whether embeddings are multiplied by the root of their width and norms by one more than their weight: Gemma.
    pub is_gemma: bool,
    /// The type to load the checkpoint in.
    pub dtype: DType,
}

/// How rotary angles are scaled.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub enum RopeScaling {
    /// Unscaled.
    None,
    /// All angles by a factor.
    Linear(f64),
    /// As Llama 3 does: slow angles by a factor, quick ones not, those between in part.
    Llama3 {
        /// The divisor of slow angles.
        factor: f64,
        /// The number of turns above which an angle is quick.
        high_freq_factor: f64,
        /// The number of turns below which an angle is slow.
        low_freq_factor: f64,
        /// The length in which turns are counted.
        original_max_position_embeddings: f64,
    },
}

impl Config {
    /// Reads a `config.json`.
    ///
    /// # Errors
    /// Returns an error if a field is missing, has the wrong kind or an unsupported value, with a
    /// line for each.
    pub fn from_json(text: &str) -> Result<Self> {
        let mut fields = Fields::parse(text)?;
        let family = fields.text_or("model_type", None);
        if !["llama", "mistral", "qwen2", "gemma"].contains(&&*family) {
            fields.problem(format!(
                "`model_type` is `{family}`: supported are llama, mistral, qwen2 and gemma"
            ));
        }
        let (is_gemma, is_qwen) = (family == "gemma", family == "qwen2");
        let hidden_size = fields.size("hidden_size");
        let num_attention_heads = fields.size("num_attention_heads");
        let num_hidden_layers = fields.size("num_hidden_layers");
        let default = match is_gemma {
            true => "gelu_pytorch_tanh",
            false => "silu",
        };
        let name = fields.get("hidden_activation").map(|_| "hidden_activation");
        let activation = Activation::of(&mut fields, name.unwrap_or("hidden_act"), default);
        let activation = match activation {
            // Gemma's first configurations say `gelu` and mean this.
            Activation::GELU if is_gemma => Activation::GELUTanh,
            other => other,
        };
        let bias = fields.flag_or("attention_bias", is_qwen);
        let config = Config {
            vocab_size: fields.size("vocab_size"),
            hidden_size,
            intermediate_size: fields.size("intermediate_size"),
            num_hidden_layers,
            num_attention_heads,
            num_key_value_heads: fields.size_or("num_key_value_heads", num_attention_heads),
            head_dim: fields.size_or("head_dim", (hidden_size / num_attention_heads).max(1)),
            max_position_embeddings: fields.size_or("max_position_embeddings", 2048),
            rms_norm_eps: fields.number_or("rms_norm_eps", 1e-6),
            rope_theta: rope_theta(&mut fields),
            rope_scaling: rope_scaling(&mut fields),
            rope_factors: None,
            tie_word_embeddings: fields.flag_or("tie_word_embeddings", is_gemma),
            qkv_bias: bias,
            out_bias: bias && !is_qwen,
            mlp_bias: fields.flag_or("mlp_bias", false),
            windows: windows(&mut fields, is_qwen, num_hidden_layers),
            activation,
            is_gemma,
            dtype: fields.dtype(),
        };
        if !num_attention_heads.is_multiple_of(config.num_key_value_heads) {
            fields.problem(format!(
                "`num_key_value_heads` is {}, which does not divide the {num_attention_heads} heads of queries",
                config.num_key_value_heads
            ));
        }
        if !config.head_dim.is_multiple_of(2) {
            fields.problem(format!(
                "`head_dim` is {}, and no even number",
                config.head_dim
            ));
        }
        fields.finish()?;
        Ok(config)
    }
}

/// How many positions each layer sees. Newer files list it layer by layer.
fn windows(fields: &mut Fields, is_qwen: bool, layers: usize) -> Vec<Option<usize>> {
    let is_used = !is_qwen || fields.flag_or("use_sliding_window", false);
    let window = match fields.get("sliding_window") {
        Some(_) if is_used => Some(fields.size("sliding_window")),
        _ => None,
    };
    if let Some(types) = fields.get("layer_types").cloned() {
        let types = types.as_array().map(Vec::as_slice).unwrap_or_default();
        if types.len() != layers {
            fields.problem(format!(
                "`layer_types` has {} entries, and there are {layers} layers",
                types.len()
            ));
        }
        let of = |kind: &Json| match kind.as_str() {
            Some("sliding_attention") => window,
            _ => None,
        };
        return types.iter().map(of).collect();
    }
    let first = match is_qwen {
        true => fields.size_or("max_window_layers", layers),
        false => 0,
    };
    (0..layers)
        .map(|at| window.filter(|_| at >= first))
        .collect()
}

/// The part of a configuration in which newer files have the rotary fields.
fn rope<'f>(fields: &'f Fields, name: &str) -> Option<&'f Json> {
    let inside = |part: &str| fields.get(part)?.get(name).filter(|value| !value.is_null());
    inside("rope_parameters").or_else(|| inside("rope_scaling"))
}

fn rope_theta(fields: &mut Fields) -> f64 {
    match rope(fields, "rope_theta").and_then(Json::as_f64) {
        Some(theta) if theta > 0.0 => theta,
        _ => fields.number_or("rope_theta", 10000.0),
    }
}

fn rope_scaling(fields: &mut Fields) -> RopeScaling {
    let name = rope(fields, "rope_type").or_else(|| rope(fields, "type"));
    let name = name.and_then(Json::as_str).unwrap_or("default").to_string();
    let mut number = |what: &str| {
        let found = rope(fields, what).and_then(Json::as_f64);
        let found = found.filter(|x| *x > 0.0 && x.is_finite());
        if found.is_none() {
            fields.problem(format!(
                "the rotary scaling `{name}` needs a number `{what}` above 0"
            ));
        }
        found.unwrap_or(1.0)
    };
    match name.as_str() {
        "default" => RopeScaling::None,
        "linear" => RopeScaling::Linear(number("factor")),
        "llama3" => RopeScaling::Llama3 {
            factor: number("factor"),
            high_freq_factor: number("high_freq_factor"),
            low_freq_factor: number("low_freq_factor"),
            original_max_position_embeddings: number("original_max_position_embeddings"),
        },
        other => {
            fields.problem(format!(
                "the rotary scaling is `{other}`: supported are default, linear and llama3"
            ));
            RopeScaling::None
        }
    }
}

/// A layer's cache: keys and values `[N, key_value_heads, length, head_dim]`.
#[derive(Tree, Clone, Debug)]
pub struct Cache {
    /// Keys, rotated.
    pub k: Tensor,
    /// Values.
    pub v: Tensor,
}

/// The tables that all layers need for the positions of a forward.
#[derive(Tree, Clone, Debug)]
struct Positions {
    /// `[T, head_dim / 2]`.
    cos: Tensor,
    sin: Tensor,
    /// Whether a query sees a key, `[T, S]`.
    mask: Tensor,
}

/// x rotated by its position: the halves of each head are real and imaginary parts.
fn rotate(x: &Tensor, cos: &Tensor, sin: &Tensor) -> Result<Tensor> {
    let [a, b] = x.chunk(2, -1)?.unpack()?;
    let real = ((&a * cos)? - (&b * sin)?)?;
    let imaginary = ((&b * cos)? + (&a * sin)?)?;
    ops::cat(&[real, imaginary], -1)
}

/// Attention of grouped heads.
#[derive(Module, Clone, Debug)]
pub struct Attention {
    /// Queries.
    pub q_proj: nn::Linear,
    /// Keys.
    pub k_proj: nn::Linear,
    /// Values.
    pub v_proj: nn::Linear,
    /// Results.
    pub o_proj: nn::Linear,
    head_dim: usize,
}

impl Attention {
    fn new(config: &Config) -> Result<Self> {
        let (width, head_dim) = (config.hidden_size, config.head_dim);
        let queries = config.num_attention_heads * head_dim;
        let keys = config.num_key_value_heads * head_dim;
        Ok(Attention {
            q_proj: nn::Linear::new(width, queries)?.bias(config.qkv_bias),
            k_proj: nn::Linear::new(width, keys)?.bias(config.qkv_bias),
            v_proj: nn::Linear::new(width, keys)?.bias(config.qkv_bias),
            o_proj: nn::Linear::new(queries, width)?.bias(config.out_bias),
            head_dim,
        })
    }
}

#[trace(path = "fx_nn::models::hf::decoder::Attention")]
impl Attention {
    fn forward(&self, x: &Tensor, at: Positions, cache: Cache) -> Result<(Tensor, Cache)> {
        let [n, t, _] = x.shape()?.unpack()?;
        let heads = |x: Tensor| x.view((n, t, -1, self.head_dim))?.transpose(1, 2);
        let q = rotate(&heads(self.q_proj.forward(x)?)?, &at.cos, &at.sin)?;
        let k = rotate(&heads(self.k_proj.forward(x)?)?, &at.cos, &at.sin)?;
        let v = heads(self.v_proj.forward(x)?)?;
        let k = ops::cat(&[cache.k, k], 2)?;
        let v = ops::cat(&[cache.v, v], 2)?;
        let y =
            ops::scaled_dot_product_attention(&q, &k, &v, Some(&at.mask), 0.0, false, None, true)?;
        let y = y.transpose(1, 2)?.reshape((n, t, -1))?;
        Ok((self.o_proj.forward(&y)?, Cache { k, v }))
    }
}

/// A gated layer: the activated gate times `up_proj`, through `down_proj`.
#[derive(Module, Clone, Debug)]
pub struct Mlp {
    /// The gate.
    pub gate_proj: nn::Linear,
    /// The gated values.
    pub up_proj: nn::Linear,
    /// Back to the width between layers.
    pub down_proj: nn::Linear,
    activation: Activation,
}

impl Mlp {
    fn new(config: &Config) -> Result<Self> {
        let (width, inside) = (config.hidden_size, config.intermediate_size);
        Ok(Mlp {
            gate_proj: nn::Linear::new(width, inside)?.bias(config.mlp_bias),
            up_proj: nn::Linear::new(width, inside)?.bias(config.mlp_bias),
            down_proj: nn::Linear::new(inside, width)?.bias(config.mlp_bias),
            activation: config.activation,
        })
    }
}

#[trace(path = "fx_nn::models::hf::decoder::Mlp")]
impl Mlp {
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let gate = self.gate_proj.forward(x)?;
        let gate = self.activation.apply(&gate)?;
        self.down_proj.forward(&(gate * self.up_proj.forward(x)?)?)
    }
}

/// Attention and `mlp`, each after a norm and added to its input.
#[derive(Module, Clone, Debug)]
pub struct Layer {
    /// Before the attention.
    pub input_layernorm: Norm,
    /// The attention.
    pub self_attn: Attention,
    /// Before the `mlp`.
    pub post_attention_layernorm: Norm,
    /// The `mlp`.
    pub mlp: Mlp,
}

#[trace(path = "fx_nn::models::hf::decoder::Layer")]
impl Layer {
    fn forward(&self, x: &Tensor, at: Positions, cache: Cache) -> Result<(Tensor, Cache)> {
        let h = self.input_layernorm.forward(x)?;
        let (h, cache) = self.self_attn.forward(&h, at, cache)?;
        let x = (x + h)?;
        let h = self.post_attention_layernorm.forward(&x)?;
        Ok(((x + self.mlp.forward(&h)?)?, cache))
    }
}

/// A norm by the mean square, times its weight, or one more than its weight: Gemma's.
#[derive(Module, Clone, Debug)]
pub struct Norm {
    /// `[hidden_size]`.
    pub weight: Tensor,
    hidden_size: usize,
    eps: f64,
    is_gemma: bool,
}

impl Norm {
    fn new(config: &Config) -> Result<Self> {
        Ok(Norm {
            weight: Tensor::ones(config.hidden_size)?.into_parameter()?,
            hidden_size: config.hidden_size,
            eps: config.rms_norm_eps,
            is_gemma: config.is_gemma,
        })
    }
}

#[trace(path = "fx_nn::models::hf::decoder::Norm")]
impl Norm {
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        // The mean square of halves is computed in single precision, as Hugging Face's models do.
        let wide = x.to_dtype(DType::F32)?;
        let y = ops::rms_norm(&wide, self.hidden_size, None, self.eps)?;
        match self.is_gemma {
            true => (y * (self.weight.to_dtype(DType::F32)? + 1.0)?)?.type_as(x),
            false => y.type_as(x)? * &self.weight,
        }
    }
}

/// The layers between the embedding and the head.
#[derive(Module, Clone, Debug)]
pub struct Decoder {
    /// Of words.
    pub embed_tokens: nn::Embedding,
    /// The layers.
    pub layers: Vec<Layer>,
    /// After the last layer.
    pub norm: Norm,
    /// The cosines of the angles of all positions, `[max_position_embeddings, head_dim / 2]`.
    #[module(buffer, persistent = false)]
    cos: Tensor,
    #[module(buffer, persistent = false)]
    sin: Tensor,
    /// How far back each layer sees.
    windows: Vec<Option<usize>>,
    /// The factor of embeddings.
    scale: Option<f64>,
}

/// The factors from positions to angles, `[head_dim / 2]`.
fn frequencies(config: &Config) -> Vec<f32> {
    let dim = config.head_dim;
    let all = (0..dim / 2).map(|i| config.rope_theta.powf(-2.0 * i as f64 / dim as f64));
    let scaled = all.map(|frequency| match config.rope_scaling {
        RopeScaling::None => frequency,
        RopeScaling::Linear(factor) => frequency / factor,
        RopeScaling::Llama3 {
            factor,
            high_freq_factor,
            low_freq_factor,
            original_max_position_embeddings,
        } => {
            let turns = original_max_position_embeddings * frequency / std::f64::consts::TAU;
            if turns < low_freq_factor {
                frequency / factor
            } else if turns > high_freq_factor {
                frequency
            } else {
                let quick = (turns - low_freq_factor) / (high_freq_factor - low_freq_factor);
                (1.0 - quick) * frequency / factor + quick * frequency
            }
        }
    });
    let factors = config.rope_factors.iter().flatten().copied();
    let factors = factors.chain(std::iter::repeat(1.0));
    let divided = scaled
        .zip(factors)
        .map(|(frequency, factor)| frequency / factor);
    divided.map(|frequency| frequency as f32).collect()
}

/// The caches of a model before the first word, of `[batch, key_value_heads, 0, head_dim]` each.
pub(super) fn empty_caches(layers: usize, shape: [usize; 4], dtype: DType) -> Result<Vec<Cache>> {
    let [batch, heads, length, width] = shape;
    let empty = || Tensor::zeros((batch, heads, length, width))?.to_dtype(dtype);
    let caches = (0..layers).map(|_| {
        Ok(Cache {
            k: empty()?,
            v: empty()?,
        })
    });
    caches.collect()
}

impl Decoder {
    fn new(config: &Config) -> Result<Self> {
        let frequencies = Tensor::from_vec(frequencies(config), (1, config.head_dim / 2))?;
        let positions = Tensor::arange(0, config.max_position_embeddings)?.unsqueeze(1)?;
        let angles = (positions * frequencies)?;
        let layer = |_| {
            Ok(Layer {
                input_layernorm: Norm::new(config)?,
                self_attn: Attention::new(config)?,
                post_attention_layernorm: Norm::new(config)?,
                mlp: Mlp::new(config)?,
            })
        };
        let count = config.num_hidden_layers;
        Ok(Decoder {
            embed_tokens: nn::Embedding::new(config.vocab_size, config.hidden_size)?,
            layers: (0..count).map(layer).collect::<Result<_>>()?,
            norm: Norm::new(config)?,
            cos: angles.cos()?,
            sin: angles.sin()?,
            windows: config.windows.clone(),
            scale: config.is_gemma.then(|| (config.hidden_size as f64).sqrt()),
        })
    }

    /// Whether each position from `seen` on sees each position before `total`, within a window if
    /// there is one.
    fn mask(seen: Int, total: Int, window: Option<usize>) -> Result<Tensor> {
        let queries = Tensor::arange(seen, total)?.unsqueeze(1)?;
        let keys = Tensor::arange(0, total)?.unsqueeze(0)?;
        let mask = queries.ge(&keys)?;
        match window {
            Some(window) => mask & (queries - keys)?.lt(window as i64)?,
            None => Ok(mask),
        }
    }
}

#[trace(path = "fx_nn::models::hf::decoder::Decoder")]
impl Decoder {
    fn forward(&self, tokens: &Tensor, caches: Vec<Cache>) -> Result<(Tensor, Vec<Cache>)> {
        let seen = match caches.first() {
            Some(cache) => cache.k.size(2)?,
            None => 0.into(),
        };
        let total = (seen + tokens.size(1)?)?;
        let mut x = self.embed_tokens.forward(tokens)?;
        if let Some(scale) = self.scale {
            // Rounded to the type of the embedding before it multiplies.
            let scale = Tensor::from_vec(vec![scale as f32], ())?.type_as(&x)?;
            x = (x * scale)?;
        }
        let (cos, sin) = (self.cos.i(seen..total)?, self.sin.i(seen..total)?);
        let mut masks: Vec<(Option<usize>, Tensor)> = Vec::new();
        let mut updated = Vec::new();
        for ((layer, cache), window) in self.layers.iter().zip(caches).zip(&self.windows) {
            let mask = match masks.iter().find(|(of, _)| of == window) {
                Some((_, mask)) => mask.clone(),
                None => {
                    let mask = Decoder::mask(seen, total, *window)?;
                    masks.push((*window, mask.clone()));
                    mask
                }
            };
            let at = Positions {
                cos: cos.clone(),
                sin: sin.clone(),
                mask,
            };
            let (y, cache) = layer.forward(&x, at, cache)?;
            x = y;
            updated.push(cache);
        }
        Ok((self.norm.forward(&x)?, updated))
    }
}

/// A decoder with a head that scores the next word.
#[derive(Module, Clone, Debug)]
pub struct CausalLM {
    /// The decoder.
    pub model: Decoder,
    /// The head; `None` if it shares the embedding's weights.
    pub lm_head: Option<nn::Linear>,
    cache: CacheShape,
}

/// The sizes of a cache's tensors.
#[derive(Module, Clone, Copy, Debug)]
struct CacheShape {
    heads: usize,
    head_dim: usize,
}

impl CausalLM {
    /// A model of a configuration, in `float32`.
    ///
    /// # Errors
    /// Returns an error if it does not fit into memory.
    pub fn new(config: &Config) -> Result<Self> {
        let head = || -> Result<_> {
            Ok(nn::Linear::new(config.hidden_size, config.vocab_size)?.bias(false))
        };
        Ok(CausalLM {
            model: Decoder::new(config)?,
            lm_head: (!config.tie_word_embeddings).then(head).transpose()?,
            cache: CacheShape {
                heads: config.num_key_value_heads,
                head_dim: config.head_dim,
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
        CausalLM::load(&config, &checkpoint)
    }

    /// The model of a configuration with the weights of a checkpoint, frozen for inference.
    ///
    /// # Errors
    /// Returns all problems of the weights.
    pub fn load(config: &Config, checkpoint: &Checkpoint) -> Result<Self> {
        loaded(|| CausalLM::new(config), config.dtype, checkpoint)
    }

    /// The caches before the first word: empty, for each layer.
    ///
    /// # Errors
    /// Returns no errors of its own.
    pub fn caches(&self, batch: usize) -> Result<Vec<Cache>> {
        let dtype = self.model.norm.weight.dtype()?;
        let CacheShape { heads, head_dim } = self.cache;
        empty_caches(self.model.layers.len(), [batch, heads, 0, head_dim], dtype)
    }

    /// The traced model: one graph for prompts of any length and for the words after them.
    ///
    /// # Errors
    /// Returns the errors of tracing.
    pub fn trace(&self) -> Result<GraphModule> {
        let caches = vec![tree!({"k": PH, "v": PH}); self.model.layers.len()];
        Trace::new(self)
            .concrete("caches", Value::List(caches.into()))
            .graph_module()
    }

    /// Changes the graph of a model so that it gives the scores of the last word alone, `[N, 1, vocab_size]`: whoever writes
    /// on from a prompt needs no others, and the head is a large part of a prompt's time.
    ///
    /// ```
    /// use fx_nn::models::hf::decoder::{Cache, CausalLM, Config};
    /// use fx_nn::prelude::*;
    /// let config = Config::from_json(r#"{
    ///     "model_type": "llama", "vocab_size": 32, "hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 1,
    ///     "num_attention_heads": 4
    /// }"#)?;
    /// let model = CausalLM::new(&config)?;
    /// let mut gm = model.trace()?;
    /// let prompt = Tensor::from_vec(vec![3i64, 1, 4], (1, 3))?;
    /// let (all, _): (Tensor, Vec<Cache>) = gm.forward((&prompt, model.caches(1)?))?;
    /// CausalLM::keep_last_scores(&mut gm)?;
    /// let (last, _): (Tensor, Vec<Cache>) = gm.forward((&prompt, model.caches(1)?))?;
    /// assert_eq!(last.dims()?, [1, 1, 32]);
    /// assert!(fx_nn::allclose(&last, &all.i((.., 2..))?, 1e-5, 1e-5)?.close);
    /// # Ok::<(), fx_nn::Error>(())
    /// ```
    ///
    /// # Errors
    /// Returns an error if the graph is not one that [`trace`](CausalLM::trace) gives, with layers replaced or not.
    pub fn keep_last_scores(gm: &mut GraphModule) -> Result<()> {
        let given = gm.graph().output_node();
        let head = given.and_then(|output| match output.args().first()? {
            Argument::Tuple(items) => items.first()?.as_node(),
            _ => None,
        });
        let node = head.and_then(|head| gm.graph().node(head).ok());
        let x = node.and_then(|node| node.all_input_nodes().next().map(|x| x.id()));
        let (Some(head), Some(x)) = (head, x) else {
            return Err(Error::msg(
                "the graph gives no scores and caches: trace a model by `CausalLM::trace`, and change it first",
            ));
        };
        let from =
            |start: Argument| Argument::Slice([start, Argument::None, Argument::None].into());
        let last = vec![from(Argument::None), from(Argument::Int(-1))];
        let mut graph = gm.graph_mut();
        let cut = graph.inserting_before(head)?.call_function(
            fx_core::operator::getitem,
            (x, Argument::Tuple(last.into())),
            (),
        )?;
        graph.node_mut(head)?.replace_input_with(x, cut)
    }
}

#[trace(path = "fx_nn::models::hf::decoder::CausalLM")]
impl CausalLM {
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
