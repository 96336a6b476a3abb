//! Shared by tests: properties of graphs, results of runs, and errors.

use fx_core::ir::{Graph, NodeRef};
use fx_core::prelude::*;
use fx_core::trace::IntoArgs;
use fx_core::value::NodeId;

use super::Array;

/// The names of nodes: of a graph's, in order, or of others.
pub fn names<'g>(nodes: impl IntoIterator<Item = NodeRef<'g>>) -> Vec<String> {
    let names = nodes.into_iter().map(|node| node.name().to_string());
    names.collect()
}

pub fn targets(graph: &Graph) -> Vec<String> {
    graph.nodes().map(|n| n.target().to_string()).collect()
}

pub fn users(graph: &Graph, id: NodeId) -> Result<Vec<String>> {
    Ok(names(graph.node(id)?.users()))
}

pub fn inputs(graph: &Graph, id: NodeId) -> Result<Vec<String>> {
    Ok(names(graph.node(id)?.all_input_nodes()))
}

pub fn node<'g>(graph: &'g Graph, name: &str) -> Result<NodeRef<'g>> {
    let found = graph.find_name(name);
    found.ok_or_else(|| Error::msg(format_args!("no node %{name} in {graph}")))
}

/// Two numbers, one of them negative.
pub fn x() -> Array {
    Array::vec(&[1.0, -2.0])
}

/// Runs a graph module and returns the numbers.
pub fn run(gm: &GraphModule, args: impl IntoArgs) -> Result<Vec<f64>> {
    gm.forward::<Array>(args)?.to_vec()
}

/// Checks that a traced module returns what its original returns on the same input, to the last
/// bit.
#[track_caller]
pub fn same(gm: &GraphModule, eager: Result<Array>, args: impl IntoArgs) -> Result<()> {
    gm.graph().lint()?;
    assert_eq!(run(gm, args)?, eager?.to_vec()?);
    Ok(())
}

#[track_caller]
pub fn refused<T>(result: Result<T>) -> Error {
    match result {
        Ok(_) => panic!("it was accepted"),
        Err(error) => error,
    }
}
