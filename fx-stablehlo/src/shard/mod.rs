//! Sharding: which dims of a graph's values are split over which axes of a mesh of devices.
//!
//! [`shard`] fixes the parameters, inputs and outputs that rules name, and spreads what follows. XLA splits the program:
//! what the user fixed is in its text, the rest is left to it.
//!
//! Invariant: what the user fixes is kept; an axis stands once in a sharding, and divides the size that it splits.

mod collectives;
mod explain;
mod factors;
mod mesh;
mod partition;
mod pass;
mod reference;
mod rules;
mod sharding;
mod spread;
mod table;

pub use collectives::{all_gather, all_reduce, own_part, reduce_scatter};
pub use explain::{Explanation, explain_sharding};
pub use factors::{Factors, ShardCall, ShardRule};
pub use mesh::Mesh;
pub use pass::{Conflict, ShardReport, shard};
pub use reference::{Partitioned, reference};
pub use rules::ShardRules;
pub use sharding::{Sharding, Split};
