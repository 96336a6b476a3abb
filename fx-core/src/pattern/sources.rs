//! Source partitions: nodes grouped by the module or the function that they came from.

use std::any::type_name;

use indexmap::{IndexMap, IndexSet};
use rustc_hash::FxBuildHasher;

use crate::error::Result;
use crate::graph_module::GraphModule;
use crate::ir::function::Function;
use crate::ir::graph::Graph;
use crate::ir::node::NodeRef;
use crate::ir::op::Op;
use crate::module::module::Module;
use crate::region::region::Region;
use crate::value::handle::NodeId;
use crate::value::object::short_type_name;

/// Where nodes come from: a type of modules, or a function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Source {
    /// Modules of a type, called as a whole or traced through.
    Module(&'static str),
    /// Calls of a function, as function or as method.
    Function(Function),
}

impl Source {
    /// Modules of a type.
    pub fn module<M: Module>() -> Self {
        Source::Module(type_name::<M>())
    }

    /// Its short name.
    pub fn name(&self) -> String {
        match self {
            Source::Module(name) => short_type_name(name),
            Source::Function(function) => function.name().to_string(),
        }
    }
}

/// The nodes that came from one module, or from one call of a function.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct SourcePartition {
    /// The nodes, in the order of the graph.
    pub nodes: Vec<NodeId>,
    /// Where they come from.
    pub source: Source,
    /// The module's path; for a function's call, the node's name.
    pub path: String,
    /// Nodes outside that are used inside, except parameters.
    pub input_nodes: Vec<NodeId>,
    /// Nodes inside that are used outside.
    pub output_nodes: Vec<NodeId>,
    /// Parameters and buffers that are used inside.
    pub params: Vec<NodeId>,
}

/// Groups the nodes of a graph by the modules and functions that they came from, in the order of
/// the graph.
///
/// ```
/// use fx_core::prelude::*;
/// use fx_core::pattern::{Source, source_partitions};
/// #[wrap] fn double(x: Float) -> Result<Float> { x * 2.0 }
/// #[derive(Module)] struct Shift { by: f64 }
/// #[trace] impl Shift { fn forward(&self, x: Float) -> Result<Float> { double(x)? + self.by } }
/// #[derive(Module)] struct Net { a: Shift, b: Shift }
/// #[trace] impl Net { fn forward(&self, x: Float) -> Result<Float> { self.b.forward(double(self.a.forward(x)?)?) } }
///
/// let gm = symbolic_trace(&Net { a: Shift { by: 1.0 }, b: Shift { by: 2.0 } })?;
/// let shifts = source_partitions(&gm, &[Source::module::<Shift>()], |_| true)?;
/// assert_eq!(shifts.iter().map(|p| (p.path.as_str(), p.nodes.len())).collect::<Vec<_>>(), [("a", 2), ("b", 2)]);
/// let doubles = source_partitions(&gm, &[Source::Function(function!(double))], |_| true)?;
/// assert_eq!(doubles.len(), 3);
/// # Ok::<(), Error>(())
/// ```
///
/// # Errors
/// Returns an error if the graph breaks its rules ([`lint`](Graph::lint)).
pub fn source_partitions(
    gm: &GraphModule,
    wanted: &[Source],
    filter: impl Fn(NodeRef<'_>) -> bool,
) -> Result<Vec<SourcePartition>> {
    let mut groups: IndexMap<(usize, String), Vec<NodeId>, FxBuildHasher> = IndexMap::default();
    for node in gm.graph() {
        if matches!(node.op(), Op::Placeholder(_) | Op::Output | Op::GetAttr(_)) || !filter(node) {
            continue;
        }
        for (at, source) in wanted.iter().enumerate() {
            let path = match source {
                Source::Function(function) => {
                    let same = super::compare::calls(&Op::CallFunction(*function), node);
                    same.then(|| node.name().to_string())
                }
                Source::Module(name) => module_of(gm, node, name),
            };
            if let Some(path) = path {
                groups.entry((at, path)).or_default().push(node.id());
            }
        }
    }
    let graph = gm.graph();
    groups
        .into_iter()
        .map(|((at, path), nodes)| partition(graph, wanted[at], path, nodes))
        .collect()
}

/// The path of the module of a type that a node came from.
fn module_of(gm: &GraphModule, node: NodeRef<'_>, type_name: &str) -> Option<String> {
    if let Op::CallModule(path) = node.op()
        && let Some(module) = gm.attributes().modules.get(path)
        && module.type_name() == type_name
    {
        return Some(path.to_string());
    }
    let mut scopes = node.modules_around();
    let found = scopes.find(|scope| scope.type_name == type_name);
    found.map(|scope| scope.path.to_string())
}

fn partition(
    graph: &Graph,
    source: Source,
    path: String,
    nodes: Vec<NodeId>,
) -> Result<SourcePartition> {
    let region = Region::of(graph, nodes)?;
    let (mut inputs, mut params) = (Vec::new(), Vec::new());
    for id in region.inputs() {
        match graph.node(*id)?.op() {
            Op::GetAttr(_) => params.push(*id),
            _ => inputs.push(*id),
        }
    }
    Ok(SourcePartition {
        nodes: region.nodes().to_vec(),
        source,
        path,
        input_nodes: inputs,
        output_nodes: region.outputs().to_vec(),
        params,
    })
}

/// Whether the second partition uses a value of the first.
pub fn are_connected(first: &SourcePartition, second: &SourcePartition) -> bool {
    let given: IndexSet<NodeId, FxBuildHasher> = first.nodes.iter().copied().collect();
    second.input_nodes.iter().any(|input| given.contains(input))
}

/// Sequences of partitions, each using the one before: convolution, norm, activation. Any of a
/// step's sources will do.
///
/// # Errors
/// As [`source_partitions`].
pub fn sequential_partitions(
    gm: &GraphModule,
    steps: &[&[Source]],
    filter: impl Fn(NodeRef<'_>) -> bool,
) -> Result<Vec<Vec<SourcePartition>>> {
    let mut rows: Vec<Vec<SourcePartition>> = Vec::new();
    for (at, step) in steps.iter().enumerate() {
        let here = source_partitions(gm, step, &filter)?;
        if at == 0 {
            rows = here.into_iter().map(|one| vec![one]).collect();
            continue;
        }
        // Which partitions use a value, so that a sequence finds its next partition without a
        // search.
        let mut users: IndexMap<NodeId, Vec<usize>, FxBuildHasher> = IndexMap::default();
        for (index, one) in here.iter().enumerate() {
            for input in &one.input_nodes {
                users.entry(*input).or_default().push(index);
            }
        }
        let mut longer = Vec::new();
        for row in rows {
            let Some(last) = row.last() else { continue };
            let mut next: Vec<usize> = last
                .output_nodes
                .iter()
                .filter_map(|output| users.get(output))
                .flatten()
                .copied()
                .collect();
            next.sort_unstable();
            next.dedup();
            for index in next {
                let mut row = row.clone();
                row.push(here[index].clone());
                longer.push(row);
            }
        }
        rows = longer;
    }
    Ok(rows)
}
