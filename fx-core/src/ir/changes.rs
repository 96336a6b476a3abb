//! The changes that an open edit has made to a graph, read from its journal.
//!
//! Invariant: nodes created and then erased, and changes that were reverted, are not reported.

use indexmap::IndexSet;
use rustc_hash::{FxBuildHasher, FxHashMap, FxHashSet};

use super::columns::Inputs;
use super::graph::Graph;
use super::identity::does_same;
use super::journal::{Record, Savepoint};
use crate::value::handle::NodeId;

/// The differences from a savepoint, by name.
#[derive(Debug, Default)]
pub(crate) struct Changes {
    /// New nodes, in order of creation.
    pub created: Vec<String>,
    /// Erased nodes, in order of erasure.
    pub erased: Vec<String>,
    /// Pairs of a replaced node and its replacement.
    pub replaced: Vec<(String, String)>,
    /// Existing nodes whose op or arguments differ, apart from replaced inputs, in the graph's
    /// order.
    pub edited: Vec<String>,
}

/// A node's former call.
struct Former {
    op: u32,
    inputs: Inputs,
}

/// The state reconstructed from the records. While an edit is open, no index that it freed is
/// reused, so an index identifies one node.
#[derive(Default)]
struct Reading {
    created: FxHashSet<u32>,
    /// Erased nodes, with their ids and names.
    erased: FxHashMap<u32, (NodeId, String)>,
    formers: FxHashMap<u32, Former>,
}

impl Graph {
    /// The differences from a savepoint of an open edit.
    pub(crate) fn changes_since(&self, start: &Savepoint<Graph>) -> Changes {
        let records = self.records_since(start);
        let reading = self.read_back(records);
        let mut changes = Changes::default();
        let mut pairs: IndexSet<(u32, u32), FxBuildHasher> = IndexSet::default();
        for record in records {
            match record {
                Record::Created { index, .. } if !reading.erased.contains_key(index) => {
                    changes.created.push(self.name_of(*index).to_string());
                }
                Record::Erased { index, .. } if !reading.created.contains(index) => {
                    let erased = reading.erased.get(index);
                    changes.erased.extend(erased.map(|(_, name)| name.clone()));
                }
                Record::Retargeted { old, new, .. } | Record::Replaced { old, new, .. } => {
                    pairs.insert((*old, *new));
                }
                _ => {}
            }
        }
        let name = |index: u32| match reading.erased.get(&index) {
            Some((_, name)) => name.clone(),
            None => self.name_of(index).to_string(),
        };
        let alive = |(_, new): &&(u32, u32)| !reading.erased.contains_key(new);
        let replaced = pairs.iter().filter(alive);
        changes.replaced = replaced
            .map(|(old, new)| (name(*old), name(*new)))
            .collect();

        let gave_way: FxHashSet<NodeId> = pairs
            .iter()
            .map(|(old, _)| self.id_in(&reading, *old))
            .collect();
        let same_input = |old, new| old == new || gave_way.contains(&old);
        let is_edited = |(index, former): &(&u32, &Former)| {
            let op = self.ops.get_index(former.op as usize);
            let kwargs = former.inputs.kwargs.as_deref();
            let kwargs = kwargs.map_or(&[][..], |kwargs| kwargs.as_slice());
            let call = (op, &former.inputs.args[..], kwargs);
            !does_same(call, self.node_at(**index), &same_input)
        };
        let edited = reading.formers.iter().filter(is_edited);
        let mut edited: Vec<NodeId> = edited.map(|(index, _)| self.id_of(*index)).collect();
        self.sort_ids(&mut edited);
        let edited = edited.into_iter().map(|id| name(id.index));
        changes.edited = edited.collect();
        changes
    }

    /// The names of the nodes that existed at a savepoint of an open edit.
    pub(crate) fn names_at(&self, start: &Savepoint<Graph>) -> Vec<String> {
        let reading = self.read_back(self.records_since(start));
        let alive = self
            .nodes()
            .filter(|node| !reading.created.contains(&node.index));
        let alive = alive.map(|node| node.name().to_string());
        let erased = reading.erased.iter();
        let erased = erased.filter(|(index, _)| !reading.created.contains(index));
        alive
            .chain(erased.map(|(_, (_, name))| name.clone()))
            .collect()
    }

    /// Reads the records backwards, so that each is read in the state after it.
    fn read_back(&self, records: &[Record]) -> Reading {
        let mut reading = Reading::default();
        let mut names = &self.names;
        for record in records.iter().rev() {
            match record {
                Record::Created { index, .. } => {
                    reading.created.insert(*index);
                    reading.formers.remove(index);
                }
                Record::Erased { index, stamp, .. } => {
                    let name = names.get(self.heads[*index as usize].name).to_string();
                    let (index, stamp) = (*index, *stamp);
                    let id = NodeId { index, stamp };
                    reading.erased.insert(index, (id, name));
                }
                Record::Renamed(former) => names = &former.0,
                Record::Inputs(former) => {
                    if let Some(call) = self.former(&mut reading, former.index) {
                        call.inputs.clone_from(&former.inputs);
                    }
                }
                Record::Written(former) => {
                    if let Some(call) = self.former(&mut reading, former.index) {
                        for (place, argument) in former.places.iter().rev() {
                            if let Some(slot) = call.inputs.at_mut(place) {
                                slot.clone_from(argument);
                            }
                        }
                    }
                }
                Record::Retargeted { user, old, new, .. } => {
                    let old = self.id_in(&reading, *old);
                    if let Some(call) = self.former(&mut reading, *user) {
                        call.inputs.swap_node(*new, old);
                    }
                }
                Record::Op { index, op } => {
                    if let Some(call) = self.former(&mut reading, *index) {
                        call.op = *op;
                    }
                }
                _ => {}
            }
        }
        reading
    }

    /// A node's former call, as far as the records have been read; `None` if the node is erased.
    fn former<'r>(&self, reading: &'r mut Reading, index: u32) -> Option<&'r mut Former> {
        if reading.erased.contains_key(&index) {
            return None;
        }
        Some(reading.formers.entry(index).or_insert_with(|| Former {
            op: self.heads[index as usize].op,
            inputs: self.inputs[index as usize].clone(),
        }))
    }

    fn id_in(&self, reading: &Reading, index: u32) -> NodeId {
        match reading.erased.get(&index) {
            Some((id, _)) => *id,
            None => self.id_of(index),
        }
    }
}
