//! `Engine`: the side of the user, which sends requests to the engine's thread.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;

use fx_core::{Error, Result};

use super::model::Model;
use super::options::{EngineOptions, EngineStats, Shared};
use super::request::{GenerationOptions, Limits, Request, Stream, SubmitError};
use super::run;

/// A model on a thread of its own, which writes texts as they are asked for.
///
/// Texts that are written at once share each pass over the model's weights, the prompts of new ones included; a text that
/// waits for its reader takes no part.
///
/// ```
/// use fx_lm::engine::{Engine, EngineOptions, GenerationOptions, Model};
/// use fx_nn::models::hf::decoder::{CausalLM, Config};
/// let engine = Engine::start(
///     || {
///         let config = Config::from_json(r#"{
///             "model_type": "llama", "vocab_size": 32, "hidden_size": 16, "intermediate_size": 32,
///             "num_hidden_layers": 1, "num_attention_heads": 4, "max_position_embeddings": 64
///         }"#)?;
///         Model::of_decoder(&CausalLM::new(&config)?, &config, 2)
///     },
///     EngineOptions::default(),
/// )?;
/// let streams = [vec![3, 1, 4], vec![1, 5]]
///     .map(|prompt| engine.submit(prompt, GenerationOptions::default().max_new_tokens(8)));
/// for stream in streams {
///     let ids = stream?.map(|token| Ok(token?.id)).collect::<Result<Vec<u32>, fx_core::Error>>()?;
///     assert_eq!(ids.len(), 8);
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Engine {
    requests: Option<Sender<Request>>,
    shared: Arc<Shared>,
    limits: Limits,
    thread: Option<JoinHandle<()>>,
}

impl Engine {
    /// Loads a model on a new thread, and waits until it is there. A model does not move from thread to thread: `load` makes it
    /// where it stays.
    ///
    /// # Errors
    /// Returns the error of `load`, or that of the system if it gives no thread.
    pub fn start<F>(load: F, options: EngineOptions) -> Result<Engine>
    where
        F: FnOnce() -> Result<Model> + Send + 'static,
    {
        let (requests, received) = channel::<Request>();
        let (ready, loaded) = channel();
        let shared = Arc::new(Shared::default());
        let (same, of_thread) = (shared.clone(), options.clone());
        let work = move || match fx_nn::no_grad(load) {
            Ok(model) => {
                // Nobody waits for it any more if the send fails: then there are no requests either.
                let _ = ready.send(Ok((model.vocab_size, model.positions)));
                serve(&model, &of_thread, &received, &same);
            }
            Err(error) => {
                let _ = ready.send(Err(error.to_string()));
            }
        };
        let thread = std::thread::Builder::new().name("fx-lm engine".to_string());
        let thread = thread.spawn(work).map_err(Error::other)?;
        let loaded = loaded
            .recv()
            .unwrap_or_else(|_| Err("the engine's thread ended: `load` panicked".to_string()));
        let (vocab_size, positions) = loaded.map_err(Error::msg)?;
        Ok(Engine {
            requests: Some(requests),
            shared,
            limits: Limits {
                vocab_size,
                positions,
                max_waiting: options.max_waiting,
                buffered: options.buffered,
                has_tokenizer: options.tokenizer.is_some(),
            },
            thread: Some(thread),
        })
    }

    /// Asks for the text behind a prompt. The stream gives its tokens as they are written; to drop it ends the text.
    ///
    /// # Errors
    /// Returns [`SubmitError::Invalid`] for a prompt or options that the model cannot serve, [`SubmitError::Full`] if too many
    /// requests wait, and [`SubmitError::Closed`] if the engine shuts down.
    pub fn submit(
        &self,
        prompt: Vec<u32>,
        options: GenerationOptions,
    ) -> Result<Stream, SubmitError> {
        let requests = self
            .requests
            .as_ref()
            .filter(|_| !self.shared.is_closed.load(Ordering::Acquire));
        let requests = requests.ok_or(SubmitError::Closed)?;
        options
            .check(&prompt, self.limits)
            .map_err(SubmitError::Invalid)?;
        let waiting = &self.shared.waiting;
        let one_more = |count: usize| (count < self.limits.max_waiting).then_some(count + 1);
        let counted = waiting.fetch_update(Ordering::AcqRel, Ordering::Acquire, one_more);
        counted.map_err(|_| SubmitError::Full)?;
        let (request, stream) = Request::new(prompt, options, self.limits.buffered);
        requests.send(request).map_err(|_| {
            waiting.fetch_sub(1, Ordering::AcqRel);
            SubmitError::Closed
        })?;
        Ok(stream)
    }

    /// What the engine does at the moment.
    pub fn stats(&self) -> EngineStats {
        let runs = |thread: &JoinHandle<()>| !thread.is_finished();
        EngineStats {
            is_open: !self.shared.is_closed.load(Ordering::Acquire)
                && self.thread.as_ref().is_some_and(runs),
            running: self.shared.running.load(Ordering::Acquire),
            waiting: self.shared.waiting.load(Ordering::Acquire),
            blocks_in_use: self.shared.blocks.load(Ordering::Acquire),
        }
    }

    /// Refuses new requests from now on; texts that were asked for are written to their ends.
    pub fn close(&self) {
        self.shared.is_closed.store(true, Ordering::Release);
    }

    /// [Closes](Engine::close) the engine and waits for the last text.
    pub fn shutdown(mut self) {
        self.close();
        self.end();
    }

    fn end(&mut self) {
        self.requests = None;
        if let Some(thread) = self.thread.take() {
            // A panic of the thread has ended all streams with an error already.
            let _ = thread.join();
        }
    }
}

impl Drop for Engine {
    /// Ends all texts.
    fn drop(&mut self) {
        self.shared.is_stopped.store(true, Ordering::Release);
        self.close();
        self.end();
    }
}

fn serve(model: &Model, options: &EngineOptions, requests: &Receiver<Request>, shared: &Shared) {
    fx_nn::no_grad(|| run::run(model, options, requests, shared));
}
