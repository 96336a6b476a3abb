//! Parts of a graph as separate graph modules.

pub(crate) mod assigned;
pub(crate) mod parts;
