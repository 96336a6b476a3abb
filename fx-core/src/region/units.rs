//! The order of a graph in which the nodes of each part are adjacent.
//!
//! Invariant: it is an order of all nodes in which inputs come before their users and effects keep
//! their order.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::ordered::Ordered;
use crate::ir::graph::Graph;
use crate::ir::node::NodeRef;
use crate::module::attributes::Attributes;
use crate::value::handle::NodeId;

/// The graph's order, except that each part's nodes move to the position of its last one, and nodes
/// that need them come after. `part` holds the part of each node, by index. `None` if parts depend
/// on each other, directly or through another node.
pub(crate) fn order_by_parts(
    graph: &Graph,
    attributes: &Attributes,
    part: &[Option<u32>],
    parts: usize,
) -> Option<Vec<NodeId>> {
    let nodes: Vec<NodeRef<'_>> = graph.nodes().collect();
    // A unit is a part, or a node outside all parts.
    let unit_of = |node: NodeRef<'_>| {
        let place = node.id().index as usize;
        part[place].map_or(parts + place, |part| part as usize)
    };
    let units = parts + graph.index_bound();
    let mut needs = vec![0u32; units];
    let mut edges: Vec<(u32, u32)> = Vec::new();
    let mut position = vec![0usize; units];
    let mut members: Vec<Vec<NodeId>> = vec![Vec::new(); parts];
    let ordered = Ordered::of(graph, attributes);
    let mut last_ordered: Option<usize> = None;
    let mut is_there = vec![false; units];
    for (at, node) in nodes.iter().enumerate() {
        let unit = unit_of(*node);
        position[unit] = at;
        is_there[unit] = true;
        if let Some(members) = members.get_mut(unit) {
            members.push(node.id());
        }
        let mut edge = |from: usize| {
            if from != unit {
                needs[unit] += 1;
                edges.push((index(from), index(unit)));
            }
        };
        node.all_input_nodes()
            .for_each(|input| edge(unit_of(input)));
        if ordered.contains(*node) {
            last_ordered.into_iter().for_each(&mut edge);
            last_ordered = Some(unit);
        }
    }
    edges.sort_unstable();
    let mut ready: BinaryHeap<Reverse<(usize, usize)>> = (0..units)
        .filter(|unit| is_there[*unit] && needs[*unit] == 0)
        .map(|unit| Reverse((position[unit], unit)))
        .collect();
    let mut order = Vec::with_capacity(nodes.len());
    while let Some(Reverse((at, unit))) = ready.pop() {
        match members.get(unit) {
            Some(members) => order.extend(members),
            None => order.push(nodes[at].id()),
        }
        let from = index(unit);
        let first = edges.partition_point(|(a, _)| *a < from);
        for (_, to) in edges[first..].iter().take_while(|(a, _)| *a == from) {
            let to = *to as usize;
            needs[to] -= 1;
            if needs[to] == 0 {
                ready.push(Reverse((position[to], to)));
            }
        }
    }
    (order.len() == nodes.len()).then_some(order)
}

fn index(unit: usize) -> u32 {
    u32::try_from(unit).expect("a graph has fewer than 2^31 nodes, and no more parts than nodes")
}
