//! `EngineOptions` and `EngineStats`: how an engine runs, and what it does at the moment.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize};

use crate::Tokenizer;

/// How an engine runs.
#[derive(Clone)]
#[non_exhaustive]
pub struct EngineOptions {
    /// How many requests may wait for a place; more are refused with
    /// [`SubmitError::Full`](super::SubmitError::Full).
    pub max_waiting: usize,
    /// How many words of a prompt are read at once: a longer one takes several turns, and others write meanwhile.
    pub chunk: usize,
    /// How many tokens wait for the reader of a stream before its text pauses.
    pub buffered: usize,
    /// What makes text of tokens; without it streams have ids alone, and stop strings are refused.
    pub tokenizer: Option<Arc<Tokenizer>>,
}

impl Default for EngineOptions {
    fn default() -> Self {
        EngineOptions {
            max_waiting: 64,
            chunk: 256,
            buffered: 256,
            tokenizer: None,
        }
    }
}

impl EngineOptions {
    /// Sets [`max_waiting`](EngineOptions::max_waiting).
    #[must_use]
    pub fn max_waiting(mut self, max_waiting: usize) -> Self {
        self.max_waiting = max_waiting;
        self
    }

    /// Sets [`chunk`](EngineOptions::chunk); 0 is read as 1.
    #[must_use]
    pub fn chunk(mut self, chunk: usize) -> Self {
        self.chunk = chunk.max(1);
        self
    }

    /// Sets [`buffered`](EngineOptions::buffered); 0 is read as 1.
    #[must_use]
    pub fn buffered(mut self, buffered: usize) -> Self {
        self.buffered = buffered.max(1);
        self
    }

    /// Sets [`tokenizer`](EngineOptions::tokenizer).
    #[must_use]
    pub fn tokenizer(mut self, tokenizer: Arc<Tokenizer>) -> Self {
        self.tokenizer = Some(tokenizer);
        self
    }
}

/// What an engine does at the moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct EngineStats {
    /// Whether new requests are taken: it is not closed, and its thread runs.
    pub is_open: bool,
    /// Texts that have a place.
    pub running: usize,
    /// Requests that wait for one.
    pub waiting: usize,
    /// Blocks of [`BLOCK`] positions that the caches of texts take.
    pub blocks_in_use: usize,
}

/// How many positions a block of a cache has.
pub const BLOCK: usize = 256;

/// What both sides of the thread's border see.
#[derive(Default)]
pub(super) struct Shared {
    pub running: AtomicUsize,
    pub waiting: AtomicUsize,
    pub blocks: AtomicUsize,
    /// Whether running texts end too.
    pub is_stopped: AtomicBool,
    /// Whether new requests are refused.
    pub is_closed: AtomicBool,
}
