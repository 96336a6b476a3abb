//! What the tests and examples of the fx crates share; it owns the one definition of "the same as PyTorch".
//!
//! * [`formula`]: weights and inputs from names, so that no weight file is needed.
//! * [`golden`]: the files of `tests/goldens`, read.
//! * [`compare`]: the one strict comparator of graphs (and, re-exported, of numbers).
//! * [`model`]: filling, running and comparing a model with its goldens.
//! * [`cases`]: every golden with numbers, made here.
//! * [`generated`]: where the source generated of each case is kept.
//! * [`exception`]: the named differences between PyTorch and Rust that a comparison may be told of.

#![forbid(unsafe_code)]

mod align;
pub mod cases;
pub mod compare;
pub mod exception;
pub mod formula;
pub mod generated;
pub mod golden;
mod ledger;
mod literals;
pub mod model;
pub mod numbers;
pub mod view;

fx_core::register_crate!();
