//! What is learned about a graph by running it, and passes that change it.

pub mod capture;
mod changes;
pub mod pass;
pub mod profile;
pub mod shape_prop;
