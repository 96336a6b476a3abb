//! What takes a node's place: another node, a literal, or a structure of both.

use crate::error::{Error, Result};
use crate::ir::argument::Argument;
use crate::ir::graph::Graph;
use crate::ir::op::Op;
use crate::ir::operators;
use crate::value::handle::NodeId;

/// Every user of a node uses `new` in its place; the node stays, unused. An item that a user takes of a structure is
/// that item itself, and such users are erased.
///
/// # Errors
/// When `new` has nodes that are not in this graph, or come after a user.
pub(super) fn substitute(graph: &mut Graph, node: NodeId, new: &Argument) -> Result<()> {
    // A worklist, because an item may be a structure too.
    let mut pending = vec![(node, new.clone())];
    let mut items = Vec::new();
    while let Some((node, new)) = pending.pop() {
        if let Argument::Node(new) = new {
            graph.node_mut(node)?.give_uses_to(new)?;
            continue;
        }
        let users: Vec<NodeId> = graph.node(node)?.users().map(|user| user.id()).collect();
        for user in users {
            match item_taken(graph, user, node, &new)? {
                Some(item) => {
                    items.push(user);
                    pending.push((user, item));
                }
                None => graph.put_for(user, node, &new)?,
            }
        }
    }
    // An item of an item comes behind it.
    for item in items.into_iter().rev() {
        graph.erase_node(item)?;
    }
    Ok(())
}

/// The item of `new` that a user takes, where that is all it does.
fn item_taken(
    graph: &Graph,
    user: NodeId,
    node: NodeId,
    new: &Argument,
) -> Result<Option<Argument>> {
    let user = graph.node(user)?;
    if *user.op() != Op::CallFunction(operators::getitem) {
        return Ok(None);
    }
    let [Argument::Node(of), index] = user.args() else {
        return Ok(None);
    };
    if *of != node {
        return Ok(None);
    }
    let missing = || {
        user.blame(
            "substituting",
            Error::msg("the structure that takes its operand's place has no such item"),
        )
    };
    match (new, index) {
        (Argument::List(items) | Argument::Tuple(items), Argument::Int(at)) => {
            let length = i64::try_from(items.len()).unwrap_or(i64::MAX);
            let at = if *at < 0 { at + length } else { *at };
            let item = usize::try_from(at).ok().and_then(|at| items.get(at));
            item.cloned().ok_or_else(missing).map(Some)
        }
        (Argument::Dict(items), Argument::Str(key)) => {
            let item = items.iter().find(|(name, _)| **name == *key.as_str());
            item.map(|(_, item)| Some(item.clone())).ok_or_else(missing)
        }
        _ => Ok(None),
    }
}
