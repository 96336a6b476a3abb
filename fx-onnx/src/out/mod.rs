//! Out: a graph module as an ONNX file.
//!
//! Invariant: a file is what the graph module computes. What ONNX cannot have is an error before a byte is written, with
//! every node that it is about.

mod call;
mod context;
mod control;
mod functions;
mod graph;
mod ops;
mod options;
mod prepare;
mod report;
mod rule;
mod sizes;
mod value;
mod write;

use fx_nn::ir::FunctionTable;
use fx_nn::prelude::*;

pub use call::OpCall;
pub use context::{Cx, NodeBuilder};
pub(crate) use graph::{Model, model};
pub use options::{Export, Layers, Weights};
pub use report::ExportReport;
pub use rule::Rule;
pub use value::{Name, Operand, Val};
pub(crate) use write::{inline, to_bytes, to_file};

/// How each function is written: fx's own rules, and those that linked crates registered.
///
/// # Errors
/// Returns an error if two rules are registered for one function.
pub fn rules() -> Result<&'static FunctionTable<Rule>> {
    FunctionTable::registered()
}
