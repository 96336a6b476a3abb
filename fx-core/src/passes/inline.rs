//! Inlines a graph module into the graph that calls it.
//!
//! Invariant: the graph computes what it did before.

use std::sync::Arc;

use crate::error::{Error, Result};
use crate::graph_module::GraphModule;
use crate::ir::argument::Argument;
use crate::ir::bound::BoundArgs;
use crate::ir::copy::ValueMap;
use crate::ir::graph::Graph;
use crate::ir::node::NodeRef;
use crate::ir::op::Op;
use crate::module::attributes::Attributes;
use crate::module::module::Module;
use crate::text::free_name;
use crate::value::handle::NodeId;
use crate::value::tree::Tree;

impl GraphModule {
    /// Replaces a node that calls a graph module by the module's nodes, with what they name under
    /// its path. The module is removed if nothing else calls it.
    ///
    /// # Errors
    /// Returns an error if the node calls no graph module, or one that takes a structure apart, or
    /// the arguments do not fit. Nothing changes then.
    pub fn inline_module(&mut self, call: NodeId) -> Result<()> {
        let new = self.put_inline(call)?;
        self.fill_shapes_of(&new);
        Ok(())
    }

    /// The module with the nodes of its parts, and of theirs, in one graph.
    ///
    /// # Errors
    /// Returns an error if a part cannot be put back.
    pub(crate) fn undivided(&self) -> Result<GraphModule> {
        let mut whole = self.clone();
        loop {
            let is_part = |node: &NodeRef<'_>| match node.op() {
                Op::CallModule(path) => whole.is_part(path),
                _ => false,
            };
            let calls = whole.graph().nodes().filter(is_part);
            let calls: Vec<NodeId> = calls.map(NodeRef::id).collect();
            if calls.is_empty() {
                break;
            }
            for call in calls {
                whole.put_inline(call)?;
            }
        }
        whole.for_each_side(|_, side| {
            *side = side.undivided()?;
            Ok(())
        })?;
        Ok(whole)
    }

    /// The same, without the shapes of the nodes that it returns: they are filled in once for many calls.
    pub(crate) fn put_inline(&mut self, call: NodeId) -> Result<Vec<NodeId>> {
        let inlined = self.edit(|gm| gm.inlined(call));
        inlined.map_err(|error| {
            let node = self.graph().node(call);
            node.map_or_else(|e| e, |node| node.blame("inlining", error))
        })
    }

    fn inlined(&mut self, call: NodeId) -> Result<Vec<NodeId>> {
        let node = self.graph().node(call)?;
        let Op::CallModule(path) = node.op() else {
            return Err(Error::region(
                "only the call of a graph module can be inlined",
            ));
        };
        let path = path.clone();
        let module: &dyn std::any::Any = self.attributes().module(&path)?;
        let Some(inner) = module.downcast_ref::<GraphModule>() else {
            return Err(Error::region(format_args!(
                "`{path}` is not a graph module: trace it first, or trace the whole with a tracer to which it is not a leaf"
            )));
        };
        if !inner.trees().iter().all(Tree::is_leaf) {
            return Err(Error::region(format_args!(
                "`{path}` takes structures apart, which a node's arguments do not: inline a module whose inputs are single values"
            )));
        }
        // What both graphs hold by themselves, they hold as one: the whole is not looked at again.
        inner.lint()?;
        let is_part = self.is_part(&path);
        let inner = match is_part {
            true => inner.clone(),
            // Their paths would be those of another module.
            false => inner.undivided()?,
        };
        let args: Vec<Argument> = {
            let bound = BoundArgs::of(node, &path, inner.params())?;
            bound.iter().map(|(_, arg)| arg.into_owned()).collect()
        };
        let is_last_call = self.graph().find_nodes(node.op()).len() == 1
            && !self.graph().has_op(&Op::GetAttr(path.clone()));

        let parts_inside = inner.parts();
        let mut edit = self.graph_mut();
        let (graph, attributes) = edit.parts();
        if is_last_call {
            attributes.modules.remove(&path);
        }
        let (mut body, inner_attributes) = inner.into_parts();
        match is_part {
            true => move_up(inner_attributes, attributes),
            false => {
                // Nothing else can be inside of the path of a module that is gone.
                let prefix = match is_last_call {
                    true => path.to_string(),
                    false => free_prefix(&path, &inner_attributes, attributes),
                };
                move_under(&prefix, &mut body, inner_attributes, attributes)?;
            }
        }
        let inputs: Vec<NodeId> = body.placeholders().map(|node| node.id()).collect();
        let mut map: ValueMap = inputs.into_iter().zip(args).collect();
        let scope = graph.enter_scope_of(call)?;
        let replaced = graph.replace_by_body(call, &body, &mut map);
        graph.leave_scope(scope);
        replaced?;
        drop(edit);
        if is_last_call {
            self.forget_part(&path);
        }
        self.add_parts(&parts_inside);
        let new = |node: NodeRef<'_>| map.get(&node.id())?.as_node();
        let is_input = |node: &NodeRef<'_>| matches!(node.op(), Op::Placeholder(_));
        Ok(body
            .nodes()
            .filter(|node| !is_input(node))
            .filter_map(new)
            .collect())
    }
}

/// Moves what a part names to the same paths of the whole, where it may be held too.
fn move_up(from: Attributes, to: &mut Attributes) {
    for (path, module) in from.modules {
        if !to.modules.contains_key(&path) {
            to.modules.insert(path, module);
        }
    }
    for (path, tensor) in from.tensors {
        if !to.tensors.contains_key(&path) {
            to.tensors.insert(path, tensor);
        }
    }
}

/// The path under which what a graph names is new, with the first free number.
fn free_prefix(path: &str, from: &Attributes, to: &Attributes) -> String {
    free_name(path, |prefix| {
        let names = from.modules.keys().chain(from.tensors.keys());
        names.into_iter().any(|name| {
            let new = format!("{prefix}.{name}");
            to.modules.contains_key(&new)
                || to.tensors.contains_key(&new)
                || to.conflict(&new).is_some()
        })
    })
}

/// Moves what a graph names under a path.
fn move_under(prefix: &str, body: &mut Graph, from: Attributes, to: &mut Attributes) -> Result<()> {
    let new_path = |old: &str| -> Arc<str> { format!("{prefix}.{old}").into() };
    let mut cursor = body.cursor();
    while let Some(id) = cursor.advance() {
        let op = match cursor.node(id)?.op() {
            Op::GetAttr(path) => Op::GetAttr(new_path(path)),
            Op::CallModule(path) => Op::CallModule(new_path(path)),
            _ => continue,
        };
        cursor.node_mut(id)?.write_op(op)?;
    }
    drop(cursor);
    for (old, module) in from.modules {
        to.modules.insert(new_path(&old), module);
    }
    for (old, tensor) in from.tensors {
        to.tensors.insert(new_path(&old), tensor);
    }
    Ok(())
}
