//! The guide, and how each operation is written; the code is compiled and run with the doctests.

#[doc = include_str!("../docs/beyond-one-machine.md")]
pub mod beyond_one_machine {}

#[doc = include_str!("../docs/stablehlo-operations.md")]
pub mod operations {}
