//! One program of tests: random programs on every path. Each file here is a module of it.

mod found;
mod programs;
