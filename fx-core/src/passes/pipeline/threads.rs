//! Runs the stages of a pipeline on threads.
//!
//! Invariant: when one stage fails, no other starts anything more, and its error is the result.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;

use super::schedule::{Action, Schedule};
use super::stages::{Pipeline, Stage};
use crate::error::{Error, Result};
use crate::trace::call_args::CallArgs;
use crate::value::handle::NodeId;
use crate::value::value::Value;

/// The stack of a stage's thread, as large as that of a program's first thread.
const STACK: usize = 8 << 20;

/// What does the work of one stage, on that stage's thread: it runs the stage here, or sends it to
/// where the stage is. [`Pipeline::run_with`] calls it in the order of the [`Schedule`].
///
/// ```
/// use fx_core::prelude::*;
/// use fx_core::passes::pipeline::{Schedule, Stage, StageWorker, pipeline};
/// /// The derivatives of `2 x` and `x + 1` by hand.
/// struct Local<'s> { stage: &'s Stage, slope: f64, derivatives: Vec<f64> }
/// impl StageWorker for Local<'_> {
///     fn forward(&mut self, _: usize, inputs: Vec<Value>) -> Result<Vec<Value>> {
///         self.stage.run(inputs)
///     }
///     fn backward(&mut self, _: usize, gradients: Vec<Value>) -> Result<Vec<Value>> {
///         // The last stage begins with a gradient of 1.
///         let gradient = gradients.into_iter().next().map_or(Ok(1.0), f64::from_value)?;
///         self.derivatives.push(gradient * self.slope);
///         Ok(vec![Value::of(gradient * self.slope)])
///     }
/// }
/// let gm = symbolic_trace(traced!(|x: Float| (x * 2.0)? + 1.0))?;
/// let pipeline = pipeline(&gm, 2)?;
/// let slopes = pipeline.stages().iter().zip([2.0, 1.0]);
/// let mut workers: Vec<Local<'_>> =
///     slopes.map(|(stage, slope)| Local { stage, slope, derivatives: Vec::new() }).collect();
/// let micro_batches = [1.0, 2.0, 3.0].map(|x| vec![Value::of(x)]).to_vec();
/// let results = pipeline.run_with(Schedule::OneForwardOneBackward, micro_batches, &mut workers)?;
/// assert_eq!(results.len(), 3);
/// assert_eq!(workers[0].derivatives, [2.0, 2.0, 2.0]);
/// # Ok::<(), Error>(())
/// ```
pub trait StageWorker: Send {
    /// Runs a micro-batch: from the inputs of the stage to those of the next one, or, in the last
    /// stage, to what [`Pipeline::run_with`] returns of the micro-batch.
    ///
    /// # Errors
    /// Returns an error if the stage fails, which stops the pipeline.
    fn forward(&mut self, micro_batch: usize, inputs: Vec<Value>) -> Result<Vec<Value>>;

    /// Computes the gradients of a micro-batch that it ran: from what the next stage returned here
    /// (nothing, in the last stage) to what the stage before takes.
    ///
    /// # Errors
    /// Returns an error if a gradient cannot be computed, which stops the pipeline.
    fn backward(&mut self, micro_batch: usize, gradients: Vec<Value>) -> Result<Vec<Value>>;
}

/// Runs a stage as it is.
struct Plain<'s>(&'s Stage);

impl StageWorker for Plain<'_> {
    fn forward(&mut self, _: usize, inputs: Vec<Value>) -> Result<Vec<Value>> {
        self.0.run(inputs)
    }

    fn backward(&mut self, _: usize, _: Vec<Value>) -> Result<Vec<Value>> {
        Err(Error::msg("a plain stage has no gradients"))
    }
}

impl Stage {
    /// Runs the stage on its inputs: returns those of the next one, or the one result of the whole
    /// graph, if this is the last stage.
    ///
    /// # Errors
    /// Returns an error if a node fails or panics; it names the node.
    pub fn run(&self, inputs: Vec<Value>) -> Result<Vec<Value>> {
        let mut done: Option<NodeId> = None;
        let args = CallArgs {
            args: inputs,
            kwargs: Vec::new(),
        };
        let run = catch_unwind(AssertUnwindSafe(|| match self.module.compiled() {
            Some(_) => self.module.forward::<Value>(args),
            None => self.module.forward_observed::<Value>(args, |node, _| {
                done = Some(node.id());
                Ok(())
            }),
        }));
        let result = match run {
            Ok(result) => result?,
            Err(panic) => return Err(self.panicked(done, &*panic)),
        };
        match &result {
            Value::Tuple(items) if !self.is_last => Ok(items.to_vec()),
            _ => Ok(vec![result]),
        }
    }

    /// The error of a panic in the call behind the last one that was done.
    fn panicked(&self, done: Option<NodeId>, panic: &(dyn Any + Send)) -> Error {
        let error = panic_error(panic);
        if self.module.compiled().is_some() {
            return error;
        }
        let nodes = self.module.graph().nodes();
        let mut calls = nodes.filter(|node| node.op().is_call());
        if let Some(done) = done {
            calls.by_ref().find(|node| node.id() == done);
        }
        match calls.next() {
            Some(node) => node.blame("executing", error),
            None => error,
        }
    }
}

impl Pipeline {
    /// Runs micro-batches through the stages, each stage on a thread of its own, so that they work
    /// at once; returns the result of each micro-batch. A micro-batch is the
    /// [inputs](Pipeline::inputs) of the first stage.
    ///
    /// What belongs to the calling thread, such as modes and random numbers, is not there on the
    /// threads of the stages.
    ///
    /// # Errors
    /// Returns an error if a node fails or panics, or a thread cannot be started. The error names
    /// the [stage](Error::stage) and the node; the other stages stop.
    pub fn run(&self, micro_batches: Vec<Vec<Value>>) -> Result<Vec<Value>> {
        let mut workers: Vec<Plain<'_>> = self.stages().iter().map(Plain).collect();
        let results = self.run_with(Schedule::Forward, micro_batches, &mut workers)?;
        // A plain stage gives one result.
        Ok(results.into_iter().flatten().collect())
    }

    /// As [`run`](Pipeline::run), with a worker for each stage, and gradients if the schedule has
    /// them. Returns what the last worker gave of each micro-batch.
    ///
    /// # Errors
    /// Returns an error if there are not as many workers as stages, a worker fails or panics, or a
    /// thread cannot be started.
    pub fn run_with<W: StageWorker>(
        &self,
        schedule: Schedule,
        micro_batches: Vec<Vec<Value>>,
        workers: &mut [W],
    ) -> Result<Vec<Vec<Value>>> {
        let (stages, batches) = (self.stages().len(), micro_batches.len());
        if workers.len() != stages {
            return Err(Error::msg(format_args!(
                "a pipeline of {stages} stages needs as many workers, and there are {}",
                workers.len()
            )));
        }
        // Forward alone, a stage that is ahead waits. With a backward, the schedule says how far
        // ahead a stage is, and all it sends has room, so that no two stages wait for each other.
        let room = match schedule.has_backward() {
            true => batches.max(1),
            false => 1,
        };
        let stop = AtomicBool::new(false);
        let mut from = Source::First(micro_batches.into_iter());
        let mut gradients_to = None;
        thread::scope(|scope| {
            let mut threads = Vec::with_capacity(stages);
            let mut failed: Option<Error> = None;
            for (stage, worker) in workers.iter_mut().enumerate() {
                let is_last = stage + 1 == stages;
                let (to, next) = border(!is_last, room);
                let (next_gradients_to, gradients_from) = border(!is_last, room);
                let mut ports = Ports {
                    from: std::mem::replace(&mut from, next.map_or(Source::None, Source::Stage)),
                    to,
                    gradients_from,
                    gradients_to: std::mem::replace(&mut gradients_to, next_gradients_to),
                };
                let actions = schedule.actions(stage, stages, batches);
                let stop = &stop;
                let builder = thread::Builder::new().name(format!("stage_{stage}"));
                let thread = builder.stack_size(STACK).spawn_scoped(scope, move || {
                    let result = ports.work(worker, &actions, stop);
                    if matches!(result, Err(Halt::Failed(_))) {
                        stop.store(true, Ordering::Relaxed);
                    }
                    result
                });
                match thread {
                    Ok(thread) => threads.push(thread),
                    Err(error) => {
                        stop.store(true, Ordering::Relaxed);
                        failed = Some(Error::msg(format_args!(
                            "no thread for stage {stage}: {error}"
                        )));
                        break;
                    }
                }
            }
            // A stage whose neighbour could not be started waits for nobody.
            (from, gradients_to) = (Source::None, None);
            let mut results = Vec::new();
            for (stage, thread) in threads.into_iter().enumerate() {
                match thread.join() {
                    Ok(Ok(given)) => results = given,
                    Ok(Err(Halt::Stopped)) => {}
                    Ok(Err(Halt::Failed(error))) => {
                        failed.get_or_insert(error.in_stage(stage));
                    }
                    Err(panic) => {
                        failed.get_or_insert(panic_error(&*panic).in_stage(stage));
                    }
                }
            }
            match failed {
                Some(error) => Err(error),
                None => Ok(results),
            }
        })
    }
}

/// Where the inputs of a stage come from.
enum Source {
    First(std::vec::IntoIter<Vec<Value>>),
    Stage(Receiver<Vec<Value>>),
    None,
}

/// The ends of the channels of a stage.
struct Ports {
    from: Source,
    to: Option<SyncSender<Vec<Value>>>,
    gradients_from: Option<Receiver<Vec<Value>>>,
    gradients_to: Option<SyncSender<Vec<Value>>>,
}

/// Why a stage ended early.
enum Halt {
    Failed(Error),
    /// Another one failed.
    Stopped,
}

type Border = (Option<SyncSender<Vec<Value>>>, Option<Receiver<Vec<Value>>>);

fn border(is_there: bool, room: usize) -> Border {
    if !is_there {
        return (None, None);
    }
    let (sender, receiver) = sync_channel(room);
    (Some(sender), Some(receiver))
}

impl Ports {
    /// Does what the schedule says; returns what the last stage gave.
    fn work<W: StageWorker>(
        &mut self,
        worker: &mut W,
        actions: &[Action],
        stop: &AtomicBool,
    ) -> Result<Vec<Vec<Value>>, Halt> {
        let mut results = Vec::new();
        for action in actions {
            let taken = match action {
                Action::Forward(_) => match &mut self.from {
                    Source::First(batches) => batches.next(),
                    Source::Stage(before) => before.recv().ok(),
                    Source::None => None,
                },
                Action::Backward(_) => match &self.gradients_from {
                    Some(next) => next.recv().ok(),
                    None => Some(Vec::new()),
                },
            };
            let Some(taken) = taken.filter(|_| !stop.load(Ordering::Relaxed)) else {
                return Err(Halt::Stopped);
            };
            let given = catch_unwind(AssertUnwindSafe(|| match action {
                Action::Forward(at) => worker.forward(*at, taken),
                Action::Backward(at) => worker.backward(*at, taken),
            }));
            let given = given.unwrap_or_else(|panic| Err(panic_error(&*panic)));
            let given = given.map_err(Halt::Failed)?;
            let to = match action {
                Action::Forward(_) => &self.to,
                Action::Backward(_) => &self.gradients_to,
            };
            match (to, action) {
                (Some(to), _) => to.send(given).map_err(|_| Halt::Stopped)?,
                (None, Action::Forward(_)) => results.push(given),
                (None, Action::Backward(_)) => {}
            }
        }
        Ok(results)
    }
}

/// A panic as an error, with its text.
fn panic_error(panic: &(dyn Any + Send)) -> Error {
    let text = panic.downcast_ref::<&str>().copied();
    let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    Error::msg(format_args!("it panicked: {}", text.unwrap_or("no text")))
}
