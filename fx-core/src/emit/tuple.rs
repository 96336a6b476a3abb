//! Tuples as Rust writes them, of texts.
//!
//! Invariant: a tuple of one item keeps its comma.

/// The largest tuple that can flow through a graph.
pub(super) const MAX_TUPLE: usize = 6;

/// A tuple of types or values that are already written.
pub(super) fn tuple(items: &[String]) -> String {
    match items {
        [one] => format!("({one},)"),
        many => format!("({})", many.join(", ")),
    }
}

/// Several as a tuple, one as it is.
pub(super) fn one_or_tuple(items: &[String]) -> String {
    match items {
        [one] => one.clone(),
        items => tuple(items),
    }
}
