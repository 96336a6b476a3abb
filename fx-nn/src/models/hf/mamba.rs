//! Mamba: a state that each word updates instead of attention, under the names of Hugging Face's checkpoints.
//!
//! One forward reads a text and writes word after word: the states are an argument and a result of
//! it. The loop over words is inside the leaf function [`selective_scan`], so that one traced graph
//! serves texts of any length.
//!
//! ```
//! use fx_nn::models::hf::mamba::{Cache, CausalLM, Config};
//! use fx_nn::prelude::*;
//! let config = Config::from_json(r#"{
//!     "model_type": "mamba", "vocab_size": 32, "hidden_size": 16, "state_size": 4, "num_hidden_layers": 2
//! }"#)?;
//! let model = CausalLM::new(&config)?;
//! let gm = model.trace()?;
//! let text = Tensor::from_vec(vec![3i64, 1, 4], (1, 3))?;
//! let (scores, caches): (Tensor, Vec<Cache>) = gm.forward((&text, model.caches(1)?))?;
//! let word = scores.i((.., -1))?.argmax(-1, false)?.unsqueeze(1)?;
//! let (next, _): (Tensor, Vec<Cache>) = gm.forward((&word, caches))?;
//! assert_eq!((scores.dims()?, next.dims()?), (&[1, 3, 32][..], &[1, 1, 32][..]));
//! # Ok::<(), fx_nn::Error>(())
//! ```

use crate::op;
use std::path::Path;

use fx_core::function_table;
use fx_core::ir::ValueMeta;
use fx_core::prelude::*;
use fx_core::shapes::ShapeRule;
use fx_core::value::DType;

use super::activation::Activation;
use super::config::{Fields, loaded};
use super::norm::Norm;
use crate::tensor::Tensor;
use crate::weights::Checkpoint;
use crate::{nn, ops};

/// The configuration of a Mamba, as in its `config.json`.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Config {
    /// Number of words in the vocabulary.
    pub vocab_size: usize,
    /// The width between layers.
    pub hidden_size: usize,
    /// The inner width of a layer.
    pub intermediate_size: usize,
    /// The number of state elements for each element of that width.
    pub state_size: usize,
    /// Number of layers.
    pub num_hidden_layers: usize,
    /// How many words the convolution sees, including the current one.
    pub conv_kernel: usize,
    /// The inner width of the computation of time steps.
    pub time_step_rank: usize,
    /// The epsilon that norms add to the mean square.
    pub layer_norm_epsilon: f64,
    /// Whether the layers into and out of a mixer have a bias.
    pub use_bias: bool,
    /// Whether the convolution has a bias.
    pub use_conv_bias: bool,
    /// The activation of the convolution's results.
    pub activation: Activation,
    /// Whether residuals are in single precision.
    pub residual_in_fp32: bool,
    /// Whether the head's weights are the embedding's.
    pub tie_word_embeddings: bool,
    /// The type to load the checkpoint in.
    pub dtype: DType,
}

impl Config {
    /// Reads a `config.json`.
    ///
    /// ```
    /// use fx_nn::models::hf::mamba::Config;
    /// let error = Config::from_json(r#"{"model_type": "mamba", "hidden_size": 16, "time_step_rank": "large"}"#);
    /// let error = error.unwrap_err().to_string();
    /// assert!(error.contains("`vocab_size` is missing") && error.contains("`time_step_rank` is \"large\""));
    /// ```
    ///
    /// # Errors
    /// Returns an error if a field is missing, has the wrong kind or an unsupported value, with a
    /// line for each.
    pub fn from_json(text: &str) -> Result<Self> {
        let mut fields = Fields::parse(text)?;
        let family = fields.text_or("model_type", None);
        if family != "mamba" {
            fields.problem(format!("`model_type` is `{family}`: supported is mamba"));
        }
        let hidden_size = fields.size("hidden_size");
        let intermediate_size = match fields.get("intermediate_size") {
            Some(_) => fields.size("intermediate_size"),
            None => fields.size_or("expand", 2).saturating_mul(hidden_size),
        };
        let is_auto = fields.get("time_step_rank").and_then(|rank| rank.as_str()) == Some("auto");
        let auto = hidden_size.div_ceil(16);
        let time_step_rank = match is_auto {
            true => auto,
            false => fields.size_or("time_step_rank", auto),
        };
        let config = Config {
            vocab_size: fields.size("vocab_size"),
            hidden_size,
            intermediate_size,
            state_size: fields.size_or("state_size", 16),
            num_hidden_layers: fields.size("num_hidden_layers"),
            conv_kernel: fields.size_or("conv_kernel", 4),
            time_step_rank,
            layer_norm_epsilon: fields.number_or("layer_norm_epsilon", 1e-5),
            use_bias: fields.flag_or("use_bias", false),
            use_conv_bias: fields.flag_or("use_conv_bias", true),
            activation: Activation::of(&mut fields, "hidden_act", "silu"),
            residual_in_fp32: fields.flag_or("residual_in_fp32", true),
            tie_word_embeddings: fields.flag_or("tie_word_embeddings", true),
            dtype: fields.dtype(),
        };
        fields.finish()?;
        Ok(config)
    }
}

/// The state of a layer after the words so far.
#[derive(Tree, Clone, Debug)]
pub struct Cache {
    /// The last inputs of the convolution, `[N, intermediate_size, conv_kernel - 1]`.
    pub conv: Tensor,
    /// The state, `[N, intermediate_size, state_size]`, in single precision.
    pub ssm: Tensor,
}

/// The states h(t) = exp(delta(t) · a) · h(t - 1) + delta(t) · b(t) · u(t), read by c: y(t) = h(t)
/// · c(t), for each of the width `I` with a state of `S` numbers. Returns all y and the last state.
///
/// `u` and `delta` are `[N, L, I]`, `a` `[I, S]`, `b` and `c` `[N, L, S]`, the `state` before the first `[N, I, S]`; y is
/// `[N, L, I]` in the type of `u`. States are in single precision, and are rounded to the type of `u` to be read.
///
/// A leaf for a tracer: the loop over `L` is not part of a graph.
///
/// ```
/// use fx_nn::models::hf::mamba::selective_scan;
/// use fx_nn::prelude::*;
/// let (u, ones) = (Tensor::ones((1, 3, 1))?, Tensor::ones((1, 3, 1))?);
/// let (a, state) = (Tensor::zeros((1, 1))?, Tensor::zeros((1, 1, 1))?);
/// // Nothing is forgotten: the states are sums.
/// let (y, state) = selective_scan(&u, &ones, &a, &ones, &ones, &state)?;
/// assert_eq!(y.to_vec()?, [1.0, 2.0, 3.0]);
/// assert_eq!(state.to_vec()?, [3.0]);
/// # Ok::<(), fx_nn::Error>(())
/// ```
///
/// # Errors
/// Returns an error if the shapes do not fit, or `L` is 0.
#[op(member, path = "fx_nn::models::hf::mamba::selective_scan")]
pub fn selective_scan(
    u: &Tensor,
    delta: &Tensor,
    a: &Tensor,
    b: &Tensor,
    c: &Tensor,
    state: &Tensor,
) -> Result<(Tensor, Tensor)> {
    let misfit = || {
        Err(Error::msg(
            "selective_scan: u and delta are [N, L, I], a [I, S], b and c [N, L, S], and the state [N, I, S], with L from 1 on",
        ))
    };
    let (&[n, length, width], &[_, size]) = (u.dims()?, a.dims()?) else {
        return misfit();
    };
    let given = [delta, a, b, c, state].map(Tensor::dims);
    let wanted: [&[usize]; 5] = [
        &[n, length, width],
        &[width, size],
        &[n, length, size],
        &[n, length, size],
        &[n, width, size],
    ];
    for (given, wanted) in given.into_iter().zip(wanted) {
        if given? != wanted {
            return misfit();
        }
    }
    if length == 0 {
        return misfit();
    }
    let wide = |x: &Tensor| x.to_dtype(DType::F32);
    let step = wide(delta)?.unsqueeze(3)?;
    let kept = (&step * wide(a)?)?.exp()?;
    let added = ((step * wide(b)?.unsqueeze(2)?)? * wide(u)?.unsqueeze(3)?)?;
    let mut state = wide(state)?;
    let mut states = Vec::with_capacity(length);
    for at in 0..length {
        state = ((kept.i((.., at))? * state)? + added.i((.., at))?)?;
        states.push(state.clone());
    }
    let states = ops::stack(&states, 1)?.type_as(u)?;
    let read = c.type_as(u)?.unsqueeze(3)?;
    Ok((ops::matmul(&states, &read)?.squeeze(3)?, state))
}

function_table! { ShapeRule {
    function!(selective_scan) => ShapeRule(|call| {
        let (u, state) = (call.tensor("u")?.clone(), call.tensor("state")?.clone());
        Ok(ValueMeta::Tuple(vec![ValueMeta::from(u), ValueMeta::from(state.dtype(DType::F32))]))
    }),
} }

/// The states of a layer, after a convolution and before a gate.
#[derive(Module, Clone, Debug)]
pub struct Mixer {
    /// Depthwise, over the last words.
    pub conv1d: nn::Conv1d,
    /// The input of the convolution, and the gate.
    pub in_proj: nn::Linear,
    /// From the convolution's results: the time steps, and how the state is written and read.
    pub x_proj: nn::Linear,
    /// The time steps for the inner width.
    pub dt_proj: nn::Linear,
    /// The logarithm of the rate of decay, `[intermediate_size, state_size]`.
    #[module(name = "A_log")]
    pub a_log: Tensor,
    /// How much of the input bypasses the state, `[intermediate_size]`.
    #[module(name = "D")]
    pub d: Tensor,
    /// Back to the width between layers.
    pub out_proj: nn::Linear,
    activation: Activation,
    time_step_rank: usize,
    state_size: usize,
}

impl Mixer {
    fn new(config: &Config) -> Result<Self> {
        let (width, inner) = (config.hidden_size, config.intermediate_size);
        let (rank, size) = (config.time_step_rank, config.state_size);
        let conv1d = nn::Conv1d::grouped(inner, inner, config.conv_kernel, inner)?;
        // Each number of a state decays faster than the one before.
        let speeds = Tensor::arange(1, size.saturating_add(1))?
            .to_dtype(DType::F32)?
            .log()?;
        Ok(Mixer {
            conv1d: conv1d.bias(config.use_conv_bias),
            in_proj: nn::Linear::new(width, inner.saturating_mul(2))?.bias(config.use_bias),
            x_proj: nn::Linear::new(inner, size.saturating_mul(2).saturating_add(rank))?
                .bias(false),
            dt_proj: nn::Linear::new(rank, inner)?,
            a_log: speeds
                .expand((inner, size))?
                .contiguous()?
                .into_parameter()?,
            d: Tensor::ones(inner)?.into_parameter()?,
            out_proj: nn::Linear::new(inner, width)?.bias(config.use_bias),
            activation: config.activation,
            time_step_rank: rank,
            state_size: size,
        })
    }
}

#[trace(path = "fx_nn::models::hf::mamba::Mixer")]
impl Mixer {
    fn forward(&self, x: &Tensor, cache: Cache) -> Result<(Tensor, Cache)> {
        let [x, gate] = self.in_proj.forward(x)?.chunk(2, -1)?.unpack()?;
        let length = x.size(1)?;
        // The previous words pad the convolution.
        let seen = ops::cat(&[cache.conv, x.transpose(1, 2)?], 2)?;
        let conv = seen.i((.., .., length..))?;
        let x = self.activation.apply(&self.conv1d.forward(&seen)?)?;
        let x = x.transpose(1, 2)?;
        let sizes = vec![self.time_step_rank, self.state_size, self.state_size];
        let [delta, b, c] =
            ops::split_with_sizes(&self.x_proj.forward(&x)?, sizes, -1)?.unpack()?;
        // The bias is added after rounding, as in the library.
        let delta = ops::linear(&delta, &self.dt_proj.weight, None)?;
        let delta = match &self.dt_proj.bias {
            Some(bias) => (delta + bias)?,
            None => delta,
        };
        let delta = ops::softplus(&delta, 1.0, 20.0)?;
        let a = self.a_log.to_dtype(DType::F32)?.exp()?.neg()?;
        let (y, ssm) = selective_scan(&x, &delta, &a, &b, &c, &cache.ssm)?;
        let around = (&x * self.d.to_dtype(DType::F32)?)?;
        let y = ((y + around)? * ops::silu(&gate)?)?.type_as(&gate)?;
        Ok((self.out_proj.forward(&y)?, Cache { conv, ssm }))
    }
}

/// A mixer after a norm, added to its input.
#[derive(Module, Clone, Debug)]
pub struct Block {
    /// Before the mixer.
    pub norm: Norm,
    /// The mixer.
    pub mixer: Mixer,
    residual_in_fp32: bool,
}

#[trace(path = "fx_nn::models::hf::mamba::Block")]
impl Block {
    fn forward(&self, x: &Tensor, cache: Cache) -> Result<(Tensor, Cache)> {
        let h = self.norm.forward(&x.type_as(&self.norm.weight)?)?;
        let (h, cache) = self.mixer.forward(&h, cache)?;
        let y = match self.residual_in_fp32 {
            true => (x.to_dtype(DType::F32)? + h)?,
            false => (x + h)?,
        };
        Ok((y, cache))
    }
}

/// The layers between the embedding and the head.
#[derive(Module, Clone, Debug)]
pub struct Backbone {
    /// Of words.
    pub embeddings: nn::Embedding,
    /// The layers.
    pub layers: Vec<Block>,
    /// After the last layer.
    pub norm_f: Norm,
}

impl Backbone {
    fn new(config: &Config) -> Result<Self> {
        let norm = || Norm::new(config.hidden_size, config.layer_norm_epsilon);
        let layer = |_| {
            Ok(Block {
                norm: norm()?,
                mixer: Mixer::new(config)?,
                residual_in_fp32: config.residual_in_fp32,
            })
        };
        let count = config.num_hidden_layers;
        Ok(Backbone {
            embeddings: nn::Embedding::new(config.vocab_size, config.hidden_size)?,
            layers: (0..count).map(layer).collect::<Result<_>>()?,
            norm_f: norm()?,
        })
    }
}

#[trace(path = "fx_nn::models::hf::mamba::Backbone")]
impl Backbone {
    fn forward(&self, tokens: &Tensor, caches: Vec<Cache>) -> Result<(Tensor, Vec<Cache>)> {
        let mut x = self.embeddings.forward(tokens)?;
        let mut updated = Vec::new();
        for (layer, cache) in self.layers.iter().zip(caches) {
            let (y, cache) = layer.forward(&x, cache)?;
            x = y;
            updated.push(cache);
        }
        Ok((self.norm_f.forward(&x)?, updated))
    }
}

/// A Mamba with a head that scores the next word.
#[derive(Module, Clone, Debug)]
pub struct CausalLM {
    /// The layers.
    pub backbone: Backbone,
    /// The head; `None` if it shares the embedding's weights.
    pub lm_head: Option<nn::Linear>,
    cache: CacheShape,
}

/// The sizes of a cache's tensors.
#[derive(Module, Clone, Copy, Debug)]
struct CacheShape {
    width: usize,
    seen: usize,
    state_size: usize,
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
            backbone: Backbone::new(config)?,
            lm_head: (!config.tie_word_embeddings).then(head).transpose()?,
            cache: CacheShape {
                width: config.intermediate_size,
                seen: config.conv_kernel - 1,
                state_size: config.state_size,
            },
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
        // The first checkpoints have another name for the embedding.
        let checkpoint = Checkpoint::open(folder)?
            .rename(|name| name.replace("backbone.embedding.", "backbone.embeddings."))?;
        config.tie_word_embeddings = checkpoint.shape("lm_head.weight").is_none();
        CausalLM::load(&config, &checkpoint)
    }

    /// The model of a configuration with the weights of a checkpoint, frozen for inference.
    ///
    /// # Errors
    /// Returns all problems of the weights.
    pub fn load(config: &Config, checkpoint: &Checkpoint) -> Result<Self> {
        loaded(|| CausalLM::new(config), config.dtype, checkpoint)
    }

    /// The states before the first word: zeros, for each layer.
    ///
    /// # Errors
    /// Returns an error if they do not fit into memory.
    pub fn caches(&self, batch: usize) -> Result<Vec<Cache>> {
        let dtype = self.backbone.norm_f.weight.dtype()?;
        let shape = self.cache;
        let caches = self.backbone.layers.iter().map(|_| {
            let conv = Tensor::zeros((batch, shape.width, shape.seen))?;
            Ok(Cache {
                conv: conv.to_dtype(dtype)?,
                ssm: Tensor::zeros((batch, shape.width, shape.state_size))?,
            })
        });
        caches.collect()
    }

    /// The traced model: one graph for texts of any length and for the words after them.
    ///
    /// # Errors
    /// Returns the errors of tracing.
    pub fn trace(&self) -> Result<GraphModule> {
        let caches = vec![tree!({"conv": PH, "ssm": PH}); self.backbone.layers.len()];
        Trace::new(self)
            .concrete("caches", Value::List(caches.into()))
            .graph_module()
    }
}

#[trace(path = "fx_nn::models::hf::mamba::CausalLM")]
impl CausalLM {
    /// Scores `[N, T, vocab_size]` of the word after each of `tokens` `[N, T]`, in single
    /// precision, and the states after them.
    ///
    /// # Errors
    /// Returns an error if a word is not in the vocabulary, or there are no words.
    pub fn forward(&self, tokens: &Tensor, caches: Vec<Cache>) -> Result<(Tensor, Vec<Cache>)> {
        let (x, caches) = self.backbone.forward(tokens, caches)?;
        let embeddings = &self.backbone.embeddings.weight;
        let x = x.type_as(embeddings)?;
        let scores = match &self.lm_head {
            Some(head) => head.forward(&x)?,
            None => ops::linear(&x, embeddings, None)?,
        };
        Ok((scores.to_dtype(DType::F32)?, caches))
    }
}
