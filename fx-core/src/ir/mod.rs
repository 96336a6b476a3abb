//! The graph: nodes of six opcodes in an order, with use lists that always agree with the arguments.

pub mod argument;
pub mod build;
pub mod copy;
mod dead_code;
mod edit;
pub mod function;
pub mod graph;
mod index;
pub mod insertion;
pub mod lint;
mod liveness;
pub mod meta;
pub mod names;
pub mod node;
pub mod observe;
pub mod op;
pub mod operators;
mod order;
mod parse;
pub mod places;
pub mod print;
pub mod registry;
pub mod signature;
mod sort;
mod uses;
pub mod value_meta;
pub mod walk;
