//! The values that names stand for while a file is read.
//!
//! Invariant: a name is looked for in the innermost graph first.

use fx_nn::{Error, Result};
use rustc_hash::FxHashMap;

use super::value::V;

/// The values of a graph and of those around it.
pub(super) type Scopes = Vec<Scope>;

/// The values of a graph.
#[derive(Clone)]
pub(super) struct Scope {
    pub values: FxHashMap<String, V>,
    /// The address of the graph, if it is a body.
    pub body: Option<usize>,
}

/// The value of a name.
pub(super) fn find(scopes: &Scopes, name: &str) -> Result<V> {
    if name.is_empty() {
        return Ok(V::Absent);
    }
    let found = scopes
        .iter()
        .rev()
        .find_map(|scope| scope.values.get(name).cloned());
    found.ok_or_else(|| Error::msg(format_args!("nothing gives `{name}`")))
}
