//! Networks of bytes: products, convolutions, sums and pools of integers from 0 to 255, with weights from -128 to 127.
//!
//! A byte `q` stands for `(q - zero_point) * scale`. Products are exact sums of 32 bits; a sum becomes a byte by one
//! multiplication in `f32`, rounding half to even, the zero point, and the ends of the range. Each kernel gives the same
//! bytes at every [`Level`](crate::Level) and for any number of threads.

mod block;
mod bytes;
mod conv;
mod convert;
mod depthwise;
mod elementwise;
mod pool;
mod spec;

pub use block::OfRun;
pub use bytes::{Bytes, Rounding};
pub use conv::IntegerConv;
pub use convert::{dequantize, quantize};
pub use elementwise::{Term, add, clamp, lookup, multiply, rescale};
pub use pool::{Windows, average_pool, max_pool};
pub use spec::IntegerSpec;
