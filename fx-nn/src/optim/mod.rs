//! Optimizers with PyTorch's names, options and numbers: [`SGD`], [`Adam`], [`AdamW`]; schedules of the learning rate; and
//! [clipping](clip_grad_norm) of gradients.
//!
//! ```
//! use fx_nn::optim::{AdamW, Optimizer};
//! use fx_nn::prelude::*;
//! fx_nn::manual_seed(0);
//! let model = nn::Linear::new(3, 1)?;
//! let x = Tensor::randn((64, 3))?;
//! let y = (x.sum(1)? * 2.0)?.unsqueeze(1)?;
//! let mut optimizer = AdamW::new(&model)?.lr(0.1).weight_decay(0.0);
//! for _ in 0..200 {
//!     let loss = (model.forward(&x)? - &y)?.square()?.mean(..)?;
//!     optimizer.step(&loss.backward()?)?;
//! }
//! let error = (model.forward(&x)? - &y)?.abs()?.amax(..)?;
//! assert!(error.item()? < 0.01, "{}", error.item()?);
//! # Ok::<(), fx_nn::Error>(())
//! ```

mod adam;
mod clip;
mod optimizer;
mod schedule;
mod sgd;
mod trained;
mod update;

pub use adam::{Adam, AdamW};
pub use clip::{clip_grad_norm, clip_grad_value};
pub use optimizer::Optimizer;
pub(crate) use optimizer::tensors_of;
pub use schedule::{
    ConstantLR, CosineAnnealingLR, CosineAnnealingWarmRestarts, ExponentialLR, LambdaLR, LinearLR,
    MultiStepLR, OneCycleLR, PolynomialLR, ReduceLROnPlateau, Schedule, Scheduler, SequentialLR,
    StepLR,
};
pub use sgd::SGD;
pub use update::{UpdateRule, Updated, fused_adam, fused_sgd};
