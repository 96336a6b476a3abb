#![doc = include_str!("../README.md")]

mod archive;
mod call;
mod element;
mod leaves;
mod loader;
mod places;
mod read;
mod rules;
mod schema;
mod size;
mod support;
mod tree;

pub use leaves::{int_of, larger, nms, regions, smaller};
pub use loader::{Hierarchy, Loader, load};
pub use support::{Support, operators, support};
