//! `cheapest`: which values of a forward part are kept and which are computed again, by a minimum cut.
//!
//! Invariant: what is kept or computed again makes whatever the backward part reads.

use petgraph::Direction;
use petgraph::algo::dinics;
use petgraph::graph::{DiGraph, NodeIndex};
use petgraph::unionfind::UnionFind;
use petgraph::visit::EdgeRef;

/// A value of the forward part.
#[derive(Debug, Clone, Default)]
pub(super) struct Candidate {
    /// What it costs to compute it again, at most [`MOST`]; none if it must be kept.
    pub cost: Option<u64>,
    /// What it costs to keep it, at most [`MOST`].
    pub price: u64,
    /// Which values it is computed from.
    pub inputs: Vec<u32>,
    /// Whether the backward part reads it.
    pub is_read: bool,
}

/// More than a cost or a price is.
pub(super) const MOST: u64 = 1 << 40;

/// More than all of them together.
const ENDLESS: u64 = u64::MAX / 4;

/// For each value, whether it is computed again: the sum of what is kept and what is computed again is least.
///
/// Values that do not need each other are cut by themselves: the time is that of the largest such group.
pub(super) fn cheapest(candidates: &[Candidate]) -> Vec<bool> {
    let mut groups = UnionFind::new(candidates.len());
    for (at, candidate) in candidates.iter().enumerate() {
        for input in &candidate.inputs {
            groups.union(at, *input as usize);
        }
    }
    let mut members: Vec<Vec<usize>> = vec![Vec::new(); candidates.len()];
    for (at, group) in groups.into_labeling().into_iter().enumerate() {
        members[group].push(at);
    }
    let mut again = vec![false; candidates.len()];
    let mut place_of = vec![0; candidates.len()];
    for members in members {
        if !members.iter().any(|at| candidates[*at].is_read) {
            continue;
        }
        for (place, at) in members.iter().enumerate() {
            place_of[*at] = place;
        }
        let found = cut(candidates, &members, &place_of);
        for (at, is_again) in members.into_iter().zip(found) {
            again[at] = is_again;
        }
    }
    again
}

/// A minimum cut of a group of values.
///
/// A value has two places: that of its computation, which is behind the cut if it is computed again, and that of its
/// result, which is behind the cut if it is there in the backward part. A result may be there though the computation is
/// before the cut: it is kept, for its price. A computation behind the cut costs its cost, and needs the results that it
/// reads.
fn cut(candidates: &[Candidate], members: &[usize], place_of: &[usize]) -> Vec<bool> {
    let mut network: DiGraph<(), u64, u32> =
        DiGraph::with_capacity(2 * members.len() + 2, 4 * members.len());
    let before = network.add_node(());
    let behind = network.add_node(());
    let places: Vec<[NodeIndex; 2]> = members
        .iter()
        .map(|_| [network.add_node(()), network.add_node(())])
        .collect();
    for (at, [computation, result]) in members.iter().zip(&places) {
        let candidate = &candidates[*at];
        let cost = candidate.cost.unwrap_or(ENDLESS);
        network.add_edge(before, *computation, cost);
        network.add_edge(*computation, *result, candidate.price);
        for input in &candidate.inputs {
            network.add_edge(places[place_of[*input as usize]][1], *computation, ENDLESS);
        }
        if candidate.is_read {
            network.add_edge(*result, behind, ENDLESS);
        }
    }
    let (_, flows) = dinics(&network, before, behind);
    // What is reached by what could flow yet is before the cut.
    let mut is_before = vec![false; network.node_count()];
    is_before[before.index()] = true;
    let mut pending = vec![before];
    while let Some(place) = pending.pop() {
        let onward = network
            .edges(place)
            .filter(|edge| flows[edge.id().index()] < *edge.weight())
            .map(|edge| edge.target());
        let back = network
            .edges_directed(place, Direction::Incoming)
            .filter(|edge| flows[edge.id().index()] > 0)
            .map(|edge| edge.source());
        for next in onward.chain(back) {
            if !std::mem::replace(&mut is_before[next.index()], true) {
                pending.push(next);
            }
        }
    }
    let computations = places.iter().map(|[computation, _]| computation.index());
    computations.map(|place| !is_before[place]).collect()
}
