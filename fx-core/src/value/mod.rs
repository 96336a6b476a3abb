//! The ground floor: values that flow through graphs, objects inside them, and the handles of what is recorded.

pub mod data;
pub mod device;
pub mod dtype;
pub mod handle;
pub(crate) mod nested;
pub mod object;
pub mod operator;
pub mod symbol;
pub mod tree;
#[allow(
    clippy::module_inception,
    reason = "the file is named after the type it holds"
)]
pub mod value;
