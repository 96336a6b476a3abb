//! The guide, how each operation is written, and the operators that are read; the code is compiled and run with the doctests.

#[doc = include_str!("../docs/onnx.md")]
pub mod onnx {}

#[doc = include_str!("../docs/operations.md")]
pub mod operations {}

#[doc = include_str!("../docs/operators.md")]
pub mod operators {}
