//! One program of tests: kernels beside references, on every level of instructions. Each file here is a module of it.

mod blocks;
mod common;
mod conv;
mod functions;
mod halves;
mod images;
mod integers;
mod levels;
mod linear;
mod pairs;
mod reference;
mod rows;
mod sequences;
