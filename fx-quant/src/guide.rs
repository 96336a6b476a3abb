//! The guide, as rustdoc; its code is compiled and run with the doctests.

#[doc = include_str!("../docs/quantization.md")]
pub mod quantization {}
