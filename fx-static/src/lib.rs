//! Kernels for neural networks without `std` and without an allocator: what crates run that
//! `fx_nn::static_crate` writes for microcontrollers, and the functions of vectors that they share with `fx-kernels`.
//!
//! A step of such a crate is a [`Kernel`] with its sizes, which reads parts of weights and of an arena, and writes another
//! part. All of it is safe Rust, on one float at a time.
#![no_std]

mod activation;
mod attention;
mod conv;
mod kernel;
pub mod math;
mod matrix;
mod memory;
mod norm;
pub mod point;
mod pool;
mod recurrent;
pub mod reduce;
pub mod rows;
mod shape;
mod source;
mod spec;
mod table;
pub mod vector;

pub use activation::Activation;
pub use attention::{Attention, MaskKind};
pub use conv::{Conv, ConvTranspose};
pub use kernel::Kernel;
pub use matrix::{Linear, Matmul};
pub use memory::{Aligned, floats, split};
pub use norm::{Normed, RowNorm};
pub use pool::{AdaptivePool, Pool, Pooled};
pub use recurrent::Recurrent;
pub use reduce::Reduction;
pub use shape::{Contiguous, Fill, Join, Pad, Places, Reduce};
pub use source::Source;
pub use spec::{ConvSpec, PoolSpec, Unit, Window};
pub use table::{IndexError, rows_at};

/// The folder of this crate when it was built, for crates that are written beside it.
#[doc(hidden)]
pub const MANIFEST_DIR: &str = env!("CARGO_MANIFEST_DIR");

/// The README's example, compiled and run with the doctests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
