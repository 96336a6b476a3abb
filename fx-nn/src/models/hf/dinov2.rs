//! DINOv2 under the names of Hugging Face's `Dinov2Model`: the states of patches, and one for the whole image.
//!
//! ```
//! use fx_nn::models::hf::dinov2::{Config, Dinov2Model};
//! use fx_nn::models::hf::encoder::BaseModelOutputWithPooling;
//! use fx_nn::prelude::*;
//! let config = r#"{
//!     "model_type": "dinov2", "hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 4, "mlp_ratio": 2,
//!     "image_size": 8, "patch_size": 4, "use_swiglu_ffn": true
//! }"#;
//! let mut model = Dinov2Model::new(&Config::from_json(config)?)?;
//! assert_eq!(model.forward(&Tensor::rand((2, 3, 8, 8))?)?.last_hidden_state.dims()?, [2, 5, 16]);
//! model.embeddings.interpolate_pos_encoding([12, 8])?;
//! let gm = symbolic_trace(&model)?;
//! let y: BaseModelOutputWithPooling = gm.forward(&Tensor::rand((2, 3, 12, 8))?)?;
//! assert_eq!(y.last_hidden_state.dims()?, [2, 7, 16]);
//!
//! let odd = config.replace("\"mlp_ratio\": 2", "\"mlp_ratio\": -2").replace("dinov2", "dinov3");
//! let error = Config::from_json(&odd).unwrap_err().to_string();
//! assert!(error.contains("`model_type` is `dinov3`: supported is dinov2"), "{error}");
//! assert!(error.contains("`mlp_ratio` is -2, and no number above 0"), "{error}");
//! # Ok::<(), fx_nn::Error>(())
//! ```

use std::path::Path;

use fx_core::prelude::*;
use fx_core::value::DType;

use super::config::{Fields, loaded};
use super::encoder::{
    Attention, BaseModelOutputWithPooling, ImageEmbeddings, Images, Mlp, Sizes, without_head,
};
use crate::tensor::Tensor;
use crate::weights::Checkpoint;
use crate::{nn, ops};

/// The configuration of a DINOv2, as in its `config.json`.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Config {
    /// The sizes of the layers.
    pub sizes: Sizes,
    /// The ratio of a layer's inner width to its width, before a gate takes a third of it.
    pub mlp_ratio: f64,
    /// Whether layers have a gate.
    pub use_swiglu_ffn: bool,
    /// How images are cut into patches.
    pub images: Images,
    /// Whether queries, keys and values have a bias.
    pub qkv_bias: bool,
    /// The initial factor of a layer's results.
    pub layerscale_value: f64,
    /// Whether there is a vector for patches that are hidden in training.
    pub use_mask_token: bool,
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
        fields.only("model_type", "dinov2");
        let config = Config {
            sizes: Sizes::of(&mut fields, None, "gelu", 1e-6),
            mlp_ratio: fields.number_or("mlp_ratio", 4.0),
            use_swiglu_ffn: fields.flag_or("use_swiglu_ffn", false),
            images: Images::of(&mut fields, None, None),
            qkv_bias: fields.flag_or("qkv_bias", true),
            layerscale_value: fields.number_or("layerscale_value", 1.0),
            use_mask_token: fields.flag_or("use_mask_token", true),
            dtype: fields.dtype(),
        };
        fields.finish()?;
        Ok(config)
    }

    /// The inner width of a layer without a gate.
    fn inside(&self) -> usize {
        (self.sizes.hidden_size as f64 * self.mlp_ratio) as usize
    }
}

/// A gated layer: silu of the gate times the rest, through `weights_out`.
#[derive(Module, Clone, Debug)]
pub struct SwiGLU {
    /// The gate, and the gated values.
    pub weights_in: nn::Linear,
    /// Back to the width between layers.
    pub weights_out: nn::Linear,
}

#[trace(path = "fx_nn::models::hf::dinov2::SwiGLU")]
impl SwiGLU {
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let [gate, rest] = self.weights_in.forward(x)?.chunk(2, -1)?.unpack()?;
        self.weights_out.forward(&(ops::silu(&gate)? * rest)?)
    }
}

/// The feed-forward part of a layer.
#[derive(Module, Clone, Debug)]
#[non_exhaustive]
pub enum FeedForward {
    /// Without a gate.
    Mlp(#[module(flatten)] Mlp),
    /// With one.
    SwiGLU(#[module(flatten)] SwiGLU),
}

impl FeedForward {
    fn new(config: &Config) -> Result<Self> {
        if !config.use_swiglu_ffn {
            return Ok(FeedForward::Mlp(Mlp::new(&config.sizes, config.inside())?));
        }
        // Two thirds of the width without a gate, up to the next multiple of 8.
        let width = config.sizes.hidden_size;
        let inside = (config.inside().saturating_mul(2) / 3).next_multiple_of(8);
        Ok(FeedForward::SwiGLU(SwiGLU {
            weights_in: nn::Linear::new(width, 2 * inside)?,
            weights_out: nn::Linear::new(inside, width)?,
        }))
    }

    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        match self {
            FeedForward::Mlp(mlp) => mlp.forward(x),
            FeedForward::SwiGLU(gated) => gated.forward(x),
        }
    }
}

/// Multiplies each element of the width by a number of its own.
#[derive(Module, Clone, Debug)]
pub struct LayerScale {
    /// `[hidden_size]`.
    pub lambda1: Tensor,
}

impl LayerScale {
    fn new(config: &Config) -> Result<Self> {
        let ones = Tensor::ones(config.sizes.hidden_size)?;
        Ok(LayerScale {
            lambda1: (ones * config.layerscale_value)?.into_parameter()?,
        })
    }
}

#[trace(path = "fx_nn::models::hf::dinov2::LayerScale")]
impl LayerScale {
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        x * &self.lambda1
    }
}

/// Attention and linear layers, each after a norm, scaled, and added to its input.
#[derive(Module, Clone, Debug)]
pub struct Layer {
    /// Before the attention.
    pub norm1: nn::LayerNorm,
    /// The attention.
    pub attention: Attention,
    /// After the attention.
    pub layer_scale1: LayerScale,
    /// Before the linear layers.
    pub norm2: nn::LayerNorm,
    /// The linear layers.
    pub mlp: FeedForward,
    /// After the linear layers.
    pub layer_scale2: LayerScale,
}

#[trace(path = "fx_nn::models::hf::dinov2::Layer")]
impl Layer {
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let y = self.attention.forward(&self.norm1.forward(x)?)?;
        let x = (self.layer_scale1.forward(&y)? + x)?;
        let y = self.mlp.forward(&self.norm2.forward(&x)?)?;
        self.layer_scale2.forward(&y)? + x
    }
}

/// The layers.
#[derive(Module, Clone, Debug)]
pub struct Encoder {
    /// One after another.
    pub layer: Vec<Layer>,
}

/// A DINOv2 without a head.
#[derive(Module, Clone, Debug)]
pub struct Dinov2Model {
    /// Patches as vectors.
    pub embeddings: ImageEmbeddings,
    /// The layers.
    pub encoder: Encoder,
    /// After the last layer.
    pub layernorm: nn::LayerNorm,
}

impl Dinov2Model {
    /// A model of a configuration, in `float32`.
    ///
    /// # Errors
    /// Returns an error if it does not fit into memory.
    pub fn new(config: &Config) -> Result<Self> {
        let sizes = &config.sizes;
        let layer = || {
            Ok(Layer {
                norm1: sizes.layer_norm()?,
                attention: Attention::new(sizes, config.qkv_bias)?,
                layer_scale1: LayerScale::new(config)?,
                norm2: sizes.layer_norm()?,
                mlp: FeedForward::new(config)?,
                layer_scale2: LayerScale::new(config)?,
            })
        };
        let (images, width) = (&config.images, sizes.hidden_size);
        Ok(Dinov2Model {
            embeddings: ImageEmbeddings::new(images, width, config.use_mask_token)?,
            encoder: Encoder {
                layer: sizes.layers(layer)?,
            },
            layernorm: sizes.layer_norm()?,
        })
    }

    /// The model of a Hugging Face folder with `config.json` and weights, in the type that it was
    /// saved in, frozen for inference. Weights may be those of a model with a head, which is left
    /// out.
    ///
    /// # Errors
    /// Returns all problems of the configuration, or of the weights; see [`Checkpoint`].
    pub fn from_folder(folder: impl AsRef<Path>) -> Result<Self> {
        let folder = folder.as_ref();
        let config = Fields::of_folder(folder, Config::from_json)?;
        let checkpoint = without_head(Checkpoint::open(folder)?, "dinov2.");
        Dinov2Model::load(&config, &checkpoint)
    }

    /// The model of a configuration with the weights of a checkpoint, frozen for inference.
    ///
    /// # Errors
    /// Returns all problems of the weights.
    pub fn load(config: &Config, checkpoint: &Checkpoint) -> Result<Self> {
        loaded(|| Dinov2Model::new(config), config.dtype, checkpoint)
    }
}

#[trace(path = "fx_nn::models::hf::dinov2::Dinov2Model")]
impl Dinov2Model {
    /// The states of images `[N, num_channels, height, width]`, which are converted to the model's type; `pooler_output` is
    /// the first of them.
    ///
    /// # Errors
    /// Returns an error if images have a different number of channels, or a different size: see
    /// [`ImageEmbeddings::interpolate_pos_encoding`].
    pub fn forward(&self, pixel_values: &Tensor) -> Result<BaseModelOutputWithPooling> {
        let mut x = self.embeddings.forward(pixel_values)?;
        for layer in &self.encoder.layer {
            x = layer.forward(&x)?;
        }
        let x = self.layernorm.forward(&x)?;
        Ok(BaseModelOutputWithPooling {
            pooler_output: Some(x.i((.., 0))?),
            last_hidden_state: x,
        })
    }
}
