//! Patterns: sub-graphs that are found in a graph, and their replacements.
//!
//! ```
//! use fx_core::prelude::*;
//! use fx_core::pattern::replace_pattern;
//! let mut gm = symbolic_trace(traced!(|x: Float| (x + x)? + 1.0))?;
//! let found = replace_pattern(&mut gm, traced!(|x: Float| x + x), traced!(|x: Float| x * 2.0))?;
//! assert_eq!(found.len(), 1);
//! assert_eq!(gm.forward::<f64>(3.0)?, 7.0);
//! # Ok::<(), Error>(())
//! ```

mod candidates;
mod choices;
pub(crate) mod compare;
mod comparing;
pub(crate) mod found;
pub(crate) mod matcher;
mod open;
mod place;
pub(crate) mod replace;
pub(crate) mod rewriter;
mod search;
pub(crate) mod sources;
pub(crate) mod subgraph;
mod whole;

pub use self::found::Match;
pub use self::matcher::SubgraphMatcher;
pub use self::open::OpenNode;
pub use self::replace::{IntoMatcher, Rule, replace_pattern};
pub use self::rewriter::{NearMiss, RewriteReport, Rewriter, Rewritten};
pub use self::sources::{
    Source, SourcePartition, are_connected, sequential_partitions, source_partitions,
};
pub use self::subgraph::{IntoSubgraph, Subgraph};
