//! `split_joint`: a graph of a value and its gradients as a forward and a backward module.
//!
//! Invariant: both parts together give what the joint graph gives.

use fx_core::ir::{NodeRef, Op};
use fx_core::passes::SplitOptions;
use fx_core::value::NodeId;
use fx_core::{GraphModule, Result};
use rustc_hash::FxHashSet;

use super::joint_graph::JointGraph;
use super::recompute::{Recompute, computed_again};

/// A joint graph in two parts; made by [`split_joint`].
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct SplitJoint {
    /// The joint graph, in which the backward part computes again what is not kept.
    pub joint: GraphModule,
    /// The same as a module that calls its parts, `forward` and `backward`; it reads the parameters, and gives them to
    /// both.
    pub parts: GraphModule,
    /// What is kept between the parts: the name of each node, and the bytes of its value.
    pub kept: Vec<(String, u64)>,
    /// The nodes that the backward part computes again.
    pub recomputed: Vec<String>,
    /// The most bytes of computed values that are there at once.
    pub peak: u64,
}

impl SplitJoint {
    /// The bytes of what is kept.
    pub fn kept_bytes(&self) -> u64 {
        self.kept.iter().map(|(_, bytes)| bytes).sum()
    }
}

/// Reads parameters before both parts: those that a call may write, as statistics, cannot be read between its nodes.
fn parameters_first(gm: &mut GraphModule) -> Result<()> {
    let is_read = |node: &NodeRef<'_>| matches!(node.op(), Op::GetAttr(_));
    let read: Vec<NodeId> = gm
        .graph()
        .nodes()
        .filter(is_read)
        .map(NodeRef::id)
        .collect();
    let is_computed =
        |node: &NodeRef<'_>| !is_read(node) && !matches!(node.op(), Op::Placeholder(_));
    let Some(first) = gm.graph().nodes().find(is_computed).map(NodeRef::id) else {
        return Ok(());
    };
    let mut graph = gm.graph_mut();
    for id in read {
        graph.node_mut(first)?.prepend(id)?;
    }
    Ok(())
}

/// Cuts a joint graph, one that gives a value and what is pulled back from it, into a forward and a backward part: what
/// the backward part reads is kept between them, or computed again.
///
/// ```
/// use fx_nn::func::{Recompute, Transform, split_joint, value_and_grad};
/// use fx_nn::prelude::*;
/// use fx_nn::shapes::spec;
/// let f = traced!(|x: &Tensor, w: &Tensor| {
///     let mut h = x.matmul(w)?;
///     for _ in 0..8 {
///         h = h.sin()?.exp()?;
///     }
///     h.sum(..)
/// });
/// let joint = value_and_grad(f).wrt("w").graph_module(&[spec![64, 8; F32], spec![8, 32; F32]])?;
/// let all = split_joint(&joint, &Recompute::within(u64::MAX))?;
/// assert!(all.recomputed.is_empty());
/// let less = split_joint(&joint, &Recompute::share(0.8))?;
/// assert!(less.kept_bytes() < all.kept_bytes() && less.peak < all.peak);
/// assert!(!less.recomputed.is_empty());
///
/// let (x, w) = (Tensor::rand((64, 8))?, Tensor::rand((8, 32))?);
/// let (value, slope): (Tensor, Tensor) = joint.forward((&x, &w))?;
/// let (again, same): (Tensor, Tensor) = less.parts.forward((&x, &w))?;
/// assert_eq!((value.item()?, slope.to_vec()?), (again.item()?, same.to_vec()?));
/// # Ok::<(), Error>(())
/// ```
///
/// # Errors
/// Returns an error if the graph does not give a tuple of a value and what is pulled back from it, a size is not a number,
/// or the values cannot be within the bytes of `recompute`.
pub fn split_joint(joint: &GraphModule, recompute: &Recompute) -> Result<SplitJoint> {
    let known = JointGraph::of(joint)?;
    let needed = recompute.needed(&known)?;
    let mut gm = joint.clone();
    let forward: FxHashSet<String> = known
        .nodes
        .iter()
        .filter(|node| node.is_forward)
        .map(|node| node.name.clone())
        .collect();
    computed_again(&mut gm, &known, &needed)?;
    let tag = |node: NodeRef<'_>| {
        Some(match forward.contains(&node.name().to_string()) {
            true => "forward",
            false => "backward",
        })
    };
    parameters_first(&mut gm)?;
    let options = SplitOptions::new().keep_original_order(true);
    let split = gm.split(&options, tag)?;
    let chosen =
        |flags: &[bool]| -> Vec<usize> { (0..flags.len()).filter(|at| flags[*at]).collect() };
    let kept = chosen(&needed.kept).into_iter().map(|at| {
        let node = &known.nodes[at];
        // A view of what is kept takes nothing of its own.
        let is_view = node.viewed.is_some_and(|of| needed.kept[of as usize]);
        (node.name.clone(), if is_view { 0 } else { node.bytes })
    });
    let recomputed = chosen(&needed.again).into_iter();
    Ok(SplitJoint {
        parts: split.module,
        kept: kept.collect(),
        recomputed: recomputed.map(|at| known.nodes[at].name.clone()).collect(),
        peak: known.peak(&needed.again),
        joint: gm,
    })
}
