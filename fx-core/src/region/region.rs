//! `Region`: nodes of a graph as a unit, with the values they take from other nodes and those they
//! pass on.
//!
//! Invariant: nodes are in graph order, inputs and outputs in the order of first use.

use indexmap::IndexSet;
use rustc_hash::{FxBuildHasher, FxHashSet};

use super::ordered::Ordered;
use crate::error::{Error, Result};
use crate::ir::graph::Graph;
use crate::ir::node::NodeRef;
use crate::module::attributes::Attributes;
use crate::value::handle::NodeId;

/// Nodes of a graph, treated as a unit.
///
/// ```
/// use fx_core::prelude::*;
/// use fx_core::passes::Region;
/// let gm = symbolic_trace(traced!(|x: Float| ((x * 2.0)? + 1.0)? / 3.0))?;
/// let named = |name| gm.graph().find_name(name).map(|node| node.id());
/// let ends = Region::of(gm.graph(), named("mul").into_iter().chain(named("truediv")))?;
/// assert_eq!((ends.inputs().len(), ends.outputs().len()), (2, 2)); // x and add; mul and truediv
/// assert!(!ends.is_convex(gm.graph(), gm.attributes())); // add is between them
/// # Ok::<(), Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Region {
    nodes: Vec<NodeId>,
    inputs: Vec<NodeId>,
    outputs: Vec<NodeId>,
}

/// Nodes, in the order in which they came.
type NodeSet = IndexSet<NodeId, FxBuildHasher>;

impl Region {
    /// Creates the region of some nodes, in any order. Takes time proportional to the nodes and
    /// their uses, whatever the size of the graph.
    ///
    /// # Errors
    /// Returns an error if a node is not in this graph.
    pub fn of(graph: &Graph, nodes: impl IntoIterator<Item = NodeId>) -> Result<Region> {
        let mut inside: FxHashSet<NodeId> = FxHashSet::default();
        let mut refs: Vec<NodeRef<'_>> = Vec::new();
        for id in nodes {
            let node = graph.node(id)?;
            if inside.insert(id) {
                refs.push(node);
            }
        }
        refs.sort_unstable_by_key(|node| node.order_key());
        let mut inputs: NodeSet = IndexSet::default();
        let mut users: Vec<NodeRef<'_>> = Vec::new();
        for node in &refs {
            let others = node.all_input_nodes().map(NodeRef::id);
            inputs.extend(others.filter(|input| !inside.contains(input)));
            users.extend(node.users().filter(|user| !inside.contains(&user.id())));
        }
        users.sort_unstable_by_key(|user| user.order_key());
        users.dedup_by_key(|user| user.id());
        let used = users.into_iter().flat_map(NodeRef::all_input_nodes);
        let used = used.map(NodeRef::id).filter(|id| inside.contains(id));
        let outputs: NodeSet = used.collect();
        Ok(Region {
            nodes: refs.into_iter().map(NodeRef::id).collect(),
            inputs: inputs.into_iter().collect(),
            outputs: outputs.into_iter().collect(),
        })
    }

    /// The regions of several parts, in one walk over the graph: `part` holds the part of each node,
    /// by index.
    pub(crate) fn of_parts(graph: &Graph, part: &[Option<u32>], parts: usize) -> Vec<Region> {
        let part_of = |node: NodeRef<'_>| part.get(node.index()).copied().flatten();
        let mut regions = vec![(Vec::new(), IndexSet::default(), IndexSet::default()); parts];
        for node in graph.nodes() {
            let own = part_of(node);
            if let Some(own) = own {
                regions[own as usize].0.push(node.id());
            }
            for input in node.all_input_nodes() {
                let other = part_of(input);
                if other == own {
                    continue;
                }
                if let Some(own) = own {
                    regions[own as usize].1.insert(input.id());
                }
                if let Some(other) = other {
                    regions[other as usize].2.insert(input.id());
                }
            }
        }
        let regions = regions.into_iter();
        let region = |(nodes, inputs, outputs): (Vec<NodeId>, NodeSet, NodeSet)| Region {
            nodes,
            inputs: inputs.into_iter().collect(),
            outputs: outputs.into_iter().collect(),
        };
        regions.map(region).collect()
    }

    /// The nodes.
    pub fn nodes(&self) -> &[NodeId] {
        &self.nodes
    }

    /// Its free variables: the outside nodes that its nodes use.
    pub fn inputs(&self) -> &[NodeId] {
        &self.inputs
    }

    /// The nodes that outside nodes use, in the order of that use.
    pub fn outputs(&self) -> &[NodeId] {
        &self.outputs
    }

    /// Whether one node could replace it: no outside node both uses one of its nodes and is used by
    /// one, and no outside effect comes between its effects.
    pub fn is_convex(&self, graph: &Graph, attributes: &Attributes) -> bool {
        self.check_convex(graph, attributes).is_ok()
    }

    /// Checks that it [is convex](Region::is_convex).
    ///
    /// # Errors
    /// Returns an error if it is not; it names the first node of the region that comes too late,
    /// and the node in between.
    pub fn check_convex(&self, graph: &Graph, attributes: &Attributes) -> Result<()> {
        let mut inside = vec![false; graph.index_bound()];
        for id in &self.nodes {
            inside[graph.node(*id)?.index()] = true;
        }
        let ordered = Ordered::of(graph, attributes);
        // Nodes outside that depend on one inside.
        let mut after = vec![false; graph.index_bound()];
        let mut last_ordered: Option<NodeRef<'_>> = None;
        for node in graph.nodes() {
            let place = node.index();
            if ordered.contains(node)
                && let Some(previous) = last_ordered.replace(node)
            {
                let before = previous.index();
                if inside[place] && after[before] {
                    return Err(not_one_piece(
                        node,
                        previous,
                        "and its effects come between theirs",
                    ));
                }
                after[place] |= !inside[place] && (inside[before] || after[before]);
            }
            for input in node.all_input_nodes() {
                let before = input.index();
                match (inside[place], inside[before]) {
                    (true, false) if after[before] => {
                        return Err(not_one_piece(
                            node,
                            input,
                            "uses one of them and is used by this one",
                        ));
                    }
                    (false, true) => after[place] = true,
                    (false, false) => after[place] |= after[before],
                    (true, _) => {}
                }
            }
        }
        Ok(())
    }
}

fn not_one_piece(node: NodeRef<'_>, between: NodeRef<'_>, why: &str) -> Error {
    let error = Error::region(format_args!(
        "the nodes are not one piece: %{} is not among them, {why}; take it in, or leave this one out",
        between.name()
    ));
    node.blame("lifting", error)
}
