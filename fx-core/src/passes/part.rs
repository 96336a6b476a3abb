//! Parts of a graph that move: what they name, the items of what stands for them, and their end.

use std::sync::Arc;

use rustc_hash::FxHashSet;

use crate::error::Result;
use crate::ir::argument::Argument;
use crate::ir::graph::Graph;
use crate::ir::op::Op;
use crate::ir::operators;
use crate::ir::value_meta::ValueMeta;
use crate::module::attributes::Attributes;
use crate::value::handle::NodeId;

/// The attributes that a graph names.
pub(super) fn named_by(graph: &Graph, attributes: &Attributes) -> Attributes {
    let mut named = Attributes::default();
    for node in graph.nodes() {
        match node.op() {
            Op::GetAttr(path) if let Some(tensor) = attributes.tensors.get(path) => {
                named.tensors.insert(path.clone(), tensor.clone());
            }
            Op::CallModule(path) | Op::GetAttr(path) if !named.modules.contains_key(path) => {
                if let Some(module) = attributes.modules.get(path) {
                    named.modules.insert(path.clone(), module.clone());
                }
            }
            _ => {}
        }
    }
    named
}

/// Takes the items of what a call gives, at the insertion point: one for each of the nodes for which they stand, whose
/// shapes they have.
///
/// # Errors
/// When the call, or one of the nodes, is not in this graph.
pub(super) fn take_items(
    graph: &mut Graph,
    call: NodeId,
    stand_for: &[NodeId],
) -> Result<Vec<NodeId>> {
    let mut items = Vec::with_capacity(stand_for.len());
    let mut metas = Vec::with_capacity(stand_for.len());
    for (at, old) in (0i64..).zip(stand_for) {
        let item = graph.call_function(operators::getitem, (call, at), ())?;
        graph.learn_from(item, *old)?;
        metas.extend(graph.node(*old)?.meta::<ValueMeta>().cloned());
        items.push(item);
    }
    if metas.len() == stand_for.len() {
        graph.learn(&Argument::Node(call), &ValueMeta::Sequence(metas))?;
    }
    Ok(items)
}

/// Erases those of the nodes, which are in order, that are there still and that nobody uses, and takes away what the graph
/// named through them alone.
///
/// # Errors
/// When a node cannot be erased.
pub(super) fn erase_unused(
    graph: &mut Graph,
    attributes: &mut Attributes,
    nodes: &[NodeId],
) -> Result<()> {
    let mut paths: FxHashSet<Arc<str>> = FxHashSet::default();
    for id in nodes.iter().rev() {
        let Some(node) = graph.node(*id).ok().filter(|node| node.num_users() == 0) else {
            continue;
        };
        if let Op::GetAttr(path) | Op::CallModule(path) = node.op() {
            paths.insert(path.clone());
        }
        graph.erase_node(*id)?;
    }
    paths.retain(|path| {
        !graph.has_op(&Op::GetAttr(path.clone())) && !graph.has_op(&Op::CallModule(path.clone()))
    });
    attributes.tensors.retain(|path, _| !paths.contains(path));
    attributes.modules.retain(|path, _| !paths.contains(path));
    Ok(())
}
