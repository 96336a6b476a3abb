//! `Cse`: common sub-expressions, computed once.
//!
//! Invariant: two nodes are merged only where both compute the same value and do nothing else.

use std::fmt;
use std::hash::{Hash, Hasher};

use hashbrown::HashTable;
use hashbrown::hash_table::Entry;
use rustc_hash::FxHasher;

use super::callee::{BoundCall, Callee};
use super::pass::Pass;
use super::predicate::{self, Predicate};
use crate::error::Result;
use crate::graph_module::{GraphModule, is_impure};
use crate::ir::graph::Graph;
use crate::ir::identity::{hash_argument, identical};
use crate::ir::node::NodeRef;
use crate::ir::op::Op;
use crate::module::attributes::Attributes;
use crate::value::handle::NodeId;

/// Merges calls of the same thing with the same arguments; the first one stays.
///
/// The same is the same type and value: 1, 1.0 and true differ, as do 0.0 and -0.0. A default that is spelt out is the
/// default, a keyword is its position, and a method that one type alone has is that function. What is impure (draws
/// random numbers, changes state) never merges, by what functions and modules declare.
///
/// ```
/// use fx_core::prelude::*;
/// use fx_core::Cse;
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
    /// Of everything that is not impure.
    pub fn new() -> Self {
        Self::default()
    }

    /// Leaves the nodes alone for which this is true.
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
    fn run(&self, gm: &mut GraphModule) -> Result<bool> {
        let (graph, attributes) = gm.parts_mut();
        let mut known = Known::new(graph);
        let mut merged = false;
        let mut cursor = graph.cursor();
        while let Some(id) = cursor.advance() {
            let node = cursor.node(id)?;
            if !may_merge(node, attributes) || predicate::holds(&self.skip, node) {
                continue;
            }
            let Some(first) = known.find_or_add(node, attributes) else {
                continue;
            };
            cursor.node_mut(id)?.give_uses_to(first)?;
            cursor.erase_node(id)?;
            merged = true;
        }
        Ok(merged)
    }
}

/// Calls that no call before them was the same as, by the first node that they use: calls that are the same share it, and
/// stand near to it in memory.
struct Known {
    /// By a node's index: the last call that was added of those that use it first; 0 for none.
    last: Vec<u32>,
    /// By a call's index: the one that was added before it.
    previous: Vec<u32>,
    /// By a call's index: what hashes to another number is another call.
    hashes: Vec<u64>,
    /// Calls of nodes that many use.
    of_many: HashTable<u32>,
}

/// How many calls of one node are looked through one by one.
const FEW: usize = 8;

impl Known {
    fn new(graph: &Graph) -> Self {
        let indices = graph.index_bound();
        Known {
            last: vec![0; indices],
            previous: vec![0; indices],
            hashes: vec![0; indices],
            of_many: HashTable::new(),
        }
    }

    /// The call before that is the same; where there is none, the node itself is known from now on.
    fn find_or_add(&mut self, node: NodeRef<'_>, attributes: &Attributes) -> Option<NodeId> {
        let graph = node.graph();
        let index = node.id().index;
        let (hash, used) = hash_of(node, attributes);
        self.hashes[index as usize] = hash;
        let is_same = |first: u32, hashes: &[u64]| {
            hashes[first as usize] == hash && are_same(graph.node_at(first), node, attributes)
        };
        let used = used as usize;
        let mut call = self.last[used];
        for _ in 0..FEW {
            if call == 0 {
                self.previous[index as usize] = std::mem::replace(&mut self.last[used], index);
                return None;
            }
            if is_same(call, &self.hashes) {
                return Some(graph.node_at(call).id());
            }
            call = self.previous[call as usize];
        }
        let hashes = &self.hashes;
        let found = self.of_many.entry(
            hash,
            |first| is_same(*first, hashes),
            |known| hashes[*known as usize],
        );
        match found {
            Entry::Occupied(first) => Some(graph.node_at(*first.get()).id()),
            Entry::Vacant(place) => {
                place.insert(index);
                None
            }
        }
    }
}

fn may_merge(node: NodeRef<'_>, attributes: &Attributes) -> bool {
    !matches!(node.op(), Op::Placeholder(_) | Op::Output) && !is_impure(attributes, node)
}

/// A hash of a call, and the index of the first node in it, or 0, which is no node's.
fn hash_of(node: NodeRef<'_>, attributes: &Attributes) -> (u64, u32) {
    let mut hasher = FxHasher::default();
    let callee = Callee::of(node);
    match callee {
        Callee::Function(function) => function.hash(&mut hasher),
        Callee::Op(_) => node.op_number().hash(&mut hasher),
    }
    let call = BoundCall::of(node, callee, attributes);
    let mut used = 0;
    let mut feed = |id: NodeId, hasher: &mut FxHasher| {
        if used == 0 {
            used = id.index;
        }
        id.index.hash(hasher);
    };
    for argument in &call.args {
        hash_argument(argument, &mut hasher, &mut feed);
    }
    for (name, argument) in call.named {
        name.hash(&mut hasher);
        hash_argument(argument, &mut hasher, &mut feed);
    }
    (hasher.finish(), used)
}

fn are_same(first: NodeRef<'_>, node: NodeRef<'_>, attributes: &Attributes) -> bool {
    let (a, b) = (Callee::of(first), Callee::of(node));
    if a != b {
        return false;
    }
    let (x, y) = (
        BoundCall::of(first, a, attributes),
        BoundCall::of(node, b, attributes),
    );
    x.args.len() == y.args.len()
        && x.args.iter().zip(&y.args).all(|(x, y)| identical(x, y))
        && x.named.len() == y.named.len()
        && x.named
            .iter()
            .zip(y.named)
            .all(|((k, x), (l, y))| k == l && identical(x, y))
}
