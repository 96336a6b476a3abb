//! Tests across the fx crates that need no tensor library: what must not compile, and what a traced body does.
//!
//! They stand on fx-core alone, because trybuild builds all dependencies of this crate anew. Tests that
//! compare with PyTorch are in `goldens`.
