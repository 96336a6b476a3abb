//! Modules: the traits, and the named hierarchy of children, parameters and buffers.

pub mod argument;
pub mod attributes;
pub mod call;
pub mod containers;
pub mod hierarchy;
pub mod items;
#[allow(
    clippy::module_inception,
    reason = "the file is named after the trait it holds"
)]
pub mod module;
pub mod parts;
pub mod path_pattern;
pub mod paths;
pub mod plain;
pub mod registry;
pub mod skipped;
pub mod walk;
