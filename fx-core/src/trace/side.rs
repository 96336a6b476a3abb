//! Sides: what a trace recorded since a mark, cut out of its graph into a graph of its own.
//!
//! Invariant: after a cut neither the trace's graph nor its context names a node that was cut.

use std::panic::Location;
use std::sync::Arc;

use indexmap::IndexSet;
use rustc_hash::{FxBuildHasher, FxHashSet};

use super::context::TraceContext;
use super::cut::CutNode;
use super::open_side::{Region, SideId};
use crate::error::Result;
use crate::ir::argument::Argument;
use crate::ir::graph::Graph;
use crate::ir::op::Op;
use crate::module::attributes::Attributes;
use crate::value::handle::NodeId;

/// A place in what a trace records.
#[derive(Clone, Copy)]
pub(crate) struct Mark(Option<NodeId>);

/// What was recorded in one side of a branch or one turn of a loop, and what it gives.
pub(crate) struct Side {
    /// Without the parameters and constants that it reads: those are operands, so that they keep
    /// their names and are read once.
    pub nodes: Vec<NodeId>,
    pub results: Vec<Argument>,
}

impl TraceContext {
    /// Begins a region.
    pub(crate) fn open_side(&self, region: Region, caller: &'static Location<'static>) -> SideId {
        self.open.borrow_mut().open(region, caller)
    }

    /// Whether a branch or a loop is being recorded.
    pub(super) fn is_in_a_side(&self) -> bool {
        !self.open.borrow().is_empty()
    }

    /// Says that a region is now another one.
    pub(crate) fn rename_side(&self, id: SideId, region: Region) {
        self.open.borrow_mut().rename(id, region);
    }

    /// Ends a region, which is the innermost one.
    ///
    /// # Errors
    /// Returns an error if there is one inside: a jump leaves both.
    pub(crate) fn end_side(&self, id: SideId) -> Result<()> {
        self.open.borrow_mut().end(id)
    }

    /// Notes that a region was left before its end.
    pub(crate) fn leave_side(&self, id: SideId) {
        self.open.borrow_mut().leave(id);
    }

    /// # Errors
    /// Returns an error if a region was left before its end.
    pub(super) fn check_sides(&self) -> Result<()> {
        self.open.borrow().check()
    }
}

impl TraceContext {
    /// The end of what is recorded so far.
    pub(crate) fn mark(&self) -> Result<Mark> {
        let graph = self.graph()?;
        Ok(Mark(graph.nodes().next_back().map(|node| node.id())))
    }

    /// The nodes recorded since a mark, but for `get_attr`.
    pub(crate) fn recorded_since(&self, mark: Mark) -> Result<Vec<NodeId>> {
        let graph = self.graph()?;
        let mut next = match mark.0 {
            Some(last) => graph.node(last)?.next(),
            None => graph.nodes().next(),
        };
        let mut nodes = Vec::new();
        while let Some(node) = next {
            if !matches!(node.op(), Op::GetAttr(_)) {
                nodes.push(node.id());
            }
            next = node.next();
        }
        Ok(nodes)
    }

    /// The nodes outside of some sides that they use, in the order of first use.
    pub(crate) fn operands(&self, sides: &[&Side], own: &[NodeId]) -> Result<Vec<NodeId>> {
        let graph = self.graph()?;
        let nodes = sides.iter().flat_map(|side| &side.nodes);
        let inside: FxHashSet<NodeId> = nodes.chain(own).copied().collect();
        let mut found: IndexSet<NodeId, FxBuildHasher> = IndexSet::default();
        for side in sides {
            for node in &side.nodes {
                let inputs = graph.node(*node)?.all_input_nodes();
                found.extend(inputs.map(|input| input.id()));
            }
            for result in &side.results {
                result.for_each_node(&mut |node| {
                    found.insert(node);
                });
            }
        }
        Ok(found
            .into_iter()
            .filter(|node| !inside.contains(node))
            .collect())
    }

    /// A side as a graph over `inputs`, with the modules that it calls. A single result is returned
    /// as it is, or in a tuple if `as_tuple` is set.
    pub(crate) fn as_graph(
        &self,
        side: &Side,
        inputs: &[NodeId],
        as_tuple: bool,
    ) -> Result<(Graph, Attributes)> {
        // The inputs have no types: a run decides what both sides take.
        let (mut graph, mut results) =
            self.graph()?
                .part(inputs, &side.nodes, &side.results, |_, _| ())?;
        let result = match results.len() {
            1 if !as_tuple => results.swap_remove(0),
            _ => Argument::Tuple(Arc::new(results)),
        };
        graph.output(result)?;
        let attributes = self.attributes.borrow().named_by(&graph);
        Ok((graph, attributes))
    }

    /// Takes the nodes of sides out of the graph, newest first. Later uses of one name what it was
    /// in (`a branch`, `a loop`) and where that is.
    pub(crate) fn cut(
        &self,
        sides: &[&Side],
        own: &[NodeId],
        what: &'static str,
        caller: &'static Location<'static>,
    ) -> Result<()> {
        let cut: Vec<NodeId> = sides
            .iter()
            .rev()
            .flat_map(|side| side.nodes.iter().rev())
            .copied()
            .collect();
        let mut called: Vec<Arc<str>> = Vec::new();
        let mut out = self.cut.borrow_mut();
        {
            let mut graph = self.graph_mut()?;
            for id in cut.iter().chain(own.iter().rev()) {
                let node = graph.node(*id)?;
                if let Op::CallModule(path) = node.op() {
                    called.push(path.clone());
                }
                let name = node.name().to_string();
                out.nodes.insert(*id, CutNode { name, what, caller });
                graph.erase_node(*id)?;
            }
        }
        // A module that only sides call is in the sides.
        let mut attributes = self.attributes.borrow_mut();
        for path in called {
            let cut = out.calls.entry(path.clone()).or_default();
            *cut += 1;
            if self.calls_of(&path) == *cut {
                attributes.modules.remove(&path);
            }
        }
        Ok(())
    }
}
