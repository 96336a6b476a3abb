//! Passes that know layers: passes for inference, each of which documents how far it keeps the
//! numbers, and the costs of a graph's nodes; besides all passes of [`fx_core::passes`].
//!
//! ```
//! use fx_nn::prelude::*;
//! use fx_nn::passes::{Cse, RemoveIdentity};
//! let model = nn::Sequential::new().push(nn::Linear::new(4, 4)?).push(nn::Identity::default());
//! let mut gm = symbolic_trace(&model)?;
//! assert_eq!(gm.apply(&RemoveIdentity)?.erased, ["_1"]);
//! assert!(!gm.apply(&Cse::new())?.changed);
//! # Ok::<(), Error>(())
//! ```

mod counts;
mod foldable;
mod fuse_batch_norm;
mod gram_norms;
mod merge_matmul;
pub mod pipeline;
mod remove_identity;

pub use fx_core::passes::*;

pub use counts::{Counts, NodeCounts, counts};
pub use fuse_batch_norm::{FuseBatchNorm, Fusion, FusionPlan, Skipped};
pub use gram_norms::GramNorms;
pub use merge_matmul::MergeMatmul;
pub use remove_identity::{RemoveDropout, RemoveIdentity};
