//! The guides, in the order in which one reads them; their code is compiled and run with the doctests.
//!
//! | page | for |
//! |---|---|
//! | [`from_candle`] | making a candle model traceable |
//! | [`from_torch_nn`] | writing what `torch.nn` code says: containers, buffers, initialisation, hooks |
//! | [`control_flow`] | branches and loops that a graph decides when it runs |
//! | [`shapes`] | shapes without data, with names for sizes |
//! | [`backends`] | having an engine run parts of a graph |
//! | [`transforms`] | writing transforms: edits, patterns, passes, runs, tracers |
//! | [`transforms_of_functions`] | gradients, Jacobians and batches of functions, as `torch.func` has them |
//! | [`debugging`] | finding out what a trace or a transform did |
//! | [`errors`] | what fx refuses, each example corrected |
//! | [`performance`] | what tracing, running and compiling cost, and how to measure it |
//! | [`webassembly`] | running models in browsers and hosts of WASI |
//! | [`microcontrollers`] | models as crates without `std` and without an allocator |
//! | [`from_torchfx`] | finding fx's name for a name of torch.fx, and where behaviour differs |
//! | [`operations`] | every operation and layer, with PyTorch's names and defaults |

#[doc = include_str!("../docs/from-candle.md")]
pub mod from_candle {}

#[doc = include_str!("../docs/from-torch-nn.md")]
pub mod from_torch_nn {}

#[doc = include_str!("../docs/control-flow.md")]
pub mod control_flow {}

#[doc = include_str!("../docs/shapes.md")]
pub mod shapes {}

#[doc = include_str!("../docs/backends.md")]
pub mod backends {}

#[doc = include_str!("../docs/pictures.md")]
pub mod pictures {}

#[doc = include_str!("../docs/transforms.md")]
pub mod transforms {}

#[doc = include_str!("../docs/transforms-of-functions.md")]
pub mod transforms_of_functions {}

#[doc = include_str!("../docs/debugging.md")]
pub mod debugging {}

#[doc = include_str!("../docs/errors.md")]
pub mod errors {}

#[doc = include_str!("../docs/performance.md")]
pub mod performance {}

#[doc = include_str!("../docs/webassembly.md")]
pub mod webassembly {}

#[doc = include_str!("../docs/microcontrollers.md")]
pub mod microcontrollers {}

#[doc = include_str!("../docs/from-torchfx.md")]
pub mod from_torchfx {}

#[doc = include_str!("../docs/ops.md")]
pub mod operations {}
