//! ModernBERT under the names of Hugging Face's `ModernBertModel`: the states of all words of a long text.
//!
//! Most layers see the words nearby, and every few layers see all of them; both turn by angles of their own.
//!
//! ```
//! use fx_nn::models::hf::encoder::BaseModelOutputWithPooling;
//! use fx_nn::models::hf::modernbert::{Config, ModernBertModel};
//! use fx_nn::prelude::*;
//! let config = r#"{
//!     "model_type": "modernbert", "vocab_size": 32, "hidden_size": 16, "num_hidden_layers": 3, "num_attention_heads": 4,
//!     "intermediate_size": 24, "max_position_embeddings": 64, "local_attention": 4, "global_attn_every_n_layers": 3
//! }"#;
//! let mut model = ModernBertModel::new(&Config::from_json(config)?)?;
//! model.eval();
//! let gm = symbolic_trace(&model)?;
//! // The second text is shorter than the first.
//! let words = Tensor::from_vec(vec![2i64, 9, 4, 3, 2, 7, 3, 0], (2, 4))?;
//! let mask = Tensor::from_vec(vec![1i64, 1, 1, 1, 1, 1, 1, 0], (2, 4))?;
//! let y: BaseModelOutputWithPooling = gm.forward((&words, &mask))?;
//! assert_eq!(y.last_hidden_state.dims()?, [2, 4, 16]);
//!
//! let odd = config.replace("64", "64, \"layer_types\": [\"full_attention\", \"chunked_attention\"]");
//! let error = Config::from_json(&odd).unwrap_err().to_string();
//! assert!(error.contains("`layer_types` has 2 entries, and there are 3 layers"), "{error}");
//! assert!(error.contains("supported are full_attention and sliding_attention"), "{error}");
//! # Ok::<(), fx_nn::Error>(())
//! ```

use std::path::Path;

use fx_core::prelude::*;
use fx_core::value::DType;
use serde_json::Value as Json;

use super::activation::Activation;
use super::config::{Fields, loaded};
use super::decoder::{Angles, RopeScaling};
use super::encoder::{BaseModelOutputWithPooling, heads_divide, without_head};
use crate::tensor::Tensor;
use crate::weights::Checkpoint;
use crate::{nn, ops};

/// The configuration of a ModernBERT, as in its `config.json`.
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
    /// Number of attention heads.
    pub num_attention_heads: usize,
    /// Number of positions.
    pub max_position_embeddings: usize,
    /// The activation of the gate of an `mlp`.
    pub hidden_activation: Activation,
    /// The epsilon that layer norms add to the variance.
    pub norm_eps: f64,
    /// Whether layer norms have a bias.
    pub norm_bias: bool,
    /// Whether the linear layers of the attention have a bias.
    pub attention_bias: bool,
    /// Whether the linear layers of an `mlp` have a bias.
    pub mlp_bias: bool,
    /// How far to either side each layer sees; `None` for everywhere.
    pub windows: Vec<Option<usize>>,
    /// The base of the angles in layers that see everything.
    pub global_rope_theta: f64,
    /// The base of the angles in layers with a window.
    pub local_rope_theta: f64,
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
        fields.only("model_type", "modernbert");
        let layers = fields.layers();
        let config = Config {
            vocab_size: fields.size("vocab_size"),
            hidden_size: fields.size("hidden_size"),
            intermediate_size: fields.size("intermediate_size"),
            num_hidden_layers: layers,
            num_attention_heads: fields.size("num_attention_heads"),
            max_position_embeddings: fields.size_or("max_position_embeddings", 8192),
            hidden_activation: Activation::of(&mut fields, "hidden_activation", "gelu"),
            norm_eps: fields.number_or("norm_eps", 1e-5),
            norm_bias: fields.flag_or("norm_bias", false),
            attention_bias: fields.flag_or("attention_bias", false),
            mlp_bias: fields.flag_or("mlp_bias", false),
            windows: windows(&mut fields, layers),
            global_rope_theta: theta(&mut fields, "full_attention", "global_rope_theta", 160000.0),
            local_rope_theta: theta(
                &mut fields,
                "sliding_attention",
                "local_rope_theta",
                10000.0,
            ),
            dtype: fields.dtype(),
        };
        fields.inside("rope_scaling", default_angles);
        heads_divide(&mut fields, config.num_attention_heads, config.hidden_size);
        if !config.head_dim().is_multiple_of(2) {
            fields.problem(format!(
                "heads are {} wide, and no even number",
                config.head_dim()
            ));
        }
        fields.finish()?;
        Ok(config)
    }

    fn head_dim(&self) -> usize {
        self.hidden_size / self.num_attention_heads
    }

    fn norm(&self) -> Result<nn::LayerNorm> {
        let norm = nn::LayerNorm::new(self.hidden_size)?;
        Ok(norm.eps(self.norm_eps).bias(self.norm_bias))
    }
}

/// How far each layer sees. Newer files list it layer by layer.
fn windows(fields: &mut Fields, layers: usize) -> Vec<Option<usize>> {
    // A window counts both sides.
    let window = fields.size_or("local_attention", 128) / 2;
    let every = fields.size_or("global_attn_every_n_layers", 3);
    let Some(types) = fields.get("layer_types").cloned() else {
        let of = |at: usize| (!at.is_multiple_of(every)).then_some(window);
        return (0..layers).map(of).collect();
    };
    let types = types.as_array().map(Vec::as_slice).unwrap_or_default();
    if types.len() != layers {
        fields.problem(format!(
            "`layer_types` has {} entries, and there are {layers} layers",
            types.len()
        ));
    }
    let of = |kind: &Json| match kind.as_str() {
        Some("sliding_attention") => Some(window),
        Some("full_attention") => None,
        _ => {
            fields.problem(format!(
                "`layer_types` has {kind}: supported are full_attention and sliding_attention"
            ));
            None
        }
    };
    types.iter().map(of).collect()
}

/// Records a problem if angles are scaled.
fn default_angles(fields: &mut Fields) {
    let name = fields.get("rope_type").map_or("type", |_| "rope_type");
    fields.only(name, "default");
}

/// The base of the angles of a kind of layer. Newer files have it in an object of the kind's name.
fn theta(fields: &mut Fields, kind: &str, old: &str, default: f64) -> f64 {
    let default = fields.number_or(old, default);
    fields.inside("rope_parameters", |fields| {
        fields.inside(kind, |fields| {
            default_angles(fields);
            fields.number_or("rope_theta", default)
        })
    })
}

/// What a layer needs to know of positions.
#[derive(Tree, Clone, Debug)]
struct Positions {
    /// `[T, head_dim / 2]`.
    cos: Tensor,
    sin: Tensor,
    /// Whether a word sees another: broadcasts to `[N, heads, T, T]`.
    mask: Tensor,
}

/// x rotated by its position: the halves of each head are real and imaginary parts. Computed in
/// single precision, as Hugging Face's model does.
fn rotate(x: &Tensor, at: &Positions) -> Result<Tensor> {
    let (cos, sin) = (at.cos.to_dtype(DType::F32)?, at.sin.to_dtype(DType::F32)?);
    let [a, b] = x.to_dtype(DType::F32)?.chunk(2, -1)?.unpack()?;
    let real = ((&a * &cos)? - (&b * &sin)?)?;
    let imaginary = ((b * cos)? + (a * sin)?)?;
    ops::cat(&[real, imaginary], -1)?.type_as(x)
}

/// Attention of all words to those that a mask shows.
#[derive(Module, Clone, Debug)]
pub struct Attention {
    /// Queries, keys and values.
    #[module(name = "Wqkv")]
    pub wqkv: nn::Linear,
    /// Over the heads.
    #[module(name = "Wo")]
    pub wo: nn::Linear,
    head_dim: usize,
}

#[trace(path = "fx_nn::models::hf::modernbert::Attention")]
impl Attention {
    fn forward(&self, x: &Tensor, at: Positions) -> Result<Tensor> {
        let [n, t, _] = x.shape()?.unpack()?;
        let heads = |x: &Tensor| x.view((n, t, -1, self.head_dim))?.transpose(1, 2);
        let [q, k, v] = self.wqkv.forward(x)?.chunk(3, -1)?.unpack()?;
        let (q, k) = (rotate(&heads(&q)?, &at)?, rotate(&heads(&k)?, &at)?);
        let (v, mask) = (heads(&v)?, Some(&at.mask));
        let y = ops::scaled_dot_product_attention(&q, &k, &v, mask, 0.0, false, None, false)?;
        self.wo.forward(&y.transpose(1, 2)?.reshape((n, t, -1))?)
    }
}

/// A gated layer: the activated first half of `Wi` times its second half, through `Wo`.
#[derive(Module, Clone, Debug)]
pub struct Mlp {
    /// The gate, and the gated values.
    #[module(name = "Wi")]
    pub wi: nn::Linear,
    /// Back to the width between layers.
    #[module(name = "Wo")]
    pub wo: nn::Linear,
    activation: Activation,
}

#[trace(path = "fx_nn::models::hf::modernbert::Mlp")]
impl Mlp {
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let [gate, x] = self.wi.forward(x)?.chunk(2, -1)?.unpack()?;
        self.wo.forward(&(self.activation.apply(&gate)? * x)?)
    }
}

/// Attention and `mlp`, each after a norm and added to its input.
#[derive(Module, Clone, Debug)]
pub struct Layer {
    /// Before the attention; `None` in the first layer, whose input has been normalised.
    pub attn_norm: Option<nn::LayerNorm>,
    /// The attention.
    pub attn: Attention,
    /// Before the `mlp`.
    pub mlp_norm: nn::LayerNorm,
    /// The `mlp`.
    pub mlp: Mlp,
}

impl Layer {
    fn new(config: &Config, at: usize) -> Result<Self> {
        let (width, inside) = (config.hidden_size, config.intermediate_size);
        let linear = |inputs, outputs, bias| -> Result<_> {
            Ok(nn::Linear::new(inputs, outputs)?.bias(bias))
        };
        let attn_norm = (at > 0).then(|| config.norm());
        Ok(Layer {
            attn_norm: attn_norm.transpose()?,
            attn: Attention {
                wqkv: linear(width, 3 * width, config.attention_bias)?,
                wo: linear(width, width, config.attention_bias)?,
                head_dim: config.head_dim(),
            },
            mlp_norm: config.norm()?,
            mlp: Mlp {
                wi: linear(width, 2 * inside, config.mlp_bias)?,
                wo: linear(inside, width, config.mlp_bias)?,
                activation: config.hidden_activation,
            },
        })
    }
}

#[trace(path = "fx_nn::models::hf::modernbert::Layer")]
impl Layer {
    fn forward(&self, x: &Tensor, at: Positions) -> Result<Tensor> {
        let h = match &self.attn_norm {
            Some(norm) => self.attn.forward(&norm.forward(x)?, at)?,
            None => self.attn.forward(x, at)?,
        };
        let x = (x + h)?;
        let h = self.mlp.forward(&self.mlp_norm.forward(&x)?)?;
        x + h
    }
}

/// Words as vectors.
#[derive(Module, Clone, Debug)]
pub struct Embeddings {
    /// Of words.
    pub tok_embeddings: nn::Embedding,
    /// After it.
    pub norm: nn::LayerNorm,
}

#[trace(path = "fx_nn::models::hf::modernbert::Embeddings")]
impl Embeddings {
    fn forward(&self, input_ids: &Tensor) -> Result<Tensor> {
        self.norm.forward(&self.tok_embeddings.forward(input_ids)?)
    }
}

/// A ModernBERT without a head.
#[derive(Module, Clone, Debug)]
pub struct ModernBertModel {
    /// Words as vectors.
    pub embeddings: Embeddings,
    /// The layers.
    pub layers: Vec<Layer>,
    /// After the last layer.
    pub final_norm: nn::LayerNorm,
    /// Of layers that see everything.
    global: Angles,
    /// Of layers with a window.
    local: Angles,
    windows: Vec<Option<usize>>,
}

impl ModernBertModel {
    /// A model of a configuration, in `float32`.
    ///
    /// # Errors
    /// Returns an error if it does not fit into memory.
    pub fn new(config: &Config) -> Result<Self> {
        let layers = (0..config.num_hidden_layers).map(|at| Layer::new(config, at));
        let angles = |theta| {
            let (positions, dim) = (config.max_position_embeddings, config.head_dim());
            Angles::new(positions, theta, dim, &RopeScaling::None)
        };
        Ok(ModernBertModel {
            embeddings: Embeddings {
                tok_embeddings: nn::Embedding::new(config.vocab_size, config.hidden_size)?,
                norm: config.norm()?,
            },
            layers: layers.collect::<Result<_>>()?,
            final_norm: config.norm()?,
            global: angles(config.global_rope_theta)?,
            local: angles(config.local_rope_theta)?,
            windows: config.windows.clone(),
        })
    }

    /// What layers of a window need to know of `count` positions, of which `words` `[N, 1, 1, T]` are no padding.
    fn positions(&self, count: Int, window: Option<usize>, words: &Tensor) -> Result<Positions> {
        let (angles, mask) = match window {
            None => (&self.global, words.clone()),
            Some(window) => {
                let positions = Tensor::arange(0, count)?;
                let distances = (positions.unsqueeze(1)? - positions.unsqueeze(0)?)?;
                let near = distances.abs()?.le(window as i64)?;
                (&self.local, (near & words)?)
            }
        };
        Ok(Positions {
            cos: angles.cos.i(..count)?,
            sin: angles.sin.i(..count)?,
            mask,
        })
    }

    /// The model of a Hugging Face folder with `config.json` and weights, in the type that it was
    /// saved in, frozen for inference. Weights may be those of a model that scores words, whose
    /// head is left out.
    ///
    /// # Errors
    /// Returns all problems of the configuration, or of the weights; see [`Checkpoint`].
    pub fn from_folder(folder: impl AsRef<Path>) -> Result<Self> {
        let folder = folder.as_ref();
        let config = Fields::of_folder(folder, Config::from_json)?;
        let checkpoint = without_head(Checkpoint::open(folder)?, "model.");
        ModernBertModel::load(&config, &checkpoint)
    }

    /// The model of a configuration with the weights of a checkpoint, frozen for inference.
    ///
    /// # Errors
    /// Returns all problems of the weights.
    pub fn load(config: &Config, checkpoint: &Checkpoint) -> Result<Self> {
        loaded(|| ModernBertModel::new(config), config.dtype, checkpoint)
    }
}

#[trace(path = "fx_nn::models::hf::modernbert::ModernBertModel")]
impl ModernBertModel {
    /// The states of the words `input_ids` `[N, T]`; words where `attention_mask` `[N, T]` is 0 are
    /// ignored. Both are `int64`. There is no state for the whole text.
    ///
    /// # Errors
    /// Returns an error if there are more positions than the model has, or the shapes do not fit.
    pub fn forward(
        &self,
        input_ids: &Tensor,
        attention_mask: &Tensor,
    ) -> Result<BaseModelOutputWithPooling> {
        let count = input_ids.size(1)?;
        let words = attention_mask.ne(0)?.unsqueeze(1)?.unsqueeze(2)?;
        let mut kinds: Vec<(Option<usize>, Positions)> = Vec::new();
        let mut x = self.embeddings.forward(input_ids)?;
        for (layer, window) in self.layers.iter().zip(&self.windows) {
            let at = match kinds.iter().find(|(of, _)| of == window) {
                Some((_, at)) => at.clone(),
                None => {
                    let at = self.positions(count, *window, &words)?;
                    kinds.push((*window, at.clone()));
                    at
                }
            };
            x = layer.forward(&x, at)?;
        }
        Ok(BaseModelOutputWithPooling {
            last_hidden_state: self.final_norm.forward(&x)?,
            pooler_output: None,
        })
    }
}
