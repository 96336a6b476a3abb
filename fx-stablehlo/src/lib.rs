//! StableHLO for fx: a graph module is written as text that XLA compiles, and sharded over a mesh of devices.

mod export;
pub mod guide;
mod out;
mod program;
pub mod shard;
pub mod testing;

pub use export::StableHloExt;
pub use fx_nn::lowering::{OpCall, Operand, Val};
pub use out::{Array, Cx, Export, Region, ResultTree, Rule, Type};
pub use program::{ArgumentKind, ExportReport, Program, ProgramArgument};

/// The README's example, compiled and run with the doctests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
