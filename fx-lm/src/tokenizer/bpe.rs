//! `Bpe`: words of a text as tokens, by the merges of a file.
//!
//! Invariant: a character that is no token is never merged over.

use fx_core::{Error, Result};
use fx_nn::weights::Checkpoint;
use rustc_hash::FxHashMap;
use tokenizers::Model;
use tokenizers::models::bpe::{BPE, Vocab};

use super::split::Split;
use super::vocabulary::{Vocabulary, list, texts};

/// A model of merges, and how a text becomes words.
pub(super) struct Bpe {
    model: BPE,
    split: Split,
    /// The character that stands for each byte; none where words are plain text.
    letters: Option<[char; 256]>,
    /// Characters of `letters` that are no tokens.
    missing: Vec<char>,
}

/// The characters that stand for bytes: printable ones for themselves, the others from U+0100 on.
pub(super) fn letters() -> [char; 256] {
    let mut other = 0x100..;
    std::array::from_fn(|byte| match byte {
        0x21..=0x7e | 0xa1..=0xac | 0xae..=0xff => char::from(byte as u8),
        _ => other.next().and_then(char::from_u32).unwrap_or_default(),
    })
}

/// The bytes that characters stand for.
pub(super) fn bytes() -> FxHashMap<char, u8> {
    letters().into_iter().zip(0..=u8::MAX).collect()
}

/// The merges of a file, each of two tokens that make a third.
fn merges(file: &Checkpoint, vocabulary: &Vocabulary) -> Result<Vec<(String, String)>> {
    let key = "tokenizer.ggml.merges";
    let Some(items) = list(file, key)? else {
        return Err(Error::msg(format_args!(
            "there is no `{key}`: convert the model again"
        )));
    };
    let mut merges = Vec::with_capacity(items.len());
    for (place, merge) in texts(key, items)?.into_iter().enumerate() {
        // The first part may be a space.
        let after = merge.chars().next().map_or(0, char::len_utf8);
        let parts = merge[after..]
            .find(' ')
            .map(|at| (&merge[..after + at], &merge[after + at + 1..]));
        let known = parts.filter(|(left, right)| {
            let is_token = |text: &str| vocabulary.id(text).is_some();
            is_token(left) && is_token(right) && is_token(&[*left, *right].concat())
        });
        let Some((left, right)) = known else {
            return Err(Error::msg(format_args!(
                "`{key}` has {merge:?} at {place}, which is not two tokens that make a third: the vocabulary is cut off, or the merges are of another"
            )));
        };
        merges.push((left.to_string(), right.to_string()));
    }
    Ok(merges)
}

impl Bpe {
    pub fn new(file: &Checkpoint, vocabulary: &Vocabulary, split: Split) -> Result<Self> {
        let mut merges = merges(file, vocabulary)?;
        // The first of equal ones counts.
        let mut seen = rustc_hash::FxHashSet::default();
        let firsts: Vec<bool> = merges.iter().map(|merge| seen.insert(merge)).collect();
        let mut firsts = firsts.into_iter();
        merges.retain(|_| firsts.next().unwrap_or(true));
        let ids = vocabulary.tokens.iter().enumerate();
        let ids = ids.map(|(id, token)| (token.text.clone(), id as u32));
        let model = BPE::builder()
            .vocab_and_merges(ids.collect::<Vocab>(), merges)
            .ignore_merges(split.whole_words)
            .build()
            .map_err(Error::other)?;
        let letters = split.has_bytes.then(letters);
        let missing = letters.iter().flatten().copied();
        let missing =
            missing.filter(|letter| vocabulary.id(letter.encode_utf8(&mut [0; 4])).is_none());
        Ok(Bpe {
            model,
            split,
            missing: missing.collect(),
            letters,
        })
    }

    /// Adds the tokens of a text.
    pub fn encode(&self, vocabulary: &Vocabulary, text: &str, ids: &mut Vec<u32>) -> Result<()> {
        let mut word = String::new();
        let escaped;
        let text = match self.letters {
            Some(_) => text,
            None => {
                escaped = text.replace(' ', "▁");
                &escaped
            }
        };
        for part in self.split.words(text) {
            match &self.letters {
                Some(letters) => {
                    word.clear();
                    word.extend(part.bytes().map(|byte| letters[byte as usize]));
                    if self.model.ignore_merges
                        && let Some(id) = vocabulary.id(&word)
                    {
                        ids.push(id);
                        continue;
                    }
                    for known in word.split(|letter| self.missing.contains(&letter)) {
                        self.merge(known, ids)?;
                    }
                }
                None => self.plain(vocabulary, part, ids)?,
            }
        }
        Ok(())
    }

    /// Adds the tokens of a word of plain text: what is no token is written in bytes.
    fn plain(&self, vocabulary: &Vocabulary, word: &str, ids: &mut Vec<u32>) -> Result<()> {
        if word.bytes().all(|byte| byte == b'\n')
            && let Some(id) = vocabulary.id(word)
        {
            ids.push(id);
            return Ok(());
        }
        let mut start = 0;
        for (at, character) in word.char_indices() {
            let unknown = &word[at..at + character.len_utf8()];
            if vocabulary.id(unknown).is_none() {
                self.merge(&word[start..at], ids)?;
                let bytes = unknown.bytes();
                ids.extend(bytes.filter_map(|byte| vocabulary.id(&format!("<0x{byte:02X}>"))));
                start = at + unknown.len();
            }
        }
        self.merge(&word[start..], ids)
    }

    /// Adds the tokens of a word, each of whose characters is one.
    fn merge(&self, word: &str, ids: &mut Vec<u32>) -> Result<()> {
        if word.is_empty() {
            return Ok(());
        }
        let tokens = self.model.tokenize(word).map_err(Error::other)?;
        ids.extend(tokens.into_iter().map(|token| token.id));
        Ok(())
    }
}
