//! T5: an encoder reads a text and a decoder writes one, under the names of Hugging Face's checkpoints.
//!
//! `encode` runs once; `decode` reads any number of words and returns its caches, so that one
//! traced graph does a first text and each word after it. `forward` is both in one pass.
//!
//! ```
//! use fx_nn::models::hf::encoder_decoder::Cache;
//! use fx_nn::models::hf::t5::{ConditionalGeneration, Config};
//! use fx_nn::prelude::*;
//! let config = Config::from_json(r#"{
//!     "model_type": "t5", "vocab_size": 32, "d_model": 16, "d_kv": 8, "d_ff": 32, "num_layers": 2, "num_heads": 2,
//!     "feed_forward_proj": "gated-gelu"
//! }"#)?;
//! let model = ConditionalGeneration::new(&config)?;
//! let (encoder, decoder) = (model.trace_encode()?, model.trace_decode()?);
//! let text = Tensor::from_vec(vec![3i64, 1, 4, 1], (1, 4))?;
//! let mask = Tensor::ones((1, 4))?;
//! let mut caches: Vec<Cache> = encoder.forward((&text, &mask))?;
//! let mut word = Tensor::from_vec(vec![0i64], (1, 1))?;
//! for _ in 0..3 {
//!     let scores: Tensor;
//!     (scores, caches) = decoder.forward((&word, &mask, caches))?;
//!     word = scores.argmax(-1, false)?;
//! }
//! assert_eq!(caches[0].k.dims()?, [1, 2, 3, 8]);
//! # Ok::<(), fx_nn::Error>(())
//! ```

use std::path::Path;
use std::rc::Rc;

use fx_core::prelude::*;
use fx_core::value::DType;

use super::activation::Activation;
use super::config::{Fields, loaded};
use super::encoder_decoder::{Cache, attend, heads, later};
use super::norm::Norm;
use crate::tensor::Tensor;
use crate::weights::Checkpoint;
use crate::{nn, ops};

/// The configuration of a T5, as in its `config.json`.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Config {
    /// Number of words in the vocabulary.
    pub vocab_size: usize,
    /// The width between layers.
    pub d_model: usize,
    /// The width of a head.
    pub d_kv: usize,
    /// The inner width of a feed-forward layer.
    pub d_ff: usize,
    /// Number of encoder layers.
    pub num_layers: usize,
    /// Number of decoder layers.
    pub num_decoder_layers: usize,
    /// Number of attention heads.
    pub num_heads: usize,
    /// The number of buckets of distances between words.
    pub relative_attention_num_buckets: usize,
    /// The distance from which on all are in one bucket.
    pub relative_attention_max_distance: usize,
    /// The epsilon that norms add to the mean square.
    pub layer_norm_epsilon: f64,
    /// The activation of a feed-forward layer.
    pub activation: Activation,
    /// Whether the activated layer gates a second one.
    pub is_gated_act: bool,
    /// Whether the head's weights are the embedding's.
    pub tie_word_embeddings: bool,
    /// Whether the decoder's results are divided by the root of their width before the head.
    pub scale_decoder_outputs: bool,
    /// The type to load the checkpoint in.
    pub dtype: DType,
}

/// The largest `relative_attention_max_distance`: there is a table of the distances.
const MAX_DISTANCE: usize = 1 << 16;

impl Config {
    /// Reads a `config.json`.
    ///
    /// ```
    /// use fx_nn::models::hf::t5::Config;
    /// let error = Config::from_json(r#"{"model_type": "t5", "d_model": 0, "feed_forward_proj": "gated-maxout"}"#);
    /// let error = error.unwrap_err().to_string();
    /// assert!(error.contains("`vocab_size` is missing") && error.contains("`d_model` is 0") && error.contains("maxout"));
    /// ```
    ///
    /// # Errors
    /// Returns an error if a field is missing, has the wrong kind or an unsupported value, with a
    /// line for each.
    pub fn from_json(text: &str) -> Result<Self> {
        let mut fields = Fields::parse(text)?;
        let family = fields.text_or("model_type", None);
        if family != "t5" {
            fields.problem(format!("`model_type` is `{family}`: supported is t5"));
        }
        let num_layers = fields.size("num_layers");
        let (activation, is_gated_act) = feed_forward(&mut fields);
        let tie_word_embeddings = fields.flag_or("tie_word_embeddings", true);
        let config = Config {
            vocab_size: fields.size("vocab_size"),
            d_model: fields.size("d_model"),
            d_kv: fields.size("d_kv"),
            d_ff: fields.size("d_ff"),
            num_layers,
            num_decoder_layers: fields.size_or("num_decoder_layers", num_layers),
            num_heads: fields.size("num_heads"),
            relative_attention_num_buckets: fields.size_or("relative_attention_num_buckets", 32),
            relative_attention_max_distance: fields.size_or("relative_attention_max_distance", 128),
            layer_norm_epsilon: fields.number_or("layer_norm_epsilon", 1e-6),
            activation,
            is_gated_act,
            tie_word_embeddings,
            // Older files imply it by the tied weights alone.
            scale_decoder_outputs: fields.flag_or("scale_decoder_outputs", tie_word_embeddings),
            dtype: fields.dtype(),
        };
        let buckets = config.relative_attention_num_buckets;
        if buckets < 4 || !buckets.is_multiple_of(2) {
            fields.problem(format!(
                "`relative_attention_num_buckets` is {buckets}, and no even number from 4 on"
            ));
        }
        let distance = config.relative_attention_max_distance;
        if distance <= buckets / 2 || distance > MAX_DISTANCE {
            fields.problem(format!(
                "`relative_attention_max_distance` is {distance}: supported are those above half of the {buckets} buckets, up to {MAX_DISTANCE}"
            ));
        }
        if config.dtype == DType::F16 {
            fields.problem(
                "`dtype` is `float16`, which the numbers of T5 are too large for: convert the checkpoint to bfloat16 or float32",
            );
        }
        fields.finish()?;
        Ok(config)
    }
}

/// The activation of `feed_forward_proj`, and whether it is a gate's.
fn feed_forward(fields: &mut Fields) -> (Activation, bool) {
    let text = fields.text_or("feed_forward_proj", "relu");
    let (name, is_gated) = match text.strip_prefix("gated-") {
        Some(name) => (name, true),
        None => (text.as_str(), false),
    };
    let activation = match name {
        "relu" => Activation::ReLU,
        // The first gated models say `gelu` and mean its approximation.
        "gelu" if is_gated => Activation::GELUTanh,
        "gelu" => Activation::GELU,
        "gelu_new" => Activation::GELUTanh,
        "silu" | "swish" => Activation::SiLU,
        _ => {
            fields.problem(format!(
                "`feed_forward_proj` is `{text}`: supported are relu, gelu, gelu_new and silu, and these behind `gated-`"
            ));
            Activation::ReLU
        }
    };
    (activation, is_gated)
}

/// The bucket of the distance from a query to a key.
fn bucket(offset: i64, is_both_ways: bool, buckets: usize, max_distance: usize) -> i64 {
    let (first, buckets, distance) = match is_both_ways {
        true if offset > 0 => (buckets / 2, buckets / 2, offset),
        true => (0, buckets / 2, -offset),
        false => (0, buckets, (-offset).max(0)),
    };
    let (distance, exact) = (distance.unsigned_abs() as usize, buckets / 2);
    let kind = match distance < exact {
        true => distance,
        // Single precision decides which side of a limit a distance is on.
        false => {
            let far = (distance as f32 / exact as f32).ln();
            let farthest = (max_distance as f64 / exact as f64).ln() as f32;
            let steps = far / farthest * (buckets - exact) as f32;
            (exact + steps as usize).min(buckets - 1)
        }
    };
    (first + kind) as i64
}

/// The buckets of all distances that are distinguished.
#[derive(Module, Clone, Debug)]
struct Distances {
    /// Of the offsets from `-max_distance` to `max_distance`, `[2 · max_distance + 1]`.
    #[module(buffer, persistent = false)]
    buckets: Tensor,
    max_distance: usize,
}

impl Distances {
    fn new(config: &Config, is_both_ways: bool) -> Result<Self> {
        let max_distance = config.relative_attention_max_distance;
        let max = max_distance as i64;
        let count = config.relative_attention_num_buckets;
        let buckets = (-max..=max).map(|offset| bucket(offset, is_both_ways, count, max_distance));
        Ok(Distances {
            buckets: Tensor::from_vec(buckets.collect(), 2 * max_distance + 1)?,
            max_distance,
        })
    }

    /// The bias of the scores of queries `seen..total` and keys `0..total`,
    /// `[1, heads, queries, keys]`.
    fn bias(&self, table: &nn::Embedding, seen: Int, total: Int) -> Result<Tensor> {
        let max = self.max_distance as i64;
        let queries = Tensor::arange(seen, total)?.unsqueeze(1)?;
        let keys = Tensor::arange(0, total)?.unsqueeze(0)?;
        let offsets = (keys - queries)?.clamp(-max, max)?;
        let buckets = ops::take(&self.buckets, &(offsets + max)?)?;
        table.forward(&buckets)?.permute((2, 0, 1))?.unsqueeze(0)
    }
}

/// Attention of heads, whose scores are not scaled.
#[derive(Module, Clone, Debug)]
pub struct Attention {
    /// Queries.
    pub q: nn::Linear,
    /// Keys.
    pub k: nn::Linear,
    /// Values.
    pub v: nn::Linear,
    /// Results.
    pub o: nn::Linear,
    /// The biases that the first layer adds to the scores of all layers, by distance:
    /// `[relative_attention_num_buckets, num_heads]`.
    pub relative_attention_bias: Option<nn::Embedding>,
    d_kv: usize,
}

impl Attention {
    fn new(config: &Config, has_bias: bool) -> Result<Self> {
        let (width, inner) = (config.d_model, config.num_heads.saturating_mul(config.d_kv));
        let bias = || nn::Embedding::new(config.relative_attention_num_buckets, config.num_heads);
        Ok(Attention {
            q: nn::Linear::new(width, inner)?.bias(false),
            k: nn::Linear::new(width, inner)?.bias(false),
            v: nn::Linear::new(width, inner)?.bias(false),
            o: nn::Linear::new(inner, width)?.bias(false),
            relative_attention_bias: has_bias.then(bias).transpose()?,
            d_kv: config.d_kv,
        })
    }

    /// Keys and values of `x`.
    fn keys_and_values(&self, x: &Tensor) -> Result<(Tensor, Tensor)> {
        let k = heads(&self.k.forward(x)?, self.d_kv)?;
        Ok((k, heads(&self.v.forward(x)?, self.d_kv)?))
    }

    /// The table of the first layer of a stack.
    fn table(&self) -> Result<&nn::Embedding> {
        let table = self.relative_attention_bias.as_ref();
        table.ok_or_else(|| Error::msg("the first layer has no `relative_attention_bias`"))
    }
}

#[trace(path = "fx_nn::models::hf::t5::Attention")]
impl Attention {
    fn forward(&self, x: &Tensor, k: &Tensor, v: &Tensor, mask: &Tensor) -> Result<Tensor> {
        let q = heads(&self.q.forward(x)?, self.d_kv)?;
        self.o.forward(&attend(&q, k, v, Some(mask))?)
    }
}

/// Attention to the words of the same text, after a norm.
#[derive(Module, Clone, Debug)]
pub struct LayerSelfAttention {
    /// The attention.
    #[module(name = "SelfAttention")]
    pub self_attention: Attention,
    /// Before it.
    pub layer_norm: Norm,
}

impl LayerSelfAttention {
    fn new(config: &Config, is_first: bool) -> Result<Self> {
        Ok(LayerSelfAttention {
            self_attention: Attention::new(config, is_first)?,
            layer_norm: norm(config)?,
        })
    }
}

/// Attention to the encoder's results, after a norm.
#[derive(Module, Clone, Debug)]
pub struct LayerCrossAttention {
    /// The attention.
    #[module(name = "EncDecAttention")]
    pub enc_dec_attention: Attention,
    /// Before it.
    pub layer_norm: Norm,
}

/// Two linear layers with an activation between them, or a gate and gated values before the last.
#[derive(Module, Clone, Debug)]
pub struct Dense {
    /// The first layer, if there is no gate.
    pub wi: Option<nn::Linear>,
    /// The gate.
    pub wi_0: Option<nn::Linear>,
    /// The gated values.
    pub wi_1: Option<nn::Linear>,
    /// Back to the width between layers.
    pub wo: nn::Linear,
    activation: Activation,
}

impl Dense {
    fn new(config: &Config) -> Result<Self> {
        let inner = |is_there: bool| {
            let layer =
                || -> Result<_> { Ok(nn::Linear::new(config.d_model, config.d_ff)?.bias(false)) };
            is_there.then(layer).transpose()
        };
        Ok(Dense {
            wi: inner(!config.is_gated_act)?,
            wi_0: inner(config.is_gated_act)?,
            wi_1: inner(config.is_gated_act)?,
            wo: nn::Linear::new(config.d_ff, config.d_model)?.bias(false),
            activation: config.activation,
        })
    }
}

#[trace(path = "fx_nn::models::hf::t5::Dense")]
impl Dense {
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let activated = |layer: &nn::Linear| self.activation.apply(&layer.forward(x)?);
        let inner = match (&self.wi, &self.wi_0, &self.wi_1) {
            (Some(wi), None, None) => activated(wi)?,
            (None, Some(gate), Some(through)) => (activated(gate)? * through.forward(x)?)?,
            _ => {
                return Err(Error::msg(
                    "a feed-forward layer has `wi`, or `wi_0` and `wi_1`",
                ));
            }
        };
        self.wo.forward(&inner)
    }
}

/// The feed-forward layers, after a norm and added to their input.
#[derive(Module, Clone, Debug)]
pub struct LayerFF {
    /// The layers.
    #[module(name = "DenseReluDense")]
    pub dense: Dense,
    /// Before them.
    pub layer_norm: Norm,
}

impl LayerFF {
    fn new(config: &Config) -> Result<Self> {
        Ok(LayerFF {
            dense: Dense::new(config)?,
            layer_norm: norm(config)?,
        })
    }
}

#[trace(path = "fx_nn::models::hf::t5::LayerFF")]
impl LayerFF {
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        x + self.dense.forward(&self.layer_norm.forward(x)?)?
    }
}

fn norm(config: &Config) -> Result<Norm> {
    Norm::new(config.d_model, config.layer_norm_epsilon)
}

/// A block of the encoder.
#[derive(Module, Clone, Debug)]
pub struct EncoderBlock {
    /// Attention and feed-forward layers.
    pub layer: (LayerSelfAttention, LayerFF),
}

#[trace(path = "fx_nn::models::hf::t5::EncoderBlock")]
impl EncoderBlock {
    fn forward(&self, x: &Tensor, bias: &Tensor) -> Result<Tensor> {
        let (own, feed_forward) = &self.layer;
        let h = own.layer_norm.forward(x)?;
        let (k, v) = own.self_attention.keys_and_values(&h)?;
        let x = (x + own.self_attention.forward(&h, &k, &v, bias)?)?;
        feed_forward.forward(&x)
    }
}

/// A block of the decoder.
#[derive(Module, Clone, Debug)]
pub struct DecoderBlock {
    /// Attention, attention to the encoder's results, and feed-forward layers.
    pub layer: (LayerSelfAttention, LayerCrossAttention, LayerFF),
}

#[trace(path = "fx_nn::models::hf::t5::DecoderBlock")]
impl DecoderBlock {
    fn forward(
        &self,
        x: &Tensor,
        bias: &Tensor,
        mask: &Tensor,
        cache: Cache,
    ) -> Result<(Tensor, Cache)> {
        let (own, cross, feed_forward) = &self.layer;
        let h = own.layer_norm.forward(x)?;
        let (k, v) = own.self_attention.keys_and_values(&h)?;
        let cache = cache.and(k, v)?;
        let x = (x + own.self_attention.forward(&h, &cache.k, &cache.v, bias)?)?;
        let h = cross.layer_norm.forward(&x)?;
        let attention = &cross.enc_dec_attention;
        let x = (&x + attention.forward(&h, &cache.cross_k, &cache.cross_v, mask)?)?;
        Ok((feed_forward.forward(&x)?, cache))
    }
}

/// The encoder.
#[derive(Module, Clone, Debug)]
pub struct Encoder {
    /// The blocks.
    pub block: Vec<EncoderBlock>,
    /// After the last block.
    pub final_layer_norm: Norm,
    distances: Distances,
}

impl Encoder {
    fn new(config: &Config) -> Result<Self> {
        let block = |at| {
            let layer = (
                LayerSelfAttention::new(config, at == 0)?,
                LayerFF::new(config)?,
            );
            Ok(EncoderBlock { layer })
        };
        Ok(Encoder {
            block: (0..config.num_layers).map(block).collect::<Result<_>>()?,
            final_layer_norm: norm(config)?,
            distances: Distances::new(config, true)?,
        })
    }
}

#[trace(path = "fx_nn::models::hf::t5::Encoder")]
impl Encoder {
    /// `[N, S, d_model]` of embeddings `[N, S, d_model]`; `mask` `[N, S]` is 0 at words to ignore.
    fn forward(&self, x: &Tensor, mask: &Tensor) -> Result<Tensor> {
        let mut x = x.clone();
        let Some(first) = self.block.first() else {
            return self.final_layer_norm.forward(&x);
        };
        let table = first.layer.0.self_attention.table()?;
        let bias = self.distances.bias(table, 0.into(), x.size(1)?)?;
        let hidden = mask.eq(0)?.unsqueeze(1)?.unsqueeze(2)?;
        let hidden = hidden
            .type_as(&bias)?
            .masked_fill(&hidden, f64::NEG_INFINITY)?;
        let bias = (bias + hidden)?;
        for block in &self.block {
            x = block.forward(&x, &bias)?;
        }
        self.final_layer_norm.forward(&x)
    }
}

/// The decoder.
#[derive(Module, Clone, Debug)]
pub struct Decoder {
    /// The blocks.
    pub block: Vec<DecoderBlock>,
    /// After the last block.
    pub final_layer_norm: Norm,
    distances: Distances,
}

impl Decoder {
    fn new(config: &Config) -> Result<Self> {
        let block = |at| {
            let cross = LayerCrossAttention {
                enc_dec_attention: Attention::new(config, false)?,
                layer_norm: norm(config)?,
            };
            let own = LayerSelfAttention::new(config, at == 0)?;
            Ok(DecoderBlock {
                layer: (own, cross, LayerFF::new(config)?),
            })
        };
        let count = config.num_decoder_layers;
        Ok(Decoder {
            block: (0..count).map(block).collect::<Result<_>>()?,
            final_layer_norm: norm(config)?,
            distances: Distances::new(config, false)?,
        })
    }

    /// The caches before the first word, for each block.
    fn caches(&self, encoded: &Tensor) -> Result<Vec<Cache>> {
        let caches = self.block.iter().map(|block| {
            let attention = &block.layer.1.enc_dec_attention;
            let (k, v) = attention.keys_and_values(encoded)?;
            Cache::before(k, v)
        });
        caches.collect()
    }
}

#[trace(path = "fx_nn::models::hf::t5::Decoder")]
impl Decoder {
    fn forward(
        &self,
        x: &Tensor,
        mask: &Tensor,
        caches: Vec<Cache>,
    ) -> Result<(Tensor, Vec<Cache>)> {
        let mut x = x.clone();
        let Some(first) = self.block.first() else {
            return Ok((self.final_layer_norm.forward(&x)?, caches));
        };
        let table = first.layer.0.self_attention.table()?;
        let seen = Cache::seen(&caches)?;
        let total = (seen + x.size(1)?)?;
        let bias = self.distances.bias(table, seen, total)?;
        let bias = bias.masked_fill(&later(seen, total)?, f64::NEG_INFINITY)?;
        let mask = mask.ne(0)?.unsqueeze(1)?.unsqueeze(2)?;
        let mut updated = Vec::new();
        for (block, cache) in self.block.iter().zip(caches) {
            let (y, cache) = block.forward(&x, &bias, &mask, cache)?;
            x = y;
            updated.push(cache);
        }
        Ok((self.final_layer_norm.forward(&x)?, updated))
    }
}

/// Encoder, decoder, and a head that scores the next word.
#[derive(Module, Clone, Debug)]
pub struct ConditionalGeneration {
    /// Of words, for encoder and decoder.
    pub shared: nn::Embedding,
    /// The encoder.
    pub encoder: Encoder,
    /// The decoder.
    pub decoder: Decoder,
    /// The head; `None` if it shares the embedding's weights.
    pub lm_head: Option<nn::Linear>,
    /// The factor of the head's input.
    scale: Option<f64>,
}

impl ConditionalGeneration {
    /// A model of a configuration, in `float32`.
    ///
    /// # Errors
    /// Returns an error if it does not fit into memory.
    pub fn new(config: &Config) -> Result<Self> {
        let (words, width) = (config.vocab_size, config.d_model);
        let head = || -> Result<_> { Ok(nn::Linear::new(width, words)?.bias(false)) };
        let scale = || (width as f64).powf(-0.5);
        Ok(ConditionalGeneration {
            shared: nn::Embedding::new(words, width)?,
            encoder: Encoder::new(config)?,
            decoder: Decoder::new(config)?,
            lm_head: (!config.tie_word_embeddings).then(head).transpose()?,
            scale: config.scale_decoder_outputs.then(scale),
        })
    }

    /// The model of a Hugging Face folder with `config.json` and weights, in the type that it was
    /// saved in, frozen for inference. A head that the weights have is used, whatever the
    /// configuration says.
    ///
    /// # Errors
    /// Returns all problems of the configuration, or of the weights; see [`Checkpoint`].
    pub fn from_folder(folder: impl AsRef<Path>) -> Result<Self> {
        let folder = folder.as_ref();
        let mut config = Fields::of_folder(folder, Config::from_json)?;
        let checkpoint = Checkpoint::open(folder)?;
        config.tie_word_embeddings = checkpoint.shape("lm_head.weight").is_none();
        // The embedding under its other names, and a table that no layer uses.
        let checkpoint = checkpoint.retain(|name| {
            !name.ends_with("coder.embed_tokens.weight")
                && !name.ends_with("EncDecAttention.relative_attention_bias.weight")
        });
        ConditionalGeneration::load(&config, &checkpoint)
    }

    /// The model of a configuration with the weights of a checkpoint, frozen for inference.
    ///
    /// # Errors
    /// Returns all problems of the weights.
    pub fn load(config: &Config, checkpoint: &Checkpoint) -> Result<Self> {
        loaded(
            || ConditionalGeneration::new(config),
            config.dtype,
            checkpoint,
        )
    }

    /// Reads a text `[N, S]`, and returns the caches that [`decode`](Self::decode) needs before the
    /// first word. `attention_mask` `[N, S]` is 0 at words to ignore, which pad texts to one
    /// length.
    ///
    /// # Errors
    /// Returns an error if a word is not in the vocabulary, or the shapes do not fit.
    pub fn encode(&self, input_ids: &Tensor, attention_mask: &Tensor) -> Result<Vec<Cache>> {
        let x = self.shared.forward(input_ids)?;
        let encoded = self.encoder.forward(&x, attention_mask)?;
        self.decoder.caches(&encoded)
    }

    /// Scores `[N, T, vocab_size]` of the word after each of `tokens` `[N, T]`, and the caches so
    /// far; `attention_mask` `[N, S]` is of the text that was encoded.
    ///
    /// # Errors
    /// Returns an error if a word is not in the vocabulary, or the shapes do not fit.
    pub fn decode(
        &self,
        tokens: &Tensor,
        attention_mask: &Tensor,
        caches: Vec<Cache>,
    ) -> Result<(Tensor, Vec<Cache>)> {
        let x = self.shared.forward(tokens)?;
        let (mut x, caches) = self.decoder.forward(&x, attention_mask, caches)?;
        if let Some(scale) = self.scale {
            x = (x * scale)?;
        }
        let scores = match &self.lm_head {
            Some(head) => head.forward(&x)?,
            None => ops::linear(&x, &self.shared.weight, None)?,
        };
        Ok((scores, caches))
    }

    /// [`forward`](Self::forward), traced: one graph for texts of any length.
    ///
    /// # Errors
    /// Returns the errors of tracing.
    pub fn trace(&self) -> Result<GraphModule> {
        symbolic_trace(self)
    }

    /// [`encode`](Self::encode), traced: one graph for texts of any length.
    ///
    /// # Errors
    /// Returns the errors of tracing.
    pub fn trace_encode(&self) -> Result<GraphModule> {
        let model = Rc::new(self.clone());
        let same = model.clone();
        let encode = traced!(move |input_ids: &Tensor, attention_mask: &Tensor| {
            same.encode(input_ids, attention_mask)
        });
        Trace::new(encode).method_of(&*model).graph_module()
    }

    /// [`decode`](Self::decode), traced: one graph for any number of first words and for the words
    /// after them.
    ///
    /// # Errors
    /// Returns the errors of tracing.
    pub fn trace_decode(&self) -> Result<GraphModule> {
        let model = Rc::new(self.clone());
        let same = model.clone();
        let decode = traced!(move |tokens: &Tensor,
                                   attention_mask: &Tensor,
                                   caches: Vec<Cache>| {
            same.decode(tokens, attention_mask, caches)
        });
        Trace::new(decode)
            .method_of(&*model)
            .concrete("caches", Cache::traced(self.decoder.block.len()))
            .graph_module()
    }
}

#[trace(path = "fx_nn::models::hf::t5::ConditionalGeneration")]
impl ConditionalGeneration {
    /// Scores `[N, T, vocab_size]` of the word after each of `decoder_input_ids` `[N, T]`, for a text `input_ids` `[N, S]`
    /// with its `attention_mask` `[N, S]`.
    ///
    /// # Errors
    /// Returns an error if a word is not in the vocabulary, or the shapes do not fit.
    pub fn forward(
        &self,
        input_ids: &Tensor,
        attention_mask: &Tensor,
        decoder_input_ids: &Tensor,
    ) -> Result<Tensor> {
        let caches = self.encode(input_ids, attention_mask)?;
        let (scores, _) = self.decode(decoder_input_ids, attention_mask, caches)?;
        Ok(scores)
    }
}
