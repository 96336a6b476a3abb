//! From models to code, one file per macro.

mod kernel;
mod module;
mod op;
mod or_return;
mod registry;
mod stub;
mod trace;
mod traced;
mod tree;
mod twin;
mod wrap;

pub use module::module;
pub use op::op;
pub use registry::{entry_of, table, table_entry};
pub use trace::trace;
pub use traced::{function, traced};
pub use tree::tree;
pub use wrap::wrap;
