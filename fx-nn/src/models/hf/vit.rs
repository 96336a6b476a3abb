//! Vision transformers under the names of Hugging Face's `ViTModel` and `ViTForImageClassification`.
//!
//! [`vit`](super::vit) is the same network under torchvision's names.
//!
//! ```
//! use fx_nn::models::hf::vit::{Config, ViTForImageClassification};
//! use fx_nn::prelude::*;
//! let config = r#"{
//!     "model_type": "vit", "hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 32,
//!     "image_size": 8, "patch_size": 4, "id2label": {"0": "cat", "1": "dog", "2": "bird"}
//! }"#;
//! let model = ViTForImageClassification::new(&Config::from_json(config)?)?;
//! let gm = symbolic_trace(&model)?;
//! let logits: Tensor = gm.forward(&Tensor::rand((5, 3, 8, 8))?)?;
//! assert_eq!(logits.dims()?, [5, 3]);
//! let error = gm.forward::<Tensor>(&Tensor::rand((5, 3, 12, 8))?).unwrap_err().to_string();
//! assert!(error.contains("images must be 8 pixels high"), "{error}");
//!
//! let odd = config.replace("\"patch_size\": 4", "\"patch_size\": 9, \"hidden_act\": \"sine\"");
//! let error = Config::from_json(&odd).unwrap_err().to_string();
//! assert!(error.contains("`hidden_act` is `sine`"), "{error}");
//! assert!(error.contains("`patch_size` is [9, 9], larger than the `image_size` [8, 8]"), "{error}");
//! # Ok::<(), fx_nn::Error>(())
//! ```

use std::path::Path;

use fx_core::prelude::*;
use fx_core::value::DType;

use super::activation::Activation;
use super::config::{Fields, loaded};
use super::encoder::{
    Attention, BaseModelOutputWithPooling, Dense, ImageEmbeddings, Images, Sizes, without_head,
};
use crate::nn;
use crate::tensor::Tensor;
use crate::weights::Checkpoint;

/// The configuration of a vision transformer, as in its `config.json`.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Config {
    /// The sizes of the layers.
    pub sizes: Sizes,
    /// The inner width of a layer.
    pub intermediate_size: usize,
    /// How images are cut into patches.
    pub images: Images,
    /// Whether queries, keys and values have a bias.
    pub qkv_bias: bool,
    /// The width of the state for the whole image.
    pub pooler_output_size: usize,
    /// The activation of that state.
    pub pooler_act: Activation,
    /// Whether that state exists: [`ViTModel::from_folder`] checks whether the checkpoint has it.
    pub add_pooling_layer: bool,
    /// Number of classes.
    pub num_labels: usize,
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
        fields.only("model_type", "vit");
        let sizes = Sizes::of(&mut fields, None, "gelu", 1e-12);
        let labels = fields.get("id2label").and_then(|labels| labels.as_object());
        let labels = labels.map_or(2, |labels| labels.len());
        let config = Config {
            intermediate_size: fields.size("intermediate_size"),
            images: Images::of(&mut fields, None, None),
            qkv_bias: fields.flag_or("qkv_bias", true),
            pooler_output_size: fields.size_or("pooler_output_size", sizes.hidden_size),
            pooler_act: Activation::of(&mut fields, "pooler_act", "tanh"),
            add_pooling_layer: true,
            num_labels: fields.size_or("num_labels", labels),
            dtype: fields.dtype(),
            sizes,
        };
        fields.finish()?;
        Ok(config)
    }
}

/// Attention and two linear layers, each after a norm and added to its input.
#[derive(Module, Clone, Debug)]
pub struct Layer {
    /// Before the attention.
    pub layernorm_before: nn::LayerNorm,
    /// The attention.
    pub attention: Attention,
    /// Before the linear layers.
    pub layernorm_after: nn::LayerNorm,
    /// To the inner width.
    pub intermediate: Dense,
    /// And back.
    pub output: Dense,
    activation: Activation,
}

#[trace(path = "fx_nn::models::hf::vit::Layer")]
impl Layer {
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let y = self.layernorm_before.forward(x)?;
        let x = (self.attention.forward(&y)? + x)?;
        let y = self.layernorm_after.forward(&x)?;
        let y = self.activation.apply(&self.intermediate.forward(&y)?)?;
        self.output.forward(&y)? + x
    }
}

/// The layers.
#[derive(Module, Clone, Debug)]
pub struct Encoder {
    /// One after another.
    pub layer: Vec<Layer>,
}

/// A linear layer over the first position, with an activation.
#[derive(Module, Clone, Debug)]
pub struct Pooler {
    /// The layer.
    pub dense: nn::Linear,
    activation: Activation,
}

#[trace(path = "fx_nn::models::hf::vit::Pooler")]
impl Pooler {
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        self.activation.apply(&self.dense.forward(&x.i((.., 0))?)?)
    }
}

/// A vision transformer without a head.
#[derive(Module, Clone, Debug)]
pub struct ViTModel {
    /// Patches as vectors.
    pub embeddings: ImageEmbeddings,
    /// The layers.
    pub encoder: Encoder,
    /// After the last layer.
    pub layernorm: nn::LayerNorm,
    /// Over the whole image; none in models with a head.
    pub pooler: Option<Pooler>,
}

impl ViTModel {
    /// A model of a configuration, in `float32`.
    ///
    /// # Errors
    /// Returns an error if it does not fit into memory.
    pub fn new(config: &Config) -> Result<Self> {
        let (sizes, inside) = (&config.sizes, config.intermediate_size);
        let width = sizes.hidden_size;
        let layer = || {
            Ok(Layer {
                layernorm_before: sizes.layer_norm()?,
                attention: Attention::new(sizes, config.qkv_bias)?,
                layernorm_after: sizes.layer_norm()?,
                intermediate: Dense::new(width, inside)?,
                output: Dense::new(inside, width)?,
                activation: sizes.hidden_act,
            })
        };
        let pooler = || -> Result<Pooler> {
            Ok(Pooler {
                dense: nn::Linear::new(width, config.pooler_output_size)?,
                activation: config.pooler_act,
            })
        };
        Ok(ViTModel {
            embeddings: ImageEmbeddings::new(&config.images, width, false)?,
            encoder: Encoder {
                layer: sizes.layers(layer)?,
            },
            layernorm: sizes.layer_norm()?,
            pooler: config.add_pooling_layer.then(pooler).transpose()?,
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
        let mut config = Fields::of_folder(folder, Config::from_json)?;
        let checkpoint = without_head(Checkpoint::open(folder)?, "vit.");
        config.add_pooling_layer = checkpoint.shape("pooler.dense.weight").is_some();
        ViTModel::load(&config, &checkpoint)
    }

    /// The model of a configuration with the weights of a checkpoint, frozen for inference.
    ///
    /// # Errors
    /// Returns all problems of the weights.
    pub fn load(config: &Config, checkpoint: &Checkpoint) -> Result<Self> {
        loaded(|| ViTModel::new(config), config.dtype, checkpoint)
    }
}

#[trace(path = "fx_nn::models::hf::vit::ViTModel")]
impl ViTModel {
    /// The states of images `[N, num_channels, height, width]`, which are converted to the model's type.
    ///
    /// # Errors
    /// Returns an error if images have a different size or number of channels.
    pub fn forward(&self, pixel_values: &Tensor) -> Result<BaseModelOutputWithPooling> {
        let mut x = self.embeddings.forward(pixel_values)?;
        for layer in &self.encoder.layer {
            x = layer.forward(&x)?;
        }
        let x = self.layernorm.forward(&x)?;
        let pooler_output = match &self.pooler {
            Some(pooler) => Some(pooler.forward(&x)?),
            None => None,
        };
        Ok(BaseModelOutputWithPooling {
            last_hidden_state: x,
            pooler_output,
        })
    }
}

/// A vision transformer with a head that scores classes.
#[derive(Module, Clone, Debug)]
pub struct ViTForImageClassification {
    /// The layers.
    pub vit: ViTModel,
    /// The head.
    pub classifier: nn::Linear,
}

impl ViTForImageClassification {
    /// A model of a configuration, in `float32`.
    ///
    /// # Errors
    /// Returns an error if it does not fit into memory.
    pub fn new(config: &Config) -> Result<Self> {
        let config = Config {
            add_pooling_layer: false,
            ..config.clone()
        };
        Ok(ViTForImageClassification {
            vit: ViTModel::new(&config)?,
            classifier: nn::Linear::new(config.sizes.hidden_size, config.num_labels)?,
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
        ViTForImageClassification::load(&config, &Checkpoint::open(folder)?)
    }

    /// The model of a configuration with the weights of a checkpoint, frozen for inference.
    ///
    /// # Errors
    /// Returns all problems of the weights.
    pub fn load(config: &Config, checkpoint: &Checkpoint) -> Result<Self> {
        let new = || ViTForImageClassification::new(config);
        loaded(new, config.dtype, checkpoint)
    }
}

#[trace(path = "fx_nn::models::hf::vit::ViTForImageClassification")]
impl ViTForImageClassification {
    /// The scores `[N, num_labels]` of images `[N, num_channels, height, width]`, which are converted to the model's type.
    ///
    /// # Errors
    /// Returns an error if images have a different size or number of channels.
    pub fn forward(&self, pixel_values: &Tensor) -> Result<Tensor> {
        let states = self.vit.forward(pixel_values)?.last_hidden_state;
        self.classifier.forward(&states.i((.., 0))?)
    }
}
