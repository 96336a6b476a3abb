#![doc = include_str!("../README.md")]
//!
//! Nothing here is privileged: every operation is a `#[wrap]` function and every layer a
//! `#[derive(Module)]` type, as users write their own.

extern crate self as fx_nn;

mod batching;
pub mod control;
mod counter;
pub mod cpu;
mod decompositions;
mod derivatives;
mod device;
mod error;
pub mod func;
pub mod guide;
mod inspect;
pub mod lowering;
pub mod models;
mod multiply_adds;
pub mod nn;
mod op_info;
mod op_kind;
pub mod ops;
pub mod optim;
pub mod passes;
mod scope;
mod shape_rules;
mod summary;
pub mod tensor;
pub mod testing;
mod threads;
pub mod train;
pub mod weights;

/// What computes: functions over candle's tensors.
pub(crate) use fx_candle_kernels::{self as kernels, random, room};

/// The candle that this crate computes with: [`Tensor::candle`] and `Tensor::from` convert.
pub use candle_core;
pub use device::with_device;
pub use fx_core::__private::op;
pub use fx_core::*;
pub use inspect::{ValueStats, allclose, trace_values};
pub use kernels::random::manual_seed;
pub use multiply_adds::{CountedCall, MultiplyAdds};
pub use op_info::{Form, OpInfo};
pub use op_kind::{NoGradient, OpKind};
pub use summary::{ModuleSummary, Summary, summary};
pub use tensor::{
    Bound, Dims, Ellipsis, Gradients, Index, NewAxis, NormOrder, Number, Pair, Scales, Sections,
    Shape, Size, Sizes, Slice, Tensor, TensorOrNumber, Triple, candle_dtype, every, fx_dtype,
    is_grad_enabled, no_grad,
};
pub use threads::{num_threads, set_num_threads, threads_awake};

fx_core::register_crate!(prelude = "fx_nn::prelude", core = "fx_nn");
fx_core::__private::entry! { (fx_core) LibrarySource, fx_core::__private::LibrarySource(file!()) }

/// The items that macro expansions name if only this crate is a dependency.
#[doc(hidden)]
pub use fx_core as __core;

/// Gradients of functions with weights, as functions (`torch.nn.grad`).
pub mod grad {
    pub use crate::derivatives::{attention, conv2d_weight};
}

/// The items that most programs use: `use fx_nn::prelude::*;`.
pub mod prelude {
    pub use crate::ops::D;
    pub use crate::value::DType;
    pub use crate::{Dims, Ellipsis, NewAxis, Shape, Tensor, every, nn, ops};
    pub use fx_core::prelude::*;
}

/// The README's example, compiled and run with the doctests.
#[cfg(doctest)]
#[doc = include_str!("../../README.md")]
struct Readme;
