//! `nest_modules`: the calls of modules that were traced through become calls of graph modules at the modules' paths.
//!
//! Invariant: the graph computes the same as before; a path of it leads to what it led to, now through the modules.

use std::borrow::Cow;
use std::sync::Arc;

use indexmap::IndexMap;
use rustc_hash::{FxBuildHasher, FxHashMap, FxHashSet};

use super::split::parts::{call_behind, describe_input, graph_of, name_inputs};
use crate::error::Result;
use crate::graph_module::GraphModule;
use crate::graph_module::nested_source::TracedThrough;
use crate::ir::graph::Graph;
use crate::ir::node::{NodeMut, NodeRef};
use crate::ir::op::Op;
use crate::ir::places::{Scope, ScopeId};
use crate::ir::value_meta::ValueMeta;
use crate::module::attributes::{Attributes, is_inside};
use crate::module::path_pattern::PathPattern;
use crate::region::ordered::Ordered;
use crate::region::region::Region;
use crate::text::free_name;
use crate::value::handle::NodeId;
use crate::value::object::short_type_name;

/// A call of a module that was traced through.
struct Traced {
    scope: ScopeId,
    path: Arc<str>,
    type_name: Cow<'static, str>,
}

impl Traced {
    /// A path inside of the module, as it is in it.
    fn own(&self, path: &str) -> Arc<str> {
        path[self.path.len() + 1..].into()
    }
}

impl GraphModule {
    /// Makes graph modules of the calls of modules that were traced through and whose paths match a
    /// [`PathPattern`]: the nodes of a call move into a graph module at the path, under the paths
    /// that they have in it, and inner modules into outer ones. `torch.export`'s `unflatten`.
    /// Calls of a module that compute the same call one graph module; one that computes something
    /// else gets a path of its own.
    ///
    /// A module stays as it is if its nodes do not stand together, or if others use what is below its
    /// path. Returns the paths of the graph modules.
    ///
    /// ```
    /// use fx_core::prelude::*;
    /// # #[derive(Module)] struct Scale { by: f64 }
    /// # #[trace(leaf)] impl Scale { fn forward(&self, x: Float) -> Result<Float> { x * self.by } }
    /// #[derive(Module)]
    /// struct Block { scale: Scale }
    /// #[trace]
    /// impl Block { fn forward(&self, x: Float) -> Result<Float> { self.scale.forward(x)? + 1.0 } }
    /// #[derive(Module)]
    /// struct Net { blocks: Vec<Block> }
    /// #[trace]
    /// impl Net {
    ///     fn forward(&self, mut x: Float) -> Result<Float> {
    ///         for block in &self.blocks { x = block.forward(x)?; }
    ///         Ok(x)
    ///     }
    /// }
    /// let blocks = [2.0, 3.0].map(|by| Block { scale: Scale { by } }).into();
    /// let mut gm = symbolic_trace(&Net { blocks })?;
    /// let paths = gm.nest_modules("blocks.*")?;
    /// assert_eq!(paths.iter().map(|path| &**path).collect::<Vec<_>>(), ["blocks.0", "blocks.1"]);
    /// assert_eq!(gm.graph().len(), 4); // the input, two blocks, the output
    /// assert_eq!(gm.forward::<f64>(1.0)?, 10.0);
    /// gm.replace_modules("blocks.1", |_, old: &GraphModule| Ok(old.clone()))?;
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// Returns an error if the pattern is none.
    pub fn nest_modules(&mut self, pattern: &str) -> Result<Vec<Arc<str>>> {
        let pattern = PathPattern::new(pattern)?;
        self.edit(|gm| {
            let depths = gm.graph().nodes().map(|node| calls_around(node).len());
            let deepest = depths.max().unwrap_or(0);
            let mut made = Vec::new();
            for depth in (0..deepest).rev() {
                made.push(gm.nest_at(depth, &pattern)?);
            }
            gm.lint()?;
            gm.fill_shapes();
            Ok(made.into_iter().rev().flatten().collect())
        })
    }

    /// Makes graph modules of the calls at a depth; those inside of them are made. Returns their paths.
    fn nest_at(&mut self, depth: usize, pattern: &PathPattern) -> Result<Vec<Arc<str>>> {
        let calls = Calls::at(self, depth, pattern);
        let (graph, attributes) = (self.graph(), self.attributes());
        let regions = Region::of_parts(graph, &calls.call_of, calls.all.len());
        let mut parts = Vec::new();
        for (call, region) in calls.all.iter().zip(regions) {
            if region.outputs().is_empty() {
                continue;
            }
            let mut inner = graph_of(&region, graph, false, describe_typed)?;
            let held = attributes.named_by(&inner);
            let mut named = Attributes::default();
            for (path, module) in held.modules {
                named.modules.insert(call.own(&path), module);
            }
            for (path, tensor) in held.tensors {
                named.tensors.insert(call.own(&path), tensor);
            }
            relative(&mut inner, call, &region, graph)?;
            let name = short_type_name(&call.type_name);
            let mut inner = GraphModule::of_checked(named, inner, &name);
            inner.set_meta(TracedThrough);
            parts.push((call, region, inner));
        }
        // Calls that compute the same call one module.
        let mut known: FxHashMap<(&str, u128), Arc<str>> = FxHashMap::default();
        let mut new: IndexMap<Arc<str>, GraphModule, FxBuildHasher> = IndexMap::default();
        let mut placed = Vec::with_capacity(parts.len());
        for (call, region, inner) in parts {
            let hash = inner.structural_hash();
            let path = match known.get(&(&*call.path, hash)) {
                Some(path) => path.clone(),
                None => {
                    let is_taken = |path: &str| new.contains_key(path) || attributes.has(path);
                    let path: Arc<str> = free_name(&call.path, is_taken).into();
                    known.insert((&call.path, hash), path.clone());
                    new.insert(path.clone(), inner);
                    path
                }
            };
            placed.push((call.scope, path, region));
        }
        let mut edit = self.graph_mut();
        let (graph, _) = edit.parts();
        let mut results = Vec::with_capacity(placed.len());
        for (scope, path, region) in &placed {
            let (call, given) = call_behind(graph, path, region, false)?;
            // The call is one of the module's, and what is taken of its results is outside.
            let outer = graph.scope_of(*scope).map(|scope| scope.parent);
            for id in given.iter().filter(|id| **id != call) {
                graph.node_mut(*id)?.stand_in(outer.unwrap_or_default());
            }
            graph.node_mut(call)?.stand_in(*scope);
            results.push(given);
        }
        // After all calls: one may use what another gives.
        let mut moved = Vec::new();
        for ((_, _, region), given) in placed.iter().zip(results) {
            let inside: FxHashSet<NodeId> = region.nodes().iter().copied().collect();
            for (old, new) in region.outputs().iter().zip(given) {
                let mut node = graph.node_mut(*old)?;
                node.replace_uses_with_filter(new, |user| !inside.contains(&user.id()))?;
            }
            moved.extend_from_slice(region.nodes());
        }
        edit.erase_unused(&moved)?;
        let (_, attributes) = edit.parts();
        let made = new.keys().cloned().collect();
        // What no node names moves nowhere.
        let is_below = |path: &str| {
            let mut outer = path.match_indices('.').map(|(dot, _)| &path[..dot]);
            outer.any(|outer| new.contains_key(outer))
        };
        attributes.modules.retain(|path, _| !is_below(path));
        attributes.tensors.retain(|path, _| !is_below(path));
        for (path, inner) in new {
            attributes.modules.insert(path, Box::new(inner));
        }
        Ok(made)
    }
}

/// The calls at a depth that can move, and the call of each node, by index.
struct Calls {
    all: Vec<Traced>,
    call_of: Vec<Option<u32>>,
}

impl Calls {
    fn at(gm: &GraphModule, depth: usize, pattern: &PathPattern) -> Self {
        let graph = gm.graph();
        let mut found: IndexMap<ScopeId, Traced, FxBuildHasher> = IndexMap::default();
        let mut call_of: Vec<Option<u32>> = vec![None; graph.index_bound()];
        for node in graph.nodes() {
            if matches!(node.op(), Op::Placeholder(_) | Op::Output) {
                continue;
            }
            let Some(scope) = calls_around(node).get(depth).copied() else {
                continue;
            };
            let Some(Scope {
                path, type_name, ..
            }) = graph.scope_of(scope)
            else {
                continue;
            };
            if !found.contains_key(&scope) && !pattern.matches(path) {
                continue;
            }
            let entry = found.entry(scope);
            call_of[node.index()] = u32::try_from(entry.index()).ok();
            entry.or_insert_with(|| Traced {
                scope,
                path: path.clone(),
                type_name: type_name.clone(),
            });
        }
        let mut calls = Calls {
            all: found.into_values().collect(),
            call_of,
        };
        let mut kept = calls.paths_that_stay(gm);
        calls.keep_together(gm, &mut kept);
        calls.leave(&kept);
        calls
    }

    fn path(&self, call: Option<u32>) -> Option<&Arc<str>> {
        Some(&self.all[call? as usize].path)
    }

    /// The paths of modules that stay: others name what is below, or they name what is elsewhere.
    fn paths_that_stay(&mut self, gm: &GraphModule) -> FxHashSet<Arc<str>> {
        let graph = gm.graph();
        let chosen: FxHashSet<Arc<str>> = self.all.iter().map(|call| call.path.clone()).collect();
        let mut stay: FxHashSet<Arc<str>> = FxHashSet::default();
        for path in &chosen {
            if gm.attributes().has(path) {
                stay.insert(path.clone());
            }
        }
        for node in graph.nodes() {
            let (path, is_read) = match node.op() {
                Op::GetAttr(path) => (path, true),
                Op::CallModule(path) => (path, false),
                _ => continue,
            };
            if is_read {
                // What is read moves with its users, if all are of one call of its own module.
                let mut users = node.users().map(|user| self.call_of[user.index()]);
                let first = users.next().flatten();
                let is_one = first.is_some() && users.all(|user| user == first);
                let is_own = self.path(first).is_some_and(|own| is_inside(path, own));
                self.call_of[node.index()] = first.filter(|_| is_one && is_own);
            }
            let own = self.path(self.call_of[node.index()]).cloned();
            if let Some(own) = own.as_ref().filter(|own| !is_inside(path, own)) {
                stay.insert(own.clone());
            }
            for (dot, _) in path.match_indices('.') {
                if let Some(outer) = chosen.get(&path[..dot])
                    && own.as_ref() != Some(outer)
                {
                    stay.insert(outer.clone());
                }
            }
        }
        stay
    }

    /// Adds the paths of calls whose nodes do not stand together.
    fn keep_together(&self, gm: &GraphModule, stay: &mut FxHashSet<Arc<str>>) {
        let graph = gm.graph();
        let order: Vec<NodeRef<'_>> = graph
            .nodes()
            .filter(|node| !matches!(node.op(), Op::GetAttr(_) | Op::Placeholder(_)))
            .collect();
        let mut spans: Vec<Option<(usize, usize, usize)>> = vec![None; self.all.len()];
        for (at, node) in order.iter().enumerate() {
            if let Some(call) = self.call_of[node.index()] {
                let (_, last, count) = spans[call as usize].get_or_insert((at, at, 0));
                (*last, *count) = (at, *count + 1);
            }
        }
        let ordered = Ordered::of(graph, gm.attributes());
        for (call, span) in (0u32..).zip(spans) {
            let Some((first, last, count)) = span else {
                continue;
            };
            // What is spread over the graph is not looked at node by node.
            let is_near = last - first < 4 * count + 64;
            if !is_near || !self.is_together(call, &order[first..=last], &ordered) {
                stay.insert(self.all[call as usize].path.clone());
            }
        }
    }

    /// Whether no node between needs one of the call, or has its effect between theirs.
    fn is_together(&self, call: u32, span: &[NodeRef<'_>], ordered: &Ordered) -> bool {
        let is_own = |node: NodeRef<'_>| self.call_of[node.index()] == Some(call);
        let has_effects = span
            .iter()
            .any(|node| is_own(*node) && ordered.contains(*node));
        span.iter().filter(|node| !is_own(**node)).all(|node| {
            let is_free = !node.all_input_nodes().any(is_own);
            is_free && !(has_effects && ordered.contains(*node))
        })
    }

    /// Leaves out the calls at these paths.
    fn leave(&mut self, stay: &FxHashSet<Arc<str>>) {
        let mut new: Vec<Option<u32>> = Vec::with_capacity(self.all.len());
        let mut count = 0;
        for call in &self.all {
            let moves = !stay.contains(&call.path);
            new.push(moves.then_some(count));
            count += u32::from(moves);
        }
        self.all.retain(|call| !stay.contains(&call.path));
        for call in &mut self.call_of {
            *call = call.and_then(|call| new[call as usize]);
        }
    }
}

/// The calls that a node was recorded in, from the outside in, without the one that it is.
fn calls_around(node: NodeRef<'_>) -> Vec<ScopeId> {
    let graph = node.graph();
    let mut at = node.places().1;
    let mut around = Vec::new();
    while let Some(scope) = graph.scope_of(at) {
        if !scope.path.is_empty() {
            around.push(at);
        }
        at = scope.parent;
    }
    let outer = node.modules_around().filter(|scope| !scope.path.is_empty());
    let is_call = outer.count() < around.len();
    around.drain(..usize::from(is_call));
    around.reverse();
    around
}

/// Writes to an input what is known of the value that it takes, with a type where it is no tensor.
fn describe_typed(placeholder: &mut NodeMut<'_>, input: NodeRef<'_>) {
    describe_input(placeholder, input);
    let ty = match input.meta::<ValueMeta>() {
        Some(ValueMeta::Int(_)) => "Int",
        Some(ValueMeta::Float(_)) => "Float",
        Some(ValueMeta::Bool(_)) => "Bool",
        _ => return,
    };
    if input.type_expr().is_none() {
        placeholder.set_type_expr(Some(ty));
    }
}

/// Gives the nodes of the graph of a call the paths, names and scopes that they have inside of it.
fn relative(inner: &mut Graph, call: &Traced, region: &Region, graph: &Graph) -> Result<()> {
    // Equal calls have equal texts: the names of inputs do not say what the values are outside.
    let single = region.inputs().len() == 1;
    name_inputs(inner, |at| match single {
        true => "x".to_string(),
        false => format!("x_{at}"),
    })?;
    let nodes = inner.nodes();
    let nodes = nodes.filter(|node| !matches!(node.op(), Op::Placeholder(_)));
    let nodes: Vec<NodeId> = nodes.map(NodeRef::id).collect();
    for (id, outside) in nodes.into_iter().zip(region.nodes()) {
        let op = match inner.node(id)?.op() {
            Op::GetAttr(path) => Some(Op::GetAttr(call.own(path))),
            Op::CallModule(path) => Some(Op::CallModule(call.own(path))),
            _ => None,
        };
        if let Some(op) = op {
            inner.node_mut(id)?.write_op(op)?;
        }
        let around = graph.node(*outside)?.module_stack();
        let inside: Vec<&Scope> = around
            .take_while(|scope| scope.path != call.path)
            .filter(|scope| is_inside(&scope.path, &call.path))
            .collect();
        let former = inner.enter_root_scope();
        for scope in inside.into_iter().rev() {
            inner.enter_scope(call.own(&scope.path), scope.type_name.clone(), scope.call);
        }
        let scope = inner.scope_id();
        inner.leave_scope(former);
        inner.node_mut(id)?.stand_in(scope);
    }
    inner.rename_all(|node| node.op().name_candidate());
    Ok(())
}
