//! The candidates for a place of a pattern with a known input: that value's users, in the order of
//! the graph.
//!
//! Invariant: a node that is ruled out for good is looked at at most once more, so a hub is not
//! searched again each time.

use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use crate::value::handle::NodeId;

/// A value with more users than this has a list that is kept.
pub(super) const FEW: usize = 8;

/// Skips positions that are gone for good: where to continue, from each position.
#[derive(Default)]
struct Skips(Vec<u32>);

impl Skips {
    fn new(len: usize) -> Self {
        Skips((0..=len as u32).collect())
    }

    /// The first position from `at` on that is not gone.
    fn from(&mut self, at: usize, is_gone: impl Fn(usize) -> bool) -> usize {
        let end = self.0.len() - 1;
        let mut to = at;
        loop {
            let next = self.0[to] as usize;
            if next != to {
                to = next;
            } else if to < end && is_gone(to) {
                self.0[to] = to as u32 + 1;
            } else {
                break;
            }
        }
        let mut at = at;
        while at != to {
            at = std::mem::replace(&mut self.0[at], to as u32) as usize;
        }
        to
    }
}

/// The users of a value with one op.
struct List {
    nodes: Vec<NodeId>,
    /// Skips nodes that belong to matches.
    taken: Skips,
    /// Skips those too that cannot stand for a place, by place.
    hopeless: SmallVec<[(u32, Skips); 1]>,
}

/// The lists that a search keeps.
#[derive(Default)]
pub(super) struct Lists {
    /// By the value's index and the op's number.
    known: FxHashMap<(u32, u32), u32>,
    lists: Vec<List>,
}

/// Nodes left to try.
#[derive(Clone)]
pub(super) enum Candidates {
    /// The first is tried last.
    Few(SmallVec<[NodeId; 4]>),
    /// The rest of a list, from a position on.
    Listed { list: u32, at: u32 },
}

impl Lists {
    /// The list of a value's users with an op, if there is one.
    pub fn get(&self, value: u32, op: u32) -> Option<u32> {
        self.known.get(&(value, op)).copied()
    }

    pub fn add(&mut self, value: u32, op: u32, nodes: Vec<NodeId>) -> u32 {
        let list = self.lists.len() as u32;
        self.lists.push(List {
            taken: Skips::new(nodes.len()),
            nodes,
            hopeless: SmallVec::new(),
        });
        self.known.insert((value, op), list);
        list
    }

    /// Whether a list has at least `count` nodes that belong to no match.
    pub fn has(&mut self, list: u32, count: usize, taken: &[bool]) -> bool {
        let List {
            nodes, taken: skip, ..
        } = &mut self.lists[list as usize];
        let mut at = 0;
        for _ in 0..count {
            at = skip.from(at, |at| taken[nodes[at].index as usize]);
            if at == nodes.len() {
                return false;
            }
            at += 1;
        }
        true
    }

    /// The next node of a list that is not gone for good for a place, and the position after it.
    pub fn next(
        &mut self,
        list: u32,
        at: u32,
        place: u32,
        is_gone: impl Fn(NodeId) -> bool,
    ) -> Option<(NodeId, u32)> {
        let List {
            nodes, hopeless, ..
        } = &mut self.lists[list as usize];
        let known = hopeless.iter().position(|(other, _)| *other == place);
        let known = known.unwrap_or_else(|| {
            hopeless.push((place, Skips::new(nodes.len())));
            hopeless.len() - 1
        });
        let skips = &mut hopeless[known].1;
        let at = skips.from(at as usize, |at| is_gone(nodes[at]));
        let node = *nodes.get(at)?;
        Some((node, at as u32 + 1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_gone_is_passed_over() {
        let mut skips = Skips::new(6);
        let gone = [true, true, false, true, true, true];
        let mut all = |at: usize| skips.from(at, |at| gone[at]);
        assert_eq!([all(0), all(1), all(2), all(3), all(6)], [2, 2, 2, 6, 6]);
        // What was not gone may be gone later.
        assert_eq!(skips.from(0, |_| true), 6);
    }
}
