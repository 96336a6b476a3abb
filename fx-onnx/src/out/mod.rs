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

use std::path::Path;

use fx_nn::ir::FunctionTable;
use fx_nn::prelude::*;

pub use call::OpCall;
pub use context::{Cx, NodeBuilder};
pub use options::{Export, Layers, Weights};
pub use report::ExportReport;
pub use rule::Rule;
pub use value::{Name, Operand, Val};

/// ONNX files of graph modules.
pub trait OnnxExt {
    /// Writes an ONNX file.
    ///
    /// ```
    /// use fx_nn::prelude::*;
    /// use fx_onnx::{Export, OnnxExt};
    /// let gm = symbolic_trace(&nn::Sequential::new().push(nn::Linear::new(4, 2)?).push(nn::ReLU::new()))?;
    /// let path = std::env::temp_dir().join("fx_onnx_example.onnx");
    /// let export = Export::example(&Tensor::ones((1, 4))?).dynamic("batch", [("x", 0)]);
    /// let report = gm.to_onnx(&path, &export)?;
    /// assert_eq!(report.nodes, 2); // Gemm, Relu
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// Returns an error that lists every function without a rule, with node and source line; if a shape cannot be
    /// inferred; if the weights are 2 GB or more and inline; or if the file cannot be written.
    fn to_onnx(&self, path: impl AsRef<Path>, export: &Export) -> Result<ExportReport>;

    /// The same as bytes, with the weights inside.
    ///
    /// # Errors
    /// As [`to_onnx`](OnnxExt::to_onnx), and if the options ask for weights in a file of their own.
    fn to_onnx_bytes(&self, export: &Export) -> Result<(Vec<u8>, ExportReport)>;
}

impl OnnxExt for GraphModule {
    fn to_onnx(&self, path: impl AsRef<Path>, export: &Export) -> Result<ExportReport> {
        let mut model = graph::model(self, export)?;
        write::to_file(&mut model, path.as_ref(), export)?;
        Ok(model.report)
    }

    fn to_onnx_bytes(&self, export: &Export) -> Result<(Vec<u8>, ExportReport)> {
        let model = graph::model(self, export)?;
        let bytes = write::to_bytes(&model, export)?;
        Ok((bytes, model.report))
    }
}

/// How each function is written: fx's own rules, and those that linked crates registered.
///
/// # Errors
/// Returns an error if two rules are registered for one function.
pub fn rules() -> Result<&'static FunctionTable<Rule>> {
    FunctionTable::registered()
}
