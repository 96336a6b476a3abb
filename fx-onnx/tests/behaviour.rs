//! One program of tests: what is written, what is read, and both in turn. Each file here is a module of it.

mod cases;
mod defects;
mod layers;
mod mutated;
mod open_sizes;
mod operations;
mod out;
mod texts;
