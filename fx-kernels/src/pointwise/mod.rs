//! Chains of pointwise operations in one pass over memory.

mod program;
mod run;
mod steps;

pub use program::{Binary, Chain, Tape, Unary, Value};
pub use run::Operand;
