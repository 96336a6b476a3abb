//! Undoing records of the journal, and freeing what they kept once no edit is open.
//!
//! Invariant: a record is undone in the state right after its change, which restores the state
//! before it. An observer is notified of the reverse of its event, in the same state.

use std::any::Any;
use std::num::NonZeroU32;
use std::panic::{AssertUnwindSafe, catch_unwind};

use super::graph::Graph;
use super::journal::{FormerInputs, FormerPlaces, Record};
use super::node::NodeRef;
use super::observe::GraphObserver;
use super::order::ROOT;
use super::uses::Retarget;

/// The first panic of an observer.
type Panic = Option<Box<dyn Any + Send>>;

impl Graph {
    /// Undoes all records except the first ones. A panic of an observer is kept until everything is
    /// undone.
    pub(super) fn undo_to(&mut self, records: usize) -> Panic {
        let mut panic = None;
        while self.journal.records.len() > records {
            if let Some(record) = self.journal.records.pop() {
                self.undo(record, &mut panic);
            }
        }
        panic
    }

    fn undo(&mut self, record: Record, panic: &mut Panic) {
        match record {
            Record::Created { index, is_reused } => self.undo_created(index, is_reused, panic),
            Record::Erased {
                index,
                stamp,
                next,
                detour_next,
                is_marked,
            } => {
                self.undo_erased(index, stamp, (next, detour_next), is_marked);
                self.tell_back(panic, |observer, graph| {
                    observer.created(NodeRef::new(graph, index));
                });
            }
            Record::Inputs(former) => {
                let FormerInputs {
                    index,
                    inputs,
                    edges,
                } = *former;
                self.wide.forget(index);
                self.uses.give_back(index, edges);
                self.inputs[index as usize] = inputs;
                self.tell_changed_back(panic, index);
            }
            Record::Written(former) => {
                let FormerPlaces {
                    index,
                    mut places,
                    uses,
                    slots,
                } = *former;
                for change in uses.into_iter().rev() {
                    self.uses.undo(change);
                }
                let former = places.clone();
                for (place, argument) in &mut places {
                    if let Some(slot) = self.inputs[index as usize].at_mut(place) {
                        std::mem::swap(slot, argument);
                    }
                }
                if let Some(mentions) = self.wide.known(index) {
                    mentions.give_back(&places, &former, &slots);
                }
                self.tell_changed_back(panic, index);
            }
            Record::Retargeted {
                user,
                old,
                new,
                edge,
            } => self.undo_retargeted(user, old, new, edge, panic),
            Record::Replaced { user, old, new } => self.tell_back(panic, |observer, graph| {
                let [user, old, new] = [user, old, new].map(|index| NodeRef::new(graph, index));
                observer.replaced(new, old, user);
            }),
            Record::Op { index, op } => {
                self.forget_member(index);
                self.heads[index as usize].op = op;
                self.add_member(index);
                self.tell_changed_back(panic, index);
            }
            Record::Name { index, name } => {
                self.forget_name(index);
                self.heads[index as usize].name = name;
                self.add_name(index);
                self.tell_changed_back(panic, index);
            }
            Record::Named(taken) => self.names.give_back(taken),
            Record::Renamed(former) => {
                let (names, given) = *former;
                self.names = names;
                self.by_name = Default::default();
                for (index, name) in &given {
                    self.heads[*index as usize].name = *name;
                }
                for (index, _) in given {
                    self.tell_changed_back(panic, index);
                }
            }
            Record::Moved { index, next } => {
                self.order.remove(index);
                self.order.insert_before(index, next);
                self.tell_changed_back(panic, index);
            }
            Record::Rearranged(order) => {
                self.order.rearrange(&order);
                for index in order {
                    self.tell_changed_back(panic, index);
                }
            }
            Record::DetourMade => self.detour = None,
            Record::DetourMoved { index, next } => {
                if let Some(detour) = &mut self.detour {
                    detour.remove(index);
                    detour.insert_before(index, next);
                }
            }
            Record::DetourDropped(detour) => self.detour = Some(detour),
            Record::Notes { index, notes } => {
                self.notes[index as usize] = *notes;
                self.tell_changed_back(panic, index);
            }
            Record::Mark { index, is_set } => {
                self.marks.put(index, !is_set);
            }
            Record::Interned => {
                self.ops.pop();
                self.members.pop();
            }
        }
    }

    fn undo_created(&mut self, index: u32, is_reused: bool, panic: &mut Panic) {
        self.tell_back(panic, |observer, graph| {
            observer.erased(NodeRef::new(graph, index));
        });
        self.uses.clear_inputs(index);
        self.wide.forget(index);
        self.order_gone(index);
        self.order.remove(index);
        self.forget_name(index);
        self.forget_last_member(index);
        self.order.set_stamp(index, None);
        self.marks.put(index, false);
        self.len -= 1;
        if is_reused {
            self.inputs[index as usize].clear();
            self.notes[index as usize].clear();
            self.free.push(index);
        } else {
            // Later nodes are already gone, so its place is the last in each column.
            debug_assert_eq!(self.heads.len(), index as usize + 1);
            self.heads.pop();
            self.inputs.pop();
            self.notes.pop();
            self.order.shrink();
            self.uses.shrink();
        }
    }

    fn undo_erased(
        &mut self,
        index: u32,
        stamp: NonZeroU32,
        (next, detour_next): (u32, u32),
        is_marked: bool,
    ) {
        self.order.set_stamp(index, Some(stamp));
        self.order.insert_before(index, next);
        if let Some(detour) = &mut self.detour {
            detour.insert_before(index, detour_next);
        }
        self.uses.give_back_all(index);
        self.add_member(index);
        self.add_name(index);
        self.marks.put(index, is_marked);
        self.len += 1;
    }

    fn undo_retargeted(
        &mut self,
        user: u32,
        old: u32,
        new: u32,
        edge: Retarget,
        panic: &mut Panic,
    ) {
        self.tell_back(panic, |observer, graph| {
            let [user, old, new] = [user, old, new].map(|index| NodeRef::new(graph, index));
            observer.replaced(new, old, user);
        });
        self.uses.retarget_back(edge, old);
        let old = self.id_of(old);
        self.inputs[user as usize].swap_node(new, old);
        self.tell_changed_back(panic, user);
    }

    /// Frees what a record kept for undoing.
    pub(super) fn release(&mut self, record: &Record) {
        match record {
            Record::Erased { index, .. } => {
                self.uses.free_inputs(*index);
                self.inputs[*index as usize].clear();
                self.notes[*index as usize].clear();
                self.free.push(*index);
            }
            Record::Inputs(former) => self.uses.free_edges(&former.edges),
            Record::Written(former) => self.uses.free_changes(&former.uses),
            _ => {}
        }
    }

    fn tell_changed_back(&self, panic: &mut Panic, index: u32) {
        self.tell_back(panic, |observer, graph| {
            observer.changed(NodeRef::new(graph, index));
        });
    }

    fn tell_back(&self, panic: &mut Panic, event: impl Fn(&dyn GraphObserver, &Graph)) {
        if self.has_observers()
            && let Err(caught) = catch_unwind(AssertUnwindSafe(|| self.tell(event)))
        {
            panic.get_or_insert(caught);
        }
    }

    /// The node that follows this one in the detour.
    pub(super) fn next_in_detour(&self, index: u32) -> u32 {
        let detour = self.detour.as_deref();
        detour.map_or(ROOT, |detour| detour.next(index))
    }
}
