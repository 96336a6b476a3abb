//! Splits parts of a graph into separate modules.
//!
//! Invariant: afterwards the graph computes the same as before, in the same order of effects.

use std::sync::Arc;

use indexmap::IndexMap;
use rustc_hash::FxBuildHasher;

use crate::error::{Error, Result};
use crate::graph_module::GraphModule;
use crate::ir::args::Args;
use crate::ir::argument::{Argument, Kwargs};
use crate::ir::graph::Graph;
use crate::ir::node::NodeRef;
use crate::ir::op::Op;
use crate::ir::value_meta::ValueMeta;
use crate::module::attributes::Attributes;
use crate::region::region::Region;
use crate::region::units::order_by_parts;
use crate::value::handle::NodeId;

/// A part that [`GraphModule::split`] turned into a module.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct SplitPart {
    /// Where the module is.
    pub path: Arc<str>,
    /// The node that calls it.
    pub call: NodeId,
}

impl GraphModule {
    /// Moves nodes into a separate graph module under a path, with what only they name, and calls
    /// it where they were. Its inputs are the other nodes' values that the nodes use, in the order
    /// of first use; its result is what the others use of them, a tuple if there are several.
    /// Returns the calling node. [`split`](GraphModule::split) does this for many parts at once.
    ///
    /// ```
    /// use fx_core::prelude::*;
    /// use fx_core::value::NodeId;
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
    /// Returns an error if the path is taken, a node is an input or the output or not of this
    /// graph, nobody else uses the nodes, or the nodes are not [one piece](Region::is_convex),
    /// which the error names. Nothing changes then.
    pub fn lift_subgraph(&mut self, nodes: &[NodeId], path: &str) -> Result<NodeId> {
        if nodes.is_empty() {
            return Err(Error::region("there are no nodes to lift"));
        }
        let made = self.split_into(vec![(path.into(), nodes.to_vec())])?;
        let made = made.first().map(|part| part.call);
        Ok(made.expect("there is one part, with nodes"))
    }

    /// Moves every node that has a path into the graph module of that path, and calls those modules
    /// where the nodes were: in one pass over the graph, however many parts there are. `path_of` is
    /// not called for inputs and the output. Returns the parts, in the order of their first nodes.
    ///
    /// ```
    /// use fx_core::prelude::*;
    /// let mut gm = symbolic_trace(traced!(|x: Float| (((x * 2.0)? + 1.0)? / 3.0)? - 1.0))?;
    /// let half = |node: fx_core::ir::NodeRef<'_>| match node.name().to_string().as_str() {
    ///     "mul" | "add" => Some("front"),
    ///     _ => Some("back"),
    /// };
    /// let parts = gm.split(half)?;
    /// assert_eq!(parts.iter().map(|part| &*part.path).collect::<Vec<_>>(), ["front", "back"]);
    /// assert_eq!(gm.graph().len(), 4); // x, front, back, output
    /// assert_eq!(gm.forward::<f64>(1.0)?, 0.0);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// Returns an error if a path is taken, nobody else uses a part, a part is not
    /// [one piece](Region::is_convex), or parts need each other. Nothing changes then.
    pub fn split<K: Into<Arc<str>>>(
        &mut self,
        mut path_of: impl FnMut(NodeRef<'_>) -> Option<K>,
    ) -> Result<Vec<SplitPart>> {
        let mut parts: IndexMap<Arc<str>, Vec<NodeId>, FxBuildHasher> = IndexMap::default();
        for node in self.graph() {
            if matches!(node.op(), Op::Placeholder(_) | Op::Output) {
                continue;
            }
            if let Some(path) = path_of(node) {
                parts.entry(path.into()).or_default().push(node.id());
            }
        }
        self.split_into(parts.into_iter().collect())
    }

    fn split_into(&mut self, parts: Vec<(Arc<str>, Vec<NodeId>)>) -> Result<Vec<SplitPart>> {
        let (graph, attributes) = (self.graph(), self.attributes());
        let mut part_of: Vec<Option<u32>> = vec![None; graph.index_bound()];
        for (number, (_, nodes)) in (0u32..).zip(&parts) {
            for id in nodes {
                let node = graph.node(*id)?;
                if matches!(node.op(), Op::Placeholder(_) | Op::Output) {
                    let error =
                        Error::region("inputs and the output cannot be lifted: leave them out");
                    return Err(node.blame("lifting", error));
                }
                part_of[node.id().index as usize] = Some(number);
            }
        }
        let regions = Region::of_parts(graph, &part_of, parts.len());
        for ((path, _), region) in parts.iter().zip(&regions) {
            if region.outputs().is_empty() {
                return Err(Error::region(format_args!(
                    "nothing outside uses the nodes of `{path}`: a module of them would return nothing"
                )));
            }
        }
        let order = order_by_parts(graph, attributes, &part_of, parts.len());
        let order = order.ok_or_else(|| no_order(graph, attributes, &parts, &regions))?;
        let mut inner = Vec::with_capacity(parts.len());
        for ((path, _), region) in parts.iter().zip(&regions) {
            let inner_graph = graph_of(region, graph)?;
            let named = attributes.named_by(&inner_graph);
            inner.push(GraphModule::of_checked(named, inner_graph, path));
        }
        self.edit(|gm| gm.put_parts(&parts, &regions, inner, &order, &part_of))
    }

    fn put_parts(
        &mut self,
        parts: &[(Arc<str>, Vec<NodeId>)],
        regions: &[Region],
        inner: Vec<GraphModule>,
        order: &[NodeId],
        part_of: &[Option<u32>],
    ) -> Result<Vec<SplitPart>> {
        for ((path, _), inner) in parts.iter().zip(inner) {
            self.add_new_submodule(path, inner)?;
        }
        let mut edit = self.graph_mut();
        let (graph, _) = edit.parts();
        // Now each part is contiguous, and its users come after it.
        graph.rearrange(order)?;
        let mut made = Vec::with_capacity(parts.len());
        let mut results = Vec::with_capacity(parts.len());
        for ((path, _), region) in parts.iter().zip(regions) {
            let (call, given) = call_behind(graph, path, region)?;
            made.push(SplitPart {
                path: path.clone(),
                call,
            });
            results.push(given);
        }
        // After all calls: one part's call may use another part's result.
        let part = |id: NodeId| part_of.get(id.index as usize).copied().flatten();
        for ((number, region), given) in (0u32..).zip(regions).zip(results) {
            for (old, new) in region.outputs().iter().zip(given) {
                let mut node = graph.node_mut(*old)?;
                node.replace_uses_with_filter(new, |user| part(user.id()) != Some(number))?;
            }
        }
        let moved = order.iter().filter(|id| part(**id).is_some());
        let moved: Vec<NodeId> = moved.copied().collect();
        edit.erase_unused(&moved)?;
        drop(edit);
        self.lint()?;
        Ok(made)
    }

    /// Adds a module under a free path.
    fn add_new_submodule(&mut self, path: &str, module: GraphModule) -> Result<()> {
        let attributes = self.attributes();
        if attributes.modules.contains_key(path) || attributes.tensors.contains_key(path) {
            return Err(Error::taken(
                path,
                format_args!("`{path}` is taken: give the new module another path"),
            ));
        }
        self.add_submodule(path, module)
    }
}

/// Calls the module at a path after a region; returns the call, and the replacement of each of the
/// region's outputs.
fn call_behind(
    graph: &mut Graph,
    path: &Arc<str>,
    region: &Region,
) -> Result<(NodeId, Vec<NodeId>)> {
    let last = region.nodes().last().copied();
    let last = last.ok_or_else(|| Error::msg("a part has nodes"))?;
    let mut place = graph.inserting_after(last)?;
    let inputs: Args = region
        .inputs()
        .iter()
        .copied()
        .map(Argument::Node)
        .collect();
    let call = place.call_module(path, inputs, Kwargs::new())?;
    place.node_mut(call)?.come_from(last)?;
    let results = match region.outputs() {
        [one] => {
            place.learn_from(call, *one)?;
            vec![call]
        }
        several => place.take_items(call, several)?,
    };
    Ok((call, results))
}

/// Why parts cannot be ordered.
fn no_order(
    graph: &Graph,
    attributes: &Attributes,
    parts: &[(Arc<str>, Vec<NodeId>)],
    regions: &[Region],
) -> Error {
    let broken = regions
        .iter()
        .find_map(|region| region.check_convex(graph, attributes).err());
    broken.unwrap_or_else(|| {
        let paths: Vec<String> = parts.iter().map(|(path, _)| format!("`{path}`")).collect();
        Error::region(format_args!(
            "the parts {} need each other: a node of one uses one of another, and the other way round; make other parts",
            paths.join(", ")
        ))
    })
}

/// A region as a graph.
fn graph_of(region: &Region, of: &Graph) -> Result<Graph> {
    let outputs: Vec<Argument> = region
        .outputs()
        .iter()
        .copied()
        .map(Argument::Node)
        .collect();
    let (mut graph, mut results) = of.part(
        region.inputs(),
        region.nodes(),
        &outputs,
        |placeholder, input| {
            placeholder.set_type_expr(input.type_expr());
            if let Some(meta) = input.meta::<ValueMeta>() {
                placeholder.set_meta(meta.clone());
            }
        },
    )?;
    let result = match results.len() {
        1 => results.swap_remove(0),
        _ => Argument::Tuple(Arc::new(results)),
    };
    graph.output(result)?;
    Ok(graph)
}
