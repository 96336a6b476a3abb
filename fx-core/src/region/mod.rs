//! Regions: parts of a graph that are examined or moved as one.

pub(crate) mod ordered;
#[allow(
    clippy::module_inception,
    reason = "the file is named after the type it holds"
)]
pub mod region;
pub(crate) mod units;
