//! What a program holds and takes: its tensors by name and path, its inputs, its arguments.
//!
//! Invariant: an input is one of a run, or what it was when the program was exported.

use fx_nn::prelude::*;

use crate::tree::Tree;

/// What a tensor of the program is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Held {
    Parameter,
    Buffer,
    Constant,
}

/// A tensor of the program: the name that nodes read it by, and its path.
#[derive(Debug, Clone)]
pub(crate) struct Weight {
    pub name: String,
    pub path: String,
}

/// An input of the program.
#[derive(Debug, Clone)]
pub(crate) enum Input {
    /// A run gives it, as this type of Rust.
    Given(String, &'static str),
    /// It is what it was when the program was exported.
    Fixed(String, Value),
}

/// An argument of `forward`, with its inputs.
#[derive(Debug, Clone)]
pub(crate) struct Parameter {
    pub tree: Tree,
    pub inputs: Vec<Input>,
    /// Whether a run gives something of it.
    pub is_given: bool,
}
