//! What modules that were traced through returned: entries of the nodes whose values are in it, so that it follows copies
//! and replacements as the nodes' other entries do.
//!
//! Invariant: a part says where in the whole its node's value stands; parts of one call have equal wholes.

use std::sync::Arc;

use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use super::argument::Argument;
use super::graph::Graph;
use super::meta::{Meta, MetaPolicy};
use super::node::NodeMut;
use crate::value::handle::NodeId;

/// Where an item stands in a structure: positions from the outside inwards, none for the whole.
pub(crate) type Place = SmallVec<[u32; 2]>;

/// A node's value as a part of what a call of a module returned.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ReturnedPart {
    /// The module's path.
    pub module: Arc<str>,
    /// Which of its calls.
    pub call: u32,
    /// The structure, with `None` in the places of nodes.
    pub whole: Argument,
    /// Where in it the node's value is.
    pub at: Place,
}

/// All that a node's value is part of.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Returned(pub SmallVec<[ReturnedPart; 1]>);

impl Meta for Returned {
    const ON_COPY: MetaPolicy = MetaPolicy::Copy;
    const ON_REPLACE: MetaPolicy = MetaPolicy::Copy;
}

impl NodeMut<'_> {
    /// The node's value is part of more that modules returned.
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
    /// `new` took the place of `old`, also in what modules returned.
    pub(super) fn move_returned(&mut self, old: u32, new: u32) {
        if let Some(parts) = self.node_at(old).meta::<Returned>().cloned() {
            NodeMut::new(self, new).add_returned(parts.0);
        }
    }

    /// What each call of a module that was traced through returned, with its path: the calls in the order of their numbers.
    /// What is there no more is `None`.
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
        // Of several calls of one module the last one comes last.
        calls.sort_by(|(_, a), _, (_, b), _| a.cmp(b));
        let calls = calls.into_iter().map(|((path, _), (whole, places))| {
            let filled = filled(&whole, &mut Place::new(), &places);
            (path, filled)
        });
        calls.collect()
    }
}

/// The structure with nodes in their places.
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
