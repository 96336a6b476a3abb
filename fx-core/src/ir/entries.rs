//! The entries of a graph's nodes: read, written, and kept by passes and replacements.
//!
//! Invariant: a computed entry is dropped wherever what it says may have changed.

use std::any::{Any, TypeId};
use std::sync::Arc;

use super::graph::Graph;
use super::meta::{
    Entries, Entry, Extra, MadeFrom, Meta, MetaPolicy, NodeAction, NodeSource, Pass,
};
use super::node::{NodeMut, NodeRef};
use crate::value::handle::NodeId;

impl<'g> NodeRef<'g> {
    /// The node's entry of a type.
    pub fn meta<T: Meta>(self) -> Option<&'g T> {
        let extra = self.graph().notes_of(self.index).extra.as_deref()?;
        extra.entries.get()
    }

    /// The node's entries with their types.
    pub(crate) fn entries(self) -> impl Iterator<Item = (TypeId, &'g dyn Any)> {
        let extra = self.graph().notes_of(self.index).extra.as_deref();
        extra.into_iter().flat_map(|extra| extra.entries.iter())
    }

    /// What passes did to produce the node, in order.
    pub fn sources(self) -> &'g [NodeSource] {
        match &self.graph().notes_of(self.index).extra {
            Some(extra) => &extra.sources,
            None => &[],
        }
    }
}

impl NodeMut<'_> {
    /// Sets the node's entry of a type.
    pub fn set_meta<T: Meta>(&mut self, value: T) {
        self.put_entry(Entry::of(value));
    }

    /// [`set_meta`](NodeMut::set_meta) for an entry of dynamic type.
    pub(crate) fn put_entry(&mut self, entry: Entry) {
        let is_computed = entry.is_computed();
        self.extra_mut().entries.put(entry);
        if is_computed {
            self.mark_known();
        }
        self.tell_changed();
    }

    /// [`put_entry`](NodeMut::put_entry) for several entries.
    pub(crate) fn put_entries(&mut self, entries: &Entries) {
        for entry in &entries.0 {
            self.put_entry(entry.clone());
        }
    }

    /// Has the entries of a node whose value this one takes, as the input of a part.
    pub(crate) fn stand_for(&mut self, other: NodeRef<'_>) {
        let extra = other.graph().notes_of(other.index).extra.as_ref();
        if let Some(extra) = extra {
            self.put_entries(&extra.entries.of_part());
        }
    }

    /// Adds what a copy of `other` would have, if the node lacks it: entries whose policy says so,
    /// provenance and type. Computed entries are added only if `gives_same`.
    pub(crate) fn take_after(&mut self, other: NodeRef<'_>, gives_same: bool) {
        let extra = other.graph().notes_of(other.index).extra.as_ref();
        if let Some(copied) = extra.and_then(|extra| extra.copied(gives_same)) {
            let knows = copied.is_computed();
            let extra = self.extra_mut();
            for entry in &copied.entries.0 {
                if !extra.entries.0.iter().any(|e| e.ty == entry.ty) {
                    extra.entries.0.push(entry.clone());
                }
            }
            if extra.sources.is_empty() {
                extra.sources.clone_from(&copied.sources);
            }
            if knows {
                self.mark_known();
            }
            self.tell_changed();
        }
        if self.as_ref().type_expr().is_none() {
            self.set_type_expr(other.type_expr());
        }
    }

    /// Sets what passes did to produce the node.
    pub(crate) fn set_sources(&mut self, sources: Vec<NodeSource>) {
        self.extra_mut().sources = sources.into();
        self.tell_changed();
    }

    /// Removes the node's entry of a type. Returns `false` if there was none.
    pub fn remove_meta<T: Meta>(&mut self) -> bool {
        let known = self.as_ref().meta::<T>().is_some();
        if known {
            self.extra_mut().entries.remove::<T>();
            self.tell_changed();
        }
        known
    }
}

/// A running pass on a graph: nodes created and replaced during its lifetime record it. Derefs to
/// the graph.
#[derive(Debug)]
pub struct PassScope<'g> {
    graph: &'g mut Graph,
    former: Option<Pass>,
}

impl std::ops::Deref for PassScope<'_> {
    type Target = Graph;
    fn deref(&self) -> &Graph {
        self.graph
    }
}

impl std::ops::DerefMut for PassScope<'_> {
    fn deref_mut(&mut self) -> &mut Graph {
        self.graph
    }
}

impl Drop for PassScope<'_> {
    fn drop(&mut self) {
        self.graph.end_pass(self.former.take());
    }
}

impl Graph {
    /// Nodes created or replaced until the guard is dropped record this pass.
    pub fn in_pass(&mut self, name: impl Into<Arc<str>>) -> PassScope<'_> {
        let former = self.start_pass(name);
        PassScope {
            graph: self,
            former,
        }
    }

    /// [`in_pass`](Graph::in_pass) without a guard; returns the former pass, to be restored by
    /// [`end_pass`](Graph::end_pass).
    pub(crate) fn start_pass(&mut self, name: impl Into<Arc<str>>) -> Option<Pass> {
        let name = name.into();
        let created = Extra::created(name.clone(), Vec::new());
        self.pass.0.replace(Pass { name, created })
    }

    /// Nodes that the running pass creates from now on come from these, by name; returns the value
    /// to pass to [`made_from_before`](Graph::made_from_before).
    pub(crate) fn make_from(&mut self, nodes: &[NodeId]) -> MadeFrom {
        let created = self.pass.0.as_ref();
        let created = created.map(|pass| self.created_from(pass, nodes));
        let pass = self.pass.0.as_mut().zip(created);
        MadeFrom(pass.map(|(pass, created)| std::mem::replace(&mut pass.created, created)))
    }

    /// The content of nodes that a pass creates from others.
    fn created_from(&self, pass: &Pass, nodes: &[NodeId]) -> Arc<Extra> {
        let names = nodes.iter().filter_map(|id| self.node(*id).ok());
        let mut from = Vec::with_capacity(nodes.len());
        from.extend(names.map(|node| String::from(node.name())));
        Extra::created(pass.name.clone(), from)
    }

    /// Records that nodes just created by the running pass come from these, by name.
    pub(crate) fn note_made_from(&mut self, made: &[NodeId], from: &[NodeId]) {
        let Some(pass) = self.pass.0.as_ref().filter(|_| !made.is_empty()) else {
            return;
        };
        let (created, bare) = (self.created_from(pass, from), pass.created.clone());
        for node in made {
            let Ok(index) = self.index(*node) else {
                continue;
            };
            match &mut self.notes_of_mut(index).extra {
                Some(extra) if !Arc::ptr_eq(extra, &bare) => {
                    let sources = &mut Arc::make_mut(extra).sources;
                    sources.pop();
                    sources.extend(created.sources.iter().cloned());
                }
                extra => *extra = Some(created.clone()),
            }
            self.tell_changed(index);
        }
    }

    pub(crate) fn made_from_before(&mut self, former: MadeFrom) {
        if let (Some(pass), Some(created)) = (&mut self.pass.0, former.0) {
            pass.created = created;
        }
    }

    pub(crate) fn end_pass(&mut self, former: Option<Pass>) {
        self.pass.0 = former;
    }

    /// Records that a pass created these nodes, in a separate graph.
    pub(crate) fn created_in_pass(&mut self, name: &str, nodes: &[NodeId]) {
        let former = self.start_pass(name);
        for node in nodes {
            if let Ok(index) = self.index(*node) {
                self.notes_of_mut(index);
                self.note_created(index);
                self.tell_changed(index);
            }
        }
        self.end_pass(former);
    }

    /// Removes a node's computed entries.
    pub(super) fn forget_computed(&mut self, index: u32) {
        let extra = self.notes_of(index).extra.as_deref();
        if extra.is_some_and(Extra::is_computed) {
            let entries = &mut self.extra_of_mut(index).entries.0;
            entries.retain(|entry| !entry.is_computed());
            self.tell_changed(index);
        }
    }

    /// Whether a node shares all computed entries of another, except one type.
    pub(super) fn shares_computed(&self, old: u32, new: u32, aside: TypeId) -> bool {
        let entries = |index: u32| {
            let extra = self.notes_of(index).extra.as_deref();
            extra.map_or(&[][..], |extra| &extra.entries.0)
        };
        let is_compared = |e: &&Entry| e.is_computed() && e.ty != aside;
        let mut compared = entries(old).iter().filter(is_compared);
        compared.all(|e| entries(new).iter().any(|n| Arc::ptr_eq(&n.value, &e.value)))
    }

    pub(super) fn extra_of_mut(&mut self, index: u32) -> &mut Extra {
        Arc::make_mut(self.notes_of_mut(index).extra.get_or_insert_default())
    }

    /// Records the running pass in a node that is new to the graph or to the pass.
    pub(super) fn note_created(&mut self, index: u32) {
        let Some(created) = self.pass.0.as_ref().map(|pass| pass.created.clone()) else {
            return;
        };
        match &mut self.notes[index as usize].extra {
            none @ None => *none = Some(created),
            Some(extra) => {
                let extra = Arc::make_mut(extra);
                extra.sources.extend(created.sources.iter().cloned());
            }
        }
    }

    /// Copies entries whose policy says so from `old` to its replacement `new`.
    pub(super) fn note_replaced(&mut self, old: u32, new: u32) {
        if let Some(extra) = self.notes_of(old).extra.as_deref() {
            let kept: Vec<Entry> = extra
                .entries
                .0
                .iter()
                .filter(|e| e.on_replace == MetaPolicy::Copy)
                .cloned()
                .collect();
            if !kept.is_empty() {
                let own = &mut self.extra_of_mut(new).entries.0;
                for entry in kept {
                    if own.iter().all(|e| e.ty != entry.ty) {
                        own.push(entry);
                    }
                }
                self.tell_changed(new);
            }
        }
        let Some(pass) = self.pass.0.as_ref().map(|pass| pass.name.clone()) else {
            return;
        };
        self.inherit_sources(old, new);
        let from = String::from(self.name_of(old));
        let sources = &mut self.extra_of_mut(new).sources;
        let is_made_here = sources
            .last()
            .is_some_and(|s| s.pass == pass && s.action == NodeAction::Create);
        match sources.last_mut() {
            Some(last) if last.pass == pass && last.action == NodeAction::Replace => {
                last.from.push(from);
            }
            _ => sources.push(NodeSource {
                pass,
                action: NodeAction::Replace,
                from: vec![from],
            }),
        }
        // A node created by a pass takes its source location from the first node that it replaces.
        if is_made_here && self.location_of(self.notes_of(old).location).is_some() {
            self.come_from(new, old);
        }
        self.tell_changed(new);
    }

    /// `new` inherits the history of `old`: the passes that created `old`, or replaced others by
    /// it, come first.
    fn inherit_sources(&mut self, old: u32, new: u32) {
        let Some(extra) = self.notes_of(old).extra.clone() else {
            return;
        };
        let known = &self.extra_of_mut(new).sources;
        let inherited: Vec<NodeSource> = extra
            .sources
            .iter()
            .filter(|source| {
                // If a pass both created a node and replaced others by it, only the replacement is
                // listed.
                let is_told = |other: &NodeSource| {
                    other.pass == source.pass && other.action == NodeAction::Replace
                };
                let is_new =
                    source.action == NodeAction::Replace || !extra.sources.iter().any(is_told);
                is_new && !known.contains(source)
            })
            .cloned()
            .collect();
        if !inherited.is_empty() {
            self.extra_of_mut(new).sources.insert_many(0, inherited);
        }
    }
}
