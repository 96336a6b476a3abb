//! A part of a graph as a module of its own, and such a module put back into the graph that calls it.
//!
//! Invariant: after either the graph computes what it did before.

use std::sync::Arc;

use indexmap::IndexSet;
use rustc_hash::{FxBuildHasher, FxHashMap, FxHashSet};

use super::ordered::Ordered;
use super::part::{erase_unused, named_by, take_items};
use super::substitute::substitute;
use crate::error::{Error, Result};
use crate::graph_module::GraphModule;
use crate::ir::argument::{Args, Argument, Kwargs};
use crate::ir::bound::BoundArgs;
use crate::ir::graph::Graph;
use crate::ir::node::NodeRef;
use crate::ir::op::Op;
use crate::ir::value_meta::ValueMeta;
use crate::module::attributes::Attributes;
use crate::module::module::Module;
use crate::value::handle::NodeId;
use crate::value::tree::Tree;

type Ids = IndexSet<NodeId, FxBuildHasher>;

impl GraphModule {
    /// Moves nodes into a graph module of their own under a path, with what only they name, and calls it where they were.
    /// Its inputs are what the nodes use of the others, in the order of first use; its result is what the others use of
    /// them, a tuple of several. Gives the calling node.
    ///
    /// ```
    /// use fx_core::prelude::*;
    /// let mut gm = symbolic_trace(traced!(|x: Float| ((x * 2.0)? + 1.0)? / 3.0))?;
    /// let names = ["mul", "add"].map(|name| gm.graph().find_name(name).map(|node| node.id()));
    /// let nodes: Vec<NodeId> = names.into_iter().flatten().collect();
    /// let call = gm.lift_subgraph(&nodes, "affine")?;
    /// assert_eq!(gm.graph().len(), 4); // x, affine, truediv, output
    /// assert_eq!(gm.forward::<f64>(1.0)?, 1.0);
    /// gm.inline_module(call)?;
    /// assert_eq!(gm.graph().len(), 5);
    /// assert_eq!(gm.forward::<f64>(1.0)?, 1.0);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// When the path is taken, a node is an input or the output or not of this graph, nobody else uses the nodes, or the
    /// nodes are not one piece: a node outside both uses one of them and is used by one, which the error names. Nothing
    /// changes then.
    pub fn lift_subgraph(&mut self, nodes: &[NodeId], path: &str) -> Result<NodeId> {
        let part = Part::of(self.graph(), self.attributes(), nodes)?;
        let inner_graph = part.graph(self.graph())?;
        let inner_attributes = named_by(&inner_graph, self.attributes());
        let inner = GraphModule::new(inner_attributes, inner_graph, path)?;
        self.edit(|gm| gm.put_lifted(&part, path, inner))
    }

    fn put_lifted(&mut self, part: &Part, path: &str, inner: GraphModule) -> Result<NodeId> {
        self.add_new_submodule(path, inner)?;
        let mut edit = self.graph_mut();
        let (graph, attributes) = edit.parts();
        let last = part.nodes.last().copied();
        let last = last.ok_or_else(|| Error::msg("a part has nodes"))?;
        let mut place = graph.inserting_after(last)?;
        let inputs: Args = part.inputs.iter().copied().map(Argument::Node).collect();
        let call = place.call_module(path, inputs, Kwargs::new())?;
        place.node_mut(call)?.come_from(last)?;
        let stand_for: Vec<NodeId> = part.results.iter().copied().collect();
        let results = match stand_for.as_slice() {
            [one] => {
                place.learn_from(call, *one)?;
                vec![call]
            }
            several => take_items(&mut place, call, several)?,
        };
        drop(place);
        let end = results.last().copied().unwrap_or(call);
        // The nodes themselves still use each other, and go.
        let inside: FxHashSet<NodeId> = part.nodes.iter().copied().collect();
        for (old, new) in part.results.iter().zip(results) {
            let mut node = graph.node_mut(*old)?;
            node.replace_uses_with_filter(new, |user| !inside.contains(&user.id()))?;
        }
        let order = part.order(graph, end);
        erase_unused(graph, attributes, &part.nodes)?;
        let order: Vec<NodeId> = order
            .into_iter()
            .filter(|id| graph.node(*id).is_ok())
            .collect();
        graph.rearrange(&order)?;
        drop(edit);
        self.lint()?;
        Ok(call)
    }

    /// Puts the nodes of a graph module in the place of a node that calls it, with what they name under its path. The module
    /// goes when nothing else calls it.
    ///
    /// # Errors
    /// When the node calls no graph module, or one that takes a structure apart, or the arguments do not fit. Nothing
    /// changes then.
    pub fn inline_module(&mut self, call: NodeId) -> Result<()> {
        let inlined = self.edit(|gm| gm.inlined(call));
        inlined.map_err(|error| {
            let node = self.graph().node(call);
            node.map_or_else(|e| e, |node| node.blame("inlining", error))
        })
    }

    fn inlined(&mut self, call: NodeId) -> Result<()> {
        let node = self.graph().node(call)?;
        let Op::CallModule(path) = node.op() else {
            return Err(Error::msg("only the call of a graph module can be inlined"));
        };
        let path = path.clone();
        let module: &dyn std::any::Any = self.attributes().module(&path)?;
        let Some(inner) = module.downcast_ref::<GraphModule>() else {
            return Err(Error::msg(format_args!(
                "`{path}` is no graph module: trace it first, or trace the whole with a tracer to which it is no leaf"
            )));
        };
        if !inner.trees().iter().all(Tree::is_leaf) {
            return Err(Error::msg(format_args!(
                "`{path}` takes structures apart, which a node's arguments do not: inline a module whose inputs are single values"
            )));
        }
        let inner = inner.clone();
        let args: Vec<Argument> = {
            let bound = BoundArgs::of(node, &path, inner.params())?;
            bound.iter().map(|(_, arg)| arg.into_owned()).collect()
        };
        let is_last_call = self.graph().find_nodes(node.op()).len() == 1;

        let mut edit = self.graph_mut();
        let (graph, attributes) = edit.parts();
        if is_last_call {
            attributes.modules.remove(&path);
        }
        let (mut body, inner_attributes) = inner.into_parts();
        move_under(&path, &mut body, inner_attributes, attributes)?;
        let inputs: Vec<NodeId> = body.placeholders().map(|node| node.id()).collect();
        let mut map: FxHashMap<NodeId, Argument> = inputs.into_iter().zip(args).collect();
        let scope = graph.enter_scope_of(call)?;
        let result = graph.inserting_before(call)?.graph_copy(&body, &mut map);
        graph.leave_scope(scope);
        let result = result?.ok_or_else(|| Error::msg("the module's graph has no output"))?;
        // It is what the call gave.
        if let Some(meta) = graph.node(call)?.meta::<ValueMeta>().cloned() {
            graph.learn(&result, &meta)?;
        }
        substitute(graph, call, &result)?;
        graph.erase_node(call)?;
        drop(edit);
        self.lint()
    }

    /// Adds a module under a path that nothing has.
    fn add_new_submodule(&mut self, path: &str, module: GraphModule) -> Result<()> {
        let attributes = self.attributes();
        if attributes.modules.contains_key(path) || attributes.tensors.contains_key(path) {
            return Err(Error::msg(format_args!(
                "`{path}` is taken: give the new module another path"
            )));
        }
        self.add_submodule(path, module)
    }
}

/// What a graph names goes under a path, or under the first free one with a number.
fn move_under(path: &str, body: &mut Graph, from: Attributes, to: &mut Attributes) -> Result<()> {
    let mut prefix = path.to_string();
    let mut number = 0;
    let is_taken = |prefix: &str, to: &Attributes| {
        let names = from.modules.keys().chain(from.tensors.keys());
        names.into_iter().any(|name| {
            let new = format!("{prefix}.{name}");
            to.modules.contains_key(&*new)
                || to.tensors.contains_key(&*new)
                || to.conflict(&new).is_some()
        })
    };
    while is_taken(&prefix, to) {
        number += 1;
        prefix = format!("{path}_{number}");
    }
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

/// Nodes that become a graph of their own.
struct Part {
    /// In the graph's order.
    nodes: Vec<NodeId>,
    /// What they use of the others.
    inputs: Ids,
    /// Those that the others use.
    results: Ids,
    /// By a node's index: whether it is no part and must come after it, because it uses a result, or because its order
    /// among the impure nodes of the part is part of what is computed.
    after: Vec<bool>,
}

impl Part {
    fn of(graph: &Graph, attributes: &Attributes, nodes: &[NodeId]) -> Result<Self> {
        let mut inside = vec![false; graph.index_bound()];
        for id in nodes {
            let node = graph.node(*id)?;
            if matches!(node.op(), Op::Placeholder(_) | Op::Output) {
                let error = Error::msg("inputs and the output cannot be lifted: leave them out");
                return Err(node.blame("lifting", error));
            }
            inside[id.index as usize] = true;
        }
        let mut part = Part {
            nodes: Vec::with_capacity(nodes.len()),
            inputs: Ids::default(),
            results: Ids::default(),
            after: Vec::new(),
        };
        let ordered = Ordered::of(graph, attributes);
        // Outside nodes that depend on an inside one.
        let mut after = vec![false; graph.index_bound()];
        let mut last_ordered: Option<NodeRef<'_>> = None;
        for node in graph.nodes() {
            let id = node.id();
            let is_inside = inside[id.index as usize];
            if ordered.contains(node)
                && let Some(previous) = last_ordered.replace(node)
            {
                let place = previous.id().index as usize;
                if is_inside && after[place] {
                    let error = Error::msg(format_args!(
                        "the nodes are not one piece: %{} is not among them, and its effects come between theirs; take it in, or \
                         leave this one out",
                        previous.name()
                    ));
                    return Err(node.blame("lifting", error));
                }
                after[id.index as usize] |= !is_inside && (inside[place] || after[place]);
            }
            for input in node.all_input_nodes() {
                let place = input.id().index as usize;
                match (is_inside, inside[place]) {
                    (true, false) if after[place] => {
                        let error = Error::msg(format_args!(
                            "the nodes are not one piece: %{} is not among them, uses one of them and is used by this one; take it \
                             in, or leave this one out",
                            input.name()
                        ));
                        return Err(node.blame("lifting", error));
                    }
                    (true, false) => {
                        part.inputs.insert(input.id());
                    }
                    (false, true) => {
                        part.results.insert(input.id());
                        after[id.index as usize] = true;
                    }
                    (false, false) => after[id.index as usize] |= after[place],
                    (true, true) => {}
                }
            }
            if is_inside {
                part.nodes.push(id);
            }
        }
        part.after = after;
        if part.nodes.is_empty() {
            return Err(Error::msg("there are no nodes to lift"));
        }
        if part.results.is_empty() {
            return Err(Error::msg(
                "nothing outside uses the nodes: a module of them would give nothing",
            ));
        }
        Ok(part)
    }

    /// The graph's order, but that what must come after the part and stood before `end` moves behind it.
    fn order(&self, graph: &Graph, end: NodeId) -> Vec<NodeId> {
        let mut order = Vec::with_capacity(graph.len());
        let mut moved = Vec::new();
        let mut is_behind = false;
        for node in graph.nodes() {
            let id = node.id();
            if !is_behind && self.after.get(id.index as usize) == Some(&true) {
                moved.push(id);
                continue;
            }
            order.push(id);
            if id == end {
                is_behind = true;
                order.append(&mut moved);
            }
        }
        order
    }

    /// The nodes as a graph.
    fn graph(&self, of: &Graph) -> Result<Graph> {
        let mut graph = Graph::with_capacity(self.nodes.len() + self.inputs.len() + 1);
        let mut copies: FxHashMap<NodeId, NodeId> = FxHashMap::default();
        for input in &self.inputs {
            let node = of.node(*input)?;
            let copy = graph.placeholder(&node.name().to_string())?;
            let mut placeholder = graph.node_mut(copy)?;
            placeholder.set_type_expr(node.type_expr());
            if let Some(meta) = node.meta::<ValueMeta>() {
                placeholder.set_meta(meta.clone());
            }
            copies.insert(*input, copy);
        }
        let now = |copies: &FxHashMap<NodeId, NodeId>, id: NodeId| {
            copies
                .get(&id)
                .copied()
                .map_or(Argument::None, Argument::Node)
        };
        for id in &self.nodes {
            let copy = graph.node_copy(of.node(*id)?, |input| now(&copies, input))?;
            copies.insert(*id, copy);
        }
        let mut results: Vec<Argument> = self.results.iter().map(|id| now(&copies, *id)).collect();
        let result = match results.len() {
            1 => results.swap_remove(0),
            _ => Argument::Tuple(Arc::new(results)),
        };
        graph.output(result)?;
        Ok(graph)
    }
}
