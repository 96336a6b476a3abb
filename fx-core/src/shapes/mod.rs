//! Shapes without data: what every node of a graph gives for inputs of which the shapes are known,
//! or have names.
//!
//! ```
//! use fx_core::prelude::*;
//! use fx_core::ir::ValueMeta;
//! use fx_core::shapes::Spec;
//! let mut gm = symbolic_trace(traced!(|rows: Int| (rows + 15)?.floordiv(16)? * 2))?;
//! gm.infer_shapes(&[Spec::int("rows")])?;
//! let mul = gm.graph().find_name("mul").and_then(|node| node.meta::<ValueMeta>());
//! assert_eq!(mul.map(ValueMeta::to_string).as_deref(), Some("2*((rows + 15) // 16)"));
//! # Ok::<(), Error>(())
//! ```

mod broadcast;
mod checks;
pub(crate) mod claim;
pub(crate) mod contract;
pub(crate) mod env;
pub(crate) mod evaluation;
mod operators;
pub(crate) mod refusal;
pub(crate) mod relied;
mod rule;
pub(crate) mod spec;

pub use self::broadcast::{broadcast_shapes, result_type};
pub use self::claim::{Claim, Guard};
pub use self::contract::Contract;
pub use self::env::ShapeEnv;
pub use self::rule::{RuleCall, ShapeRule};
pub use self::spec::{Spec, SpecSize};
#[doc(inline)]
pub use crate::spec;

/// [`ValueMeta`](crate::ir::ValueMeta) under its earlier name.
#[deprecated(note = "it is `ir::ValueMeta`; `Fake::tensor(meta)` is `ValueMeta::from(meta)`")]
pub type Fake = crate::ir::value_meta::ValueMeta;
