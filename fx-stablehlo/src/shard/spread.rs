//! How shardings spread from value to value, forward and backward, until nothing is learnt.
//!
//! Invariant: a dim is learnt once, so that the work is bounded by the dims of all values.

use std::collections::VecDeque;

use fx_nn::ir::{FunctionTable, NodeRef, Op, SourceLocation};
use fx_nn::module::{Attributes, Call};
use fx_nn::prelude::*;
use fx_nn::value::NodeId;
use indexmap::{IndexMap, IndexSet};
use rustc_hash::FxBuildHasher;

use super::factors::{Factors, ShardCall, ShardRule, shape_of};
use super::mesh::Mesh;
use super::sharding::Sharding;

/// The shardings of values while they spread.
pub(super) type Shardings = IndexMap<NodeId, Sharding, FxBuildHasher>;

/// Two values of one call that are split in different ways.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Meeting {
    /// The call.
    pub node: String,
    /// Its line.
    pub location: Option<SourceLocation>,
    /// The values with their shardings.
    pub values: [String; 2],
}

/// What a call does to dims; `None` where no rule knows.
pub(super) fn factors_of(
    gm: &GraphModule,
    node: NodeRef<'_>,
    attributes: &Attributes,
) -> Result<Option<Factors>> {
    let Op::CallFunction(function) = node.op() else {
        return Ok(None);
    };
    let Some(rule) = FunctionTable::<ShardRule>::registered()?.get(*function) else {
        return Ok(None);
    };
    let bound = Call::of(node, attributes).bind()?;
    let call = ShardCall {
        graph: gm.graph(),
        node,
        bound,
    };
    let factors = (rule.0)(&call).map_err(|error| node.blame("sharding", error))?;
    let fits = |id: NodeId, dims: usize| {
        let node = gm.graph().node(id).ok();
        node.and_then(shape_of)
            .is_some_and(|shape| shape.len() == dims)
    };
    let fits_all = factors
        .operands
        .iter()
        .all(|(id, dims)| fits(*id, dims.len()));
    Ok((fits_all && fits(node.id(), factors.result.len())).then_some(factors))
}

/// Spreads shardings over a graph; calls whose values meet in different ways, and functions without a rule.
pub(super) fn spread(
    gm: &GraphModule,
    mesh: &Mesh,
    shardings: &mut Shardings,
) -> Result<(Vec<Meeting>, IndexSet<String>)> {
    let graph = gm.graph();
    let mut all: IndexMap<NodeId, Factors, FxBuildHasher> = IndexMap::default();
    let mut without = IndexSet::new();
    for node in graph.nodes() {
        let Some(shape) = shape_of(node).filter(|_| *node.op() != Op::Output) else {
            continue;
        };
        shardings
            .entry(node.id())
            .or_insert_with(|| Sharding::open(mesh, shape.len()));
        match factors_of(gm, node, gm.attributes())? {
            Some(factors) => {
                all.insert(node.id(), factors);
            }
            None if node.op().is_call() => {
                without.insert(node.target().to_string());
            }
            None => {}
        }
    }
    let mut pending: VecDeque<NodeId> = all.keys().copied().collect();
    let mut waits: IndexSet<NodeId, FxBuildHasher> = pending.iter().copied().collect();
    while let Some(id) = pending.pop_front() {
        waits.swap_remove(&id);
        let mut learnt = Vec::new();
        for (value, dim, axes) in lessons(id, &all[&id], shardings) {
            let size = graph
                .node(value)
                .ok()
                .and_then(shape_of)
                .map_or(0, |shape| shape[dim]);
            let divides = size % mesh.parts(&axes) as i64 == 0;
            if divides
                && shardings
                    .get_mut(&value)
                    .is_some_and(|of| of.learn(dim, &axes))
            {
                learnt.push(value);
            }
        }
        for value in learnt {
            let node = graph.node(value)?;
            let near = node.users().map(|user| user.id()).chain([value]);
            for id in near {
                if all.contains_key(&id) && waits.insert(id) {
                    pending.push_back(id);
                }
            }
        }
    }
    let mut meetings = Vec::new();
    for (id, factors) in &all {
        meetings.extend(meeting(gm, *id, factors, shardings)?);
    }
    Ok((meetings, without))
}

/// The values of a call with the factors of their dims.
fn values(id: NodeId, factors: &Factors) -> impl Iterator<Item = (NodeId, &[Option<usize>])> {
    let operands = factors.operands.iter().map(|(id, dims)| (*id, &**dims));
    operands.chain([(id, &*factors.result)])
}

/// What values of a call learn of each other: a value, a dim, and its axes.
fn lessons(
    id: NodeId,
    factors: &Factors,
    shardings: &Shardings,
) -> Vec<(NodeId, usize, Vec<String>)> {
    let mut axes: Vec<&[String]> = vec![&[]; factors.count];
    for (value, dims) in values(id, factors) {
        let Some(sharding) = shardings.get(&value) else {
            continue;
        };
        for (dim, factor) in dims.iter().enumerate() {
            if let Some(factor) = factor
                && axes[*factor].is_empty()
            {
                axes[*factor] = &sharding.dims()[dim].axes;
            }
        }
    }
    let mut all = Vec::new();
    for (value, dims) in values(id, factors) {
        for (dim, factor) in dims.iter().enumerate() {
            if let Some(factor) = factor
                && !axes[*factor].is_empty()
            {
                all.push((value, dim, axes[*factor].to_vec()));
            }
        }
    }
    all
}

/// Two values of a call whose dims of one factor are split in different ways.
fn meeting(
    gm: &GraphModule,
    id: NodeId,
    factors: &Factors,
    shardings: &Shardings,
) -> Result<Option<Meeting>> {
    let mut first: Vec<Option<(NodeId, &[String])>> = vec![None; factors.count];
    for (value, dims) in values(id, factors) {
        let Some(sharding) = shardings.get(&value) else {
            continue;
        };
        for (dim, factor) in dims.iter().enumerate() {
            let Some(factor) = factor else { continue };
            let axes = &*sharding.dims()[dim].axes;
            match first[*factor] {
                None => first[*factor] = Some((value, axes)),
                Some((other, known)) if known != axes => {
                    let graph = gm.graph();
                    let named = |id: NodeId| -> Result<String> {
                        let node = graph.node(id)?;
                        let place = node
                            .location()
                            .map_or(String::new(), |at| format!(" ({at})"));
                        Ok(format!("%{} {}{place}", node.name(), shardings[&id]))
                    };
                    let node = graph.node(id)?;
                    return Ok(Some(Meeting {
                        node: node.name().to_string(),
                        location: node.location().cloned(),
                        values: [named(other)?, named(value)?],
                    }));
                }
                Some(_) => {}
            }
        }
    }
    Ok(None)
}
