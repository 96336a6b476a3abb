//! Backends: which calls an engine can run, the parts of a graph that it takes, and the code that
//! runs in their place.
//!
//! ```
//! use std::sync::Arc;
//! use fx_core::prelude::*;
//! use fx_core::passes::backend::{Backend, Executable, Metas, Support};
//! use fx_core::ir::ValueMeta;
//! use fx_core::module::Call;
//! use fx_core::operator;
//!
//! /// Sums, which it adds up in its own way.
//! struct Sums;
//!
//! impl Backend for Sums {
//!     fn name(&self) -> &str {
//!         "sums"
//!     }
//!
//!     fn supports(&self, call: &Call<'_>, _: &Metas<'_>) -> Support {
//!         match call.function() {
//!             Some(function) if function == operator::add => Support::Yes,
//!             _ => Support::no("only sums"),
//!         }
//!     }
//!
//!     fn compile(&self, part: &GraphModule, _: &[Option<ValueMeta>]) -> Result<Arc<dyn Executable>> {
//!         /// The part itself; a real engine would make code of its graph.
//!         struct Code(GraphModule);
//!         impl Executable for Code {
//!             fn run(&self, inputs: &[&Value], out: &mut Value) -> Result<()> {
//!                 self.0.run(inputs, out)
//!             }
//!         }
//!         Ok(Arc::new(Code(part.clone())))
//!     }
//! }
//!
//! let mut gm = symbolic_trace(traced!(|x: Float| (((x + 1.0)? + 2.0)? * x)? + 3.0))?;
//! let report = gm.lower(&Sums)?;
//! assert_eq!(report.parts.len(), 2);
//! assert_eq!(report.left[0].to_string(), "%mul: only sums");
//! assert_eq!(gm.forward::<f64>(1.0)?, 7.0);
//! assert_eq!(gm.decompile()?, 2);
//! assert_eq!(gm.graph().len(), 6);
//! # Ok::<(), Error>(())
//! ```

mod compile;
mod lower;
mod minimize;
mod partition;
mod support;

pub use self::compile::Compile;
pub use self::lower::{Backend, LeftNode, LowerReport};
pub use self::minimize::{Minimized, Minimizer};
pub use self::partition::Partitioner;
pub use self::support::{AllOf, AnyOf, Metas, Not, OperatorSupport, Support, dtypes, functions};
pub use crate::graph_module::around::Around;
pub use crate::graph_module::compiled::{Compiled, Executable, StepReport, StepRun};
pub use crate::inference::refusals::CallRules;
