//! Inference of shapes: what the nodes of a graph give by the rules of `shapes`, without a run.

mod appending;
mod filling;
mod graph;
mod opened;
pub(crate) mod refusals;
mod regions;
mod tracing;
