//! `Pieces`: the tokens of a SentencePiece vocabulary, merged by their scores.
//!
//! Invariant: the pair with the largest score is merged first, and of equal ones the leftmost.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use fx_core::{Error, Result};

use super::vocabulary::Vocabulary;

/// What is not in the text: before the first piece, behind the last.
const NONE: usize = usize::MAX;

/// What a vocabulary that is merged by scores needs beside its tokens.
pub(super) struct Pieces {
    /// The tokens of bytes, for characters that are no token.
    bytes: Vec<u32>,
}

/// A run of characters, which is one piece so far; empty once another took it.
struct Symbol {
    start: usize,
    len: usize,
    previous: usize,
    next: usize,
}

/// Two neighbours whose text is a token.
struct Pair {
    score: f32,
    left: usize,
    right: usize,
    len: usize,
}

impl Ord for Pair {
    fn cmp(&self, other: &Self) -> Ordering {
        let by_score = self.score.total_cmp(&other.score);
        by_score.then(other.left.cmp(&self.left))
    }
}

impl PartialOrd for Pair {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Pair {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Pair {}

impl Pieces {
    /// # Errors
    /// Returns an error if a byte has no token, and the vocabulary none for what it does not know.
    pub fn new(vocabulary: &Vocabulary) -> Result<Self> {
        let byte = |byte: u8| {
            let id = vocabulary.id(&format!("<0x{byte:02X}>"));
            let ascii = || {
                vocabulary
                    .id(char::from(byte).to_string().as_str())
                    .filter(|_| byte.is_ascii())
            };
            id.or_else(ascii).or(vocabulary.named.unknown).ok_or_else(|| {
                Error::msg(format_args!(
                    "there is no token `<0x{byte:02X}>`, and no `tokenizer.ggml.unknown_token_id`: the vocabulary is cut off"
                ))
            })
        };
        let bytes = (0..=u8::MAX).map(byte).collect::<Result<_>>()?;
        Ok(Pieces { bytes })
    }

    /// Adds the tokens of a text, whose spaces are written `▁`.
    pub fn encode(&self, vocabulary: &Vocabulary, text: &str, ids: &mut Vec<u32>) {
        let mut symbols = Vec::new();
        for (start, character) in text.char_indices() {
            let index = symbols.len();
            symbols.push(Symbol {
                start,
                len: character.len_utf8(),
                previous: index.wrapping_sub(1),
                next: index + 1,
            });
        }
        match symbols.last_mut() {
            Some(last) => last.next = NONE,
            None => return,
        }
        let pair = |symbols: &[Symbol], left: usize, right: usize| {
            if left == NONE || right == NONE {
                return None;
            }
            let start = symbols[left].start;
            let len = symbols[left].len + symbols[right].len;
            let id = vocabulary.id(&text[start..start + len])?;
            let score = vocabulary.tokens[id as usize].score;
            Some(Pair {
                score,
                left,
                right,
                len,
            })
        };
        let first = (1..symbols.len()).filter_map(|right| pair(&symbols, right - 1, right));
        let mut queue: BinaryHeap<Pair> = first.collect();
        while let Some(Pair {
            left, right, len, ..
        }) = queue.pop()
        {
            let taken = symbols[right].len;
            if symbols[left].len == 0 || taken == 0 || symbols[left].len + taken != len {
                continue;
            }
            let next = symbols[right].next;
            symbols[left].len = len;
            symbols[left].next = next;
            symbols[right].len = 0;
            if next != NONE {
                symbols[next].previous = left;
            }
            queue.extend(pair(&symbols, symbols[left].previous, left));
            queue.extend(pair(&symbols, left, next));
        }
        for Symbol { start, len, .. } in symbols.iter().filter(|symbol| symbol.len > 0) {
            let piece = &text[*start..start + len];
            match vocabulary.id(piece) {
                Some(id) => ids.push(id),
                None => ids.extend(piece.bytes().map(|byte| self.bytes[byte as usize])),
            }
        }
    }
}
