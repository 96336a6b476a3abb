//! What a model's folder says besides its weights: its limits on texts, and its tokenizer.

use std::path::Path;

use fx_nn::prelude::*;
use serde_json::Value as Json;
use tokenizers::Tokenizer;

use crate::model::RANDOM;

fn json(path: &Path) -> Result<Json> {
    let in_file = |e: &dyn std::fmt::Display| Error::msg(format_args!("{}: {e}", path.display()));
    let text = std::fs::read_to_string(path).map_err(|e| in_file(&e))?;
    serde_json::from_str(&text).map_err(|e| in_file(&e))
}

/// A folder's limits on texts: the model's family, the tokens that end a text, and the numbers of
/// positions and tokens.
pub struct Limits {
    /// As the configuration names it.
    pub family: String,
    pub ends: Vec<u32>,
    pub positions: usize,
    vocab_size: usize,
}

impl Limits {
    /// # Errors
    /// Returns an error if a file of the folder cannot be read.
    pub fn of_folder(folder: &Path) -> Result<Self> {
        let config = json(&folder.join("config.json"))?;
        let generation = folder.join("generation_config.json");
        let generation = match generation.exists() {
            true => json(&generation)?,
            false => Json::Null,
        };
        Ok(Limits::of(&config, &generation))
    }

    /// What a configuration says, and one of how to generate.
    fn of(config: &Json, generation: &Json) -> Self {
        let ends = [&generation["eos_token_id"], &config["eos_token_id"]];
        let ends = ends.into_iter().find(|ends| !ends.is_null());
        let ends = match ends {
            Some(Json::Array(ends)) => ends.iter().filter_map(Json::as_u64).collect(),
            Some(end) => end.as_u64().into_iter().collect(),
            None => Vec::new(),
        };
        let size = |name: &str| config[name].as_u64().unwrap_or(u64::MAX) as usize;
        let family = config["model_type"].as_str().unwrap_or_default();
        Limits {
            family: family.to_string(),
            ends: ends.into_iter().map(|end: u64| end as u32).collect(),
            positions: size(if family == "gpt2" {
                "n_positions"
            } else {
                "max_position_embeddings"
            }),
            vocab_size: size("vocab_size"),
        }
    }

    /// The limits of the model of random weights.
    ///
    /// # Errors
    /// Returns an error if its configuration is no JSON.
    pub fn of_random() -> Result<Self> {
        let config = serde_json::from_str(RANDOM).map_err(Error::other)?;
        Ok(Limits::of(&config, &Json::Null))
    }
}

/// The tokenizer of a folder.
///
/// # Errors
/// Returns an error if it cannot be read, or knows more tokens than the model.
pub fn tokenizer(folder: &Path, limits: &Limits) -> Result<Tokenizer> {
    let path = folder.join("tokenizer.json");
    let in_file = |e: &dyn std::fmt::Display| Error::msg(format_args!("{}: {e}", path.display()));
    let tokenizer = Tokenizer::from_file(&path).map_err(|e| in_file(&e))?;
    let tokens = tokenizer.get_vocab_size(true);
    match tokens <= limits.vocab_size {
        true => Ok(tokenizer),
        false => Err(in_file(&format_args!(
            "it has {tokens} tokens, and the model knows {}",
            limits.vocab_size
        ))),
    }
}
