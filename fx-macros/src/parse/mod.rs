//! From syntax to models: what an annotated function takes and returns.

pub mod callable;
