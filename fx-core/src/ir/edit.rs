//! Changing nodes: arguments, targets, uses, positions, names and removal.
//!
//! Invariant: an edit that fails changes nothing.

use std::sync::{Arc, OnceLock};

use rustc_hash::FxHashSet;
use smallvec::SmallVec;

use super::argument::{Args, Argument, Kwargs};
use super::columns::{Inputs, Notes, input_indices};
use super::copy::mapped_inputs;
use super::graph::Graph;
use super::journal::{FormerInputs, FormerPlaces, Record};
use super::mentions::{Path, has_few_leaves};
use super::names::{NameId, NameSpace, Taken};
use super::node::NodeRef;
use super::op::Op;
use crate::error::{Error, ErrorKind, Result};
use crate::value::handle::NodeId;

impl Graph {
    /// Removes a node without users.
    ///
    /// # Errors
    /// Returns an error if the node has users, which the error lists, or is not in this graph.
    pub fn erase_node(&mut self, id: NodeId) -> Result<()> {
        let index = self.index(id)?;
        if self.uses.count(index) > 0 {
            return Err(ErrorKind::NodeInUse {
                node: self.name_of(index).to_string(),
                users: self
                    .uses
                    .users(index)
                    .map(|user| self.name_of(user).to_string())
                    .collect(),
            }
            .into());
        }
        self.tell(|observer, graph| observer.erased(NodeRef::new(graph, index)));
        self.touch(index);
        let (prev, next) = (self.order.prev(index), self.order.next(index));
        let is_kept = self.journal.is_open();
        if is_kept {
            let detour_next = self.next_in_detour(index);
            self.journal.record(Record::Erased {
                index,
                stamp: id.stamp,
                next,
                detour_next,
                is_marked: self.marks.has(index),
            });
            self.uses.put_away_inputs(index);
        } else {
            self.uses.clear_inputs(index);
        }
        self.cursor.leave(index, prev, next);
        self.wide.forget(index);
        self.order_gone(index);
        self.order.remove(index);
        self.forget_name(index);
        self.forget_member(index);
        self.order.set_stamp(index, None);
        self.marks.clear(index);
        self.len -= 1;
        if !is_kept {
            self.inputs[index as usize].clear();
            self.notes[index as usize].clear();
            self.free.push(index);
        }
        Ok(())
    }

    /// Moves a node before another, or to the end for `ROOT`.
    pub(super) fn move_before(&mut self, index: u32, next: u32) {
        if index == next || self.order.next(index) == next {
            return;
        }
        self.order_moved(index, next);
        let (before, after) = (self.order.prev(index), self.order.next(index));
        self.touch(index);
        if self.journal.is_open() {
            self.journal.record(Record::Moved { index, next: after });
        }
        self.cursor.leave(index, before, after);
        self.order.remove(index);
        self.order.insert_before(index, next);
        self.tell_changed(index);
    }

    pub(super) fn move_after(&mut self, index: u32, previous: u32) {
        if index != previous {
            let next = self.order.next(previous);
            self.move_before(
                index,
                if next == index {
                    self.order.next(index)
                } else {
                    next
                },
            );
        }
    }

    /// Changes a node's opcode or target.
    pub(super) fn set_op(&mut self, index: u32, op: Op) -> Result<()> {
        let op = self.intern(op)?;
        self.touch(index);
        self.forget_member(index);
        let former = std::mem::replace(&mut self.heads[index as usize].op, op);
        if self.journal.is_open() {
            self.journal.record(Record::Op { index, op: former });
        }
        self.add_member(index);
        self.touch(index);
        self.tell_changed(index);
        Ok(())
    }

    /// Renames a node; a number is appended if the name is taken.
    pub(super) fn rename(&mut self, index: u32, wanted: &str) {
        if self.name_of(index) == wanted {
            return;
        }
        self.forget_name(index);
        let taken = self.names.create(wanted);
        let new = self.note_named(taken);
        let name = std::mem::replace(&mut self.heads[index as usize].name, new);
        if self.journal.is_open() {
            self.journal.record(Record::Name { index, name });
        }
        self.add_name(index);
        self.tell_changed(index);
    }

    /// Records that a name was assigned.
    pub(super) fn note_named(&mut self, taken: Taken) -> NameId {
        if self.journal.is_open() {
            self.journal.record(Record::Named(taken));
        }
        taken.id
    }

    /// Gives every node the name it would have if the nodes were created again, in order, with
    /// these wanted names; placeholders keep theirs. Returns whether any name changed.
    pub(crate) fn rename_all(&mut self, wanted: impl Fn(NodeRef<'_>) -> &str) -> bool {
        let mut names = NameSpace::with_capacity(self.names.bases());
        let mut given = Vec::with_capacity(self.len());
        let inputs = self.placeholders().map(|node| (node, true));
        let rest = self.nodes().map(|node| (node, false));
        let rest = rest.filter(|(node, _)| !matches!(node.op(), Op::Placeholder(_)));
        let mut renamed = false;
        for (node, keep) in inputs.chain(rest) {
            let id = match keep {
                true => names.create_like(node.name()).id,
                false => names.create(wanted(node)).id,
            };
            renamed |= names.get(id) != node.name();
            given.push((node.index, id));
        }
        let names = std::mem::replace(&mut self.names, names);
        for (index, id) in &mut given {
            std::mem::swap(&mut self.heads[*index as usize].name, id);
        }
        self.by_name = OnceLock::new();
        if self.has_observers() {
            for (index, _) in &given {
                self.tell_changed(*index);
            }
        }
        if self.journal.is_open() {
            let former = Box::new((names, given));
            self.journal.record(Record::Renamed(former));
        }
        renamed
    }

    /// Copies another node's source location and modules to a node.
    pub(super) fn come_from(&mut self, index: u32, other: u32) {
        let Notes {
            location, scope, ..
        } = *self.notes_of(other);
        let notes = self.notes_of_mut(index);
        (notes.location, notes.scope) = (location, scope);
        self.tell_changed(index);
    }

    /// Rearranges the nodes; the new order must contain all of them.
    ///
    /// # Errors
    /// Returns an error if a node is missing, repeated, or not in this graph; nothing changes then.
    pub(crate) fn rearrange(&mut self, order: &[NodeId]) -> Result<()> {
        let mut seen = vec![false; self.heads.len()];
        let mut indices = Vec::with_capacity(order.len());
        for id in order {
            let index = self.index(*id)?;
            if std::mem::replace(&mut seen[index as usize], true) {
                return Err(Error::msg("an order contains every node once"));
            }
            indices.push(index);
        }
        if indices.len() != self.len() {
            return Err(Error::msg("an order contains every node"));
        }
        self.order_rearranged(&indices);
        self.rearrange_to(&indices);
        Ok(())
    }

    /// Rearranges the nodes; the new order is known to contain all of them.
    pub(super) fn rearrange_to(&mut self, indices: &[u32]) {
        if self.journal.is_open() {
            let former = self.nodes().map(|node| node.index).collect();
            self.journal.record(Record::Rearranged(former));
        }
        self.order.rearrange(indices);
        self.version.advance();
        self.inputs_version.advance();
        if self.has_observers() {
            for index in indices {
                self.tell_changed(*index);
            }
        }
    }

    /// Rejects arguments that name erased or foreign nodes, or nest too deep.
    pub(super) fn checked_inputs(&self, args: Args, kwargs: Kwargs) -> Result<Inputs> {
        if kwargs.len() > 1 {
            check_names(&kwargs)?;
        }
        for arg in args.iter().chain(kwargs.iter().map(|(_, a)| a)) {
            self.check_argument(arg)?;
        }
        Ok(Inputs {
            args,
            kwargs: (!kwargs.is_empty()).then(|| Arc::new(kwargs)),
        })
    }

    /// Rejects an argument that names erased or foreign nodes, or nests too deep.
    #[inline]
    pub(super) fn check_argument(&self, arg: &Argument) -> Result<()> {
        match arg {
            Argument::Node(id) => self.index(*id).map(drop),
            leaf if leaf.is_leaf() => Ok(()),
            nested => self.check_nested(nested),
        }
    }

    fn check_nested(&self, arg: &Argument) -> Result<()> {
        arg.check_depth()?;
        let mut stale = None;
        arg.for_each_node(&mut |id| {
            if stale.is_none() {
                stale = self.index(id).err();
            }
        });
        stale.map_or(Ok(()), Err)
    }

    pub(super) fn set_inputs(&mut self, index: u32, args: Args, kwargs: Kwargs) -> Result<()> {
        let inputs = self.checked_inputs(args, kwargs)?;
        let defs = input_indices(&inputs);
        self.admit(&defs, &[index])?;
        self.wide.forget(index);
        self.put_inputs(index, inputs, &defs);
        Ok(())
    }

    /// Writes arguments that are known to be valid, and updates the uses.
    fn put_inputs(&mut self, index: u32, inputs: Inputs, defs: &[u32]) {
        debug_assert!(
            defs.iter().all(|def| self.order.stamp(*def).is_some()),
            "what a node uses is alive"
        );
        self.touch(index);
        let former = std::mem::replace(&mut self.inputs[index as usize], inputs);
        if self.journal.is_open() {
            let former = FormerInputs {
                index,
                inputs: former,
                edges: self.uses.set_inputs_kept(index, defs.iter().copied()),
            };
            self.journal.record(Record::Inputs(Box::new(former)));
        } else {
            self.uses.set_inputs(index, defs);
        }
        self.tell_changed(index);
    }

    /// Replaces an argument, by its position among positional and then keyword arguments.
    pub(super) fn set_argument(&mut self, index: u32, at: u32, new: Argument) -> Result<()> {
        self.check_argument(&new)?;
        let mut defs: SmallVec<[u32; 4]> = SmallVec::new();
        new.for_each_node(&mut |id| defs.push(id.index));
        self.admit(&defs, &[index])?;
        self.write_at(index, &[Path::from_slice(&[at])], &new);
        Ok(())
    }

    /// Writes an argument to some places among a node's arguments, and updates the uses.
    fn write_at(&mut self, user: u32, places: &[Path], new: &Argument) {
        let inputs = &mut self.inputs[user as usize];
        let Some(mentions) = self.wide.of(user, inputs, &self.uses) else {
            let mut inputs = inputs.clone();
            for place in places {
                if let Some(slot) = inputs.at_mut(place) {
                    *slot = new.clone();
                }
            }
            let defs = input_indices(&inputs);
            return self.put_inputs(user, inputs, &defs);
        };
        let is_kept = self.journal.is_open();
        let mut slots = Vec::new();
        if is_kept {
            self.uses.keep_changes();
            slots = mentions.slots(new);
        }
        let mut former = Vec::new();
        for place in places {
            if let Some(slot) = inputs.at_mut(place) {
                if is_kept {
                    slots.extend(mentions.slots(slot));
                }
                mentions.remove(&mut self.uses, slot, place);
                let argument = std::mem::replace(slot, new.clone());
                if is_kept {
                    former.push((place.clone(), argument));
                }
            }
        }
        for place in places {
            mentions.add(&mut self.uses, new, place);
        }
        mentions.settle(&mut self.uses);
        if let Some(uses) = self.uses.kept_changes() {
            let former = FormerPlaces {
                index: user,
                places: former,
                uses,
                slots,
            };
            self.journal.record(Record::Written(Box::new(former)));
        }
        self.touch(user);
        self.tell_changed(user);
    }

    /// Replaces `old` by `new` in every user except `new` itself and those that `filter` rejects.
    pub(super) fn replace_uses(
        &mut self,
        old: u32,
        new: NodeId,
        filter: &mut dyn FnMut(NodeRef<'_>) -> bool,
    ) -> Result<SmallVec<[NodeId; 4]>> {
        let new_index = self.index(new)?;
        if new_index == old {
            return Ok(SmallVec::new());
        }
        // One walk over the users finds everything needed: there may be many.
        let order = self.order_of_uses();
        let count = self.uses.count(old) as usize;
        let mut users: SmallVec<[u32; 4]> = SmallVec::with_capacity(count);
        let mut ids: SmallVec<[NodeId; 4]> = SmallVec::with_capacity(count);
        let mut first: Option<(u64, u32)> = None;
        for user in self.uses.users(old) {
            if filter(NodeRef::new(self, user)) && user != new_index {
                let key = order.key(user);
                if first.is_none_or(|(least, _)| key < least) {
                    first = Some((key, user));
                }
                users.push(user);
                ids.push(self.id_of(user));
            }
        }
        let Some((_, first)) = first else {
            return Ok(ids);
        };
        self.admit_from(&[new_index], &users, first)?;
        let argument = Argument::Node(new);
        let is_unseen = !self.has_observers() && !self.journal.is_open() && self.wide.is_empty();
        for user in users {
            if !(is_unseen && self.replace_leaf(user, old, new)) {
                self.replace_input(user, old, new, &argument);
            }
        }
        self.note_replaced(old, new_index);
        self.move_returned(old, new_index);
        Ok(ids)
    }

    /// Replaces `old` by `new` in one node, if it uses `old`.
    pub(super) fn replace_in(&mut self, user: u32, old: u32, new: NodeId) -> Result<()> {
        let new_index = self.index(new)?;
        let is_user = match self.wide.of(user, &self.inputs[user as usize], &self.uses) {
            Some(mentions) => mentions.has(old),
            None => self.uses.inputs(user).any(|input| input == old),
        };
        if new_index != old && is_user {
            self.admit(&[new_index], &[user])?;
            self.replace_input(user, old, new, &Argument::Node(new));
        }
        Ok(())
    }

    /// Fast path of [`replace_input`](Graph::replace_input) for a user with a few plain arguments,
    /// without notifying observers or recording; returns whether it applied.
    fn replace_leaf(&mut self, user: u32, old: u32, new: NodeId) -> bool {
        let Inputs { args, kwargs } = &mut self.inputs[user as usize];
        let is_plain = kwargs.is_none() && has_few_leaves(args) && !self.marks.has(user);
        if !is_plain || self.uses.retarget(user, old, new.index).is_none() {
            return false;
        }
        for arg in args.iter_mut() {
            if let Argument::Node(id) = arg
                && id.index == old
            {
                *id = new;
            }
        }
        self.touch(user);
        true
    }

    /// Replaces `old` by `new` in one of its users; `argument` is `new`.
    fn replace_input(&mut self, user: u32, old: u32, new: NodeId, argument: &Argument) {
        self.tell(|observer, graph| {
            observer.replaced(
                NodeRef::new(graph, old),
                NodeRef::new(graph, new.index),
                NodeRef::new(graph, user),
            );
        });
        self.forget_unless_alike(user, old, argument);
        if let Some(mentions) = self.wide.of(user, &self.inputs[user as usize], &self.uses) {
            let places = mentions.places(old);
            self.write_at(user, &places, argument);
            return self.note_told(user, old, new.index);
        }
        if let Some(edge) = self.uses.retarget(user, old, new.index) {
            self.touch(user);
            self.inputs[user as usize].swap_node(old, new);
            if self.journal.is_open() {
                let new = new.index;
                self.journal.record(Record::Retargeted {
                    user,
                    old,
                    new,
                    edge,
                });
            }
            return self.tell_changed(user);
        }
        let mut inputs = self.inputs[user as usize].clone();
        inputs.swap_node(old, new);
        let defs = input_indices(&inputs);
        self.put_inputs(user, inputs, &defs);
        self.note_told(user, old, new.index);
    }

    /// Records a replacement that observers were notified of, and that is now done.
    fn note_told(&mut self, user: u32, old: u32, new: u32) {
        if self.journal.is_open() {
            self.journal.record(Record::Replaced { user, old, new });
        }
    }

    /// Replaces a node by an argument, such as a literal or a structure, in all of its users.
    pub(crate) fn put_in_place_of(&mut self, node: NodeId, new: &Argument) -> Result<()> {
        let users: Vec<NodeId> = self.node(node)?.users().map(|user| user.id()).collect();
        users
            .into_iter()
            .try_for_each(|user| self.put_for(user, node, new))
    }

    /// Replaces nodes by arguments in all of their users, writing each user's arguments once. A
    /// user keeps its shape if the replacement has the same shape as the node.
    ///
    /// # Errors
    /// Returns an error if a node is not in this graph. The caller ensures that replacements come
    /// before the users, so that nothing depends on itself.
    pub(crate) fn put_all(&mut self, new: &[(NodeId, Argument)]) -> Result<()> {
        let mut place: Vec<u32> = vec![0; self.heads.len()];
        for (at, (old, _)) in new.iter().enumerate() {
            place[self.index(*old)? as usize] =
                u32::try_from(at + 1).expect("no more nodes are replaced than a graph has");
        }
        let put = |id: NodeId| match place[id.index as usize] {
            0 => None,
            at => Some(&new[at as usize - 1].1),
        };
        let is_user = |node: &NodeRef<'_>| node.all_input_nodes().any(|n| put(n.id()).is_some());
        let users: Vec<u32> = self.nodes().filter(is_user).map(|n| n.index).collect();
        for user in users {
            let node = NodeRef::new(self, user);
            let mut replaced: SmallVec<[(u32, &Argument); 4]> = SmallVec::new();
            for input in node.all_input_nodes() {
                let Some(new) = put(input.id()) else {
                    continue;
                };
                replaced.push((input.index, new));
                if let Argument::Node(new) = new {
                    let new = self.node(*new)?;
                    self.tell(|observer, _| observer.replaced(input, new, node));
                }
            }
            let told: SmallVec<[(u32, u32); 4]> = replaced
                .iter()
                .filter_map(|(old, new)| Some((*old, new.as_node()?.index)))
                .collect();
            for (input, new) in replaced {
                self.forget_unless_alike(user, input, new);
            }
            self.map_inputs(user, &mut |id| {
                put(id).cloned().unwrap_or(Argument::Node(id))
            })?;
            for (old, new) in told {
                self.note_told(user, old, new);
            }
        }
        for (old, new) in new {
            if let Argument::Node(new) = new {
                let new = self.index(*new)?;
                self.note_replaced(old.index, new);
                self.move_returned(old.index, new);
            }
        }
        Ok(())
    }

    /// Replaces a node by an argument in one user.
    pub(crate) fn put_for(&mut self, user: NodeId, node: NodeId, new: &Argument) -> Result<()> {
        let (user, old) = (self.index(user)?, self.index(node)?);
        if let Argument::Node(id) = new {
            let new = self.index(*id)?;
            self.admit(&[new], &[user])?;
        }
        self.forget_unless_alike(user, old, new);
        let inputs = &self.inputs[user as usize];
        if new.is_leaf()
            && let Some(mentions) = self.wide.of(user, inputs, &self.uses)
        {
            let places = mentions.places(old);
            self.write_at(user, &places, new);
            return Ok(());
        }
        self.map_inputs(user, &mut |id| match id == node {
            true => new.clone(),
            false => Argument::Node(id),
        })
    }

    /// Rewrites a node's arguments, replacing each input by the result of `map`.
    fn map_inputs(&mut self, user: u32, map: &mut dyn FnMut(NodeId) -> Argument) -> Result<()> {
        let Inputs { args, kwargs } = mapped_inputs(NodeRef::new(self, user), map);
        self.set_inputs(
            user,
            args,
            kwargs.map(Arc::unwrap_or_clone).unwrap_or_default(),
        )
    }
}

/// Rejects a keyword that is given twice.
#[inline(never)]
fn check_names(kwargs: &Kwargs) -> Result<()> {
    let mut names = FxHashSet::default();
    match kwargs.iter().find(|(name, _)| !names.insert(name)) {
        Some((twice, _)) => Err(Error::msg(format_args!(
            "the keyword argument `{twice}` is given twice"
        ))),
        None => Ok(()),
    }
}
