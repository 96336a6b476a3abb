//! `Unnamed`: the parts of the traced module that no field names, so that source cannot name them either.
//!
//! Invariant: a path is that of a part, or of what holds parts.

use std::sync::Arc;

use super::meta::{Meta, MetaPolicy};

/// An entry of a graph module: paths with what stands there in place of a field of the part's own type, such as
/// "an `Option`".
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Unnamed(pub Vec<(Arc<str>, Arc<str>)>);

impl Meta for Unnamed {
    const ON_COPY: MetaPolicy = MetaPolicy::Copy;
    const ON_REPLACE: MetaPolicy = MetaPolicy::Copy;
}
