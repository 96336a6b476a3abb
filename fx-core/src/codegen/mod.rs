//! From graphs back to Rust source.

pub mod rust;
mod types;
