//! `Units`: the parts of a graph and the nodes outside them, and the orders in which they can run.
//!
//! Invariant: an order has all nodes, those of a part adjacent, inputs before their users, and
//! effects as they were.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::ordered::Ordered;
use crate::ir::graph::Graph;
use crate::ir::node::NodeRef;
use crate::ir::op::Op;
use crate::value::handle::NodeId;

/// Which of the units that can come next does.
#[derive(Debug, Clone, Copy)]
pub(crate) enum UnitOrder {
    /// The one whose first node is first.
    FirstNode,
    /// The one that became possible last, as `torch.fx`'s `split_module` does.
    LastReady,
    /// The part with the lowest number; nodes outside the parts before all parts.
    Number,
}

/// Parts, and nodes outside all parts, each as one unit.
pub(crate) struct Units<'g> {
    nodes: Vec<NodeRef<'g>>,
    parts: usize,
    part: &'g [Option<u32>],
    /// The nodes of each part.
    members: Vec<Vec<NodeId>>,
    /// Which unit needs which, without repetition, sorted by the first and then by where the need
    /// first shows.
    edges: Vec<(u32, u32)>,
    /// How many others a unit needs.
    needs: Vec<u32>,
    /// Where the unit's first node is in the graph.
    first: Vec<u32>,
}

/// A need that closes a circle: a node of one unit uses one of another, or its effect comes after.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Need {
    pub user: NodeId,
    pub used: NodeId,
}

const ABSENT: u32 = u32::MAX;

impl<'g> Units<'g> {
    /// The units of a graph: `part` holds the part of each node, by index.
    pub fn of(graph: &'g Graph, ordered: &Ordered, part: &'g [Option<u32>], parts: usize) -> Self {
        let units = parts + graph.index_bound();
        let mut found = Units {
            nodes: graph.nodes().collect(),
            parts,
            part,
            members: vec![Vec::new(); parts],
            edges: Vec::new(),
            needs: vec![0; units],
            first: vec![ABSENT; units],
        };
        let mut edges: Vec<(u32, u32, u32)> = Vec::new();
        for (at, node) in (0u32..).zip(&found.nodes) {
            let unit = found.unit_of(*node);
            if found.first[unit] == ABSENT {
                found.first[unit] = at;
            }
            if let Some(members) = found.members.get_mut(unit) {
                members.push(node.id());
            }
        }
        found.for_each_need(ordered, |from, to, at, _| {
            edges.push((index(from), index(to), at));
        });
        edges.sort_unstable();
        edges.dedup_by_key(|(from, to, _)| (*from, *to));
        edges.sort_unstable_by_key(|(from, _, at)| (*from, *at));
        for (from, to, _) in edges {
            found.needs[to as usize] += 1;
            found.edges.push((from, to));
        }
        found
    }

    /// The part of a node, or else a unit of its own.
    fn unit_of(&self, node: NodeRef<'_>) -> usize {
        let place = node.index();
        let part = self.part.get(place).copied().flatten();
        part.map_or(self.parts + place, |part| part as usize)
    }

    /// Each need of one unit for another, with the position of the node that has it.
    fn for_each_need(&self, ordered: &Ordered, mut need: impl FnMut(usize, usize, u32, Need)) {
        let mut last_ordered: Option<NodeRef<'g>> = None;
        for (at, node) in (0u32..).zip(&self.nodes) {
            let unit = self.unit_of(*node);
            let mut edge = |used: NodeRef<'_>| {
                let from = self.unit_of(used);
                if from != unit {
                    let (user, used) = (node.id(), used.id());
                    need(from, unit, at, Need { user, used });
                }
            };
            node.all_input_nodes().for_each(&mut edge);
            if ordered.contains(*node) {
                last_ordered.replace(*node).into_iter().for_each(edge);
            }
        }
    }

    /// The nodes, unit after unit. `None` if units need each other.
    pub fn order(&self, how: UnitOrder) -> Option<Vec<NodeId>> {
        let mut needs = self.needs.clone();
        let mut ready = Ready::new(how, self);
        let mut order = Vec::with_capacity(self.nodes.len());
        let mut free: Vec<usize> = (0..needs.len())
            .filter(|unit| self.first[*unit] != ABSENT && needs[*unit] == 0)
            .collect();
        free.sort_unstable_by_key(|unit| self.first[*unit]);
        if matches!(how, UnitOrder::LastReady) {
            // What is given is there before the units become ready one by one.
            let (given, others) = free.into_iter().partition(|unit| self.is_given(*unit));
            free = others;
            let given: Vec<usize> = given;
            for unit in given {
                order.push(self.node(unit).id());
                for to in self.users_of(unit) {
                    needs[to] -= 1;
                    if needs[to] == 0 {
                        free.push(to);
                    }
                }
            }
            free.sort_unstable_by_key(|unit| self.first[*unit]);
        }
        free.into_iter().for_each(|unit| ready.push(unit));
        let mut output = None;
        while let Some(unit) = ready.pop() {
            match self.members.get(unit) {
                Some(members) => order.extend(members),
                None if *self.node(unit).op() == Op::Output => output = Some(self.node(unit).id()),
                None => order.push(self.node(unit).id()),
            }
            for to in self.users_of(unit) {
                needs[to] -= 1;
                if needs[to] == 0 {
                    ready.push(to);
                }
            }
        }
        order.extend(output);
        (order.len() == self.nodes.len()).then_some(order)
    }

    /// The first node of a unit.
    fn node(&self, unit: usize) -> NodeRef<'g> {
        self.nodes[self.first[unit] as usize]
    }

    fn is_given(&self, unit: usize) -> bool {
        let op = self.node(unit).op();
        unit >= self.parts && matches!(op, Op::Placeholder(_) | Op::GetAttr(_))
    }

    fn users_of(&self, unit: usize) -> impl Iterator<Item = usize> {
        let from = index(unit);
        let first = self.edges.partition_point(|(a, _)| *a < from);
        let edges = self.edges[first..].iter();
        edges
            .take_while(move |(a, _)| *a == from)
            .map(|(_, to)| *to as usize)
    }

    /// Needs that lead from a unit back to itself, the first one's user in the unit that the last
    /// one's `used` is in. Empty if there is an order.
    pub fn circle(&self, ordered: &Ordered) -> Vec<Need> {
        let mut needs = self.needs.clone();
        let mut done: Vec<usize> = (0..needs.len()).filter(|unit| needs[*unit] == 0).collect();
        while let Some(unit) = done.pop() {
            for to in self.users_of(unit) {
                needs[to] -= 1;
                if needs[to] == 0 {
                    done.push(to);
                }
            }
        }
        // Each unit that is left needs another one that is left.
        let mut before: Vec<Option<(usize, Need)>> = vec![None; needs.len()];
        self.for_each_need(ordered, |from, to, _, need| {
            if needs[from] > 0 && needs[to] > 0 {
                before[to].get_or_insert((from, need));
            }
        });
        let mut walked: Vec<(usize, Need)> = Vec::new();
        let mut at = before.iter().position(Option::is_some);
        let mut seen = vec![false; needs.len()];
        while let Some(unit) = at
            && let Some((from, need)) = before[unit]
        {
            if seen[unit] {
                let start = walked.iter().position(|(walked, _)| *walked == unit);
                let circle = walked.drain(start.unwrap_or(0)..);
                return circle.map(|(_, need)| need).collect();
            }
            seen[unit] = true;
            walked.push((unit, need));
            at = Some(from);
        }
        Vec::new()
    }
}

/// The units that can come next.
enum Ready<'u> {
    Stack(Vec<usize>),
    /// With the position of each unit's first node, and how many units go by number instead.
    Heap(BinaryHeap<Reverse<(u32, usize)>>, &'u [u32], usize),
}

/// Above all positions.
const NUMBERED: u32 = 1 << 31;

impl<'u> Ready<'u> {
    fn new(how: UnitOrder, units: &'u Units<'_>) -> Self {
        let heap = BinaryHeap::new();
        match how {
            UnitOrder::LastReady => Ready::Stack(Vec::new()),
            UnitOrder::FirstNode => Ready::Heap(heap, &units.first, 0),
            UnitOrder::Number => Ready::Heap(heap, &units.first, units.parts),
        }
    }

    fn push(&mut self, unit: usize) {
        match self {
            Ready::Stack(units) => units.push(unit),
            Ready::Heap(heap, _, numbered) if unit < *numbered => {
                heap.push(Reverse((NUMBERED + index(unit), unit)));
            }
            Ready::Heap(heap, first, _) => heap.push(Reverse((first[unit], unit))),
        }
    }

    fn pop(&mut self) -> Option<usize> {
        match self {
            Ready::Stack(units) => units.pop(),
            Ready::Heap(heap, ..) => heap.pop().map(|Reverse((_, unit))| unit),
        }
    }
}

fn index(unit: usize) -> u32 {
    u32::try_from(unit).expect("a graph has fewer than 2^31 nodes, and no more parts than nodes")
}
