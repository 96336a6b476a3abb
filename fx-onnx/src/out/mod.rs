//! Out: a graph module as an ONNX file.
//!
//! Invariant: a file is what the graph module computes. What ONNX cannot have is an error before a byte is written, with
//! every node that it is about.

mod context;
mod control;
mod functions;
mod graph;
mod model;
mod ops;
mod options;
mod report;
mod results;
mod sizes;
mod types;
mod write;

pub use context::{Cx, NodeBuilder};
pub use fx_nn::lowering::{Name, OpCall, Operand, Val};
pub(crate) use graph::model;
pub(crate) use model::Model;
pub use options::{Export, Layers, Weights};
pub use report::ExportReport;
pub(crate) use write::{inline, to_bytes, to_file};

/// How calls of a function are written as nodes: an entry of a
/// [`FunctionTable`](fx_nn::ir::FunctionTable), registered by any crate.
///
/// ```
/// use fx_nn::function_table;
/// use fx_nn::prelude::*;
/// use fx_onnx::{Cx, Export, OnnxExt, Rule};
///
/// #[wrap]
/// fn swish2(x: &Tensor) -> Result<Tensor> {
///     x * ops::sigmoid(&(x * 2.0)?)?
/// }
///
/// function_table! { Rule {
///     function!(swish2) => Rule::new(|cx: &mut Cx, call| {
///         let x = call.tensor("x")?;
///         let y = cx.node("Swish2").domain("my.ops", 1).input(&x.name).output();
///         call.given(y)
///     }),
/// } }
///
/// let gm = symbolic_trace(traced!(|x: &Tensor| swish2(x)))?;
/// let (bytes, _) = gm.to_onnx_bytes(&Export::example(&Tensor::ones(3)?))?;
/// assert!(bytes.windows(6).any(|window| window == b"Swish2"));
/// # Ok::<(), Error>(())
/// ```
pub type Rule = fx_nn::lowering::Rule<Cx>;
