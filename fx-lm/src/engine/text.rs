//! `Text`: a text that is being written: what was read of it, what is known of it, and what waits for its reader.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{SyncSender, TrySendError};

use fx_core::{GraphModule, Result};
use fx_nn::Tensor;
use fx_nn::models::hf::decoder::Cache;
use rustc_hash::FxHashSet;

use super::options::BLOCK;
use super::request::{End, Event, FinishReason, Request, Token};
use super::sampling::Sampler;
use crate::{DecodeStream, Tokenizer};

pub(super) struct Text<'t> {
    /// Which one it is, in the order in which texts got their places.
    pub number: u64,
    /// The prompt, and what was written.
    tokens: Vec<u32>,
    seen: FxHashSet<u32>,
    /// How many tokens the caches have.
    read: usize,
    /// Empty once the text is over.
    pub caches: Vec<Cache>,
    /// How many tokens there are in the end.
    most: usize,
    stop_ids: Vec<u32>,
    stop_strings: Vec<String>,
    sampler: Sampler,
    processors: Vec<GraphModule>,
    decoder: Option<DecodeStream<'t>>,
    /// Text that may be the beginning of a stop string.
    held: String,
    events: SyncSender<Event>,
    waiting: VecDeque<Event>,
    is_cancelled: Arc<AtomicBool>,
    is_over: bool,
}

impl<'t> Text<'t> {
    /// # Errors
    /// Returns the error of a processor that cannot be made.
    pub fn new(
        number: u64,
        request: Request,
        caches: Vec<Cache>,
        positions: usize,
        tokenizer: Option<&'t Tokenizer>,
    ) -> Result<Self, (SyncSender<Event>, fx_core::Error)> {
        let Request {
            prompt,
            options,
            events,
            is_cancelled,
        } = request;
        let processors = options.processors.iter().map(|processor| processor.make());
        let processors = match processors.collect::<Result<Vec<_>>>() {
            Ok(processors) => processors,
            Err(error) => return Err((events, error)),
        };
        let mut text = Text {
            number,
            seen: prompt.iter().copied().collect(),
            read: 0,
            caches,
            most: prompt
                .len()
                .saturating_add(options.max_new_tokens)
                .min(positions),
            sampler: Sampler::new(&options),
            processors,
            decoder: tokenizer.map(|tokenizer| tokenizer.stream(true)),
            held: String::new(),
            events,
            waiting: VecDeque::new(),
            is_cancelled,
            is_over: false,
            stop_ids: options.stop_ids,
            stop_strings: options.stop_strings,
            tokens: prompt,
        };
        if text.tokens.len() >= text.most {
            text.end(FinishReason::Length);
        }
        Ok(text)
    }

    /// The tokens to read next, at most `chunk` of a prompt; none while the reader is behind.
    pub fn next_words(&self, chunk: usize) -> &[u32] {
        match self.waiting.is_empty() && !self.is_over {
            true => {
                let end = self.tokens.len().min(self.read + chunk);
                &self.tokens[self.read..end]
            }
            false => &[],
        }
    }

    /// Takes note that so many tokens were read. Returns whether the scores behind them are those of the next token.
    pub fn advance(&mut self, count: usize) -> bool {
        self.read += count;
        count > 0 && self.read == self.tokens.len()
    }

    /// Whether the next token is the one with the model's best score.
    pub fn is_greedy(&self) -> bool {
        self.sampler.is_greedy() && self.processors.is_empty()
    }

    /// The next token by its scores `[vocab_size]`.
    ///
    /// # Errors
    /// Returns an error if a processor fails, or there are no scores.
    pub fn pick(&mut self, scores: &Tensor) -> Result<u32> {
        let mut scores = scores.to_dtype(fx_core::value::DType::F32)?;
        if !self.processors.is_empty() {
            let tokens: Vec<i64> = self.tokens.iter().map(|id| i64::from(*id)).collect();
            let count = tokens.len();
            let tokens = Tensor::from_vec(tokens, count)?;
            for processor in &self.processors {
                scores = processor.forward((&scores, &tokens))?;
            }
        }
        let all = scores
            .contiguous()?
            .candle()?
            .flatten_all()
            .and_then(|x| x.to_vec1::<f32>());
        self.sampler
            .pick(&mut all.map_err(fx_core::Error::other)?, &self.seen)
    }

    /// Adds a token.
    ///
    /// # Errors
    /// Returns an error if it has no text.
    pub fn add(&mut self, id: u32) -> Result<()> {
        if self.stop_ids.contains(&id) {
            self.end(FinishReason::Stop);
            return Ok(());
        }
        self.tokens.push(id);
        self.seen.insert(id);
        let text = match &mut self.decoder {
            Some(decoder) => decoder.push(id)?,
            None => String::new(),
        };
        let (text, is_stopped) = self.certain(text);
        self.waiting.push_back(Event::Token(Token { id, text }));
        if is_stopped {
            self.end(FinishReason::Stop);
        } else if self.tokens.len() >= self.most {
            self.end(FinishReason::Length);
        }
        Ok(())
    }

    /// The part of the held text and `more` that cannot be of a stop string, and whether there is one.
    fn certain(&mut self, more: String) -> (String, bool) {
        if self.stop_strings.is_empty() {
            return (more, false);
        }
        self.held += &more;
        let found = self
            .stop_strings
            .iter()
            .filter_map(|stop| self.held.find(stop.as_str()));
        if let Some(at) = found.min() {
            let mut text = std::mem::take(&mut self.held);
            text.truncate(at);
            return (text, true);
        }
        let starts = |stop: &String| {
            let ends = stop.char_indices().map(|(at, c)| at + c.len_utf8());
            let ends = ends.filter(|end| self.held.ends_with(&stop[..*end]));
            ends.max().unwrap_or(0)
        };
        let held = self.stop_strings.iter().map(starts).max().unwrap_or(0);
        let rest = self.held.split_off(self.held.len() - held);
        (std::mem::replace(&mut self.held, rest), false)
    }

    fn end(&mut self, reason: FinishReason) {
        let mut text = std::mem::take(&mut self.held);
        // By a stop string the text ends before it, whatever the decoder holds.
        let is_cut =
            reason == FinishReason::Stop && text.is_empty() && !self.stop_strings.is_empty();
        if let Some(decoder) = self.decoder.take()
            && !is_cut
        {
            text += &decoder.finish().unwrap_or_default();
        }
        self.waiting.push_back(Event::End(End { reason, text }));
        self.finish();
    }

    /// Ends the text with an error.
    pub fn fail(&mut self, error: &fx_core::Error) {
        self.waiting.push_back(Event::Failed(error.to_string()));
        self.finish();
    }

    /// Ends the text since the engine ends.
    pub fn cancel(&mut self) {
        if !self.is_over {
            self.end(FinishReason::Cancelled);
        }
        self.deliver();
    }

    /// Nothing is read any more: the caches are freed.
    fn finish(&mut self) {
        self.is_over = true;
        self.caches = Vec::new();
        self.read = 0;
    }

    /// Gives the reader what waits, as far as there is room for it.
    pub fn deliver(&mut self) {
        while let Some(event) = self.waiting.pop_front() {
            match self.events.try_send(event) {
                Ok(()) => {}
                Err(TrySendError::Full(event)) => {
                    self.waiting.push_front(event);
                    return;
                }
                Err(TrySendError::Disconnected(_)) => {
                    self.is_cancelled.store(true, Ordering::Release);
                    return;
                }
            }
        }
    }

    /// Takes the caches back from the model.
    pub fn keep(&mut self, caches: Vec<Cache>) {
        if !self.is_over {
            self.caches = caches;
        }
    }

    /// Whether nothing is left to do for it.
    pub fn is_done(&self) -> bool {
        self.is_cancelled.load(Ordering::Acquire) || self.is_over && self.waiting.is_empty()
    }

    /// The blocks that its caches take.
    pub fn blocks(&self) -> usize {
        self.read.div_ceil(BLOCK)
    }
}
