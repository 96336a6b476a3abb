//! What the columns of a graph hold of each node, and of each op.
//!
//! Invariant: none of it knows the graph that it is in.

use std::sync::Arc;

use smallvec::SmallVec;

use super::argument::{Args, Argument, Kwargs};
use super::meta::Extra;
use super::names::NameId;
use super::places::{LocationId, ScopeId};
use crate::value::handle::NodeId;

/// Data that every walk over nodes reads.
#[derive(Debug, Clone, Copy)]
pub(super) struct Head {
    pub op: u32,
    pub name: NameId,
}

/// Data that few walks read.
#[derive(Debug, Clone, Default)]
pub(super) struct Notes {
    pub location: LocationId,
    pub scope: ScopeId,
    pub type_expr: Option<Arc<str>>,
    /// Shared by nodes with equal content.
    pub extra: Option<Arc<Extra>>,
}

#[derive(Debug, Clone, Default)]
pub(super) struct Inputs {
    pub args: Args,
    /// Shared by the copies of a graph; nodes without keywords drop no more than a null pointer.
    pub kwargs: Option<Arc<Kwargs>>,
}

impl Notes {
    /// Removes all, field by field: a value that is built first and copied costs more.
    pub fn clear(&mut self) {
        self.location = LocationId::default();
        self.scope = ScopeId::default();
        self.type_expr = None;
        self.extra = None;
    }
}

impl Inputs {
    /// Removes all; see [`Notes::clear`].
    pub fn clear(&mut self) {
        self.args.clear();
        self.kwargs = None;
    }

    /// Replaces every mention of one node by another.
    pub fn swap_node(&mut self, old: u32, new: NodeId) {
        let Inputs { args, kwargs } = self;
        let kwargs = kwargs
            .iter_mut()
            .flat_map(|k| Arc::make_mut(k).iter_mut().map(|(_, a)| a));
        for arg in args.iter_mut().chain(kwargs) {
            match arg {
                Argument::Node(id) if id.index == old => *id = new,
                leaf if leaf.is_leaf() => {}
                nested => {
                    *nested = nested.map_nodes(&mut |id| {
                        Argument::Node(if id.index == old { new } else { id })
                    });
                }
            }
        }
    }
}

/// The nodes of one op.
#[derive(Debug, Clone, Default)]
pub(super) struct Members {
    pub ids: SmallVec<[NodeId; 1]>,
    pub stale: u32,
    /// Whether they are placeholders.
    pub is_input: bool,
}

/// The nodes that a node's arguments mention, in order, with repetitions.
pub(super) fn input_indices(inputs: &Inputs) -> SmallVec<[u32; 4]> {
    let mut found = SmallVec::new();
    let kwargs = inputs.kwargs.iter().flat_map(|k| k.iter().map(|(_, a)| a));
    for arg in inputs.args.iter().chain(kwargs) {
        match arg {
            Argument::Node(id) => found.push(id.index),
            leaf if leaf.is_leaf() => {}
            nested => nested.for_each_node(&mut |id| found.push(id.index)),
        }
    }
    found
}
