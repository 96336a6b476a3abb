//! Running graphs: a compiled program, and node by node, on values or on symbolic ones.

pub mod interpreter;
pub mod program;
pub mod transform;
