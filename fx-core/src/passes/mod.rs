//! Passes that change a graph, analyses that run one, and the prelude for authors of transforms.
//!
//! ```
//! use fx_core::prelude::*;
//! use fx_core::passes::Cse;
//! let mut gm = symbolic_trace(traced!(|x: Float| (x + 1.0)? * (x + 1.0)?))?;
//! assert_eq!(gm.apply(&Cse::new())?.erased, ["add_1"]);
//! # Ok::<(), Error>(())
//! ```

pub(crate) mod annotate_types;
pub mod backend;
pub(crate) mod canonicalize;
mod canonicalize_by;
pub(crate) mod capture;
pub(crate) mod closeness;
mod constants;
pub(crate) mod core_set;
pub(crate) mod cse;
pub(crate) mod dead_code;
pub(crate) mod decompose;
pub(crate) mod divergence;
mod features;
pub(crate) mod fold_constants;
pub(crate) mod folded;
mod inline;
pub(crate) mod manager;
pub(crate) mod memory_plan;
mod nest;
mod node_names;
mod node_sizes;
pub(crate) mod normalize;
pub(crate) mod pass;
pub mod pipeline;
mod predicate;
pub(crate) mod profile;
pub(crate) mod record;
mod retarget;
mod schedule;
pub(crate) mod shape_prop;
pub(crate) mod simplify_control;
mod split;
pub(crate) mod structural_hash;

pub use self::annotate_types::AnnotateTypes;
pub use self::canonicalize::Canonicalize;
pub use self::canonicalize_by::CanonicalizeBy;
pub use self::closeness::Closeness;
pub use self::core_set::{CoreSet, verify_core};
pub use self::cse::Cse;
pub use self::dead_code::DeadCode;
pub use self::decompose::{DecomposedCall, Decompositions};
pub use self::divergence::{Divergence, first_divergence};
pub use self::features::{
    FeatureExtractor, ReturnNode, create_feature_extractor, get_graph_node_names,
};
pub use self::fold_constants::FoldConstants;
pub use self::folded::FoldedConstants;
pub use self::manager::{Culprit, PassManager, PassObserver, PassReport};
pub use self::memory_plan::{MemoryPlan, PlannedNode, memory_plan};
pub use self::node_sizes::{SizeBytes, get_size_of_all_nodes, get_size_of_node};
pub use self::normalize::{MethodsToFunctions, NormalizeArguments};
pub use self::pass::{Pass, PassFn, pass_fn};
pub use self::profile::{NodeCost, Profile};
pub use self::record::PassRecord;
pub use self::simplify_control::SimplifyControl;
pub use self::split::assigned::{PartId, Split, SplitOptions};
pub use self::split::parts::SplitPart;
pub use crate::region::ordered::Ordered;
pub use crate::region::region::Region;

/// What most transforms use: `use fx_core::passes::prelude::*;`, beside the crate's own prelude.
pub mod prelude {
    pub use crate::ir::{Argument, Graph, NodeRef, Op};
    pub use crate::passes::Pass;
    pub use crate::pattern::{Rule, replace_pattern};
    pub use crate::run::Interpreter;
    pub use crate::trace::{TraceContext, Tracer};
    pub use crate::value::{NodeId, Proxy};
}
