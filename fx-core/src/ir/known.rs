//! What is known about node values: computed entries (such as shapes, with
//! `MetaPolicy::Recompute`), and which of them an edit invalidates.
//!
//! Invariant: a node that knows something is marked, as is everything it depends on. Forgetting
//! walks forward only through marked nodes and clears their marks, so that edits in a loop pay for
//! each node once.

use std::any::TypeId;

use smallvec::SmallVec;

use super::argument::Argument;
use super::graph::Graph;
use super::journal::Record;
use super::node::NodeRef;
use super::value_meta::ValueMeta;
use crate::error::Result;
use crate::value::handle::NodeId;

impl Graph {
    /// Whether anything may be known about node values.
    pub(crate) fn knows_anything(&self) -> bool {
        !self.marks.is_empty()
    }

    fn note_mark(&mut self, index: u32, is_set: bool) {
        if self.journal.is_open() {
            self.journal.record(Record::Mark { index, is_set });
        }
    }

    /// Marks a node that has learnt something, and everything it depends on.
    pub(super) fn mark_known(&mut self, index: u32) {
        let mut pending: SmallVec<[u32; 8]> = SmallVec::new();
        let mut next = Some(index);
        while let Some(at) = next {
            if self.marks.set(at) {
                self.note_mark(at, true);
                let marks = &self.marks;
                pending.extend(self.uses.inputs(at).filter(|input| !marks.has(*input)));
            }
            next = pending.pop();
        }
    }

    /// The value of a node may have changed: the node and everything that depends on it lose their
    /// computed entries.
    pub(super) fn forget(&mut self, index: u32) {
        let mut pending: SmallVec<[u32; 8]> = SmallVec::from_slice(&[index]);
        while let Some(at) = pending.pop() {
            if self.marks.clear(at) {
                self.note_mark(at, false);
                self.forget_computed(at);
                pending.extend(self.uses.users(at).filter(|user| self.marks.has(*user)));
            }
        }
    }

    /// A node's arguments were rewritten without changing its value: marks its current inputs if it
    /// is marked.
    pub(super) fn still_knows(&mut self, index: u32) {
        if self.marks.has(index) {
            let inputs: SmallVec<[u32; 8]> = self.uses.inputs(index).collect();
            for input in inputs {
                self.mark_known(input);
            }
        }
    }

    /// Called before a user of `old` uses `new` instead. Unless both are known to be alike, the
    /// user and everything that depends on it forget.
    pub(super) fn forget_unless_alike(&mut self, user: u32, old: u32, new: &Argument) {
        if !self.marks.has(user) || self.are_alike(old, new) {
            return;
        }
        if !self.values_stay {
            return self.forget(user);
        }
        // What the user depends on is marked, now that it depends on this.
        new.for_each_node(&mut |id| {
            if let Ok(at) = self.index(id) {
                self.mark_known(at);
            }
        });
    }

    /// Replaces a node by an argument that gives the same value: what depends on it keeps what it knows.
    ///
    /// # Errors
    /// As [`substitute`](Graph::substitute).
    pub(crate) fn substitute_equal(&mut self, node: NodeId, new: &Argument) -> Result<()> {
        self.values_stay = true;
        let done = self.substitute(node, new);
        self.values_stay = false;
        done
    }

    /// Whether an argument of this graph is known to have the value of another graph's node.
    pub(super) fn gives_same(&self, argument: &Argument, node: NodeRef<'_>) -> bool {
        let meta = node.meta::<ValueMeta>();
        meta.is_some_and(|meta| self.fits_meta(argument, meta))
    }

    /// Whether all computed entries of a node are also known about an argument, and equal.
    fn are_alike(&self, old: u32, new: &Argument) -> bool {
        if let Argument::Node(new) = new
            && !self.shares_computed(old, new.index, TypeId::of::<ValueMeta>())
        {
            return false;
        }
        match self.node_at(old).meta::<ValueMeta>() {
            Some(known) => self.fits_meta(new, known),
            None => false,
        }
    }

    /// Whether an argument is known to match a meta.
    fn fits_meta(&self, argument: &Argument, meta: &ValueMeta) -> bool {
        match (argument, meta) {
            (Argument::Node(id), meta) => {
                let node = self.node(*id).ok();
                node.and_then(|node| node.meta::<ValueMeta>()) == Some(meta)
            }
            (
                Argument::List(items) | Argument::Tuple(items),
                ValueMeta::List(metas) | ValueMeta::Tuple(metas),
            ) => {
                items.len() == metas.len()
                    && items
                        .iter()
                        .zip(metas)
                        .all(|(item, m)| self.fits_meta(item, m))
            }
            (Argument::Dict(items), ValueMeta::Dict(metas)) => {
                let mut pairs = items.iter().zip(metas);
                items.len() == metas.len()
                    && pairs.all(|((a, item), (b, m))| **a == **b && self.fits_meta(item, m))
            }
            (plain, meta) => {
                Argument::plain_value(plain).is_some_and(|value| ValueMeta::of(&value) == *meta)
            }
        }
    }

    /// Notes that an argument has the value a meta describes; nodes in it that know nothing learn
    /// it.
    ///
    /// # Errors
    /// Returns an error if the argument names a node that is not in this graph.
    pub(crate) fn learn(&mut self, argument: &Argument, meta: &ValueMeta) -> Result<()> {
        match (argument, meta) {
            (Argument::Node(id), meta) => {
                let mut node = self.node_mut(*id)?;
                if node.as_ref().meta::<ValueMeta>().is_none() {
                    node.set_meta(meta.clone());
                }
                Ok(())
            }
            (
                Argument::List(items) | Argument::Tuple(items),
                ValueMeta::List(metas) | ValueMeta::Tuple(metas),
            ) => {
                let mut pairs = items.iter().zip(metas);
                pairs.try_for_each(|(item, meta)| self.learn(item, meta))
            }
            (Argument::Dict(items), ValueMeta::Dict(metas)) => {
                let mut pairs = items.iter().zip(metas);
                pairs.try_for_each(|((_, item), (_, meta))| self.learn(item, meta))
            }
            _ => Ok(()),
        }
    }

    /// `new` has the same value as `old`, and learns what is known about it if it knows nothing.
    ///
    /// # Errors
    /// Returns an error if either is not in this graph.
    pub(crate) fn learn_from(&mut self, new: NodeId, old: NodeId) -> Result<()> {
        let meta = self.node(old)?.meta::<ValueMeta>().cloned();
        match meta {
            Some(meta) => self.learn(&Argument::Node(new), &meta),
            None => Ok(()),
        }
    }

    /// All nodes with this op forget, and everything that depends on them.
    pub(crate) fn forget_op(&mut self, op: &super::op::Op) {
        let nodes = self.find_nodes(op);
        let nodes: SmallVec<[u32; 4]> = nodes.into_iter().map(|node| node.index).collect();
        for index in nodes {
            self.forget(index);
        }
    }
}
