//! fx with tensors: [`Tensor`] over candle, functional operations, layers and models, all traceable.
//!
//! Nothing here is privileged: every operation is a `#[wrap]` function and every layer a
//! `#[derive(Module)]` type, as users write their own.

mod counter;
mod device;
mod error;
mod inspect;
mod kernels;
pub mod models;
mod multiply_adds;
pub mod nn;
pub mod ops;
pub mod optim;
pub mod passes;
mod random;
mod room;
mod scope;
mod summary;
pub mod tensor;
pub mod weights;

pub use device::with_device;
pub use fx_core::*;
pub use inspect::{ValueStats, allclose, trace_values};
pub use multiply_adds::{CountedCall, MultiplyAdds};
pub use random::manual_seed;
pub use summary::{ModuleSummary, Summary, summary};
pub use tensor::{
    Bound, Dims, Ellipsis, Gradients, Index, NewAxis, NormOrder, Number, Pair, Sections, Shape,
    Sizes, Slice, Tensor, TensorOrNumber, Triple, candle_dtype, every, fx_dtype, no_grad,
};

fx_core::register_crate!(prelude = "fx_nn::prelude", core = "fx_nn");

/// What macro expansions name when only this crate is a dependency.
#[doc(hidden)]
pub use fx_core as __core;

/// What most programs use: `use fx_nn::prelude::*;`.
pub mod prelude {
    pub use crate::value::DType;
    pub use crate::{Dims, Ellipsis, NewAxis, Shape, Tensor, every, nn, ops};
    pub use fx_core::prelude::*;
}

/// The README's example, compiled and run with the doctests.
#[cfg(doctest)]
#[doc = include_str!("../../README.md")]
struct Readme;

/// The pages' examples, compiled and run with the doctests.
#[cfg(doctest)]
#[doc = include_str!("../../docs/debugging.md")]
struct Debugging;

/// The guide's examples, compiled and run with the doctests.
#[cfg(doctest)]
#[doc = include_str!("../../docs/from-candle.md")]
struct FromCandle;

/// The tables' examples, compiled and run with the doctests.
#[cfg(doctest)]
#[doc = include_str!("../../docs/from-torchfx.md")]
struct FromTorchFx;

/// The transform guide's examples, compiled and run with the doctests.
#[cfg(doctest)]
#[doc = include_str!("../../docs/transforms.md")]
struct Transforms;
