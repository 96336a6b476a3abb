//! `Folder`: the tokenizer of a folder of Hugging Face's, read by the library `tokenizers`.
//!
//! Invariant: a file that is there is read, or refused.

use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::OnceLock;

use fx_core::{Error, Result};
use serde_json::Value;

/// A tokenizer, and what the files beside it say.
pub(super) struct Folder {
    inner: tokenizers::Tokenizer,
    /// The same, but for control tokens, which are text.
    plain: OnceLock<tokenizers::Tokenizer>,
    pub bos: Option<u32>,
    pub eos: Option<u32>,
    pub ends: Vec<u32>,
}

/// A file of JSON, if it is there.
fn json(folder: &Path, name: &str) -> Result<Value> {
    match text(folder, name)? {
        Some(text) => serde_json::from_str(&text)
            .map_err(|error| Error::msg(format_args!("{}: {error}", folder.join(name).display()))),
        None => Ok(Value::Null),
    }
}

/// A file of text, if it is there.
fn text(folder: &Path, name: &str) -> Result<Option<String>> {
    let path = folder.join(name);
    match std::fs::read_to_string(&path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(Error::msg(format_args!("{}: {error}", path.display()))),
    }
}

/// The template of a configuration: its own, or the one named `default`.
fn template(config: &Value) -> Option<String> {
    match &config["chat_template"] {
        Value::String(text) => Some(text.clone()),
        Value::Array(all) => {
            let is_default = |one: &&Value| one["name"] == "default";
            Some(
                all.iter().find(is_default)?["template"]
                    .as_str()?
                    .to_string(),
            )
        }
        _ => None,
    }
}

impl Folder {
    /// The tokenizer of a folder, and its chat template.
    pub fn open(folder: &Path) -> Result<(Self, Option<String>)> {
        let path = folder.join("tokenizer.json");
        let wrong = |problem: &dyn std::fmt::Display| {
            Error::msg(format_args!("{}: {problem}", path.display()))
        };
        // The library panics on some files.
        let read = catch_unwind(AssertUnwindSafe(|| tokenizers::Tokenizer::from_file(&path)));
        let mut inner = read
            .map_err(|_| wrong(&"the file is damaged: its reader failed"))?
            .map_err(|error| wrong(&error))?;
        // Batches of training are no concern of a text.
        inner.with_padding(None);
        inner.with_truncation(None).map_err(|error| wrong(&error))?;
        let config = json(folder, "tokenizer_config.json")?;
        let generation = json(folder, "generation_config.json")?;
        let token = |name: &str| {
            let token = &config[name];
            let text = token.as_str().or_else(|| token["content"].as_str())?;
            inner.token_to_id(text)
        };
        let numbers = |value: &Value| -> Vec<u32> {
            let all = value
                .as_array()
                .map_or(std::slice::from_ref(value), Vec::as_slice);
            let all = all.iter().filter_map(Value::as_u64);
            all.filter_map(|id| u32::try_from(id).ok()).collect()
        };
        let listed = numbers(&generation["eos_token_id"]);
        let bos =
            token("bos_token").or_else(|| numbers(&generation["bos_token_id"]).first().copied());
        let eos = token("eos_token").or_else(|| listed.first().copied());
        let ends: BTreeSet<u32> = listed.into_iter().chain(eos).collect();
        let own = text(folder, "chat_template.jinja")?;
        let template = own.or_else(|| template(&config));
        let folder = Folder {
            inner,
            plain: OnceLock::new(),
            bos,
            eos,
            ends: ends.into_iter().collect(),
        };
        Ok((folder, template))
    }

    pub fn encode(&self, text: &str, add_special: bool, control: bool) -> Result<Vec<u32>> {
        let plain = || {
            let mut plain = self.inner.clone();
            plain.set_encode_special_tokens(true);
            plain
        };
        let inner = match control {
            true => &self.inner,
            false => self.plain.get_or_init(plain),
        };
        let encoding = inner.encode_fast(text, add_special).map_err(Error::other)?;
        Ok(encoding.get_ids().to_vec())
    }

    pub fn decode(&self, ids: &[u32], skip_special: bool) -> Result<String> {
        if let Some(id) = ids.iter().find(|id| self.inner.id_to_token(**id).is_none()) {
            return Err(Error::msg(format_args!(
                "there is no token {id}: the vocabulary has {}",
                self.vocab_size()
            )));
        }
        self.inner.decode(ids, skip_special).map_err(Error::other)
    }

    pub fn vocab_size(&self) -> usize {
        self.inner.get_vocab_size(true)
    }

    pub fn id(&self, text: &str) -> Option<u32> {
        self.inner.token_to_id(text)
    }

    pub fn token(&self, id: u32) -> Option<String> {
        self.inner.id_to_token(id)
    }
}
