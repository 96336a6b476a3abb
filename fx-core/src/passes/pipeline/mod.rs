//! Pipelines: a model as stages that run one behind the other, each on a thread or a machine of its
//! own, so that all of them work at once on different parts of a batch.
//!
//! [`pipeline`] chooses the stages, [`Pipeline::run`] runs micro-batches through them on threads.
//! Stages are a chain of plain [`GraphModule`](crate::GraphModule)s: the first takes the inputs of
//! the model, every other one takes what the one before gave, and the last gives the model's
//! result. What runs them needs to know no more than that.
//!
//! ```
//! use fx_core::prelude::*;
//! use fx_core::passes::pipeline::pipeline;
//! let gm = symbolic_trace(traced!(|x: Float| (((x * 2.0)? + 1.0)? / 3.0)? - x))?;
//! let pipeline = pipeline(&gm, 2)?;
//! let [first, second] = pipeline.stages() else { return Err(Error::msg("there are two stages")) };
//! // What `second` needs of the model's inputs goes through `first`.
//! assert_eq!(first.module.forward::<(f64, f64)>(4.0)?, (4.0, 9.0));
//! assert_eq!(second.module.forward::<f64>((4.0, 9.0))?, -1.0);
//!
//! let results = pipeline.run(vec![vec![Value::of(4.0)], vec![Value::of(1.0)]])?; // two micro-batches
//! assert_eq!(f64::from_value(results[0].clone())?, -1.0);
//! # Ok::<(), Error>(())
//! ```
//!
//! fx-core knows no tensors, so it takes micro-batches as they are: `fx_nn::passes::pipeline` splits
//! batches and computes gradients.

mod balance;
mod load;
mod schedule;
mod stages;
mod threads;

pub use self::schedule::{Action, Schedule};
pub use self::stages::{Pipeline, PipelineOptions, Stage, pipeline};
pub use self::threads::StageWorker;
