//! The engine's thread: turn by turn, the next words of all texts go through the model together.

use std::collections::VecDeque;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, RecvTimeoutError, TryRecvError};
use std::time::Duration;

use fx_core::Result;
use fx_nn::models::hf::decoder::Cache;
use fx_nn::prelude::*;

use super::model::Model;
use super::options::{EngineOptions, Shared};
use super::request::{Event, Request};
use super::text::Text;

/// How long a turn waits if no text has words: their readers are behind.
const PAUSE: Duration = Duration::from_millis(1);

/// Serves requests until there are no more.
pub(super) fn run(
    model: &Model,
    options: &EngineOptions,
    requests: &Receiver<Request>,
    shared: &Shared,
) {
    let tokenizer = options.tokenizer.as_deref();
    let (mut waiting, mut texts) = (VecDeque::new(), Vec::<Text<'_>>::new());
    let (mut is_open, mut count) = (true, 0);
    while is_open || !waiting.is_empty() || !texts.is_empty() {
        let is_idle = waiting.is_empty() && texts.is_empty();
        is_open = receive(requests, &mut waiting, is_idle) && is_open;
        if shared.is_stopped.load(Ordering::Acquire) {
            texts.iter_mut().for_each(Text::cancel);
            return;
        }
        let before = waiting.len();
        waiting.retain(|request: &Request| !request.is_cancelled.load(Ordering::Acquire));
        shared
            .waiting
            .fetch_sub(before - waiting.len(), Ordering::AcqRel);
        while texts.len() < model.slots
            && let Some(request) = waiting.pop_front()
        {
            // A request that is counted as neither would look like none.
            shared.running.fetch_add(1, Ordering::AcqRel);
            shared.waiting.fetch_sub(1, Ordering::AcqRel);
            count += 1;
            match Text::new(
                count,
                request,
                model.empty.clone(),
                model.positions,
                tokenizer,
            ) {
                Ok(text) => texts.push(text),
                Err((events, error)) => {
                    shared.running.fetch_sub(1, Ordering::AcqRel);
                    // The reader may be gone.
                    let _ = events.try_send(Event::Failed(error.to_string()));
                }
            }
        }
        let is_idle = turn(model, options.chunk, &mut texts);
        texts.iter_mut().for_each(Text::deliver);
        texts.retain(|text| !text.is_done());
        shared.running.store(texts.len(), Ordering::Release);
        let blocks = texts.iter().map(Text::blocks).sum();
        shared.blocks.store(blocks, Ordering::Release);
        if is_idle && !texts.is_empty() {
            std::thread::sleep(PAUSE);
        }
    }
}

/// Takes the requests that came; waits for one if there is nothing else to do. Returns whether more may come.
fn receive(requests: &Receiver<Request>, waiting: &mut VecDeque<Request>, is_idle: bool) -> bool {
    if is_idle {
        match requests.recv_timeout(Duration::from_millis(100)) {
            Ok(request) => waiting.push_back(request),
            Err(RecvTimeoutError::Timeout) => return true,
            Err(RecvTimeoutError::Disconnected) => return false,
        }
    }
    loop {
        match requests.try_recv() {
            Ok(request) => waiting.push_back(request),
            Err(TryRecvError::Empty) => return true,
            Err(TryRecvError::Disconnected) => return false,
        }
    }
}

/// The words that a text reads in a turn. One prompt is read at a time, the first one, so that texts that write do not wait
/// for all of them.
#[derive(Clone, Copy)]
struct Turn {
    chunk: usize,
    prompt: Option<u64>,
}

impl Turn {
    fn of(texts: &[Text<'_>], chunk: usize) -> Self {
        let prompts = texts.iter().filter(|text| text.next_words(chunk).len() > 1);
        let prompt = prompts.map(|text| text.number).min();
        Turn { chunk, prompt }
    }

    fn words<'a>(self, text: &'a Text<'_>) -> &'a [u32] {
        let words = text.next_words(self.chunk);
        match words.len() > 1 && self.prompt != Some(text.number) {
            true => &[],
            false => words,
        }
    }
}

/// Reads the next words of texts, and adds a token to those that were read to their ends. Returns whether no text had words.
fn turn(model: &Model, chunk: usize, texts: &mut [Text<'_>]) -> bool {
    let turn = Turn::of(texts, chunk);
    // Texts that have words come first: the graph gives scores for them alone.
    texts.sort_by_key(|text| turn.words(text).is_empty());
    let counts: Vec<usize> = texts.iter().map(|text| turn.words(text).len()).collect();
    if counts.first().is_none_or(|count| *count == 0) {
        return true;
    }
    let scores = match forward(model, turn, texts) {
        Ok(scores) => scores,
        Err(error) => {
            // What the caches were is lost with it.
            texts.iter_mut().for_each(|text| text.fail(&error));
            return false;
        }
    };
    let ready: Vec<bool> = texts
        .iter_mut()
        .zip(counts)
        .map(|(text, count)| text.advance(count))
        .collect();
    let best = match texts
        .iter()
        .zip(&ready)
        .any(|(text, ready)| *ready && text.is_greedy())
    {
        true => best_of_all(&scores),
        false => Ok(Vec::new()),
    };
    for (at, (text, _)) in texts
        .iter_mut()
        .zip(ready)
        .enumerate()
        .filter(|(_, (_, ready))| *ready)
    {
        let id = match (text.is_greedy(), &best) {
            (true, Ok(best)) => Ok(best[at]),
            (true, Err(error)) => Err(Error::msg(error.to_string())),
            (false, _) => scores
                .i((0, at as i64))
                .and_then(|scores| text.pick(&scores)),
        };
        if let Err(error) = id.and_then(|id| text.add(id)) {
            text.fail(&error);
        }
    }
    false
}

/// The scores `[1, T, vocab_size]` behind the next words of the first texts, which have words; their caches have them then.
fn forward(model: &Model, turn: Turn, texts: &mut [Text<'_>]) -> Result<Tensor> {
    let (mut words, mut caches) = (Vec::new(), Vec::new());
    for at in 0..model.slots {
        let next = texts.get(at).map_or(&[][..], |text| turn.words(text));
        let next: Vec<i64> = next.iter().map(|id| i64::from(*id)).collect();
        let count = next.len();
        words.push(Tensor::from_vec(next, (1, count))?);
        caches.push(match texts.get_mut(at) {
            Some(text) if !text.caches.is_empty() => std::mem::take(&mut text.caches),
            _ => model.empty.clone(),
        });
    }
    let (scores, caches): (Tensor, Vec<Vec<Cache>>) = model.graph.forward((words, caches))?;
    for (text, caches) in texts.iter_mut().zip(caches) {
        text.keep(caches);
    }
    Ok(scores)
}

/// The token with the best score of each text.
fn best_of_all(scores: &Tensor) -> Result<Vec<u32>> {
    let best = scores.argmax(-1, false)?.to_vec()?;
    Ok(best.into_iter().map(|id| id as u32).collect())
}
