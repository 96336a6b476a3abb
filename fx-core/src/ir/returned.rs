//! The return values of modules that were traced through, stored as entries of the nodes involved,
//! so that they follow copies and replacements like other entries.
//!
//! Invariant: a part states the position of its node's value in the whole; parts of one call have
//! equal wholes.

use std::sync::Arc;

use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use super::argument::Argument;
use super::graph::Graph;
use super::meta::{Meta, MetaPolicy};
use super::node::NodeMut;
use crate::value::handle::NodeId;

/// The position of an item in a structure, from the outside inwards; empty for the whole.
pub(crate) type Place = SmallVec<[u32; 2]>;

/// A node's value as part of the return value of a module call.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ReturnedPart {
    /// The module's path.
    pub module: Arc<str>,
    /// The number of the call.
    pub call: u32,
    /// The structure, with `None` in place of nodes.
    pub whole: Argument,
    /// The position of the node's value in it.
    pub at: Place,
}

/// All return values that a node's value is part of.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Returned(pub SmallVec<[ReturnedPart; 1]>);

impl Meta for Returned {
    const ON_COPY: MetaPolicy = MetaPolicy::Copy;
    const ON_REPLACE: MetaPolicy = MetaPolicy::Copy;
}

impl NodeMut<'_> {
    /// Adds return values that the node's value is part of.
    pub(crate) fn add_returned(&mut self, parts: impl IntoIterator<Item = ReturnedPart>) {
        let known = self.as_ref().meta::<Returned>();
        let mut all = known.map(|known| known.0.clone()).unwrap_or_default();
        for part in parts {
            if !all.contains(&part) {
                all.push(part);
            }
        }
        self.set_meta(Returned(all));
    }
}

impl Graph {
    /// Lets `new` replace `old` in the return values of modules.
    pub(super) fn move_returned(&mut self, old: u32, new: u32) {
        if let Some(parts) = self.node_at(old).meta::<Returned>().cloned() {
            NodeMut::new(self, new).add_returned(parts.0);
        }
    }

    /// The return value of each call to a module that was traced through, with the module's path,
    /// in the order of call numbers. Values that no longer exist are `None`.
    pub(crate) fn returned(&self) -> Vec<(Arc<str>, Argument)> {
        type Call = (Argument, FxHashMap<Place, NodeId>);
        let mut calls: indexmap::IndexMap<(Arc<str>, u32), Call> = indexmap::IndexMap::new();
        for node in self.nodes() {
            for part in node.meta::<Returned>().into_iter().flat_map(|all| &all.0) {
                let call = calls.entry((part.module.clone(), part.call));
                let (_, places) =
                    call.or_insert_with(|| (part.whole.clone(), FxHashMap::default()));
                places.insert(part.at.clone(), node.id());
            }
        }
        // Calls of the same module are in call order.
        calls.sort_by(|(_, a), _, (_, b), _| a.cmp(b));
        let calls = calls.into_iter().map(|((path, _), (whole, places))| {
            let filled = filled(&whole, &mut Place::new(), &places);
            (path, filled)
        });
        calls.collect()
    }
}

/// The structure with nodes filled in.
fn filled(whole: &Argument, at: &mut Place, places: &FxHashMap<Place, NodeId>) -> Argument {
    if let Some(node) = places.get(at) {
        return Argument::Node(*node);
    }
    let mut item = |position: usize, item: &Argument| {
        at.push(u32::try_from(position).expect("the items of a value are numbered by 32 bits"));
        let filled = filled(item, at, places);
        at.pop();
        filled
    };
    let mut all = |items: &[Argument]| -> Arc<Vec<Argument>> {
        let items = items.iter().enumerate();
        Arc::new(items.map(|(i, inner)| item(i, inner)).collect())
    };
    match whole {
        Argument::List(items) => Argument::List(all(items)),
        Argument::Tuple(items) => Argument::Tuple(all(items)),
        Argument::Dict(items) => {
            let items = items.iter().enumerate();
            let items = items.map(|(i, (key, inner))| (key.clone(), item(i, inner)));
            Argument::Dict(Arc::new(items.collect()))
        }
        plain => plain.clone(),
    }
}
