//! What is learned about a graph by running it.

pub mod capture;
pub mod profile;
pub mod shape_prop;
