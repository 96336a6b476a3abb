//! What is learned about a graph by running it.

pub mod shape_prop;
