//! `TrainStep`: forward, loss, gradient, clipping and optimizer as one graph, which is compiled for the CPU.

mod loss;
mod loss_scale;
mod step;
mod train_step;

pub use self::loss_scale::LossScale;
pub use self::train_step::TrainStep;
