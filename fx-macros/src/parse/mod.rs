//! From syntax to models: what an annotated function takes and gives.

pub mod callable;
