//! Passes that know layers: for inference, each says how far it keeps the numbers; and what the nodes of a graph cost.

mod counts;
mod fuse_batch_norm;
mod remove_identity;

pub use counts::{Counts, NodeCounts, SizeBytes, counts};
pub use fuse_batch_norm::{FuseBatchNorm, Fusion, FusionPlan, Skipped};
pub use remove_identity::{RemoveDropout, RemoveIdentity};
