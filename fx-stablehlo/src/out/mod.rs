//! Out: a graph module as the operations of a program.
//!
//! Invariant: a program is what the graph module computes. What StableHLO cannot have is an error before a file is
//! written, with every node that it is about.

mod control;
pub(crate) mod cx;
pub(crate) mod donation;
pub(crate) mod graph;
mod ops;
mod options;
mod result_tree;
pub(crate) mod text;

pub use cx::{Array, Cx, Region, Type};
pub use options::Export;
pub use result_tree::ResultTree;

/// How calls of a function are written as operations: an entry of a
/// [`FunctionTable`](fx_nn::ir::FunctionTable), registered by any crate.
///
/// ```
/// use fx_nn::function_table;
/// use fx_nn::prelude::*;
/// use fx_stablehlo::{Cx, Export, Rule, StableHloExt};
///
/// #[wrap]
/// fn cube(x: &Tensor) -> Result<Tensor> {
///     x * (x * x)?
/// }
///
/// function_table! { Rule {
///     function!(cube) => Rule::new(|cx: &mut Cx, call| {
///         let x = cx.tensor(call, "x")?;
///         let square = cx.binary("multiply", &x, &x);
///         Ok(cx.binary("multiply", &square, &x).into())
///     }),
/// } }
///
/// let gm = symbolic_trace(traced!(|x: &Tensor| cube(x)))?;
/// let program = gm.to_stablehlo_text(&Export::example(&Tensor::ones(3)?))?;
/// assert_eq!(program.matches("stablehlo.multiply").count(), 2);
/// # Ok::<(), Error>(())
/// ```
pub type Rule = fx_nn::lowering::Rule<Cx>;
