//! Where a replacement goes: after all that it uses and before all that uses it, moving nodes in
//! between if needed.
//!
//! Invariant: a value is computed before it is used, and nothing comes to depend on itself.

use rustc_hash::FxHashSet;
use smallvec::SmallVec;

use crate::error::Result;
use crate::ir::graph::Graph;
use crate::value::handle::NodeId;

/// A place in the order.
pub(super) enum Place {
    After(NodeId),
    Before(NodeId),
}

/// The place for the replacement of `inside` (its nodes, in order), of which `outputs` are used
/// outside, and which uses `inputs`; `None` if an input depends on an output, so that there is
/// none.
pub(super) fn place(
    graph: &mut Graph,
    inside: &[NodeId],
    outputs: &[NodeId],
    inputs: &[NodeId],
) -> Result<Option<Place>> {
    let Some(mut last) = inside.first().copied() else {
        return Ok(None);
    };
    for node in inside {
        if graph.is_before(last, *node)? {
            last = *node;
        }
    }
    // Most patterns are small: scanning them is faster than a set.
    let members: FxHashSet<NodeId> = match inside.len() {
        0..=16 => FxHashSet::default(),
        _ => inside.iter().copied().collect(),
    };
    let is_member = |id: NodeId| match members.is_empty() {
        true => inside.contains(&id),
        false => members.contains(&id),
    };
    let mut first_user: Option<NodeId> = None;
    for output in outputs {
        for user in graph.node(*output)?.users() {
            let is_first = match first_user {
                Some(first) => graph.is_before(user.id(), first)?,
                None => true,
            };
            if is_first && !is_member(user.id()) {
                first_user = Some(user.id());
            }
        }
    }
    let Some(first_user) = first_user else {
        return Ok(Some(Place::After(last)));
    };
    if graph.is_before(last, first_user)? {
        return Ok(Some(Place::Before(first_user)));
    }
    let mut last_input: Option<NodeId> = None;
    for input in inputs {
        let is_last = match last_input {
            Some(last) => graph.is_before(last, *input)?,
            None => true,
        };
        if is_last {
            last_input = Some(*input);
        }
    }
    let Some(last_input) = last_input else {
        return Ok(Some(Place::Before(first_user)));
    };
    if graph.is_before(last_input, first_user)? {
        return Ok(Some(Place::Before(first_user)));
    }
    // Between the first user and the last input: nodes that depend on an output move after that
    // input.
    let outputs: FxHashSet<NodeId> = outputs.iter().copied().collect();
    let mut dependants: Vec<NodeId> = Vec::new();
    let mut is_dependant: FxHashSet<NodeId> = FxHashSet::default();
    let mut at = Some(graph.node(first_user)?);
    while let Some(node) = at {
        let id = node.id();
        let depends = node
            .all_input_nodes()
            .any(|input| outputs.contains(&input.id()) || is_dependant.contains(&input.id()));
        if depends && !is_member(id) {
            if inputs.contains(&id) {
                return Ok(None);
            }
            is_dependant.insert(id);
            dependants.push(id);
        }
        if id == last_input {
            break;
        }
        at = node.next();
    }
    let mut behind = last_input;
    for node in dependants {
        graph.node_mut(behind)?.append(node)?;
        behind = node;
    }
    Ok(Some(Place::After(last_input)))
}

/// The places of an input and of an output that it depends on: then nothing can replace both.
/// `looked_at` counts the nodes in between that were looked at.
pub(super) fn dependence(
    graph: &Graph,
    inputs: &[(u32, NodeId)],
    outputs: &[(u32, NodeId)],
    looked_at: &mut usize,
) -> Result<Option<(u32, u32)>> {
    let Some((_, mut first)) = outputs.first().copied() else {
        return Ok(None);
    };
    for (_, output) in outputs {
        if graph.is_before(*output, first)? {
            first = *output;
        }
    }
    // Nodes before all outputs depend on none; an input's own inputs are looked at once for all
    // inputs.
    let mut seen: FxHashSet<NodeId> = FxHashSet::default();
    let mut pending: SmallVec<[NodeId; 8]> = SmallVec::new();
    for (input, id) in inputs {
        pending.push(*id);
        while let Some(id) = pending.pop() {
            if !graph.is_before(first, id)? || !seen.insert(id) {
                continue;
            }
            *looked_at += 1;
            for needed in graph.node(id)?.all_input_nodes() {
                if let Some((output, _)) = outputs.iter().find(|(_, o)| *o == needed.id()) {
                    return Ok(Some((*input, *output)));
                }
                pending.push(needed.id());
            }
        }
    }
    Ok(None)
}
