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
        let mut known = HashTable::with_capacity(graph.len());
        let mut merged = false;
        let mut cursor = graph.cursor();
        while let Some(id) = cursor.advance() {
            let node = cursor.node(id)?;
            if !may_merge(node, attributes) || predicate::holds(&self.skip, node) {
                continue;
            }
            let Some(first) = first_same(&mut known, &cursor, node, attributes) else {
                continue;
            };
            cursor.node_mut(id)?.give_uses_to(first)?;
            cursor.erase_node(id)?;
            merged = true;
        }
        Ok(merged)
    }
}

/// The node before that computes the same; where there is none, the node itself is known from now on.
fn first_same(
    known: &mut HashTable<NodeId>,
    graph: &Graph,
    node: NodeRef<'_>,
    attributes: &Attributes,
) -> Option<NodeId> {
    let hash = hash_of(node, attributes);
    let is_same = |first: &NodeId| are_same(graph, *first, node, attributes);
    let hash_again = |known: &NodeId| graph.node(*known).map_or(0, |n| hash_of(n, attributes));
    match known.entry(hash, is_same, hash_again) {
        Entry::Occupied(first) => Some(*first.get()),
        Entry::Vacant(place) => {
            place.insert(node.id());
            None
        }
    }
}

fn may_merge(node: NodeRef<'_>, attributes: &Attributes) -> bool {
    !matches!(node.op(), Op::Placeholder(_) | Op::Output) && !is_impure(attributes, node)
}

fn hash_of(node: NodeRef<'_>, attributes: &Attributes) -> u64 {
    let mut hasher = FxHasher::default();
    let callee = Callee::of(node);
    match callee {
        Callee::Function(function) => function.hash(&mut hasher),
        Callee::Op(_) => node.op_number().hash(&mut hasher),
    }
    let call = BoundCall::of(node, callee, attributes);
    let mut feed = |id: NodeId, hasher: &mut FxHasher| id.index.hash(hasher);
    for argument in &call.args {
        hash_argument(argument, &mut hasher, &mut feed);
    }
    for (name, argument) in call.named {
        name.hash(&mut hasher);
        hash_argument(argument, &mut hasher, &mut feed);
    }
    hasher.finish()
}

fn are_same(graph: &Graph, first: NodeId, node: NodeRef<'_>, attributes: &Attributes) -> bool {
    let Ok(first) = graph.node(first) else {
        return false;
    };
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
