//! `Specials`: the tokens that are found in a text before anything else reads it.
//!
//! Invariant: of two that overlap, the longer one is taken wherever it stands, as llama.cpp does.

use aho_corasick::AhoCorasick;
use fx_core::{Error, Result};

use super::vocabulary::{Kind, Vocabulary};

/// A piece of a text.
#[derive(Clone, Copy)]
pub(super) enum Fragment<'a> {
    Token(u32),
    Text(&'a str),
}

struct Special {
    id: u32,
    text: String,
    /// Whether it counts only where control tokens are read.
    is_control: bool,
    /// Whether the whitespace behind it goes with it.
    strips: bool,
}

/// The special tokens of a vocabulary, the longest first.
pub(super) struct Specials {
    all: Vec<Special>,
    automaton: AhoCorasick,
}

impl Specials {
    /// The special tokens of a vocabulary; `strips` says which take the whitespace behind them.
    pub fn new(vocabulary: &Vocabulary, strips: impl Fn(&str) -> bool) -> Result<Self> {
        let mut all = Vec::new();
        for (id, token) in vocabulary.tokens.iter().enumerate() {
            if let Kind::Control | Kind::UserDefined | Kind::Unknown = token.kind {
                all.push(Special {
                    id: id as u32,
                    text: token.text.clone(),
                    is_control: token.kind != Kind::UserDefined,
                    strips: strips(&token.text),
                });
            }
        }
        all.sort_by_key(|special| std::cmp::Reverse(special.text.len()));
        let automaton = AhoCorasick::new(all.iter().map(|special| &special.text));
        let automaton = automaton.map_err(Error::other)?;
        Ok(Specials { all, automaton })
    }

    /// A text in pieces: its special tokens, those of control only if asked for, and what is between.
    pub fn split<'a>(&self, text: &'a str, control: bool) -> Vec<Fragment<'a>> {
        if text.is_empty() {
            return Vec::new();
        }
        let mut occurs = vec![false; self.all.len()];
        for found in self.automaton.find_overlapping_iter(text) {
            occurs[found.pattern().as_usize()] = true;
        }
        let mut fragments = vec![Fragment::Text(text)];
        let occurring = self.all.iter().zip(occurs).filter(|(_, occurs)| *occurs);
        for (special, _) in occurring.filter(|(special, _)| control || !special.is_control) {
            let mut next = Vec::with_capacity(fragments.len());
            for fragment in fragments {
                match fragment {
                    Fragment::Token(_) => next.push(fragment),
                    Fragment::Text(text) => special.split(text, &mut next),
                }
            }
            fragments = next;
        }
        fragments
    }
}

impl Special {
    fn split<'a>(&self, mut text: &'a str, fragments: &mut Vec<Fragment<'a>>) {
        while let Some((before, after)) = text.split_once(&self.text) {
            if !before.is_empty() {
                fragments.push(Fragment::Text(before));
            }
            fragments.push(Fragment::Token(self.id));
            text = match self.strips {
                true => after.trim_start_matches([' ', '\t', '\n', '\x0b', '\x0c', '\r']),
                false => after,
            };
        }
        if !text.is_empty() {
            fragments.push(Fragment::Text(text));
        }
    }
}
