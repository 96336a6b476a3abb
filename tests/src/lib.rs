//! Tests across the fx crates that need no tensor library: what must not compile, and what a traced body does.
//!
//! trybuild builds what they depend on anew, which is fx-core alone: `every_op`, which checks all operations by every
//! route, and the example `custom_op` stand on dependencies that trybuild leaves out. Tests that compare with PyTorch
//! are in `goldens`.
