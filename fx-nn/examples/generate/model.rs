//! `Model`: a decoder as a traced graph and as its own `forward`.

use std::path::Path;
use std::rc::Rc;

use fx_nn::models::hf::decoder::{Cache, CausalLM, Config};
use fx_nn::models::hf::gpt2::GPT2LMHeadModel;
use fx_nn::prelude::*;

use crate::folder::Limits;

/// What the layers have seen.
pub type Caches = Vec<Cache>;

/// Scores of the next tokens and the new caches, by tokens and caches.
type Forward = Box<dyn Fn(&Tensor, Caches) -> Result<(Tensor, Caches)>>;

/// A decoder.
pub struct Model {
    pub graph: GraphModule,
    pub eager: Forward,
    /// Empty caches.
    pub caches: Box<dyn Fn() -> Result<Caches>>,
}

/// Of the size of a small assistant on a phone.
pub const RANDOM: &str = r#"{
    "model_type": "qwen2", "vocab_size": 8192, "hidden_size": 512, "intermediate_size": 1536,
    "num_hidden_layers": 8, "num_attention_heads": 8, "num_key_value_heads": 2,
    "max_position_embeddings": 1024, "rms_norm_eps": 1e-6, "rope_theta": 10000.0,
    "hidden_act": "silu", "tie_word_embeddings": true
}"#;

impl Model {
    /// # Errors
    /// Returns an error if the folder's model cannot be read.
    pub fn of_folder(folder: &Path, limits: &Limits) -> Result<Self> {
        match limits.family.as_str() {
            "gpt2" => {
                let model = GPT2LMHeadModel::from_folder(folder)?;
                Ok(Model::of(
                    model.trace()?,
                    model,
                    GPT2LMHeadModel::forward,
                    GPT2LMHeadModel::caches,
                ))
            }
            _ => Model::of_decoder(CausalLM::from_folder(folder)?),
        }
    }

    /// A decoder of random weights, of [`RANDOM`]'s sizes.
    ///
    /// # Errors
    /// Returns an error if it does not fit into memory.
    pub fn random() -> Result<Self> {
        Model::of_decoder(CausalLM::new(&Config::from_json(RANDOM)?)?)
    }

    fn of_decoder(model: CausalLM) -> Result<Self> {
        let graph = model.trace()?;
        Ok(Model::of(graph, model, CausalLM::forward, CausalLM::caches))
    }

    fn of<M: 'static>(
        graph: GraphModule,
        model: M,
        forward: fn(&M, &Tensor, Caches) -> Result<(Tensor, Caches)>,
        caches: fn(&M, usize) -> Result<Caches>,
    ) -> Self {
        let model = Rc::new(model);
        let same = Rc::clone(&model);
        Model {
            graph,
            eager: Box::new(move |tokens, seen| forward(&model, tokens, seen)),
            caches: Box::new(move || caches(&same, 1)),
        }
    }
}
