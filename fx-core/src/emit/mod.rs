//! Generated source of graphs: a view of the program, never the program itself.
//!
//! ```
//! use fx_core::prelude::*;
//! let gm = symbolic_trace(traced!(|x: Float| x + 1.0))?;
//! assert!(gm.code().contains("let add = (x + 1.0)?;"));
//! # Ok::<(), Error>(())
//! ```

mod arguments;
pub(crate) mod crates;
pub(crate) mod hooks;
pub(crate) mod input;
mod operators;
mod output;
mod regions;
pub(crate) mod rust;
mod shown;
pub(crate) mod source;
pub(crate) mod structs;
pub(crate) mod structures;
pub(crate) mod tensor_source;
mod tuple;
pub(crate) mod types;

pub use self::hooks::{CodeGen, CodeHook, FunctionHead};
pub use self::source::{CodeLine, CodeOptions, RustCode};
pub use crates::CrateInfo;
