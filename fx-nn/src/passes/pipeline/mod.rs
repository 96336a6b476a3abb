//! Pipelines of tensors: a model in stages, a batch in micro-batches, outputs and gradients as of
//! one thread; besides all of [`fx_core::passes::pipeline`].
//!
//! ```
//! use fx_nn::optim::{Optimizer, SGD};
//! use fx_nn::prelude::*;
//! use fx_nn::passes::pipeline::{PipelineOptions, PipelineRunner, Schedule, multiply_adds};
//! let model = nn::Sequential::new()
//!     .push(nn::Linear::new(8, 16)?)
//!     .push(nn::ReLU::new())
//!     .push(nn::Linear::new(16, 4)?);
//! let (x, target) = (Tensor::rand((6, 8))?, Tensor::rand((6, 4))?);
//! let mut gm = symbolic_trace(&model)?;
//! gm.propagate_shapes(&x)?; // so that few bytes go between the stages
//! let options = PipelineOptions::new().cost(multiply_adds(&gm, &x)?);
//! let pipeline = options.pipeline(&gm, 2)?;
//!
//! let runner = PipelineRunner::new(&pipeline, 3); // three micro-batches
//! let y: Tensor = runner.forward(&x)?;
//! assert_eq!(y.dims()?, [6, 4]);
//!
//! let loss = |y: Tensor, target: &Tensor| (y - target)?.square()?.sum(..);
//! let step = runner.step(Schedule::OneForwardOneBackward, &x, &target, loss)?;
//! assert_eq!(step.losses.len(), 3);
//! let mut optimizer = SGD::new(&gm)?.lr(0.01);
//! optimizer.step(&step.gradients)?;
//! # Ok::<(), fx_nn::Error>(())
//! ```

mod batch;
mod cost;
mod runner;
mod worker;

pub use fx_core::passes::pipeline::*;

pub use cost::{CostOfCall, multiply_adds};
pub use runner::{PipelineRunner, PipelineStep};
