//! Generated source of graphs: a view of what runs.

mod arguments;
pub mod crates;
pub mod hooks;
mod operators;
mod output;
pub mod rust;
mod shown;
pub mod source;
pub mod structs;
pub mod structures;
pub mod tensor_source;
pub mod types;
