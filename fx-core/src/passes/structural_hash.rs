//! `structural_hash`: a hash of what a graph computes.
//!
//! Invariant: names, order among pure nodes, places in the source and meta do not matter; the hash
//! is the same on every machine.

use std::hash::Hash;

use rustc_stable_hash::FromStableHash;
use rustc_stable_hash::hashers::{SipHasher128Hash, StableSipHasher128};

use crate::graph_module::GraphModule;
use crate::ir::graph::Graph;
use crate::ir::identity::hash_argument;
use crate::ir::op::{Op, Opcode};
use crate::region::ordered::Ordered;
use crate::value::handle::NodeId;

impl GraphModule {
    /// A hash of what the module's graph computes: equal for graphs with the same calls of the same
    /// targets on the same arguments, whatever their names and the order of independent nodes; the
    /// order of impure nodes counts. Dead pure nodes do not count, nor do the values of parameters
    /// and the contents of modules: their paths do. What is impure depends on the mode: the
    /// position of a batch norm or a dropout in training counts.
    ///
    /// The hash is SipHash-1-3 of 128 bits, equal on every machine; it does not protect against
    /// deliberate collisions.
    ///
    /// ```
    /// use fx_core::prelude::*;
    /// let a = symbolic_trace(traced!(|x: Float| { let (p, q) = ((x * 2.0)?, (x - 1.0)?); p + q }))?;
    /// let b = symbolic_trace(traced!(|y: Float| { let (q, p) = ((y - 1.0)?, (y * 2.0)?); p + q }))?;
    /// let c = symbolic_trace(traced!(|x: Float| { let (p, q) = ((x * 2)?, (x - 1.0)?); p + q }))?;
    /// assert_eq!(a.structural_hash(), b.structural_hash());
    /// assert_ne!(a.structural_hash(), c.structural_hash());
    /// # Ok::<(), Error>(())
    /// ```
    pub fn structural_hash(&self) -> u128 {
        hash(self.graph(), &Ordered::of(self.graph(), self.attributes()))
    }
}

struct Halves([u64; 2]);

impl FromStableHash for Halves {
    type Hash = SipHasher128Hash;
    fn from(SipHasher128Hash(halves): Self::Hash) -> Self {
        Halves(halves)
    }
}

fn hash(graph: &Graph, ordered: &Ordered) -> u128 {
    node_hashes(graph, ordered).0
}

/// The hash of a graph, and what each node computes as a hash, by index.
pub(crate) fn node_hashes(graph: &Graph, ordered: &Ordered) -> (u128, Vec<[u64; 2]>) {
    let mut hashes: Vec<[u64; 2]> = vec![[0; 2]; graph.index_bound()];
    let mut impure = 0u64;
    let mut whole = StableSipHasher128::new();
    for node in graph.nodes() {
        let mut hasher = StableSipHasher128::new();
        (node.opcode() as u8).hash(&mut hasher);
        let is_end = matches!(node.opcode(), Opcode::Placeholder | Opcode::Output);
        let counted = is_end || ordered.contains(node);
        if counted {
            // Inputs by position, impure nodes by their order.
            impure.hash(&mut hasher);
            impure += 1;
        }
        if !is_end {
            node.target().hash(&mut hasher);
        }
        let mut feed = |id: NodeId, hasher: &mut StableSipHasher128| {
            hashes[id.index as usize].hash(hasher);
        };
        (node.args().len() as u64).hash(&mut hasher);
        for argument in node.args() {
            hash_argument(argument, &mut hasher, &mut feed);
        }
        for (name, argument) in node.kwargs() {
            name.hash(&mut hasher);
            hash_argument(argument, &mut hasher, &mut feed);
        }
        let Halves(hash) = hasher.finish();
        hashes[node.index()] = hash;
        if counted || *node.op() == Op::Output {
            hash.hash(&mut whole);
        }
    }
    let Halves([low, high]) = whole.finish();
    ((u128::from(high) << 64) | u128::from(low), hashes)
}
