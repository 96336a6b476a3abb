//! Running graphs: a compiled program for values, and node by node for symbolic ones.

pub mod program;
pub mod symbolic;
