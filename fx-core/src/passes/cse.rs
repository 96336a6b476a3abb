//! `Cse`: common sub-expressions, computed once.
//!
//! Invariant: two nodes are merged only where both compute the same value and do nothing else.

use std::fmt;
use std::hash::{Hash, Hasher};

use hashbrown::HashTable;
use rustc_hash::FxHasher;

use super::pass::Pass;
use super::predicate::{self, Predicate};
use crate::error::Result;
use crate::graph_module::GraphModule;
use crate::ir::argument::Argument;
use crate::ir::graph::Graph;
use crate::ir::node::NodeRef;
use crate::ir::op::Op;
use crate::module::attributes::Attributes;
use crate::module::call::Call;
use crate::region::ordered::Ordered;
use crate::value::handle::NodeId;

/// Merges calls of the same callee with the same arguments; the first one stays.
///
/// Equal means equal in type and value: 1, 1.0 and true differ, as do 0.0 and -0.0. An explicit
/// default equals an omitted one, a keyword equals its position, and a method that only one type
/// has equals that function. What functions and modules declare as impure (drawing random numbers,
/// changing state) never merges.
///
/// ```
/// use fx_core::prelude::*;
/// use fx_core::passes::Cse;
/// let mut gm = symbolic_trace(traced!(|x: Float| {
///     let (a, b, c) = ((x + 1.0)?, (x + 1.0)?, (x + 1)?);
///     (a + b)? + c
/// }))?;
/// let record = gm.apply(&Cse::new())?;
/// assert_eq!(record.erased, ["add_1"]);
/// assert_eq!(record.replaced, [("add_1".to_string(), "add".to_string())]);
/// # Ok::<(), Error>(())
/// ```
#[derive(Default)]
pub struct Cse {
    skip: Option<Predicate>,
}

impl Cse {
    /// Merges everything that is not impure.
    pub fn new() -> Self {
        Self::default()
    }

    /// Skips the nodes for which this is true.
    #[must_use]
    pub fn skip(mut self, skip: impl Fn(NodeRef<'_>) -> bool + Send + Sync + 'static) -> Self {
        self.skip = Some(Box::new(skip));
        self
    }
}

impl fmt::Debug for Cse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Cse")
    }
}

impl Pass for Cse {
    fn enters_control(&self) -> bool {
        true
    }

    fn run(&self, gm: &mut GraphModule) -> Result<bool> {
        let mut edit = gm.graph_mut();
        let (graph, attributes) = edit.parts();
        let ordered = Ordered::of(graph, attributes);
        let mut known = Known::new(graph, attributes);
        let mut merged: Vec<(NodeId, Argument)> = Vec::new();
        for node in graph.nodes() {
            let may_merge = !matches!(node.op(), Op::Placeholder(_) | Op::Output);
            if may_merge && !ordered.contains(node) && !predicate::holds(&self.skip, node) {
                let first = known.find_or_add(node);
                merged.extend(first.map(|first| (node.id(), Argument::Node(first))));
            }
        }
        for (old, first) in &merged {
            if let Argument::Node(first) = first {
                graph.learn_from(*first, *old)?;
            }
        }
        graph.put_all(&merged)?;
        let gone: Vec<NodeId> = merged.iter().map(|(old, _)| *old).collect();
        for old in gone.iter().rev() {
            graph.erase_node(*old)?;
        }
        Ok(!gone.is_empty())
    }
}

/// Calls that differ from all calls before them, by the first node that they use: equal calls share
/// it, and are near it in memory.
struct Known<'g> {
    graph: &'g Graph,
    attributes: &'g Attributes,
    /// By a node's index: the node that replaces it; 0 for itself.
    stands_for: Vec<u32>,
    /// By a node's index: the last added call that uses it first; 0 for none.
    last: Vec<u32>,
    /// By a call's index: the call added before it.
    previous: Vec<u32>,
    /// By a call's index: its hash; calls with different hashes differ.
    hashes: Vec<u64>,
    /// Calls whose first node has many users.
    of_many: HashTable<u32>,
}

/// How many calls of one node are compared one by one.
const FEW: usize = 8;

impl<'g> Known<'g> {
    fn new(graph: &'g Graph, attributes: &'g Attributes) -> Self {
        let indices = graph.index_bound();
        Known {
            graph,
            attributes,
            stands_for: vec![0; indices],
            last: vec![0; indices],
            previous: vec![0; indices],
            hashes: vec![0; indices],
            of_many: HashTable::new(),
        }
    }

    /// The earlier equal call; if there is none, the node itself is known from now on.
    fn find_or_add(&mut self, node: NodeRef<'g>) -> Option<NodeId> {
        let index = node.id().index;
        let (hash, used) = self.hash_of(node);
        self.hashes[index as usize] = hash;
        let first = self.find(node, hash, used as usize)?;
        self.stands_for[index as usize] = first;
        Some(self.graph.node_at(first).id())
    }

    fn find(&mut self, node: NodeRef<'g>, hash: u64, used: usize) -> Option<u32> {
        let index = node.id().index;
        let mut call = self.last[used];
        for _ in 0..FEW {
            if call == 0 {
                self.previous[index as usize] = std::mem::replace(&mut self.last[used], index);
                return None;
            }
            if self.hashes[call as usize] == hash && self.are_same(call, node) {
                return Some(call);
            }
            call = self.previous[call as usize];
        }
        let is_same =
            |first: &u32| self.hashes[*first as usize] == hash && self.are_same(*first, node);
        if let Some(first) = self.of_many.find(hash, is_same) {
            return Some(*first);
        }
        let hashes = &self.hashes;
        self.of_many
            .insert_unique(hash, index, |known| hashes[*known as usize]);
        None
    }

    /// The node that replaces a node.
    fn now(&self, id: NodeId) -> u32 {
        match self.stands_for[id.index as usize] {
            0 => id.index,
            first => first,
        }
    }

    /// A hash of a call, and the index of its first node, or 0, which is no node's.
    fn hash_of(&self, node: NodeRef<'g>) -> (u64, u32) {
        let mut hasher = FxHasher::default();
        let mut used = 0;
        Call::of(node, self.attributes).hash_same(&mut hasher, &mut |id, hasher| {
            let now = self.now(id);
            if used == 0 {
                used = now;
            }
            now.hash(hasher);
        });
        (hasher.finish(), used)
    }

    fn are_same(&self, first: u32, node: NodeRef<'g>) -> bool {
        let first = Call::of(self.graph.node_at(first), self.attributes);
        let call = Call::of(node, self.attributes);
        first.is_same(&call, &|a, b| self.now(a) == self.now(b))
    }
}
