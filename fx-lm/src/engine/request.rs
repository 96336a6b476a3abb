//! `GenerationOptions` and `Stream`: what is asked of an engine, and what it gives.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use fx_core::{Error, GraphModule, Result};

/// What a request is checked against.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limits {
    pub vocab_size: usize,
    pub positions: usize,
    pub max_waiting: usize,
    pub buffered: usize,
    pub has_tokenizer: bool,
}

/// How a text is written, under the names of transformers' `GenerationConfig`.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct GenerationOptions {
    /// How many tokens are written at most.
    pub max_new_tokens: usize,
    /// The divisor of scores; 0 takes the token with the best score.
    pub temperature: f32,
    /// Only so many tokens with the best scores are drawn from; 0 for all.
    pub top_k: usize,
    /// Only the tokens with the best scores are drawn from whose probabilities add up to this.
    pub top_p: f32,
    /// Only tokens at least as probable as this share of the most probable one are drawn from.
    pub min_p: f32,
    /// Scores above 0 of tokens that the text has are divided by this, and those below are multiplied.
    pub repetition_penalty: f32,
    /// What chance starts from; the same for all requests without this.
    pub seed: u64,
    /// Tokens that end the text, and are not given.
    pub stop_ids: Vec<u32>,
    /// Texts that end the text, and are not given.
    pub stop_strings: Vec<String>,
    /// What changes scores, in their order.
    pub processors: Vec<Processor>,
}

impl Default for GenerationOptions {
    fn default() -> Self {
        GenerationOptions {
            max_new_tokens: 128,
            temperature: 0.0,
            top_k: 0,
            top_p: 1.0,
            min_p: 0.0,
            repetition_penalty: 1.0,
            seed: 0,
            stop_ids: Vec::new(),
            stop_strings: Vec::new(),
            processors: Vec::new(),
        }
    }
}

macro_rules! setters {
    ($($name:ident: $kind:ty),*) => {$(
        #[doc = concat!("Sets [`", stringify!($name), "`](GenerationOptions::", stringify!($name), ").")]
        #[must_use]
        pub fn $name(mut self, $name: $kind) -> Self {
            self.$name = $name;
            self
        }
    )*};
}

impl GenerationOptions {
    setters! {
        max_new_tokens: usize, temperature: f32, top_k: usize, top_p: f32, min_p: f32, repetition_penalty: f32, seed: u64,
        stop_ids: Vec<u32>, stop_strings: Vec<String>, processors: Vec<Processor>
    }

    /// # Errors
    /// Returns an error with a line for each problem.
    pub(super) fn check(&self, prompt: &[u32], limits: Limits) -> Result<()> {
        let mut problems = Vec::new();
        if prompt.is_empty() {
            problems.push("the prompt has no tokens".to_string());
        }
        if prompt.len() >= limits.positions {
            problems.push(format!(
                "the prompt has {} tokens, and the model {} positions for it and what is written",
                prompt.len(),
                limits.positions
            ));
        }
        let unknown = prompt.iter().find(|id| **id as usize >= limits.vocab_size);
        if let Some(id) = unknown {
            problems.push(format!(
                "the prompt has the token {id}, and the model knows {}",
                limits.vocab_size
            ));
        }
        let numbers = [
            ("temperature", self.temperature, 0.0, f32::MAX),
            ("top_p", self.top_p, 0.0, 1.0),
            ("min_p", self.min_p, 0.0, 1.0),
            (
                "repetition_penalty",
                self.repetition_penalty,
                f32::MIN_POSITIVE,
                f32::MAX,
            ),
        ];
        for (name, value, least, most) in numbers {
            if !(least..=most).contains(&value) {
                let range = if most == 1.0 {
                    "from 0 to 1"
                } else {
                    "of at least 0"
                };
                problems.push(format!("`{name}` is {value}, and no number {range}"));
            }
        }
        if !self.stop_strings.is_empty() && !limits.has_tokenizer {
            problems.push("there are stop strings, and the engine has no tokenizer: give it one, or `stop_ids`".to_string());
        }
        if self.stop_strings.iter().any(String::is_empty) {
            problems.push("a stop string is empty".to_string());
        }
        match problems.is_empty() {
            true => Ok(()),
            false => Err(Error::msg(problems.join("\n"))),
        }
    }
}

/// A function of scores as a graph: from scores `[vocab_size]` of `float32` and the text's tokens so far `[T]` of `int64` to
/// other scores. It is made on the engine's thread, once for each text.
///
/// ```
/// use fx_lm::engine::Processor;
/// use fx_nn::prelude::*;
/// // Never the token 7.
/// let processor = Processor::new(|| {
///     symbolic_trace(traced!(|scores: &Tensor, tokens: &Tensor| {
///         let _ = tokens;
///         let is_seven = Tensor::arange(0, scores.size(0)?)?.eq(7i64)?;
///         scores.masked_fill(&is_seven, f64::NEG_INFINITY)
///     }))
/// });
/// ```
#[derive(Clone)]
pub struct Processor(Arc<dyn Fn() -> Result<GraphModule> + Send + Sync>);

impl Processor {
    /// A processor whose graph `make` gives.
    pub fn new(make: impl Fn() -> Result<GraphModule> + Send + Sync + 'static) -> Self {
        Processor(Arc::new(make))
    }

    pub(super) fn make(&self) -> Result<GraphModule> {
        (self.0)()
    }
}

impl fmt::Debug for Processor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Processor(..)")
    }
}

/// Why a request was refused.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SubmitError {
    /// The model cannot serve it as it is.
    #[error("{0}")]
    Invalid(Error),
    /// Too many requests wait: try again later.
    #[error("too many requests wait: try again later")]
    Full,
    /// The engine shuts down.
    #[error("the engine shuts down")]
    Closed,
}

/// A token of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Token {
    /// The token.
    pub id: u32,
    /// The text that is certain with it, behind that of the tokens before; it may be empty.
    pub text: String,
}

/// Why a text ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum FinishReason {
    /// By a token or a string that ends it.
    Stop,
    /// It has as many tokens as were asked for, or as the model has positions.
    Length,
    /// The engine was dropped.
    Cancelled,
}

/// The end of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct End {
    /// Why it ended.
    pub reason: FinishReason,
    /// The text behind that of the last token.
    pub text: String,
}

/// What a text's thread sends.
pub(super) enum Event {
    Token(Token),
    End(End),
    Failed(String),
}

/// The tokens of a text, as they are written.
pub struct Stream {
    events: Receiver<Event>,
    is_cancelled: Arc<AtomicBool>,
    end: Option<End>,
    is_over: bool,
}

/// Ends a text whose stream another thread waits on.
///
/// ```
/// # use fx_lm::engine::{Engine, EngineOptions, GenerationOptions, Model};
/// # use fx_nn::models::hf::decoder::{CausalLM, Config};
/// # let engine = Engine::start(
/// #     || {
/// #         let config = Config::from_json(r#"{
/// #             "model_type": "llama", "vocab_size": 32, "hidden_size": 16, "intermediate_size": 32,
/// #             "num_hidden_layers": 1, "num_attention_heads": 4, "max_position_embeddings": 4096
/// #         }"#)?;
/// #         Model::of_decoder(&CausalLM::new(&config)?, &config, 2)
/// #     },
/// #     EngineOptions::default(),
/// # )?;
/// let stream = engine.submit(vec![3, 1, 4], GenerationOptions::default().max_new_tokens(4000))?;
/// let canceller = stream.canceller();
/// let reader = std::thread::spawn(move || stream.count());
/// canceller.cancel();
/// assert!(reader.join().is_ok_and(|count| count < 4000));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct Canceller(Arc<AtomicBool>);

impl Canceller {
    /// Ends the text, as dropping its stream does. Its reader gets an error.
    pub fn cancel(&self) {
        self.0.store(true, Ordering::Release);
    }
}

impl Stream {
    /// What ends the text while this stream is read elsewhere.
    pub fn canceller(&self) -> Canceller {
        Canceller(self.is_cancelled.clone())
    }

    /// How the text ended, once the last token was given.
    pub fn end(&self) -> Option<&End> {
        self.end.as_ref()
    }

    /// The whole text, once it is written; empty without a tokenizer.
    ///
    /// # Errors
    /// Returns the error that ended it.
    pub fn text(mut self) -> Result<String> {
        let mut text = String::new();
        for token in &mut self {
            text += &token?.text;
        }
        text += self.end.as_ref().map_or("", |end| &end.text);
        Ok(text)
    }
}

impl Iterator for Stream {
    type Item = Result<Token>;

    /// Waits for the next token.
    fn next(&mut self) -> Option<Self::Item> {
        if self.is_over {
            return None;
        }
        let event = self.events.recv();
        self.is_over = !matches!(event, Ok(Event::Token(_)));
        match event {
            Ok(Event::Token(token)) => Some(Ok(token)),
            Ok(Event::End(end)) => {
                self.end = Some(end);
                None
            }
            Ok(Event::Failed(error)) => Some(Err(Error::msg(error))),
            Err(_) => Some(Err(Error::msg(
                match self.is_cancelled.load(Ordering::Acquire) {
                    true => "the text was cancelled",
                    false => "the engine's thread ended",
                },
            ))),
        }
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        self.is_cancelled.store(true, Ordering::Release);
    }
}

/// A request on its way to the engine's thread.
pub(super) struct Request {
    pub prompt: Vec<u32>,
    pub options: GenerationOptions,
    pub events: SyncSender<Event>,
    pub is_cancelled: Arc<AtomicBool>,
}

impl Request {
    pub fn new(prompt: Vec<u32>, options: GenerationOptions, buffered: usize) -> (Request, Stream) {
        let (sent, events) = sync_channel(buffered);
        let is_cancelled = Arc::new(AtomicBool::new(false));
        let stream = Stream {
            events,
            is_cancelled: is_cancelled.clone(),
            end: None,
            is_over: false,
        };
        let request = Request {
            prompt,
            options,
            events: sent,
            is_cancelled,
        };
        (request, stream)
    }
}
