//! `Gguf`: the tokenizer that a GGUF file has.
//!
//! Invariant: what is not understood is refused by its name.

use std::path::Path;

use fx_core::{Error, Result};
use fx_nn::weights::Checkpoint;
use rustc_hash::FxHashMap;

use super::bpe::{Bpe, bytes};
use super::sentencepiece::Pieces;
use super::special::{Fragment, Specials};
use super::split::{DEFAULT, GEMMA, Split};
use super::vocabulary::{Kind, Vocabulary, text, truth};

/// A tokenizer, and what its file says of texts.
pub(super) struct Gguf {
    pub vocabulary: Vocabulary,
    specials: Specials,
    model: Model,
    /// Whether a text begins with a space that it does not have.
    adds_space: bool,
    adds_bos: bool,
    adds_eos: bool,
    /// The bytes that characters of tokens stand for; none where tokens are plain text.
    bytes: Option<FxHashMap<char, u8>>,
}

enum Model {
    Bpe(Box<Bpe>),
    Pieces(Pieces),
}

/// The models whose special tokens take the whitespace behind them, and those that do not.
const STRIPPED: [&str; 2] = ["phi-3", "phi3"];
const UNSTRIPPED: [&str; 3] = ["<unk>", "<s>", "<|endoftext|>"];

impl Gguf {
    /// The tokenizer of a file, and its chat template.
    pub fn open(path: &Path) -> Result<(Self, Option<String>)> {
        let file = Checkpoint::open(path)?;
        let read = || {
            let template = text(&file, "tokenizer.chat_template")?;
            Ok((Gguf::read(&file)?, template.map(str::to_string)))
        };
        read().map_err(|error: Error| Error::msg(format_args!("{}: {error}", path.display())))
    }

    fn read(file: &Checkpoint) -> Result<Self> {
        let Some(kind) = text(file, "tokenizer.ggml.model")? else {
            return Err(Error::msg(
                "there is no `tokenizer.ggml.model`: it is no GGUF file with a tokenizer",
            ));
        };
        let name = text(file, "tokenizer.ggml.pre")?.filter(|name| !name.is_empty());
        let split = match kind {
            "gpt2" => Some(Split::of(name.unwrap_or(DEFAULT))?),
            "gemma4" => Some(Split::of(GEMMA)?),
            "llama" => None,
            other => {
                return Err(Error::msg(format_args!(
                    "`tokenizer.ggml.model` is `{other}`: supported are gpt2, gemma4 and llama"
                )));
            }
        };
        let mut vocabulary = Vocabulary::read(file, split.is_none())?;
        if split.is_none() {
            let named = &mut vocabulary.named;
            // The numbers of SentencePiece, where the file does not say.
            let count = vocabulary.tokens.len();
            let or =
                |id: Option<u32>, own: u32| id.or(Some(own).filter(|own| (*own as usize) < count));
            named.unknown = or(named.unknown, 0);
            named.bos = or(named.bos, 1);
            if named.eos.is_none() {
                named.eos = or(None, 2);
                if let Some(eos) = named.eos
                    && let Err(place) = vocabulary.ends.binary_search(&eos)
                {
                    vocabulary.ends.insert(place, eos);
                }
            }
        }
        let strips = text(file, "general.name")?.map(str::to_lowercase);
        let strips = strips.is_some_and(|name| STRIPPED.iter().any(|part| name.contains(part)));
        let specials = Specials::new(&vocabulary, |text| strips && !UNSTRIPPED.contains(&text))?;
        let has_bytes = split.as_ref().is_some_and(|split| split.has_bytes);
        let begins = split
            .as_ref()
            .is_none_or(|split| split.adds_bos || !split.has_bytes);
        let flag = |name: &str, default: bool| {
            Ok::<_, Error>(truth(file, &format!("tokenizer.ggml.{name}"))?.unwrap_or(default))
        };
        let adds_space = flag("add_space_prefix", split.is_none())? && split.is_none();
        // Gemma 4 always has one.
        let always = split.as_ref().is_some_and(|split| !split.has_bytes);
        let adds_bos = flag("add_bos_token", begins)? || always;
        let adds_eos = flag("add_eos_token", false)?;
        let named = &vocabulary.named;
        for (adds, id, name) in [(adds_bos, named.bos, "bos"), (adds_eos, named.eos, "eos")] {
            if adds && id.is_none() {
                return Err(Error::msg(format_args!(
                    "texts have a token `{name}` added, and there is no `tokenizer.ggml.{name}_token_id`"
                )));
            }
        }
        let model = match split {
            Some(split) => Model::Bpe(Box::new(Bpe::new(file, &vocabulary, split)?)),
            None => Model::Pieces(Pieces::new(&vocabulary)?),
        };
        Ok(Gguf {
            vocabulary,
            specials,
            model,
            adds_space,
            adds_bos,
            adds_eos,
            bytes: has_bytes.then(bytes),
        })
    }

    /// The tokens of a text; those of control in it only if asked for.
    pub fn encode(&self, text: &str, add_special: bool, control: bool) -> Result<Vec<u32>> {
        let named = &self.vocabulary.named;
        let mut ids = Vec::new();
        ids.extend(named.bos.filter(|_| add_special && self.adds_bos));
        let mut begins = true;
        for fragment in self.specials.split(text, control) {
            match fragment {
                Fragment::Token(id) => ids.push(id),
                Fragment::Text(text) => match &self.model {
                    Model::Bpe(bpe) => bpe.encode(&self.vocabulary, text, &mut ids)?,
                    Model::Pieces(pieces) => {
                        let space = if self.adds_space && begins { "▁" } else { "" };
                        let text = [space, &text.replace(' ', "▁")].concat();
                        pieces.encode(&self.vocabulary, &text, &mut ids);
                    }
                },
            }
            begins = matches!(fragment, Fragment::Token(_));
        }
        ids.extend(named.eos.filter(|_| add_special && self.adds_eos));
        Ok(ids)
    }

    /// The text of tokens, without the space that encoding adds.
    pub fn decode(&self, ids: &[u32], skip_special: bool) -> Result<String> {
        let mut text = Vec::new();
        for id in ids {
            self.piece(*id, skip_special, &mut text)?;
        }
        let first = ids.iter().find(|id| {
            let token = self.vocabulary.token(**id);
            token.is_some_and(|token| !matches!(token.kind, Kind::Control | Kind::Unknown))
        });
        let starts = ids.first() == first || skip_special;
        if self.adds_space && starts && text.first() == Some(&b' ') {
            text.remove(0);
        }
        Ok(String::from_utf8_lossy(&text).into_owned())
    }

    /// Adds the bytes of a token.
    pub fn piece(&self, id: u32, skip_special: bool, text: &mut Vec<u8>) -> Result<()> {
        let Some(token) = self.vocabulary.token(id) else {
            return Err(Error::msg(format_args!(
                "there is no token {id}: the vocabulary has {}",
                self.vocabulary.tokens.len()
            )));
        };
        match (token.kind, &self.bytes) {
            (Kind::Control | Kind::Unknown, _) if skip_special => {}
            (Kind::Control | Kind::Unknown | Kind::UserDefined, _) => {
                text.extend(token.text.as_bytes());
            }
            (Kind::Normal, Some(bytes)) => {
                for letter in token.text.chars() {
                    match bytes.get(&letter) {
                        Some(byte) => text.push(*byte),
                        None => text.extend(letter.encode_utf8(&mut [0; 4]).as_bytes()),
                    }
                }
            }
            (Kind::Normal, None) => text.extend(token.text.replace('▁', " ").as_bytes()),
            (Kind::Byte, _) => {
                let digits = token.text.get(3..5).unwrap_or_default();
                text.extend(u8::from_str_radix(digits, 16).ok());
            }
            (Kind::Other, _) => {}
        }
        Ok(())
    }
}
