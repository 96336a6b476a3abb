//! Moves parts of a graph into modules of their own.
//!
//! Invariant: afterwards the graph computes the same as before, in the same order of effects.

use std::sync::Arc;

use crate::error::{Error, Result};
use crate::graph_module::GraphModule;
use crate::ir::argument::{Args, Argument, Kwargs};
use crate::ir::graph::Graph;
use crate::ir::node::{NodeMut, NodeRef};
use crate::ir::op::Op;
use crate::module::attributes::Attributes;
use crate::region::ordered::Ordered;
use crate::region::region::Region;
use crate::region::units::{UnitOrder, Units};
use crate::text::free_name;
use crate::value::handle::NodeId;

/// A part of a graph that has become a graph module.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct SplitPart {
    /// Where the module is.
    pub path: Arc<str>,
    /// The node that calls it.
    pub call: NodeId,
    /// The nodes that moved, by their ids in the graph as it was, the values that they take, in the
    /// order of the module's inputs, and those that they give, in the order of its results.
    pub region: Region,
}

/// Parts to be made.
pub(crate) struct Parts<'a> {
    pub paths: &'a [Arc<str>],
    /// The part of each node, by index.
    pub part_of: &'a [Option<u32>],
    pub order: UnitOrder,
    /// Whether inputs have the names of the values that they take, or `arg_0`, `arg_1`, and so on.
    pub keep_input_names: bool,
    /// Whether a single result is a tuple as well.
    pub tuple_return: bool,
    /// Whether what moves is still found at its path, or in a module of its own.
    pub keep_paths: bool,
}

impl<'a> Parts<'a> {
    /// Parts whose calls take the places of their nodes.
    pub fn in_place(paths: &'a [Arc<str>], part_of: &'a [Option<u32>]) -> Self {
        Parts {
            paths,
            part_of,
            order: UnitOrder::FirstNode,
            keep_input_names: true,
            tuple_return: false,
            keep_paths: true,
        }
    }
}

impl GraphModule {
    /// Moves nodes into a separate graph module under a path, with what only they name, which is
    /// below that path from then on, and calls it where they were. Its inputs are the other nodes' values that the nodes use, in the order
    /// of first use; its result is what the others use of them, a tuple if there are several.
    /// Returns the calling node. [`split`](GraphModule::split) makes many parts at once.
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
    /// graph, nobody else uses the nodes and they have no effect, or the nodes are not [one
    /// piece](Region::is_convex), which the error names. Nothing changes then.
    pub fn lift_subgraph(&mut self, nodes: &[NodeId], path: &str) -> Result<NodeId> {
        if nodes.is_empty() {
            return Err(Error::region("there are no nodes to lift"));
        }
        let mut part_of = vec![None; self.graph().index_bound()];
        for id in nodes {
            put_into(self.graph().node(*id)?, 0, &mut part_of, "lifting")?;
        }
        let paths = [path.into()];
        let parts = Parts {
            keep_paths: false,
            ..Parts::in_place(&paths, &part_of)
        };
        let made = self.edit(|gm| gm.move_into_parts(&parts))?;
        let made = made.first().map(|part| part.call);
        Ok(made.expect("there is one part, with nodes"))
    }

    /// Moves the nodes of each region into a graph module, `fused_0`, `fused_1` and so on, and calls
    /// them where the nodes were: `torch.fx`'s `fuse_by_partitions`. Nodes of a region may come in
    /// any order.
    ///
    /// ```
    /// use fx_core::prelude::*;
    /// use fx_core::passes::backend::{Partitioner, functions};
    /// use fx_core::operator;
    /// let mut gm = symbolic_trace(traced!(|x: Float| (((x * 2.0)? + 1.0)? / 3.0)? + 4.0))?;
    /// let sums = functions([operator::add, operator::mul]);
    /// let regions = Partitioner::new().partition(&gm, &sums)?;
    /// let parts = gm.fuse_by_partitions(&regions)?;
    /// assert_eq!(parts.iter().map(|part| &*part.path).collect::<Vec<_>>(), ["fused_0", "fused_1"]);
    /// assert_eq!(gm.forward::<f64>(1.0)?, 5.0);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// Returns an error if a node is in two regions, or is an input or the output, a region has no
    /// result and no effect, or regions need each other. Nothing changes then.
    pub fn fuse_by_partitions(&mut self, regions: &[Region]) -> Result<Vec<SplitPart>> {
        let (paths, part_of) = self.assign(regions, "fused", "fusing")?;
        let parts = Parts::in_place(&paths, &part_of);
        self.edit(|gm| {
            let made = gm.move_into_parts(&parts)?;
            gm.fill_shapes();
            Ok(made)
        })
    }

    /// A path for each region, `name_0`, `name_1` and so on, and the part of each node, by index.
    pub(crate) fn assign(
        &self,
        regions: &[Region],
        name: &str,
        doing: &'static str,
    ) -> Result<Assigned> {
        let mut part_of = vec![None; self.graph().index_bound()];
        let mut paths = Vec::with_capacity(regions.len());
        for (number, region) in (0u32..).zip(regions) {
            paths.push(self.free_path(&format!("{name}_{number}")));
            for id in region.nodes() {
                put_into(self.graph().node(*id)?, number, &mut part_of, doing)?;
            }
        }
        Ok((paths, part_of))
    }

    /// A path that nothing has yet.
    fn free_path(&self, wanted: &str) -> Arc<str> {
        let Attributes { modules, tensors } = self.attributes();
        let is_taken = |path: &str| modules.contains_key(path) || tensors.contains_key(path);
        free_name(wanted, is_taken).into()
    }

    /// Moves the nodes of each part into a graph module. A failure leaves the module half changed:
    /// the caller has an edit open, or a copy.
    pub(crate) fn move_into_parts(&mut self, how: &Parts<'_>) -> Result<Vec<SplitPart>> {
        let (graph, attributes) = (self.graph(), self.attributes());
        let regions = Region::of_parts(graph, how.part_of, how.paths.len());
        let ordered = Ordered::of(graph, attributes);
        let units = Units::of(graph, &ordered, how.part_of, how.paths.len());
        let has_effects = |region: &Region| {
            let mut nodes = region.nodes().iter();
            nodes.any(|id| graph.node(*id).is_ok_and(|node| ordered.contains(node)))
        };
        for (path, region) in how.paths.iter().zip(&regions) {
            if region.outputs().is_empty() && !has_effects(region) {
                return Err(Error::region(format_args!(
                    "nothing outside uses the nodes of `{path}`, and they have no effect: a module of them would do nothing; leave them out"
                )));
            }
        }
        let order = units.order(how.order);
        let order =
            order.ok_or_else(|| no_order(graph, attributes, how, &regions, &units, &ordered))?;
        let mut inner = Vec::with_capacity(regions.len());
        for (path, region) in how.paths.iter().zip(&regions) {
            let mut inner_graph = graph_of(region, graph, how.tuple_return, describe_input)?;
            if !how.keep_input_names {
                name_inputs(&mut inner_graph, |at| format!("arg_{at}"))?;
            }
            let named = attributes.named_by(&inner_graph);
            let mut part = GraphModule::of_checked(named, inner_graph, path);
            part.put_entries_of(self);
            // Parts that move into a part are its own from now on.
            let mut moved = self.parts();
            moved.retain(|path| part.attributes().modules.contains_key(path));
            part.add_parts(&moved);
            inner.push(part);
        }
        self.put_parts(how, regions, inner, &order)
    }

    fn put_parts(
        &mut self,
        how: &Parts<'_>,
        regions: Vec<Region>,
        inner: Vec<GraphModule>,
        order: &[NodeId],
    ) -> Result<Vec<SplitPart>> {
        for (path, inner) in how.paths.iter().zip(inner) {
            self.add_new_submodule(path, inner)?;
        }
        if how.keep_paths {
            self.add_parts(how.paths);
        }
        let mut edit = self.graph_mut();
        let (graph, _) = edit.parts();
        // Now each part is contiguous, and its users come after it.
        graph.rearrange(order)?;
        let part_of = |id: NodeId| how.part_of.get(id.index as usize).copied().flatten();
        let mut called: Vec<u32> = order.iter().filter_map(|id| part_of(*id)).collect();
        called.dedup();
        let mut results = Vec::with_capacity(called.len());
        for part in called {
            let at = part as usize;
            results.push((
                part,
                call_behind(graph, &how.paths[at], &regions[at], how.tuple_return)?,
            ));
        }
        results.sort_unstable_by_key(|(part, _)| *part);
        // After all calls: one part's call may use another part's result.
        for (number, (_, given)) in &results {
            for (old, new) in regions[*number as usize].outputs().iter().zip(given) {
                let mut node = graph.node_mut(*old)?;
                node.replace_uses_with_filter(*new, |user| part_of(user.id()) != Some(*number))?;
            }
        }
        let made = how.paths.iter().zip(regions).zip(&results);
        let made = made.map(|((path, region), (_, (call, _)))| SplitPart {
            path: path.clone(),
            call: *call,
            region,
        });
        let made = made.collect();
        let moved = order.iter().filter(|id| part_of(**id).is_some());
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
pub(crate) fn call_behind(
    graph: &mut Graph,
    path: &Arc<str>,
    region: &Region,
    tuple_return: bool,
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
        [one] if !tuple_return => {
            place.learn_from(call, *one)?;
            vec![call]
        }
        several => place.take_items(call, several)?,
    };
    Ok((call, results))
}

/// A path for each part, and the part of each node, by index.
pub(crate) type Assigned = (Vec<Arc<str>>, Vec<Option<u32>>);

/// Puts a node into a part.
fn put_into(
    node: NodeRef<'_>,
    part: u32,
    part_of: &mut [Option<u32>],
    doing: &'static str,
) -> Result<()> {
    if matches!(node.op(), Op::Placeholder(_) | Op::Output) {
        let error = Error::region("an input and the output stay in the graph: leave them out");
        return Err(node.blame(doing, error));
    }
    match part_of[node.index()].replace(part) {
        Some(other) if other != part => {
            let error = Error::region(format_args!(
                "it is in region {other} and in region {part}: a node has one part"
            ));
            Err(node.blame(doing, error))
        }
        _ => Ok(()),
    }
}

/// Why parts cannot be ordered.
fn no_order(
    graph: &Graph,
    attributes: &Attributes,
    how: &Parts<'_>,
    regions: &[Region],
    units: &Units<'_>,
    ordered: &Ordered,
) -> Error {
    let circle = units.circle(ordered);
    let part_of = |id: NodeId| how.part_of.get(id.index as usize).copied().flatten();
    let named = |id: NodeId| {
        let name = graph
            .node(id)
            .map_or_else(|_| String::new(), |node| node.name().to_string());
        match part_of(id) {
            Some(part) => format!("%{name} of `{}`", how.paths[part as usize]),
            None => format!("%{name}"),
        }
    };
    let mut parts: Vec<u32> = circle
        .iter()
        .filter_map(|need| part_of(need.user))
        .collect();
    parts.sort_unstable();
    parts.dedup();
    if let [one] = parts.as_slice()
        && let Err(error) = regions[*one as usize].check_convex(graph, attributes)
    {
        return error;
    }
    let paths: Vec<String> = parts
        .iter()
        .map(|part| format!("`{}`", how.paths[*part as usize]))
        .collect();
    let needs: Vec<String> = circle
        .iter()
        .map(|need| format!("{} needs {}", named(need.user), named(need.used)))
        .collect();
    Error::region(format_args!(
        "the parts {} need each other: {}; make other parts",
        paths.join(", "),
        needs.join(", ")
    ))
}

/// Writes to the input of a part what is known of the value that it takes.
pub(crate) fn describe_input(placeholder: &mut NodeMut<'_>, input: NodeRef<'_>) {
    if let (Op::Placeholder(_), Some(Argument::None)) = (input.op(), input.args().first()) {
        // It may be absent, as the value that it takes.
        let default = placeholder.set_args((Argument::None,));
        default.expect("`None` refers to no node");
    }
    placeholder.set_type_expr(input.type_expr());
    placeholder.stand_for(input);
}

/// A region as a graph; `describe` writes to its inputs what is known of them.
pub(crate) fn graph_of(
    region: &Region,
    of: &Graph,
    tuple_return: bool,
    describe: impl Fn(&mut NodeMut<'_>, NodeRef<'_>),
) -> Result<Graph> {
    let outputs: Vec<Argument> = region
        .outputs()
        .iter()
        .copied()
        .map(Argument::Node)
        .collect();
    let (mut graph, mut results) = of.part(region.inputs(), region.nodes(), &outputs, describe)?;
    let result = match results.len() {
        1 if !tuple_return => results.swap_remove(0),
        _ => Argument::Tuple(Arc::new(results)),
    };
    graph.output(result)?;
    Ok(graph)
}

/// Gives the inputs of a graph other names, by their indices.
pub(crate) fn name_inputs(graph: &mut Graph, name: impl Fn(usize) -> String) -> Result<()> {
    let inputs: Vec<NodeId> = graph.placeholders().map(|node| node.id()).collect();
    for (at, input) in inputs.into_iter().enumerate() {
        let name = name(at);
        let mut node = graph.node_mut(input)?;
        node.rename(&name);
        node.write_op(Op::Placeholder(name.into()))?;
    }
    Ok(())
}
