#![doc = include_str!("../README.md")]

fx_nn::register_crate!();

mod archive;
mod call;
mod element;
pub mod guide;
mod known;
mod leaves;
mod loader;
mod numbers;
mod older;
mod opaque;
mod operator;
mod places;
mod read;
mod rules;
mod schema;
mod size;
mod support;
mod tree;
mod written;

pub use archive::Limits;
pub use leaves::{nms, regions};
pub use loader::{Hierarchy, Loader, load};
pub use numbers::{chosen, float, larger, smaller, truth, whole, whole_part};
pub use opaque::Opaque;
pub use operator::Operator;
pub use support::{Support, operators, support};
pub use written::{assign, copied};
