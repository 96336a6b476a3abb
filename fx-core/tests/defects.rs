//! One test or more for each defect found in use, named by its number: `defect_r02_..`.

mod emitting;
mod patterns;
mod tracing;
mod trust_control;
