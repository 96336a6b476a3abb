//! `memory_plan`: the bytes that the results of a graph's nodes take while it runs, as expressions
//! of the sizes with names.
//!
//! Invariant: a result is there from its node to its last user, as in a run.

use rustc_hash::FxHashMap;

use crate::error::{Error, Result};
use crate::graph_module::GraphModule;
use crate::ir::node::NodeRef;
use crate::ir::op::Op;
use crate::ir::value_meta::ValueMeta;
use crate::value::dim::Dim;
use crate::value::handle::NodeId;

/// A node of a [`MemoryPlan`].
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct PlannedNode {
    /// The node.
    pub node: NodeId,
    /// Its name.
    pub name: String,
    /// The bytes of its result.
    pub bytes: Dim,
    /// The bytes of all results that are there while it runs, its own included.
    pub live: Dim,
}

/// What a run of a graph holds, see [`memory_plan`].
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct MemoryPlan {
    /// The nodes in their order.
    pub nodes: Vec<PlannedNode>,
    /// The most bytes that are there at once.
    pub peak: Dim,
}

/// Plans the memory of a graph module's run, by the shapes of its nodes: inputs and results, each
/// from its node to its last user. Parameters, buffers and what an operation needs inside are not
/// in it, and a result counts in full, even where it is a view of another.
///
/// ```
/// use fx_core::prelude::*;
/// use fx_core::passes::memory_plan;
/// use fx_core::shapes::spec;
/// let mut gm = symbolic_trace(traced!(|x: Value, y: Value| Ok((y, x))))?;
/// gm.infer_shapes(&[spec!["n", 8; F32], spec!["n"; I64]])?;
/// let plan = memory_plan(&gm)?;
/// assert_eq!((plan.nodes[0].live.to_string(), plan.peak.to_string()), ("32*n".into(), "40*n".into()));
/// # Ok::<(), Error>(())
/// ```
///
/// # Errors
/// Returns an error if the shape of a node is not known, or a number of bytes does not fit an `i64`.
pub fn memory_plan(gm: &GraphModule) -> Result<MemoryPlan> {
    let graph = gm.graph();
    // What is dropped after a node, by the node.
    let mut last: FxHashMap<NodeId, NodeId> = FxHashMap::default();
    let mut dropped: FxHashMap<NodeId, Vec<NodeId>> = FxHashMap::default();
    for node in graph.nodes() {
        last.insert(node.id(), node.id());
        for input in node.all_input_nodes() {
            last.insert(input.id(), node.id());
        }
    }
    for (node, user) in last {
        dropped.entry(user).or_default().push(node);
    }
    let bounds = |dim: &Dim| {
        let contract = gm.contract();
        dim.bounds(|name| {
            let symbols = contract.into_iter().flat_map(|contract| contract.symbols());
            let mut ranges = symbols.filter(|(known, ..)| *known == name);
            ranges
                .next()
                .map_or((Some(0), None), |(_, low, high)| (Some(low), high))
        })
    };
    let mut bytes: FxHashMap<NodeId, Dim> = FxHashMap::default();
    let mut live = Dim::known(0);
    let mut peaks: Vec<Dim> = Vec::new();
    let mut nodes = Vec::with_capacity(graph.len());
    for node in graph.nodes() {
        let own = own_bytes(node)?;
        live = (&live + &own)?;
        nodes.push(PlannedNode {
            node: node.id(),
            name: node.name().to_string(),
            bytes: own.clone(),
            live: live.clone(),
        });
        bytes.insert(node.id(), own);
        let is_below = |a: &Dim, b: &Dim| -> Result<bool> {
            let mut above = (b - a)?;
            // Of `n*m - n` it is easier to see behind the common factor.
            for name in above.symbols() {
                let symbol = Dim::symbol(&name)?;
                while matches!(bounds(&symbol), (Some(0..), _))
                    && let Some(rest) = above.exact_div(&symbol)?
                    && rest != above
                {
                    above = rest;
                }
            }
            Ok(matches!(bounds(&above), (Some(0..), _)))
        };
        let mut is_new = true;
        for peak in &peaks {
            is_new = is_new && !is_below(&live, peak)?;
        }
        if is_new {
            let mut kept = Vec::with_capacity(peaks.len() + 1);
            for peak in peaks {
                if !is_below(&peak, &live)? {
                    kept.push(peak);
                }
            }
            kept.push(live.clone());
            peaks = kept;
        }
        for gone in dropped.remove(&node.id()).unwrap_or_default() {
            if let Some(size) = bytes.get(&gone) {
                live = (&live - size)?;
            }
        }
    }
    let mut peaks = peaks.into_iter();
    let first = peaks.next().unwrap_or_default();
    let peak = peaks.try_fold(first, |peak, one| peak.max(&one))?;
    Ok(MemoryPlan { nodes, peak })
}

/// The bytes of a node's result that the run holds.
fn own_bytes(node: NodeRef<'_>) -> Result<Dim> {
    if matches!(node.op(), Op::GetAttr(_) | Op::Output) {
        return Ok(Dim::known(0));
    }
    let meta = node.meta::<ValueMeta>().ok_or_else(|| {
        let problem = "its shape is not known: `infer_shapes` or `propagate_shapes` writes it";
        node.blame("planning the memory of", Error::msg(problem))
    })?;
    meta.memory()
        .map_err(|e| node.blame("planning the memory of", e))
}
