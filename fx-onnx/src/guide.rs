//! The guide, and how each operation is written; the code is compiled and run with the doctests.

#[doc = include_str!("../docs/onnx.md")]
pub mod onnx {}

#[doc = include_str!("../docs/operations.md")]
pub mod operations {}
