//! `Vocabulary`: the tokens of a GGUF file, with what llama.cpp takes each for.
//!
//! Invariant: every text is one token, and every id that is named is one of the vocabulary's.

use std::collections::BTreeSet;

use candle_core::quantized::gguf_file::Value;
use fx_core::{Error, Result};
use fx_nn::weights::Checkpoint;
use rustc_hash::FxHashMap;

/// What a token is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Normal,
    Unknown,
    Control,
    UserDefined,
    Byte,
    /// Unused ones and kinds that are not known: they are no text.
    Other,
}

/// A token of a vocabulary.
pub(super) struct Token {
    pub text: String,
    pub kind: Kind,
    /// The larger, the sooner it is merged; 0 where the file has none.
    pub score: f32,
}

/// Tokens that a file names for a use.
#[derive(Default)]
pub(super) struct Named {
    pub bos: Option<u32>,
    pub eos: Option<u32>,
    pub eot: Option<u32>,
    pub eom: Option<u32>,
    pub unknown: Option<u32>,
}

/// The tokens of a file.
pub(super) struct Vocabulary {
    pub tokens: Vec<Token>,
    ids: FxHashMap<String, u32>,
    pub named: Named,
    /// What ends a generation.
    pub ends: Vec<u32>,
}

/// Texts that end a generation, whatever a file says of them.
const ENDS: [&str; 22] = [
    "<|eot_id|>",
    "<|im_end|>",
    "<|end|>",
    "<|return|>",
    "<|call|>",
    "<|flush|>",
    "<|calls|>",
    "<end_of_turn>",
    "<|endoftext|>",
    "</s>",
    "<|eom_id|>",
    "<EOT>",
    "_<EOT>",
    "[EOT]",
    "[EOS]",
    "<|end_of_text|>",
    "<end_of_utterance>",
    "<eos>",
    "<turn|>",
    "<|tool_response>",
    "<｜end▁of▁sentence｜>",
    "[e~[",
];

/// Texts of tokens that fill in the middle, by use: the keys of a file's own, what they are else known by, and whether one
/// ends a generation.
const FILLS: [(&[&str], &[&str], bool); 6] = [
    (
        &["fim_pre", "prefix"],
        &[
            "<|fim_prefix|>",
            "<fim-prefix>",
            "<fim_prefix>",
            "<｜fim▁begin｜>",
            "<PRE>",
            "▁<PRE>",
            "<|code_prefix|>",
            "<|prefix|>",
        ],
        false,
    ),
    (
        &["fim_suf", "suffix"],
        &[
            "<|fim_suffix|>",
            "<fim-suffix>",
            "<fim_suffix>",
            "<｜fim▁hole｜>",
            "<SUF>",
            "▁<SUF>",
            "<|code_suffix|>",
            "<|suffix|>",
        ],
        false,
    ),
    (
        &["fim_mid", "middle"],
        &[
            "<|fim_middle|>",
            "<fim-middle>",
            "<fim_middle>",
            "<｜fim▁end｜>",
            "<MID>",
            "▁<MID>",
            "<|code_middle|>",
            "<|middle|>",
        ],
        false,
    ),
    (
        &["fim_pad"],
        &["<|fim_pad|>", "<fim-pad>", "<fim_pad>", "<PAD>", "[PAD]"],
        true,
    ),
    (
        &["fim_rep"],
        &[
            "<|fim_repo|>",
            "<|repo_name|>",
            "<fim-repo>",
            "<REPO>",
            "<reponame>",
        ],
        true,
    ),
    (&["fim_sep"], &["<|file_sep|>"], true),
];

/// Tokens of gpt-oss that are always shown.
const SHOWN: [&str; 4] = ["<|channel|>", "<|message|>", "<|start|>", "<|constrain|>"];

/// The list under a key, if there is one.
pub(super) fn list<'a>(file: &'a Checkpoint, key: &str) -> Result<Option<&'a [Value]>> {
    match file.gguf_value(key) {
        None => Ok(None),
        Some(Value::Array(items)) => Ok(Some(items)),
        Some(other) => Err(wrong(key, "a list", other)),
    }
}

/// The truth under a key, if there is one.
pub(super) fn truth(file: &Checkpoint, key: &str) -> Result<Option<bool>> {
    match file.gguf_value(key) {
        None => Ok(None),
        Some(Value::Bool(truth)) => Ok(Some(*truth)),
        Some(other) => Err(wrong(key, "true or false", other)),
    }
}

/// The text under a key, if there is one.
pub(super) fn text<'a>(file: &'a Checkpoint, key: &str) -> Result<Option<&'a str>> {
    match file.gguf_value(key) {
        None => Ok(None),
        Some(Value::String(text)) => Ok(Some(text)),
        Some(other) => Err(wrong(key, "a text", other)),
    }
}

/// The texts of a list.
pub(super) fn texts<'a>(key: &str, items: &'a [Value]) -> Result<Vec<&'a str>> {
    let text = |item: &'a Value| match item {
        Value::String(text) => Ok(text.as_str()),
        other => Err(wrong(key, "a list of texts", other)),
    };
    items.iter().map(text).collect()
}

fn wrong(key: &str, expected: &str, found: &Value) -> Error {
    Error::msg(format_args!(
        "`{key}` has {:?} where {expected} belongs: convert the model again",
        found.value_type()
    ))
}

fn whole(value: &Value) -> Option<i64> {
    Some(match value {
        Value::U8(n) => (*n).into(),
        Value::I8(n) => (*n).into(),
        Value::U16(n) => (*n).into(),
        Value::I16(n) => (*n).into(),
        Value::U32(n) => (*n).into(),
        Value::I32(n) => (*n).into(),
        Value::I64(n) => *n,
        Value::U64(n) => i64::try_from(*n).ok()?,
        _ => return None,
    })
}

/// A list with an item for each token, if there is one.
fn beside<T>(
    file: &Checkpoint,
    key: &str,
    count: usize,
    expected: &str,
    item: impl Fn(&Value) -> Option<T>,
) -> Result<Option<Vec<T>>> {
    let Some(items) = list(file, key)? else {
        return Ok(None);
    };
    if items.len() != count {
        return Err(Error::msg(format_args!(
            "`{key}` has {} items, and `tokenizer.ggml.tokens` {count}: convert the model again",
            items.len()
        )));
    }
    let read = |value: &Value| item(value).ok_or_else(|| wrong(key, expected, value));
    items.iter().map(read).collect::<Result<_>>().map(Some)
}

impl Vocabulary {
    /// The vocabulary of a file, whose tokens have to have scores if `scored`.
    pub fn read(file: &Checkpoint, scored: bool) -> Result<Self> {
        let key = "tokenizer.ggml.tokens";
        let Some(items) = list(file, key)? else {
            return Err(Error::msg(format_args!(
                "there is no `{key}`: the file has no vocabulary; convert the model with one"
            )));
        };
        let texts = texts(key, items)?;
        if texts.is_empty() || u32::try_from(texts.len()).is_err() {
            return Err(Error::msg(format_args!(
                "`{key}` has {} items",
                texts.len()
            )));
        }
        let rows = file.shape("token_embd.weight").and_then(<[usize]>::first);
        if let Some(rows) = rows.filter(|rows| **rows != texts.len()) {
            return Err(Error::msg(format_args!(
                "`{key}` has {} items, and `token_embd.weight` {rows} rows: convert the model again",
                texts.len()
            )));
        }
        let number = |value: &Value| match value {
            Value::F32(x) => Some(*x).filter(|x| !x.is_nan()),
            Value::I32(n) => Some(*n as f32),
            _ => None,
        };
        let scores = beside(
            file,
            "tokenizer.ggml.scores",
            texts.len(),
            "a number",
            number,
        )?;
        if scored && scores.is_none() {
            return Err(Error::msg(
                "there is no `tokenizer.ggml.scores`, by which this vocabulary's tokens are merged: convert the model again",
            ));
        }
        let kinds = beside(
            file,
            "tokenizer.ggml.token_type",
            texts.len(),
            "a number",
            whole,
        )?;
        let mut tokens = Vec::with_capacity(texts.len());
        let mut ids = FxHashMap::default();
        for (id, text) in texts.into_iter().enumerate() {
            let text = match text {
                "" => format!("[EMPTY_{id}]"),
                text => text.to_string(),
            };
            if let Some(first) = ids.insert(text.clone(), id as u32) {
                return Err(Error::msg(format_args!(
                    "`{key}` has {text:?} at {first} and at {id}: convert the model again"
                )));
            }
            let kind = match kinds.as_ref().map_or(1, |kinds| kinds[id]) {
                1 => Kind::Normal,
                2 => Kind::Unknown,
                3 => Kind::Control,
                4 => Kind::UserDefined,
                6 => Kind::Byte,
                _ => Kind::Other,
            };
            // Adding 0 makes -0 and 0 one score.
            let score = scores.as_ref().map_or(0.0, |scores| scores[id] + 0.0);
            tokens.push(Token { text, kind, score });
        }
        let mut vocabulary = Vocabulary {
            tokens,
            ids,
            named: Named::default(),
            ends: Vec::new(),
        };
        vocabulary.name(file)?;
        Ok(vocabulary)
    }

    /// The token of a text.
    pub fn id(&self, text: &str) -> Option<u32> {
        self.ids.get(text).copied()
    }

    /// The token of an id.
    pub fn token(&self, id: u32) -> Option<&Token> {
        self.tokens.get(id as usize)
    }

    /// The token that a file names for a use.
    fn named(&self, file: &Checkpoint, name: &str) -> Result<Option<u32>> {
        let key = format!("tokenizer.ggml.{name}_token_id");
        let Some(value) = file.gguf_value(&key) else {
            return Ok(None);
        };
        let id = whole(value).ok_or_else(|| wrong(&key, "a number", value))?;
        // Older converters write -1 where there is none.
        if id == -1 || id == i64::from(u32::MAX) {
            return Ok(None);
        }
        let known = u32::try_from(id)
            .ok()
            .filter(|id| self.token(*id).is_some());
        known.map(Some).ok_or_else(|| {
            Error::msg(format_args!(
                "`{key}` is {id}, and there are {} tokens: the vocabulary is cut off, or the id is wrong",
                self.tokens.len()
            ))
        })
    }

    /// The first of some texts that is a token, which becomes a control token.
    fn control(&mut self, texts: &[&str]) -> Option<u32> {
        let id = texts.iter().find_map(|text| self.id(text))?;
        self.tokens[id as usize].kind = Kind::Control;
        Some(id)
    }

    /// Finds what the file names, and what ends a generation.
    fn name(&mut self, file: &Checkpoint) -> Result<()> {
        self.named = Named {
            bos: self.named(file, "bos")?,
            eos: self.named(file, "eos")?,
            eot: self.named(file, "eot")?,
            eom: self.named(file, "eom")?,
            unknown: self.named(file, "unknown")?,
        };
        let mut ends = BTreeSet::new();
        for (keys, texts, is_end) in FILLS {
            let mut own = None;
            for key in keys {
                own = self.named(file, key)?.or(own);
            }
            let fill = own.or_else(|| self.control(texts));
            ends.extend(fill.filter(|_| is_end));
        }
        for text in ENDS {
            ends.extend(self.control(&[text]));
        }
        for text in SHOWN {
            if let Some(id) = self.id(text) {
                self.tokens[id as usize].kind = Kind::UserDefined;
            }
        }
        let Named { eos, eot, eom, .. } = self.named;
        ends.extend([eos, eot, eom].into_iter().flatten());
        let has = |text: &str| self.id(text).is_some_and(|id| ends.contains(&id));
        // gpt-oss and Solar end parts of a turn by it; Gemma 4 and PLaMo have it as a word.
        let call = has("<|call|>") || has("<|calls|>");
        let end = call && (has("<|return|>") || has("<|flush|>")) && has("<|end|>");
        let word = has("</s>") && (has("<|tool_response>") || has("<|plamo:eos|>"));
        for (text, kind) in [
            ("<|end|>", end.then_some(Kind::UserDefined)),
            ("</s>", word.then_some(Kind::Normal)),
        ] {
            if let (Some(kind), Some(id)) = (kind, self.id(text)) {
                ends.remove(&id);
                self.tokens[id as usize].kind = kind;
            }
        }
        self.ends = ends.into_iter().collect();
        Ok(())
    }
}
