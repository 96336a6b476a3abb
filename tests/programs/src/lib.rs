//! Random programs over every path: what a program gives eagerly, its graph gives too, however it is run, changed,
//! saved, compiled or exported.

pub mod calls;
pub mod compare;
mod draft;
pub mod emitted;
pub mod engines;
pub mod expected;
pub mod generate;
mod gradients;
pub mod judge;
mod noise;
pub mod paths;
pub mod plants;
mod probe;
pub mod program;
pub mod refusals;
pub mod report;
pub mod shrink;
