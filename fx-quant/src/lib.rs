#![doc = include_str!("../README.md")]

mod adjust;
mod calibrate;
mod compare;
mod config;
mod convert;
pub mod guide;
mod histogram;
mod integers;
mod observer;
mod of_run;
mod plan;
mod qat;
mod role;
mod run;
mod scheme;
mod sensitivity;

pub use calibrate::Calibration;
pub use compare::{Comparison, NodeError, compare};
pub use config::{QConfig, Quantize};
pub use histogram::{Histogram, Percentile};
pub use integers::Integers;
pub use observer::{MinMax, MovingAverage, Observer, weight_range};
pub use plan::{Decision, Plan};
pub use role::Role;
pub use scheme::{Params, Scheme};
pub use sensitivity::{Sensitivity, SensitivityReport};
