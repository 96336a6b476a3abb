//! Predicates by which users choose nodes that a pass skips.

use crate::ir::node::NodeRef;

/// Whether something holds of a node.
pub(super) type Predicate = Box<dyn Fn(NodeRef<'_>) -> bool + Send + Sync>;

/// Whether there is a predicate, and it holds.
pub(super) fn holds(predicate: &Option<Predicate>, node: NodeRef<'_>) -> bool {
    predicate.as_ref().is_some_and(|predicate| predicate(node))
}
