//! Saved files: graphs and plain data as JSON, tensors as safetensors, and how both come back.

pub mod arguments;
pub mod container;
pub mod disk;
pub mod file;
pub mod graph;
pub mod json;
mod limits;
pub mod loader;
pub mod meta;
pub mod names;
pub mod saver;
pub mod signature;
mod stream;
pub mod upgrade;
