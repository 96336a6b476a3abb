//! What is learned about a graph by running it, and passes that change it.

pub mod annotate_types;
pub mod canonicalize;
pub mod capture;
pub mod closeness;
mod constants;
pub mod cse;
pub mod dead_code;
pub mod decompose;
pub mod divergence;
pub mod fold_constants;
pub mod folded;
mod inline;
pub mod manager;
pub mod normalize;
pub mod pass;
mod predicate;
pub mod profile;
pub mod record;
mod retarget;
mod schedule;
pub mod shape_prop;
pub mod split;
mod structural_hash;
