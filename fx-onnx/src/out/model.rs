//! A file before its bytes.
//!
//! Invariant: the graph is encoded without its tensors, which are constants beside it.

use super::context::Constant;
use super::report::ExportReport;
use crate::proto::FunctionProto;

/// What a file says, and the tensors that it keeps.
pub(crate) struct Model {
    /// The graph without its tensors, as it is in the file.
    pub(super) graph: Vec<u8>,
    pub(super) functions: Vec<FunctionProto>,
    pub(super) constants: Vec<Constant>,
    pub(super) opset: i64,
    pub(super) domains: Vec<(String, i64)>,
    /// The names of what it gives.
    pub outputs: Vec<String>,
    /// Whether it draws random numbers, which are others in each run.
    pub draws: bool,
    pub report: ExportReport,
}
