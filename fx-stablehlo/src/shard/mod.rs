//! Sharding: which devices of a mesh have which part of each value, as Shardy describes it, and what follows from it.
//!
//! [`shard`](shard()) is a pass: rules say how parameters and inputs are shared, and it finds the same for every other
//! value. [`explain_sharding`] estimates memory and collectives, and [`reference`](reference()) runs the shared program
//! on threads, to compare it with one device.
//!
//! What is found is in the graph: `node.meta::<Sharding>()` of each node whose value is tensors, and
//! `gm.meta::<Mesh>()` of the graph module.
//!
//! ```text
//! Mesh, Sharding, ShardRules -> Flow (factors of each call, axes to a fixed point) -> entries, ShardReport
//!                                 |-> CallPlan: operands' layouts, partial results -> Explanation
//!                                                                                  -> Partitioned
//! ```
//!
//! Invariant: an axis is used at most once in a value, and shares only sizes that it divides.

mod devices;
mod explain;
mod factors;
mod flow;
mod mesh;
mod ops_pointwise;
mod ops_products;
mod ops_views;
mod partition;
mod pass;
mod plan;
mod presets;
mod report;
mod rules;
mod sharding;

pub use self::explain::{Explanation, explain_sharding};
pub use self::factors::{Factors, Reduction, ShardCall, ShardRule, ShardTensor};
pub use self::mesh::Mesh;
pub use self::partition::{Collective, Partitioned, reference};
pub use self::pass::shard;
pub use self::plan::CollectiveKind;
pub use self::report::{Reshard, ShardReport};
pub use self::rules::ShardRules;
pub use self::sharding::{DimSharding, Sharding};
#[doc(inline)]
pub use crate::{__mesh as mesh, __shard_rules as shard_rules};
