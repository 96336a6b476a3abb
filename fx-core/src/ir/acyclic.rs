//! Cycles: rejects edits by which a node would depend on itself.
//!
//! Invariant: there is an order in which every node comes after its inputs: the list's own order
//! or, while the list is out of order, `detour`, which also contains all nodes. So an edit is
//! checked only if it contradicts that order, and only among the nodes in between.

use smallvec::SmallVec;

use super::graph::Graph;
use super::journal::Record;
use super::order::{Order, ROOT};
use super::small_set::SmallSet;
use crate::error::{ErrorKind, Result};

impl Graph {
    /// Ensures that all of `users` may use all of `defs`.
    ///
    /// # Errors
    /// Returns an error if one of them would depend on itself; nothing changes then.
    pub(super) fn admit(&mut self, defs: &[u32], users: &[u32]) -> Result<()> {
        let order = self.order_of_uses();
        match users.iter().copied().min_by_key(|user| order.key(*user)) {
            Some(first) => self.admit_from(defs, users, first),
            None => Ok(()),
        }
    }

    /// An order in which every node comes after its inputs.
    pub(super) fn order_of_uses(&self) -> &Order {
        self.detour.as_deref().unwrap_or(&self.order)
    }

    /// Same as [`admit`](Graph::admit), if the first user [in that order](Graph::order_of_uses) is
    /// known.
    pub(super) fn admit_from(&mut self, defs: &[u32], users: &[u32], first: u32) -> Result<()> {
        let order = self.order_of_uses();
        if defs.iter().all(|def| order.is_before(*def, first)) {
            return Ok(());
        }
        let users: SmallSet = users.iter().copied().collect();
        // Nodes that the new inputs need, and that come after the first user, move before it.
        let mut between: Vec<u32> = Vec::new();
        let mut seen = SmallSet::default();
        let mut pending: SmallVec<[u32; 8]> = SmallVec::new();
        for def in defs {
            pending.push(*def);
            while let Some(index) = pending.pop() {
                if order.is_before(index, first) || !seen.insert(index) {
                    continue;
                }
                if users.contains(index) {
                    return Err(ErrorKind::Cycle {
                        node: self.name_of(index).to_string(),
                        through: self.name_of(*def).to_string(),
                    }
                    .into());
                }
                between.push(index);
                pending.extend(self.uses.inputs(index));
            }
        }
        between.sort_unstable_by_key(|index| order.key(*index));
        self.detour();
        for index in between {
            let next = self.next_in_detour(index);
            if self.journal.is_open() {
                self.journal.record(Record::DetourMoved { index, next });
            }
            let detour = self.detour();
            detour.remove(index);
            detour.insert_before(index, first);
        }
        Ok(())
    }

    /// The order beside the list, created as a copy of the list's order if needed.
    fn detour(&mut self) -> &mut Order {
        if self.detour.is_none() && self.journal.is_open() {
            self.journal.record(Record::DetourMade);
        }
        let order = &self.order;
        self.detour.get_or_insert_with(|| Box::new(order.clone()))
    }

    /// A new node was added to the list.
    pub(super) fn order_new(&mut self, index: u32, inputs: &[u32]) {
        if self.detour.is_none() {
            let is_at_end = self.order.next(index) == ROOT;
            let is_before = |input: &u32| self.order.is_before(*input, index);
            if is_at_end || inputs.iter().all(is_before) {
                return;
            }
            let detour = self.detour();
            detour.remove(index);
            detour.insert_before(index, ROOT);
            return;
        }
        // Nothing uses it yet.
        let detour = self.detour();
        detour.grow_to(index);
        detour.insert_before(index, ROOT);
    }

    /// A node is about to be removed from the list.
    pub(super) fn order_gone(&mut self, index: u32) {
        if let Some(detour) = &mut self.detour {
            detour.remove(index);
        }
    }

    /// A node is about to move in the list, before another node or to the end.
    pub(super) fn order_moved(&mut self, index: u32, next: u32) {
        if self.detour.is_some() {
            return;
        }
        let order = &self.order;
        let stays = if next != ROOT && order.is_before(next, index) {
            let mut inputs = self.uses.inputs(index);
            inputs.all(|input| order.is_before(input, next))
        } else {
            let mut users = self.uses.users(index);
            users.all(|user| next != ROOT && !order.is_before(user, next))
        };
        if !stays {
            self.detour();
        }
    }

    /// The list is about to be rearranged.
    pub(super) fn order_rearranged(&mut self, indices: &[u32]) {
        let mut place = vec![0; self.heads.len()];
        for (at, index) in indices.iter().enumerate() {
            place[*index as usize] = at;
        }
        let is_after_inputs = |index: &u32| {
            let mut inputs = self.uses.inputs(*index);
            inputs.all(|input| place[input as usize] < place[*index as usize])
        };
        if indices.iter().all(is_after_inputs) {
            self.order_is_topological();
        } else {
            self.detour();
        }
    }

    /// In the list, every node now comes after its inputs.
    pub(super) fn order_is_topological(&mut self) {
        if let Some(detour) = self.detour.take()
            && self.journal.is_open()
        {
            self.journal.record(Record::DetourDropped(detour));
        }
    }
}
