//! Saved files: graphs and plain data as JSON, tensors as safetensors, and how both come back.

pub mod arguments;
pub mod file;
pub mod graph;
pub mod json;
pub mod loader;
pub mod meta;
pub mod saver;
pub mod signature;
mod stream;
pub mod upgrade;
