//! `PipelineRunner`: batches of tensors through a pipeline, for results or for gradients.
//!
//! Invariant: numbers are those of one thread that runs the same micro-batches in the same order.

use std::fmt;

use candle_core::Tensor as Candle;
use fx_core::module::{TensorKind, Visitor, walk};
use fx_core::passes::pipeline::{Pipeline, Schedule, Stage};
use fx_core::tensor::Object;
use fx_core::trace::{FromValue, IntoArgs};
use fx_core::value::Value;
use fx_core::{Error, Result};

use super::batch::{MicroBatches, joined, part, split};
use super::worker::{Inference, LossOf, Training};
use crate::tensor::{Gradients, Tensor};

/// Runs batches through a [`Pipeline`] as micro-batches, with each stage on a thread of its own.
///
/// The rows of each input, which are its slices along dim 0, are divided among the micro-batches, as
/// evenly as can be: of 7 rows in 3 micro-batches, the first has 3. Inputs that are no tensors, or
/// tensors without a dim, are given to all micro-batches as they are, and so are those of
/// [`replicate`](PipelineRunner::replicate).
///
/// The model must treat each row by itself. A batch norm in training does not: it sees a micro-batch
/// where it would see the batch, and its numbers are those of one thread that runs the micro-batches.
/// Dropout draws other random numbers, since those belong to a thread. A graph that fixed the size
/// of the batch when it was traced fails at the node that needs that size.
///
/// See [the module](crate::passes::pipeline) for an example.
#[derive(Debug, Clone)]
pub struct PipelineRunner<'p> {
    pipeline: &'p Pipeline,
    micro_batches: usize,
    whole: Vec<String>,
}

/// A step of training, made by [`PipelineRunner::step`].
#[non_exhaustive]
pub struct PipelineStep<R> {
    /// The loss of each micro-batch.
    pub losses: Vec<Tensor>,
    /// The model's result for each micro-batch, without history.
    pub outputs: Vec<R>,
    /// The gradients, summed over the micro-batches, with respect to the parameters of the model
    /// that was split: the stages share them.
    pub gradients: Gradients,
}

impl<R> fmt::Debug for PipelineStep<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let PipelineStep { losses, .. } = self;
        f.debug_struct("PipelineStep")
            .field("losses", losses)
            .finish_non_exhaustive()
    }
}

impl<'p> PipelineRunner<'p> {
    /// For batches of this many micro-batches. With many more of them than stages, the stages wait
    /// little.
    pub fn new(pipeline: &'p Pipeline, micro_batches: usize) -> Self {
        PipelineRunner {
            pipeline,
            micro_batches,
            whole: Vec::new(),
        }
    }

    /// Gives some inputs whole to each micro-batch, by the names of the graph's placeholders: a mask,
    /// for instance, which is the same for all rows.
    ///
    /// ```
    /// use fx_nn::prelude::*;
    /// use fx_nn::passes::pipeline::{PipelineRunner, pipeline};
    /// let gm = symbolic_trace(traced!(|x: &Tensor, mask: &Tensor| (x.exp()? * mask)?.sum(1)))?;
    /// let pipeline = pipeline(&gm, 3)?;
    /// let runner = PipelineRunner::new(&pipeline, 2).replicate(&["mask"]);
    /// let (x, mask) = (Tensor::rand((5, 3))?, Tensor::ones((1, 3))?);
    /// let y: Tensor = runner.forward((&x, &mask))?;
    /// assert_eq!(y.to_vec()?, gm.forward::<Tensor>((&x, &mask))?.to_vec()?);
    /// # Ok::<(), fx_nn::Error>(())
    /// ```
    #[must_use]
    pub fn replicate(mut self, inputs: &[&str]) -> Self {
        self.whole.extend(inputs.iter().map(ToString::to_string));
        self
    }

    /// The model's result for a batch, without history: gradients are not recorded. Every tensor of
    /// the result has a row for each row of the batch.
    ///
    /// # Errors
    /// Returns an error if the arguments do not fit, there are fewer rows than micro-batches, inputs
    /// differ in their rows, a result has other rows, or a stage fails: the error names the stage and
    /// the node.
    pub fn forward<R: FromValue>(&self, args: impl IntoArgs) -> Result<R> {
        let module = self.pipeline.module();
        let inputs = self.pipeline.inputs(args)?;
        let MicroBatches { inputs, ranges } =
            split(module, inputs, self.micro_batches, &self.whole)?;
        let stages = self.pipeline.stages().iter();
        let mut workers: Vec<Inference<'_>> = stages.map(Inference).collect();
        let results = self
            .pipeline
            .run_with(Schedule::Forward, inputs, &mut workers)?;
        let results = joined(results.into_iter().flatten().collect(), &ranges)?;
        R::from_value(module.process_outputs(results)?)
    }

    /// The gradients of a loss, summed over the micro-batches of a batch. `loss` gets the model's
    /// result for a micro-batch and the rows of `target` that belong to it, and returns one number;
    /// it runs on the thread of the last stage. If it is a mean over rows, divide the gradients, or
    /// the loss, by the number of micro-batches.
    ///
    /// The gradients are to the last bit those of one thread that runs the micro-batches in order
    /// and [accumulates](Gradients::accumulate) their gradients, as long as a value that goes from
    /// stage to stage has at most two uses, as in residual networks, and no two stages share a
    /// parameter. Other sums are made stage by stage, in an order that may change the last bits.
    ///
    /// # Errors
    /// As [`forward`](PipelineRunner::forward); and if the loss fails or depends on no parameter, an
    /// operation has no gradient, the target has other rows than the batch, or the schedule has no
    /// backward.
    pub fn step<R: FromValue>(
        &self,
        schedule: Schedule,
        args: impl IntoArgs,
        target: &Tensor,
        loss: impl Fn(R, &Tensor) -> Result<Tensor> + Sync,
    ) -> Result<PipelineStep<R>> {
        if !schedule.has_backward() {
            return Err(Error::msg(
                "a step of training needs a schedule with a backward: `Schedule::GPipe` or `Schedule::OneForwardOneBackward`",
            ));
        }
        let module = self.pipeline.module();
        let inputs = self.pipeline.inputs(args)?;
        let to_inputs = inputs.iter().any(has_gradient);
        let MicroBatches { inputs, ranges } =
            split(module, inputs, self.micro_batches, &self.whole)?;
        let rows = ranges.last().map_or(0, |range| range.end);
        if target.data("pipeline")?.dims().first() != Some(&rows) {
            return Err(Error::msg(format_args!(
                "the target is {target:?}, and the batch has {rows} rows: it needs as many"
            )));
        }
        let targets = ranges.iter().map(|range| part(target, range));
        let targets = targets.collect::<Result<Vec<Tensor>>>()?;
        let loss = |at: usize, result: Value| {
            let result = R::from_value(module.process_outputs(result)?)?;
            loss(result, &targets[at])
        };
        let loss: &LossOf<'_> = &loss;
        let last = self.pipeline.stages().len().saturating_sub(1);
        let workers = self.pipeline.stages().iter().enumerate();
        let workers = workers.map(|(at, stage)| {
            let is_first = at == 0;
            let parameters = (!is_first || !to_inputs).then(|| parameters(stage));
            Training::new(stage, is_first, (at == last).then_some(loss), parameters)
        });
        let mut workers: Vec<Training<'_>> = workers.collect();
        let results = self.pipeline.run_with(schedule, inputs, &mut workers)?;
        let outputs = results.into_iter().flatten();
        let outputs = outputs.map(|result| R::from_value(module.process_outputs(result)?));
        Ok(PipelineStep {
            outputs: outputs.collect::<Result<_>>()?,
            losses: workers
                .last_mut()
                .map(|last| std::mem::take(&mut last.losses))
                .unwrap_or_default(),
            gradients: summed(workers)?,
        })
    }
}

/// Whether gradients run to what a value was computed from.
fn has_gradient(value: &Value) -> bool {
    let mut found = false;
    value.for_each(&mut |value| {
        let tensor = value.downcast_ref::<Tensor>();
        found = found || tensor.and_then(Object::requires_grad) == Some(true);
    });
    found
}

/// The trained tensors of a stage.
fn parameters(stage: &Stage) -> Vec<Candle> {
    struct Trained(Vec<Candle>);
    impl Visitor for Trained {
        fn tensor(&mut self, _: &str, _: TensorKind, tensor: &dyn Object) {
            let value = tensor.to_value();
            let data = value.downcast_ref::<Tensor>();
            let data = data.and_then(|tensor| tensor.candle().ok());
            self.0
                .extend(data.filter(|data| data.is_variable()).cloned());
        }
    }
    let mut trained = Trained(Vec::new());
    walk(&stage.module, &mut trained);
    trained.0
}

/// The gradients of all stages, those of shared parameters added, the last stage first.
fn summed(workers: Vec<Training<'_>>) -> Result<Gradients> {
    let mut sum: Option<Gradients> = None;
    for own in workers
        .into_iter()
        .rev()
        .filter_map(|worker| worker.gradients)
    {
        match &mut sum {
            Some(sum) => sum.accumulate(&own)?,
            none => *none = Some(own),
        }
    }
    sum.ok_or_else(|| {
        Error::msg("the loss depends on no parameter, so that there is nothing to train: unfreeze some with `nn::set_requires_grad`")
    })
}
