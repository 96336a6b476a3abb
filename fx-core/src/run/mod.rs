//! Running graphs: a compiled program, and node by node, with every step decided by an
//! [`Interpreter`].
//!
//! ```
//! use fx_core::prelude::*;
//! use fx_core::run::PlainInterpreter;
//! let gm = symbolic_trace(traced!(|x: Float| (x + 1.0)? * 2.0))?;
//! let y = gm.interpret(&mut PlainInterpreter, 2.0)?;
//! assert_eq!(f64::from_value(y)?, gm.forward::<f64>(2.0)?);
//! # Ok::<(), Error>(())
//! ```

pub(crate) mod interpreter;
mod operand;
pub(crate) mod program;
mod template;
pub(crate) mod transform;

pub use self::interpreter::{Interpretation, Interpreter, PlainInterpreter};
