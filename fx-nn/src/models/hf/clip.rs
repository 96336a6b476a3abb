//! CLIP under the names of Hugging Face's `CLIPModel`: how well texts fit images.
//!
//! ```
//! use fx_nn::models::hf::clip::{CLIPModel, CLIPOutput, Config};
//! use fx_nn::prelude::*;
//! let config = r#"{
//!     "model_type": "clip", "projection_dim": 8,
//!     "text_config": {
//!         "vocab_size": 32, "hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4,
//!         "max_position_embeddings": 12, "eos_token_id": 31
//!     },
//!     "vision_config": {
//!         "hidden_size": 24, "intermediate_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "image_size": 8,
//!         "patch_size": 4
//!     }
//! }"#;
//! let model = CLIPModel::new(&Config::from_json(config)?)?;
//! let gm = symbolic_trace(&model)?;
//! let words = Tensor::from_vec(vec![30i64, 5, 6, 31, 30, 7, 31, 31, 30, 8, 9, 31], (3, 4))?;
//! let mask = Tensor::from_vec(vec![1i64, 1, 1, 1, 1, 1, 1, 0, 1, 1, 1, 1], (3, 4))?;
//! let y: CLIPOutput = gm.forward((&words, &Tensor::rand((2, 3, 8, 8))?, &mask))?;
//! assert_eq!((y.logits_per_image.dims()?, y.text_embeds.dims()?), (&[2, 3][..], &[3, 8][..]));
//!
//! let odd = config.replace("\"image_size\": 8", "\"image_size\": 0").replace("31\n", "31, \"hidden_act\": \"sine\"\n");
//! let error = Config::from_json(&odd).unwrap_err().to_string();
//! assert!(error.contains("`vision_config`: `image_size` is 0"), "{error}");
//! assert!(error.contains("`text_config`: `hidden_act` is `sine`"), "{error}");
//! # Ok::<(), fx_nn::Error>(())
//! ```

use std::path::Path;

use fx_core::prelude::*;
use fx_core::value::DType;

use super::config::{Fields, loaded};
use super::encoder::{BaseModelOutputWithPooling, Images, Mlp, Sizes, attend, patches_of};
use crate::tensor::Tensor;
use crate::weights::Checkpoint;
use crate::{nn, ops};

/// The configuration of a CLIP, as in its `config.json`.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Config {
    /// The text model.
    pub text: TextConfig,
    /// The vision model.
    pub vision: VisionConfig,
    /// The width that texts and images are compared in.
    pub projection_dim: usize,
    /// The logarithm of a new model's factor of cosines.
    pub logit_scale_init_value: f64,
    /// The type to load the checkpoint in.
    pub dtype: DType,
}

/// The configuration of the text model.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct TextConfig {
    /// The sizes of the layers.
    pub sizes: Sizes,
    /// The inner width of a layer.
    pub intermediate_size: usize,
    /// Number of words in the vocabulary.
    pub vocab_size: usize,
    /// Number of positions.
    pub max_position_embeddings: usize,
    /// The word that ends a text. With 2, as in old files, it is the word with the largest number.
    pub eos_token_id: usize,
}

/// The configuration of the vision model.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct VisionConfig {
    /// The sizes of the layers.
    pub sizes: Sizes,
    /// The inner width of a layer.
    pub intermediate_size: usize,
    /// How images are cut into patches.
    pub images: Images,
}

impl Config {
    /// Reads a `config.json`. Missing fields of the text and vision parts default to those of
    /// `openai/clip-vit-base-patch32`.
    ///
    /// # Errors
    /// Returns an error if a field has the wrong kind or an unsupported value, with a line for
    /// each.
    pub fn from_json(text: &str) -> Result<Self> {
        let mut fields = Fields::parse(text)?;
        fields.only("model_type", "clip");
        // Old files have a part twice, and the second one counts.
        let part = |fields: &Fields, old: &'static str, new: &'static str| match fields.get(old) {
            Some(_) => old,
            None => new,
        };
        let text = part(&fields, "text_config_dict", "text_config");
        let vision = part(&fields, "vision_config_dict", "vision_config");
        let config = Config {
            text: fields.inside(text, |fields| TextConfig {
                sizes: Sizes::of(fields, Some([512, 12, 8]), "quick_gelu", 1e-5),
                intermediate_size: fields.size_or("intermediate_size", 2048),
                vocab_size: fields.size_or("vocab_size", 49408),
                max_position_embeddings: fields.size_or("max_position_embeddings", 77),
                eos_token_id: fields.size_or("eos_token_id", 49407),
            }),
            vision: fields.inside(vision, |fields| VisionConfig {
                sizes: Sizes::of(fields, Some([768, 12, 12]), "quick_gelu", 1e-5),
                intermediate_size: fields.size_or("intermediate_size", 3072),
                images: Images::of(fields, 224, 32),
            }),
            projection_dim: fields.size_or("projection_dim", 512),
            logit_scale_init_value: fields.number_or("logit_scale_init_value", 2.6592),
            dtype: fields.dtype(),
        };
        fields.finish()?;
        Ok(config)
    }
}

/// Attention of all positions to those that a mask shows.
#[derive(Module, Clone, Debug)]
pub struct Attention {
    /// Keys.
    pub k_proj: nn::Linear,
    /// Values.
    pub v_proj: nn::Linear,
    /// Queries.
    pub q_proj: nn::Linear,
    /// Over the heads.
    pub out_proj: nn::Linear,
    head_dim: usize,
}

#[trace(path = "fx_nn::models::hf::clip::Attention")]
impl Attention {
    fn forward(&self, x: &Tensor, mask: Option<&Tensor>) -> Result<Tensor> {
        let q = self.q_proj.forward(x)?;
        let k = self.k_proj.forward(x)?;
        let v = self.v_proj.forward(x)?;
        let y = attend([q, k, v], self.head_dim, mask)?;
        self.out_proj.forward(&y)
    }
}

/// Attention and two linear layers, each after a norm and added to its input.
#[derive(Module, Clone, Debug)]
pub struct Layer {
    /// The attention.
    pub self_attn: Attention,
    /// Before the attention.
    pub layer_norm1: nn::LayerNorm,
    /// The linear layers.
    pub mlp: Mlp,
    /// Before the linear layers.
    pub layer_norm2: nn::LayerNorm,
}

#[trace(path = "fx_nn::models::hf::clip::Layer")]
impl Layer {
    fn forward(&self, x: &Tensor, mask: Option<&Tensor>) -> Result<Tensor> {
        let y = self.layer_norm1.forward(x)?;
        let x = (x + self.self_attn.forward(&y, mask)?)?;
        let y = self.layer_norm2.forward(&x)?;
        x + self.mlp.forward(&y)?
    }
}

/// The layers of the text or the vision model.
#[derive(Module, Clone, Debug)]
pub struct Encoder {
    /// One after another.
    pub layers: Vec<Layer>,
}

impl Encoder {
    fn new(sizes: &Sizes, inside: usize) -> Result<Self> {
        let width = sizes.hidden_size;
        let layer = || {
            Ok(Layer {
                self_attn: Attention {
                    k_proj: nn::Linear::new(width, width)?,
                    v_proj: nn::Linear::new(width, width)?,
                    q_proj: nn::Linear::new(width, width)?,
                    out_proj: nn::Linear::new(width, width)?,
                    head_dim: sizes.head_dim(),
                },
                layer_norm1: sizes.layer_norm()?,
                mlp: Mlp::new(sizes, inside)?,
                layer_norm2: sizes.layer_norm()?,
            })
        };
        Ok(Encoder {
            layers: sizes.layers(layer)?,
        })
    }
}

#[trace(path = "fx_nn::models::hf::clip::Encoder")]
impl Encoder {
    fn forward(&self, x: &Tensor, mask: Option<&Tensor>) -> Result<Tensor> {
        let mut x = x.clone();
        for layer in &self.layers {
            x = layer.forward(&x, mask)?;
        }
        Ok(x)
    }
}

/// Words and their positions as vectors.
#[derive(Module, Clone, Debug)]
pub struct TextEmbeddings {
    /// Of words.
    pub token_embedding: nn::Embedding,
    /// Of positions.
    pub position_embedding: nn::Embedding,
}

/// The text model.
#[derive(Module, Clone, Debug)]
pub struct CLIPTextModel {
    /// Words as vectors.
    pub embeddings: TextEmbeddings,
    /// The layers.
    pub encoder: Encoder,
    /// After the last layer.
    pub final_layer_norm: nn::LayerNorm,
    eos_token_id: usize,
}

impl CLIPTextModel {
    /// A model of a configuration, in `float32`.
    ///
    /// # Errors
    /// Returns an error if it does not fit into memory.
    pub fn new(config: &TextConfig) -> Result<Self> {
        let sizes = &config.sizes;
        let (width, positions) = (sizes.hidden_size, config.max_position_embeddings);
        Ok(CLIPTextModel {
            embeddings: TextEmbeddings {
                token_embedding: nn::Embedding::new(config.vocab_size, width)?,
                position_embedding: nn::Embedding::new(positions, width)?,
            },
            encoder: Encoder::new(sizes, config.intermediate_size)?,
            final_layer_norm: sizes.layer_norm()?,
            eos_token_id: config.eos_token_id,
        })
    }
}

#[trace(path = "fx_nn::models::hf::clip::CLIPTextModel")]
impl CLIPTextModel {
    /// The states of the words `input_ids` `[N, T]`, each of which sees those before it where
    /// `attention_mask` `[N, T]` is not 0; `pooler_output` is the state of the first word that ends
    /// the text. Both inputs are `int64`.
    ///
    /// # Errors
    /// Returns an error if there are more positions than the model has, or the shapes do not fit.
    pub fn forward(
        &self,
        input_ids: &Tensor,
        attention_mask: &Tensor,
    ) -> Result<BaseModelOutputWithPooling> {
        let [n, t] = input_ids.shape()?.unpack()?;
        let positions = Tensor::arange(0, t)?;
        let is_earlier = positions.unsqueeze(1)?.ge(&positions.unsqueeze(0)?)?;
        let is_word = attention_mask.ne(0)?.unsqueeze(1)?.unsqueeze(2)?;
        let mask = (is_earlier & is_word)?;
        let words = self.embeddings.token_embedding.forward(input_ids)?;
        let positions = positions.unsqueeze(0)?;
        let positions = self.embeddings.position_embedding.forward(&positions)?;
        let x = self.encoder.forward(&(words + positions)?, Some(&mask))?;
        let x = self.final_layer_norm.forward(&x)?;
        let ends = match self.eos_token_id {
            2 => input_ids.clone(),
            eos => input_ids.eq(eos as i64)?.to_dtype(DType::I64)?,
        };
        let width = x.size(2)?;
        let end = ends.argmax(-1, false)?.unsqueeze(1)?.unsqueeze(2)?;
        let pooled = x.gather(1, &end.expand((n, 1, width))?)?.squeeze(1)?;
        Ok(BaseModelOutputWithPooling {
            last_hidden_state: x,
            pooler_output: Some(pooled),
        })
    }
}

/// Images as rows of vectors: one for the whole image, then one for each patch, with their positions.
#[derive(Module, Clone, Debug)]
pub struct VisionEmbeddings {
    /// `[width]`: stands for the whole image.
    pub class_embedding: Tensor,
    /// Each patch as a vector.
    pub patch_embedding: nn::Conv2d,
    /// Of positions.
    pub position_embedding: nn::Embedding,
    image_size: [usize; 2],
}

#[trace(path = "fx_nn::models::hf::clip::VisionEmbeddings")]
impl VisionEmbeddings {
    fn forward(&self, pixel_values: &Tensor) -> Result<Tensor> {
        let [n, _, h, w] = pixel_values.shape()?.unpack()?;
        let [height, width] = self.image_size.map(|side| side as i64);
        assert!(h == height, "images must be {height} pixels high");
        assert!(w == width, "images must be {width} pixels wide");
        let patches = patches_of(pixel_values, &self.patch_embedding)?;
        let class = self.class_embedding.expand((n, 1, -1))?;
        ops::cat(&[class, patches], 1)? + &self.position_embedding.weight
    }
}

/// The vision model.
#[derive(Module, Clone, Debug)]
pub struct CLIPVisionModel {
    /// Patches as vectors.
    pub embeddings: VisionEmbeddings,
    /// Before the layers; the name is the checkpoint's.
    pub pre_layrnorm: nn::LayerNorm,
    /// The layers.
    pub encoder: Encoder,
    /// Over the whole image.
    pub post_layernorm: nn::LayerNorm,
}

impl CLIPVisionModel {
    /// A model of a configuration, in `float32`.
    ///
    /// # Errors
    /// Returns an error if it does not fit into memory.
    pub fn new(config: &VisionConfig) -> Result<Self> {
        let (sizes, images) = (&config.sizes, &config.images);
        let width = sizes.hidden_size;
        Ok(CLIPVisionModel {
            embeddings: VisionEmbeddings {
                class_embedding: Tensor::zeros(width)?.into_parameter()?,
                patch_embedding: images.conv(width, false)?,
                position_embedding: nn::Embedding::new(images.patches() + 1, width)?,
                image_size: images.image_size,
            },
            pre_layrnorm: sizes.layer_norm()?,
            encoder: Encoder::new(sizes, config.intermediate_size)?,
            post_layernorm: sizes.layer_norm()?,
        })
    }
}

#[trace(path = "fx_nn::models::hf::clip::CLIPVisionModel")]
impl CLIPVisionModel {
    /// The states of images `[N, num_channels, height, width]`, which are converted to the model's
    /// type; `pooler_output` is the norm of the first state.
    ///
    /// # Errors
    /// Returns an error if images have a different size or number of channels.
    pub fn forward(&self, pixel_values: &Tensor) -> Result<BaseModelOutputWithPooling> {
        let x = self.embeddings.forward(pixel_values)?;
        let x = self.pre_layrnorm.forward(&x)?;
        let x = self.encoder.forward(&x, None)?;
        let pooled = self.post_layernorm.forward(&x.i((.., 0))?)?;
        Ok(BaseModelOutputWithPooling {
            last_hidden_state: x,
            pooler_output: Some(pooled),
        })
    }
}

/// The results of a CLIP.
#[derive(Tree, Clone, Debug)]
pub struct CLIPOutput {
    /// `[images, texts]`: the cosines, scaled.
    pub logits_per_image: Tensor,
    /// `[texts, images]`: the same, transposed.
    pub logits_per_text: Tensor,
    /// `[texts, projection_dim]`, of length 1.
    pub text_embeds: Tensor,
    /// `[images, projection_dim]`, of length 1.
    pub image_embeds: Tensor,
}

/// The text and the vision model, with vectors of one width for both.
#[derive(Module, Clone, Debug)]
pub struct CLIPModel {
    /// The text model.
    pub text_model: CLIPTextModel,
    /// The vision model.
    pub vision_model: CLIPVisionModel,
    /// Of images.
    pub visual_projection: nn::Linear,
    /// Of texts.
    pub text_projection: nn::Linear,
    /// `[]`: the logarithm of the factor of cosines.
    pub logit_scale: Tensor,
}

impl CLIPModel {
    /// A model of a configuration, in `float32`.
    ///
    /// # Errors
    /// Returns an error if it does not fit into memory.
    pub fn new(config: &Config) -> Result<Self> {
        let (text, vision) = (&config.text, &config.vision);
        let projection =
            |width| -> Result<_> { Ok(nn::Linear::new(width, config.projection_dim)?.bias(false)) };
        let scale = config.logit_scale_init_value as f32;
        Ok(CLIPModel {
            text_model: CLIPTextModel::new(text)?,
            vision_model: CLIPVisionModel::new(vision)?,
            visual_projection: projection(vision.sizes.hidden_size)?,
            text_projection: projection(text.sizes.hidden_size)?,
            logit_scale: Tensor::from_vec(vec![scale], ())?.into_parameter()?,
        })
    }

    /// The model of a Hugging Face folder with `config.json` and weights, in the type that it was
    /// saved in, frozen for inference. Positions that old checkpoints have among the weights are
    /// left out.
    ///
    /// # Errors
    /// Returns all problems of the configuration, or of the weights; see [`Checkpoint`].
    pub fn from_folder(folder: impl AsRef<Path>) -> Result<Self> {
        let folder = folder.as_ref();
        let config = Fields::of_folder(folder, Config::from_json)?;
        let checkpoint = Checkpoint::open(folder)?.retain(|name| !name.ends_with(".position_ids"));
        CLIPModel::load(&config, &checkpoint)
    }

    /// The model of a configuration with the weights of a checkpoint, frozen for inference.
    ///
    /// # Errors
    /// Returns all problems of the weights.
    pub fn load(config: &Config, checkpoint: &Checkpoint) -> Result<Self> {
        loaded(|| CLIPModel::new(config), config.dtype, checkpoint)
    }

    /// The vectors `[N, projection_dim]` of texts, as [`CLIPTextModel::forward`] reads them; not
    /// normalised.
    ///
    /// # Errors
    /// Returns the errors of [`CLIPTextModel::forward`].
    pub fn get_text_features(&self, input_ids: &Tensor, attention_mask: &Tensor) -> Result<Tensor> {
        let read = self.text_model.forward(input_ids, attention_mask)?;
        self.text_projection.forward(&pooled(read)?)
    }

    /// The vectors `[N, projection_dim]` of images, as [`CLIPVisionModel::forward`] sees them; not
    /// normalised.
    ///
    /// # Errors
    /// Returns the errors of [`CLIPVisionModel::forward`].
    pub fn get_image_features(&self, pixel_values: &Tensor) -> Result<Tensor> {
        let seen = self.vision_model.forward(pixel_values)?;
        self.visual_projection.forward(&pooled(seen)?)
    }
}

fn pooled(output: BaseModelOutputWithPooling) -> Result<Tensor> {
    let found = output.pooler_output;
    found.ok_or_else(|| Error::msg("clip: a part gave no `pooler_output`"))
}

/// Rows normalised to length 1.
fn normalized(x: &Tensor) -> Result<Tensor> {
    let squares = x.pow(2)?.sum(-1)?.unsqueeze(1)?;
    x / squares.sqrt()?
}

#[trace(path = "fx_nn::models::hf::clip::CLIPModel")]
impl CLIPModel {
    /// How well texts `input_ids` `[texts, T]`, read where `attention_mask` `[texts, T]` is not 0, fit the images
    /// `pixel_values` `[images, num_channels, height, width]`.
    ///
    /// # Errors
    /// Returns an error if there are more positions than the model has, images have a different
    /// size, or the shapes do not fit.
    pub fn forward(
        &self,
        input_ids: &Tensor,
        pixel_values: &Tensor,
        attention_mask: &Tensor,
    ) -> Result<CLIPOutput> {
        let image_embeds = normalized(&self.get_image_features(pixel_values)?)?;
        let text_embeds = normalized(&self.get_text_features(input_ids, attention_mask)?)?;
        let cosines = ops::matmul(&text_embeds, &image_embeds.t()?)?;
        let logits_per_text = (cosines * self.logit_scale.exp()?)?;
        Ok(CLIPOutput {
            logits_per_image: logits_per_text.t()?,
            logits_per_text,
            text_embeds,
            image_embeds,
        })
    }
}
