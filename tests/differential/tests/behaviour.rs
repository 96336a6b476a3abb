//! One program of tests: the recorded calls of PyTorch. Each file here is a module of it.

mod compiled;
mod recorded;
mod verify;
