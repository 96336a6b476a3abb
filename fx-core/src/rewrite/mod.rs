//! Patterns: sub-graphs that are found in a graph, and what takes their place.

mod candidates;
mod choices;
pub mod compare;
mod comparing;
pub mod found;
pub mod matcher;
mod place;
pub mod replace;
pub mod rewriter;
mod search;
pub mod sources;
pub mod subgraph;
mod whole;
