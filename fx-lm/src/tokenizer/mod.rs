//! `Tokenizer`: texts as tokens, and tokens as texts, by what a GGUF file or a folder says.
//!
//! Invariant: of a GGUF file, tokens are those that llama.cpp gives.

mod bpe;
mod folder;
mod gguf;
mod sentencepiece;
mod special;
mod split;
mod stream;
mod vocabulary;

use std::path::Path;

use fx_core::Result;

use folder::Folder;
use gguf::Gguf;
pub use stream::DecodeStream;

/// The tokenizer of a language model.
///
/// ```
/// use fx_lm::Tokenizer;
/// # let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/bytes.gguf");
/// let tokenizer = Tokenizer::of_gguf(path)?;
/// let ids = tokenizer.encode("Hello, 世界!<|end|>", false)?;
/// assert_eq!(tokenizer.decode(&ids, false)?, "Hello, 世界!<|end|>");
/// assert_eq!(tokenizer.decode(&ids, true)?, "Hello, 世界!");
/// # Ok::<(), fx_core::Error>(())
/// ```
pub struct Tokenizer {
    kind: Kind,
    template: Option<String>,
}

enum Kind {
    Gguf(Box<Gguf>),
    Folder(Box<Folder>),
}

impl Tokenizer {
    /// The tokenizer that a GGUF file has: byte-level BPE (`tokenizer.ggml.model` is `gpt2`, or `gemma4`), or
    /// SentencePiece with scores (`llama`). A file without weights will do.
    ///
    /// # Errors
    /// Returns an error if it is no GGUF file, has a tokenizer of another kind, which is named beside those that are
    /// supported, or if its lists do not fit each other.
    pub fn of_gguf(path: impl AsRef<Path>) -> Result<Self> {
        let (gguf, template) = Gguf::open(path.as_ref())?;
        Ok(Tokenizer {
            kind: Kind::Gguf(Box::new(gguf)),
            template,
        })
    }

    /// The tokenizer of a folder of Hugging Face's: its `tokenizer.json`, and of `tokenizer_config.json`,
    /// `generation_config.json` and `chat_template.jinja` what is there.
    ///
    /// # Errors
    /// Returns an error if `tokenizer.json` is missing, or a file is none that the library `tokenizers` reads.
    pub fn of_folder(path: impl AsRef<Path>) -> Result<Self> {
        let (folder, template) = Folder::open(path.as_ref())?;
        Ok(Tokenizer {
            kind: Kind::Folder(Box::new(folder)),
            template,
        })
    }

    /// The tokens of a text. Special tokens that are written in it, such as `<|im_end|>`, are themselves. With
    /// `add_special`, it begins and ends as the model's texts do.
    ///
    /// # Errors
    /// Returns an error if the text cannot be encoded.
    pub fn encode(&self, text: &str, add_special: bool) -> Result<Vec<u32>> {
        match &self.kind {
            Kind::Gguf(gguf) => gguf.encode(text, add_special, true),
            Kind::Folder(folder) => folder.encode(text, add_special, true),
        }
    }

    /// The tokens of a text in which control tokens are no more than their letters, such as what a user wrote.
    ///
    /// # Errors
    /// Returns an error if the text cannot be encoded.
    pub fn encode_plain(&self, text: &str) -> Result<Vec<u32>> {
        match &self.kind {
            Kind::Gguf(gguf) => gguf.encode(text, false, false),
            Kind::Folder(folder) => folder.encode(text, false, false),
        }
    }

    /// The text of tokens; with `skip_special` without control tokens. Bytes that are no text become U+FFFD.
    ///
    /// # Errors
    /// Returns an error if an id is of no token.
    pub fn decode(&self, ids: &[u32], skip_special: bool) -> Result<String> {
        match &self.kind {
            Kind::Gguf(gguf) => gguf.decode(ids, skip_special),
            Kind::Folder(folder) => folder.decode(ids, skip_special),
        }
    }

    /// What decodes tokens as they come.
    pub fn stream(&self, skip_special: bool) -> DecodeStream<'_> {
        DecodeStream::new(self, skip_special)
    }

    /// How many tokens there are.
    pub fn vocab_size(&self) -> usize {
        match &self.kind {
            Kind::Gguf(gguf) => gguf.vocabulary.tokens.len(),
            Kind::Folder(folder) => folder.vocab_size(),
        }
    }

    /// The token whose own text is that one.
    pub fn id(&self, text: &str) -> Option<u32> {
        match &self.kind {
            Kind::Gguf(gguf) => gguf.vocabulary.id(text),
            Kind::Folder(folder) => folder.id(text),
        }
    }

    /// A token's own text, in which bytes and spaces are written as the vocabulary does.
    pub fn token(&self, id: u32) -> Option<String> {
        match &self.kind {
            Kind::Gguf(gguf) => Some(gguf.vocabulary.token(id)?.text.clone()),
            Kind::Folder(folder) => folder.token(id),
        }
    }

    /// The token that texts begin with.
    pub fn bos(&self) -> Option<u32> {
        match &self.kind {
            Kind::Gguf(gguf) => gguf.vocabulary.named.bos,
            Kind::Folder(folder) => folder.bos,
        }
    }

    /// The token that texts end with.
    pub fn eos(&self) -> Option<u32> {
        match &self.kind {
            Kind::Gguf(gguf) => gguf.vocabulary.named.eos,
            Kind::Folder(folder) => folder.eos,
        }
    }

    /// All tokens after which a model has said what it had to say (ends of texts, turns and messages), by their ids.
    pub fn ends(&self) -> &[u32] {
        match &self.kind {
            Kind::Gguf(gguf) => &gguf.vocabulary.ends,
            Kind::Folder(folder) => &folder.ends,
        }
    }

    /// The model's chat template, as [`ChatTemplate`](crate::ChatTemplate) takes it.
    pub fn chat_template(&self) -> Option<&str> {
        self.template.as_deref()
    }

    /// The names of `tokenizer.ggml.pre` that are supported.
    pub fn pre_tokenizers() -> impl Iterator<Item = &'static str> {
        split::names()
    }
}
