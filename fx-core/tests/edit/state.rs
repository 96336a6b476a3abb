//! All that can be seen of a graph, as text: two graphs with the same text are indistinguishable.

use std::fmt::Write;

use fx_core::ir::{Argument, Graph, Meta, MetaPolicy, NewNode, Op};
use fx_core::operator;
use fx_core::value::NodeId;

/// An entry that stays.
#[derive(Debug, Clone, PartialEq)]
pub struct Stage(pub usize);

impl Meta for Stage {
    const ON_COPY: MetaPolicy = MetaPolicy::Copy;
    const ON_REPLACE: MetaPolicy = MetaPolicy::Copy;
}

/// An entry that must be computed again.
#[derive(Debug, Clone, PartialEq)]
pub struct Size(pub usize);

impl Meta for Size {
    const ON_COPY: MetaPolicy = MetaPolicy::Drop;
    const ON_REPLACE: MetaPolicy = MetaPolicy::Recompute;
}

/// Everything that can be seen of a graph: the nodes with their ids, names, arguments, users,
/// types, entries, places and provenance, forwards and backwards, by op and by name, and the names
/// that new nodes would get.
pub fn state(graph: &Graph) -> String {
    let mut text = format!("{graph}\n{:?}\n", graph.lint().map_err(|e| e.to_string()));
    for node in graph.nodes() {
        let ids = |nodes: Vec<NodeId>| format!("{nodes:?}");
        let _ = writeln!(
            text,
            "{:?} {} {:?} {:?} {:?} users {} inputs {} type {:?} stage {:?} size {:?} at {:?} stack {:?} by {:?} next {:?} prev {:?} named {:?}",
            node.id(),
            node.name(),
            node.op(),
            node.args(),
            node.kwargs(),
            ids(node.users().map(|n| n.id()).collect()),
            ids(node.all_input_nodes().map(|n| n.id()).collect()),
            node.type_expr(),
            node.meta::<Stage>(),
            node.meta::<Size>(),
            node.location(),
            node.module_stack().collect::<Vec<_>>(),
            node.sources(),
            node.next().map(|n| n.id()),
            node.prev().map(|n| n.id()),
            graph.find_name(&node.name().to_string()).map(|n| n.id()),
        );
        let found: Vec<NodeId> = graph.find_nodes(node.op()).iter().map(|n| n.id()).collect();
        let _ = writeln!(text, "{found:?}");
    }
    let back: Vec<NodeId> = graph.nodes().rev().map(|n| n.id()).collect();
    let _ = writeln!(text, "{back:?}");
    text + &names(graph)
}

/// The names that new nodes would get.
fn names(graph: &Graph) -> String {
    let mut copy = graph.clone();
    let wanted = [
        "neg", "neg_2", "neg_3", "abs", "x", "x_0", "renamed", "fresh", "add_7", "add",
    ];
    let named = wanted.iter().flat_map(|name| [*name, *name]).map(|name| {
        let op = Op::CallFunction(operator::neg);
        let id = copy.add(NewNode::new(op).args((Argument::Int(1),)).name(name));
        id.map(|id| copy.node(id).map(|n| n.name().to_string()))
    });
    format!("{:?}", named.collect::<Vec<_>>())
}
