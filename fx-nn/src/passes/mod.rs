//! Passes that know tensors: what changes a graph module and keeps its numbers, and what its nodes cost.

mod counts;
mod fuse_batch_norm;
mod remove_identity;

pub use counts::{Counts, NodeCounts, SizeBytes, counts};
pub use fuse_batch_norm::{FuseBatchNorm, Fusion, FusionPlan, Skipped};
pub use remove_identity::{RemoveDropout, RemoveIdentity};
