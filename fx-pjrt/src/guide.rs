//! The guide; its code is compiled with the doctests.

#[doc = include_str!("../docs/devices.md")]
pub mod devices {}
