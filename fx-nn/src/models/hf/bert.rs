//! BERT, RoBERTa and XLM-RoBERTa under the names of Hugging Face's `BertModel`: the states of all words, and one for the
//! whole text.
//!
//! [`bert`](super::bert) is a small classifier of texts of one length, with names of its own.
//!
//! ```
//! use fx_nn::models::hf::bert::{BertModel, Config};
//! use fx_nn::models::hf::encoder::BaseModelOutputWithPooling;
//! use fx_nn::prelude::*;
//! let config = r#"{
//!     "model_type": "bert", "vocab_size": 32, "hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 4,
//!     "intermediate_size": 32, "max_position_embeddings": 64
//! }"#;
//! let mut model = BertModel::new(&Config::from_json(config)?)?;
//! model.eval();
//! let gm = symbolic_trace(&model)?;
//! // The second text is shorter than the first.
//! let words = Tensor::from_vec(vec![2i64, 9, 4, 3, 2, 7, 3, 0], (2, 4))?;
//! let mask = Tensor::from_vec(vec![1i64, 1, 1, 1, 1, 1, 1, 0], (2, 4))?;
//! let types = Tensor::zeros((2, 4))?.to_dtype(DType::I64)?;
//! let y: BaseModelOutputWithPooling = gm.forward((&words, &mask, &types))?;
//! assert_eq!(y.last_hidden_state.dims()?, [2, 4, 16]);
//! assert_eq!(y.pooler_output.map(|y| y.dims().map(<[usize]>::to_vec)).transpose()?, Some(vec![2, 16]));
//!
//! let odd = config.replace("64", "64, \"position_embedding_type\": \"relative_key\", \"is_decoder\": true");
//! let error = Config::from_json(&odd).unwrap_err().to_string();
//! assert!(error.contains("`position_embedding_type` is `relative_key`: supported is absolute"), "{error}");
//! assert!(error.contains("`is_decoder` is true: supported is false"), "{error}");
//! # Ok::<(), fx_nn::Error>(())
//! ```
//!
//! The positions of the others count the words that are no padding, wherever it stands:
//!
//! ```
//! use fx_nn::models::hf::bert::{Config, XLMRobertaModel};
//! use fx_nn::prelude::*;
//! let config = Config::from_json(r#"{
//!     "model_type": "xlm-roberta", "vocab_size": 32, "hidden_size": 16, "num_hidden_layers": 2,
//!     "num_attention_heads": 4, "intermediate_size": 32, "max_position_embeddings": 64, "type_vocab_size": 1
//! }"#)?;
//! let mut model = XLMRobertaModel::new(&config)?;
//! model.eval();
//! let states = |words: Vec<i64>| -> Result<Tensor> {
//!     let words = Tensor::from_vec(words, (1, 4))?;
//!     let (mask, types) = (words.ne(1)?.to_dtype(DType::I64)?, ops::zeros_like(&words, None)?);
//!     Ok(model.forward(&words, &mask, &types)?.last_hidden_state)
//! };
//! let (after, before) = (states(vec![0, 9, 2, 1])?, states(vec![1, 0, 9, 2])?);
//! assert!(fx_nn::allclose(&after.i((.., ..3))?, &before.i((.., 1..))?, 1e-5, 1e-5)?.close);
//! # Ok::<(), fx_nn::Error>(())
//! ```

use std::path::Path;

use fx_core::prelude::*;
use fx_core::value::DType;

use super::activation::Activation;
use super::config::{Fields, loaded};
use super::encoder::{BaseModelOutputWithPooling, Dense, SelfAttention, Sizes, without_head};
use crate::tensor::Tensor;
use crate::weights::Checkpoint;
use crate::{nn, ops};

/// The configuration of a BERT or a RoBERTa, as in its `config.json`.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Config {
    /// The sizes of the layers.
    pub sizes: Sizes,
    /// The inner width of a layer.
    pub intermediate_size: usize,
    /// Number of words in the vocabulary.
    pub vocab_size: usize,
    /// Number of positions.
    pub max_position_embeddings: usize,
    /// Number of texts that words can belong to.
    pub type_vocab_size: usize,
    /// The padding word, after whose number the positions of the other words start; `None` where
    /// positions count all words: BERT.
    pub padding_idx: Option<usize>,
    /// Whether there is a state for the whole text: [`BertModel::from_folder`] checks whether the
    /// checkpoint has it.
    pub add_pooling_layer: bool,
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
        let family = fields.text_or("model_type", None);
        if !["bert", "roberta", "xlm-roberta"].contains(&&*family) {
            fields.problem(format!(
                "`model_type` is `{family}`: supported are bert, roberta and xlm-roberta"
            ));
        }
        let counts_words = family != "bert";
        fields.only("position_embedding_type", "absolute");
        fields.only_false("is_decoder");
        fields.only_false("add_cross_attention");
        let config = Config {
            sizes: Sizes::of(&mut fields, None, "gelu", 1e-12),
            intermediate_size: fields.size("intermediate_size"),
            vocab_size: fields.size("vocab_size"),
            max_position_embeddings: fields.size_or("max_position_embeddings", 512),
            type_vocab_size: fields.size_or("type_vocab_size", 2),
            padding_idx: counts_words.then(|| fields.index_or("pad_token_id", 1)),
            add_pooling_layer: true,
            dtype: fields.dtype(),
        };
        if let Some(padding) = config.padding_idx {
            let (words, positions) = (config.vocab_size, config.max_position_embeddings);
            if padding >= words.min(positions) {
                fields.problem(format!(
                    "`pad_token_id` is {padding}, and there are {words} words and {positions} positions"
                ));
            }
        }
        fields.finish()?;
        Ok(config)
    }
}

/// Words, their texts and their positions as vectors.
#[derive(Module, Clone, Debug)]
pub struct Embeddings {
    /// Of words.
    pub word_embeddings: nn::Embedding,
    /// Of positions.
    pub position_embeddings: nn::Embedding,
    /// Of texts.
    pub token_type_embeddings: nn::Embedding,
    /// After the sum.
    #[module(name = "LayerNorm")]
    pub layer_norm: nn::LayerNorm,
    padding_idx: Option<usize>,
}

#[trace(path = "fx_nn::models::hf::bert::Embeddings")]
impl Embeddings {
    fn forward(&self, input_ids: &Tensor, token_type_ids: &Tensor) -> Result<Tensor> {
        let positions = match self.padding_idx {
            None => Tensor::arange(0, input_ids.size(1)?)?.unsqueeze(0)?,
            Some(padding) => {
                let words = input_ids.ne(padding as i64)?.to_dtype(DType::I64)?;
                ((ops::cumsum(&words, 1)? * words)? + padding as i64)?
            }
        };
        let words = self.word_embeddings.forward(input_ids)?;
        let x = (words + self.token_type_embeddings.forward(token_type_ids)?)?;
        let x = (x + self.position_embeddings.forward(&positions)?)?;
        self.layer_norm.forward(&x)
    }
}

/// A linear layer, and a norm of the sum with its residual.
#[derive(Module, Clone, Debug)]
pub struct Output {
    /// The layer.
    pub dense: nn::Linear,
    /// After the sum.
    #[module(name = "LayerNorm")]
    pub layer_norm: nn::LayerNorm,
}

impl Output {
    fn new(inputs: usize, sizes: &Sizes) -> Result<Self> {
        Ok(Output {
            dense: nn::Linear::new(inputs, sizes.hidden_size)?,
            layer_norm: sizes.layer_norm()?,
        })
    }
}

#[trace(path = "fx_nn::models::hf::bert::Output")]
impl Output {
    fn forward(&self, x: &Tensor, around: &Tensor) -> Result<Tensor> {
        let x = (self.dense.forward(x)? + around)?;
        self.layer_norm.forward(&x)
    }
}

/// Attention, and a linear layer over its heads.
#[derive(Module, Clone, Debug)]
pub struct Attention {
    /// The attention.
    #[module(name = "self")]
    pub self_attention: SelfAttention,
    /// Over its heads.
    pub output: Output,
}

#[trace(path = "fx_nn::models::hf::bert::Attention")]
impl Attention {
    fn forward(&self, x: &Tensor, mask: &Tensor) -> Result<Tensor> {
        let y = self.self_attention.forward(x, Some(mask))?;
        self.output.forward(&y, x)
    }
}

/// Attention and two linear layers.
#[derive(Module, Clone, Debug)]
pub struct Layer {
    /// The attention.
    pub attention: Attention,
    /// To the inner width.
    pub intermediate: Dense,
    /// And back.
    pub output: Output,
    activation: Activation,
}

#[trace(path = "fx_nn::models::hf::bert::Layer")]
impl Layer {
    fn forward(&self, x: &Tensor, mask: &Tensor) -> Result<Tensor> {
        let x = self.attention.forward(x, mask)?;
        let y = self.activation.apply(&self.intermediate.forward(&x)?)?;
        self.output.forward(&y, &x)
    }
}

/// The layers.
#[derive(Module, Clone, Debug)]
pub struct Encoder {
    /// One after another.
    pub layer: Vec<Layer>,
}

/// A BERT or a RoBERTa without a head.
#[derive(Module, Clone, Debug)]
pub struct BertModel {
    /// Words as vectors.
    pub embeddings: Embeddings,
    /// The layers.
    pub encoder: Encoder,
    /// Over the first word; `None` in models that score words.
    pub pooler: Option<Dense>,
}

/// A RoBERTa without a head: the same layers, with positions that count the words that are no padding.
pub type RobertaModel = BertModel;

/// An XLM-RoBERTa without a head: a RoBERTa of many languages.
pub type XLMRobertaModel = BertModel;

impl BertModel {
    /// A model of a configuration, in `float32`.
    ///
    /// # Errors
    /// Returns an error if it does not fit into memory.
    pub fn new(config: &Config) -> Result<Self> {
        let (sizes, inside) = (&config.sizes, config.intermediate_size);
        let width = sizes.hidden_size;
        let layer = || {
            Ok(Layer {
                attention: Attention {
                    self_attention: SelfAttention::new(sizes, true)?,
                    output: Output::new(width, sizes)?,
                },
                intermediate: Dense::new(width, inside)?,
                output: Output::new(inside, sizes)?,
                activation: sizes.hidden_act,
            })
        };
        let pooler = || Dense::new(width, width);
        Ok(BertModel {
            embeddings: Embeddings {
                word_embeddings: nn::Embedding::new(config.vocab_size, width)?,
                position_embeddings: nn::Embedding::new(config.max_position_embeddings, width)?,
                token_type_embeddings: nn::Embedding::new(config.type_vocab_size, width)?,
                layer_norm: sizes.layer_norm()?,
                padding_idx: config.padding_idx,
            },
            encoder: Encoder {
                layer: sizes.layers(layer)?,
            },
            pooler: config.add_pooling_layer.then(pooler).transpose()?,
        })
    }

    /// The model of a Hugging Face folder with `config.json` and weights, in the type that it was
    /// saved in, frozen for inference. Weights may be those of a model with a head, which is left
    /// out, and have the names of old checkpoints.
    ///
    /// # Errors
    /// Returns all problems of the configuration, or of the weights; see [`Checkpoint`].
    pub fn from_folder(folder: impl AsRef<Path>) -> Result<Self> {
        let folder = folder.as_ref();
        let mut config = Fields::of_folder(folder, Config::from_json)?;
        let inside = config.padding_idx.map_or("bert.", |_| "roberta.");
        let checkpoint = without_head(Checkpoint::open(folder)?, inside)
            .retain(|name| name != "embeddings.position_ids")
            .rename(|name| {
                let name = name.replace("LayerNorm.gamma", "LayerNorm.weight");
                name.replace("LayerNorm.beta", "LayerNorm.bias")
            })?;
        config.add_pooling_layer = checkpoint.shape("pooler.dense.weight").is_some();
        BertModel::load(&config, &checkpoint)
    }

    /// The model of a configuration with the weights of a checkpoint, frozen for inference.
    ///
    /// # Errors
    /// Returns all problems of the weights.
    pub fn load(config: &Config, checkpoint: &Checkpoint) -> Result<Self> {
        loaded(|| BertModel::new(config), config.dtype, checkpoint)
    }
}

#[trace(path = "fx_nn::models::hf::bert::BertModel")]
impl BertModel {
    /// The states of the words `input_ids` `[N, T]`; words where `attention_mask` `[N, T]` is 0 are
    /// ignored, and `token_type_ids` `[N, T]` is the text of each word. All are `int64`.
    ///
    /// # Errors
    /// Returns an error if there are more positions than the model has, or the shapes do not fit.
    pub fn forward(
        &self,
        input_ids: &Tensor,
        attention_mask: &Tensor,
        token_type_ids: &Tensor,
    ) -> Result<BaseModelOutputWithPooling> {
        let mask = attention_mask.ne(0)?.unsqueeze(1)?.unsqueeze(2)?;
        let mut x = self.embeddings.forward(input_ids, token_type_ids)?;
        for layer in &self.encoder.layer {
            x = layer.forward(&x, &mask)?;
        }
        let pooler_output = match &self.pooler {
            Some(pooler) => Some(ops::tanh(&pooler.forward(&x.i((.., 0))?)?)?),
            None => None,
        };
        Ok(BaseModelOutputWithPooling {
            last_hidden_state: x,
            pooler_output,
        })
    }
}
