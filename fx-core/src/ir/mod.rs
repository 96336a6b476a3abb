//! The graph: nodes of six opcodes in an order, with use lists that always agree with the arguments.

pub mod argument;
pub mod function;
pub mod graph;
pub mod lint;
pub mod names;
pub mod node;
pub mod op;
pub mod operators;
mod order;
pub mod places;
pub mod print;
pub mod registry;
pub mod signature;
mod uses;
