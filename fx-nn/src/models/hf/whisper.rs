//! Whisper: an encoder hears and a decoder writes, under the names of Hugging Face's checkpoints.
//!
//! `encode` runs once; `decode` reads any number of words and returns its caches, so that one
//! traced graph does the first words and each word after them. `forward` is both in one pass.
//!
//! ```
//! use fx_nn::models::hf::encoder_decoder::Cache;
//! use fx_nn::models::hf::whisper::{ConditionalGeneration, Config};
//! use fx_nn::prelude::*;
//! let config = Config::from_json(r#"{
//!     "model_type": "whisper", "vocab_size": 32, "num_mel_bins": 8, "d_model": 16, "encoder_layers": 2,
//!     "decoder_layers": 2, "encoder_attention_heads": 2, "decoder_attention_heads": 2, "encoder_ffn_dim": 32,
//!     "decoder_ffn_dim": 32, "max_source_positions": 10, "max_target_positions": 12
//! }"#)?;
//! let model = ConditionalGeneration::new(&config)?;
//! let (encoder, decoder) = (model.trace_encode()?, model.trace_decode()?);
//! let mut caches: Vec<Cache> = encoder.forward(&Tensor::rand((1, 8, 20))?)?;
//! let mut word = Tensor::from_vec(vec![1i64], (1, 1))?;
//! for _ in 0..3 {
//!     let scores: Tensor;
//!     (scores, caches) = decoder.forward((&word, caches))?;
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
use crate::tensor::Tensor;
use crate::weights::Checkpoint;
use crate::{nn, ops};

/// The configuration of a Whisper, as in its `config.json`.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Config {
    /// Number of words in the vocabulary.
    pub vocab_size: usize,
    /// Number of frequency bands of the input.
    pub num_mel_bins: usize,
    /// The width between layers.
    pub d_model: usize,
    /// Number of encoder layers.
    pub encoder_layers: usize,
    /// Number of the encoder's attention heads.
    pub encoder_attention_heads: usize,
    /// The inner width of the encoder's feed-forward layers.
    pub encoder_ffn_dim: usize,
    /// Number of decoder layers.
    pub decoder_layers: usize,
    /// Number of the decoder's attention heads.
    pub decoder_attention_heads: usize,
    /// The inner width of the decoder's feed-forward layers.
    pub decoder_ffn_dim: usize,
    /// Number of encoder positions, each of two time steps.
    pub max_source_positions: usize,
    /// Number of decoder positions.
    pub max_target_positions: usize,
    /// The activation of feed-forward layers.
    pub activation: Activation,
    /// Whether the head's weights are the embedding's.
    pub tie_word_embeddings: bool,
    /// The type to load the checkpoint in.
    pub dtype: DType,
}

impl Config {
    /// Reads a `config.json`.
    ///
    /// ```
    /// use fx_nn::models::hf::whisper::Config;
    /// let error = Config::from_json(r#"{"model_type": "whisper", "d_model": 7, "activation_function": "maxout"}"#);
    /// let error = error.unwrap_err().to_string();
    /// assert!(error.contains("`vocab_size` is missing") && error.contains("`d_model` is 7") && error.contains("maxout"));
    /// ```
    ///
    /// # Errors
    /// Returns an error if a field is missing, has the wrong kind or an unsupported value, with a
    /// line for each.
    pub fn from_json(text: &str) -> Result<Self> {
        let mut fields = Fields::parse(text)?;
        let family = fields.text_or("model_type", None);
        if family != "whisper" {
            fields.problem(format!("`model_type` is `{family}`: supported is whisper"));
        }
        let config = Config {
            vocab_size: fields.size("vocab_size"),
            num_mel_bins: fields.size_or("num_mel_bins", 80),
            d_model: fields.size("d_model"),
            encoder_layers: fields.size("encoder_layers"),
            encoder_attention_heads: fields.size("encoder_attention_heads"),
            encoder_ffn_dim: fields.size("encoder_ffn_dim"),
            decoder_layers: fields.size("decoder_layers"),
            decoder_attention_heads: fields.size("decoder_attention_heads"),
            decoder_ffn_dim: fields.size("decoder_ffn_dim"),
            max_source_positions: fields.size_or("max_source_positions", 1500),
            max_target_positions: fields.size_or("max_target_positions", 448),
            activation: Activation::of(&mut fields, "activation_function", "gelu"),
            tie_word_embeddings: fields.flag_or("tie_word_embeddings", true),
            dtype: fields.dtype(),
        };
        let width = config.d_model;
        for (name, heads) in [
            ("encoder_attention_heads", config.encoder_attention_heads),
            ("decoder_attention_heads", config.decoder_attention_heads),
        ] {
            if !width.is_multiple_of(heads) {
                fields.problem(format!(
                    "`{name}` is {heads}, which does not divide the width of {width}"
                ));
            }
        }
        if !width.is_multiple_of(2) || width < 4 {
            fields.problem(format!(
                "`d_model` is {width}, and no even number from 4 on: half of it are sines, half cosines"
            ));
        }
        fields.finish()?;
        Ok(config)
    }
}

/// Attention of heads.
#[derive(Module, Clone, Debug)]
pub struct Attention {
    /// Keys.
    pub k_proj: nn::Linear,
    /// Values.
    pub v_proj: nn::Linear,
    /// Queries.
    pub q_proj: nn::Linear,
    /// Results.
    pub out_proj: nn::Linear,
    head_dim: usize,
}

impl Attention {
    fn new(width: usize, heads: usize) -> Result<Self> {
        Ok(Attention {
            k_proj: nn::Linear::new(width, width)?.bias(false),
            v_proj: nn::Linear::new(width, width)?,
            q_proj: nn::Linear::new(width, width)?,
            out_proj: nn::Linear::new(width, width)?,
            head_dim: width / heads,
        })
    }

    /// Keys and values of `x`.
    fn keys_and_values(&self, x: &Tensor) -> Result<(Tensor, Tensor)> {
        let k = heads(&self.k_proj.forward(x)?, self.head_dim)?;
        Ok((k, heads(&self.v_proj.forward(x)?, self.head_dim)?))
    }
}

#[trace(path = "fx_nn::models::hf::whisper::Attention")]
impl Attention {
    fn forward(&self, x: &Tensor, k: &Tensor, v: &Tensor, mask: Option<&Tensor>) -> Result<Tensor> {
        // Queries are scaled and rounded before they are multiplied.
        let q = (self.q_proj.forward(x)? * (self.head_dim as f64).powf(-0.5))?;
        let q = heads(&q, self.head_dim)?;
        self.out_proj.forward(&attend(&q, k, v, mask)?)
    }
}

/// Two linear layers with an activation between them, after a norm and added to their input.
#[derive(Module, Clone, Debug)]
pub struct FeedForward {
    /// The first layer.
    pub fc1: nn::Linear,
    /// Back to the width between layers.
    pub fc2: nn::Linear,
    /// Before both.
    pub final_layer_norm: nn::LayerNorm,
    activation: Activation,
}

impl FeedForward {
    fn new(config: &Config, inner: usize) -> Result<Self> {
        Ok(FeedForward {
            fc1: nn::Linear::new(config.d_model, inner)?,
            fc2: nn::Linear::new(inner, config.d_model)?,
            final_layer_norm: nn::LayerNorm::new(config.d_model)?,
            activation: config.activation,
        })
    }

    fn apply(&self, x: &Tensor) -> Result<Tensor> {
        let h = self.fc1.forward(&self.final_layer_norm.forward(x)?)?;
        x + self.fc2.forward(&self.activation.apply(&h)?)?
    }
}

/// A layer of the encoder.
#[derive(Module, Clone, Debug)]
pub struct EncoderLayer {
    /// Attention to all positions.
    pub self_attn: Attention,
    /// Before the attention.
    pub self_attn_layer_norm: nn::LayerNorm,
    /// After the attention.
    #[module(flatten)]
    pub feed_forward: FeedForward,
    /// The bound of results in `float16`.
    limit: Option<f64>,
}

impl EncoderLayer {
    fn new(config: &Config) -> Result<Self> {
        let largest = 65504.0;
        Ok(EncoderLayer {
            self_attn: Attention::new(config.d_model, config.encoder_attention_heads)?,
            self_attn_layer_norm: nn::LayerNorm::new(config.d_model)?,
            feed_forward: FeedForward::new(config, config.encoder_ffn_dim)?,
            limit: (config.dtype == DType::F16).then_some(largest - 1000.0),
        })
    }
}

#[trace(path = "fx_nn::models::hf::whisper::EncoderLayer")]
impl EncoderLayer {
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let h = self.self_attn_layer_norm.forward(x)?;
        let (k, v) = self.self_attn.keys_and_values(&h)?;
        let x = (x + self.self_attn.forward(&h, &k, &v, None)?)?;
        let x = self.feed_forward.apply(&x)?;
        match self.limit {
            Some(limit) => x.clamp(-limit, limit),
            None => Ok(x),
        }
    }
}

/// A layer of the decoder.
#[derive(Module, Clone, Debug)]
pub struct DecoderLayer {
    /// Attention to the words so far.
    pub self_attn: Attention,
    /// Before it.
    pub self_attn_layer_norm: nn::LayerNorm,
    /// Attention to the encoder's results.
    pub encoder_attn: Attention,
    /// Before it.
    pub encoder_attn_layer_norm: nn::LayerNorm,
    /// After both.
    #[module(flatten)]
    pub feed_forward: FeedForward,
}

impl DecoderLayer {
    fn new(config: &Config) -> Result<Self> {
        let (width, heads) = (config.d_model, config.decoder_attention_heads);
        Ok(DecoderLayer {
            self_attn: Attention::new(width, heads)?,
            self_attn_layer_norm: nn::LayerNorm::new(width)?,
            encoder_attn: Attention::new(width, heads)?,
            encoder_attn_layer_norm: nn::LayerNorm::new(width)?,
            feed_forward: FeedForward::new(config, config.decoder_ffn_dim)?,
        })
    }
}

#[trace(path = "fx_nn::models::hf::whisper::DecoderLayer")]
impl DecoderLayer {
    fn forward(&self, x: &Tensor, mask: &Tensor, cache: Cache) -> Result<(Tensor, Cache)> {
        let h = self.self_attn_layer_norm.forward(x)?;
        let (k, v) = self.self_attn.keys_and_values(&h)?;
        let cache = cache.and(k, v)?;
        let own = self.self_attn.forward(&h, &cache.k, &cache.v, Some(mask))?;
        let x = (x + own)?;
        let h = self.encoder_attn_layer_norm.forward(&x)?;
        let (k, v) = (&cache.cross_k, &cache.cross_v);
        let x = (&x + self.encoder_attn.forward(&h, k, v, None)?)?;
        Ok((self.feed_forward.apply(&x)?, cache))
    }
}

/// Sines and cosines of the positions, from quick to slow ones, `[positions, width]`.
fn sinusoids(positions: usize, width: usize) -> Result<Tensor> {
    let half = width / 2;
    let step = 10000f64.ln() / (half as f64 - 1.0);
    let speeds = (0..half).map(|i| (-step * i as f64).exp() as f32);
    let speeds = Tensor::from_vec(speeds.collect(), (1, half))?;
    let angles = (Tensor::arange(0, positions)?.unsqueeze(1)? * speeds)?;
    ops::cat(&[angles.sin()?, angles.cos()?], 1)
}

/// The encoder: two convolutions, the second of which halves the steps of time, and layers of attention.
#[derive(Module, Clone, Debug)]
pub struct Encoder {
    /// From bands of frequencies to the width between layers.
    pub conv1: nn::Conv1d,
    /// Half as many steps.
    pub conv2: nn::Conv1d,
    /// Of positions; a new model has sines and cosines.
    pub embed_positions: nn::Embedding,
    /// The layers.
    pub layers: Vec<EncoderLayer>,
    /// After the last layer.
    pub layer_norm: nn::LayerNorm,
}

impl Encoder {
    fn new(config: &Config) -> Result<Self> {
        let width = config.d_model;
        let conv = |channels, stride: usize| -> Result<_> {
            Ok(nn::Conv1d::new(channels, width, 3)?
                .stride(stride)
                .padding(1))
        };
        let layers = (0..config.encoder_layers).map(|_| EncoderLayer::new(config));
        Ok(Encoder {
            conv1: conv(config.num_mel_bins, 1)?,
            conv2: conv(width, 2)?,
            embed_positions: nn::Embedding {
                weight: sinusoids(config.max_source_positions, width)?.into_parameter()?,
                padding_idx: None,
            },
            layers: layers.collect::<Result<_>>()?,
            layer_norm: nn::LayerNorm::new(width)?,
        })
    }
}

#[trace(path = "fx_nn::models::hf::whisper::Encoder")]
impl Encoder {
    fn forward(&self, input_features: &Tensor) -> Result<Tensor> {
        let x = ops::gelu(&self.conv1.forward(input_features)?, "none")?;
        let x = ops::gelu(&self.conv2.forward(&x)?, "none")?;
        let x = x.transpose(1, 2)?;
        let positions = Tensor::arange(0, x.size(1)?)?;
        let mut x = (x + self.embed_positions.forward(&positions)?)?;
        for layer in &self.layers {
            x = layer.forward(&x)?;
        }
        self.layer_norm.forward(&x)
    }
}

/// The decoder: words with learned positions, and layers of attention to them and to the encoder's
/// results.
#[derive(Module, Clone, Debug)]
pub struct Decoder {
    /// Of words.
    pub embed_tokens: nn::Embedding,
    /// Of positions.
    pub embed_positions: nn::Embedding,
    /// The layers.
    pub layers: Vec<DecoderLayer>,
    /// After the last layer.
    pub layer_norm: nn::LayerNorm,
}

impl Decoder {
    fn new(config: &Config) -> Result<Self> {
        let layers = (0..config.decoder_layers).map(|_| DecoderLayer::new(config));
        Ok(Decoder {
            embed_tokens: nn::Embedding::new(config.vocab_size, config.d_model)?,
            embed_positions: nn::Embedding::new(config.max_target_positions, config.d_model)?,
            layers: layers.collect::<Result<_>>()?,
            layer_norm: nn::LayerNorm::new(config.d_model)?,
        })
    }

    /// The caches before the first word, for each layer.
    fn caches(&self, encoded: &Tensor) -> Result<Vec<Cache>> {
        let caches = self.layers.iter().map(|layer| {
            let (k, v) = layer.encoder_attn.keys_and_values(encoded)?;
            Cache::before(k, v)
        });
        caches.collect()
    }
}

#[trace(path = "fx_nn::models::hf::whisper::Decoder")]
impl Decoder {
    fn forward(&self, tokens: &Tensor, caches: Vec<Cache>) -> Result<(Tensor, Vec<Cache>)> {
        let seen = Cache::seen(&caches)?;
        let total = (seen + tokens.size(1)?)?;
        let positions = self
            .embed_positions
            .forward(&Tensor::arange(seen, total)?)?;
        let mut x = (self.embed_tokens.forward(tokens)? + positions)?;
        let mask = later(seen, total)?.logical_not()?;
        let mut updated = Vec::new();
        for (layer, cache) in self.layers.iter().zip(caches) {
            let (y, cache) = layer.forward(&x, &mask, cache)?;
            x = y;
            updated.push(cache);
        }
        Ok((self.layer_norm.forward(&x)?, updated))
    }
}

/// Encoder and decoder.
#[derive(Module, Clone, Debug)]
pub struct Model {
    /// The encoder.
    pub encoder: Encoder,
    /// The decoder.
    pub decoder: Decoder,
}

/// Encoder, decoder, and a head that scores the next word.
#[derive(Module, Clone, Debug)]
pub struct ConditionalGeneration {
    /// Encoder and decoder.
    pub model: Model,
    /// The head; `None` if it shares the embedding's weights.
    pub proj_out: Option<nn::Linear>,
}

impl ConditionalGeneration {
    /// A model of a configuration, in `float32`.
    ///
    /// # Errors
    /// Returns an error if it does not fit into memory.
    pub fn new(config: &Config) -> Result<Self> {
        let head =
            || -> Result<_> { Ok(nn::Linear::new(config.d_model, config.vocab_size)?.bias(false)) };
        Ok(ConditionalGeneration {
            model: Model {
                encoder: Encoder::new(config)?,
                decoder: Decoder::new(config)?,
            },
            proj_out: (!config.tie_word_embeddings).then(head).transpose()?,
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
        config.tie_word_embeddings = checkpoint.shape("proj_out.weight").is_none();
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

    /// Reads `input_features` `[N, num_mel_bins, 2 · max_source_positions]`, and returns the caches
    /// that [`decode`](Self::decode) needs before the first word. Fewer time steps are accepted
    /// too, but a trained model was not made for them.
    ///
    /// # Errors
    /// Returns an error if the number of bands differs, or there are more time steps than the model
    /// has positions for.
    pub fn encode(&self, input_features: &Tensor) -> Result<Vec<Cache>> {
        let encoded = self.model.encoder.forward(input_features)?;
        self.model.decoder.caches(&encoded)
    }

    /// Scores `[N, T, vocab_size]` of the word after each of `tokens` `[N, T]`, and the caches so
    /// far.
    ///
    /// # Errors
    /// Returns an error if a word is not in the vocabulary, or there are more than
    /// `max_target_positions`.
    pub fn decode(&self, tokens: &Tensor, caches: Vec<Cache>) -> Result<(Tensor, Vec<Cache>)> {
        let (x, caches) = self.model.decoder.forward(tokens, caches)?;
        let scores = match &self.proj_out {
            Some(head) => head.forward(&x)?,
            None => ops::linear(&x, &self.model.decoder.embed_tokens.weight, None)?,
        };
        Ok((scores, caches))
    }

    /// [`forward`](Self::forward), traced: one graph for any number of first words.
    ///
    /// # Errors
    /// Returns the errors of tracing.
    pub fn trace(&self) -> Result<GraphModule> {
        symbolic_trace(self)
    }

    /// [`encode`](Self::encode), traced.
    ///
    /// # Errors
    /// Returns the errors of tracing.
    pub fn trace_encode(&self) -> Result<GraphModule> {
        let model = Rc::new(self.clone());
        let same = model.clone();
        let encode = traced!(move |input_features: &Tensor| same.encode(input_features));
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
        let decode =
            traced!(move |tokens: &Tensor, caches: Vec<Cache>| same.decode(tokens, caches));
        Trace::new(decode)
            .method_of(&*model)
            .concrete("caches", Cache::traced(self.model.decoder.layers.len()))
            .graph_module()
    }
}

#[trace(path = "fx_nn::models::hf::whisper::ConditionalGeneration")]
impl ConditionalGeneration {
    /// Scores `[N, T, vocab_size]` of the word after each of `decoder_input_ids` `[N, T]`, for the
    /// sound `input_features` `[N, num_mel_bins, 2 · max_source_positions]`.
    ///
    /// # Errors
    /// Returns the errors of [`encode`](Self::encode) and [`decode`](Self::decode).
    pub fn forward(&self, input_features: &Tensor, decoder_input_ids: &Tensor) -> Result<Tensor> {
        let caches = self.encode(input_features)?;
        let (scores, _) = self.decode(decoder_input_ids, caches)?;
        Ok(scores)
    }
}
