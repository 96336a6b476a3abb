//! One program of tests: the goldens of PyTorch. Each file here is a module of it.

mod bad_input;
mod concrete;
mod documentation;
mod goldens;
mod tracing;
