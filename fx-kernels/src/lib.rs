//! CPU kernels for neural networks: convolution, matrix products, attention, norms and chains of
//! pointwise operations, on slices of `f32`; and networks of bytes ([`integer`]).
//!
//! The crate knows no graph and no tensor type: sizes are numbers, data are slices. All of it is
//! safe Rust; [`Level`] says which instructions a kernel may use. A kernel gives the same bits on
//! every run and for any number of threads: how work with floats is cut depends on sizes alone, and sums of bytes
//! are exact.

pub mod attention;
mod awake;
mod buffer;
pub mod conv;
pub mod convert;
pub mod embedding;
mod error;
pub mod gather;
pub mod integer;
mod level;
pub mod math;
pub mod matrix;
pub mod norm;
mod peak;
pub mod pointwise;
pub mod recurrent;
pub mod reduce;
pub mod rotary;
pub mod scatter;
mod scratch;
mod terms;
pub mod transpose;
pub mod update;
mod vector;

pub use awake::{Pace, awake};
pub use buffer::{BLOCK, Block, Buffer};
pub use error::SizeError;
pub use fx_static::Activation;
pub use level::Level;
pub use peak::peak_flops;
pub use scratch::scratch_bytes;
