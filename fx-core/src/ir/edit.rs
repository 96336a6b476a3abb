//! Changing nodes: arguments, targets, uses, places in the order, names and removal.
//!
//! Invariant: an edit that fails has changed nothing.

use std::sync::OnceLock;

use rustc_hash::FxHashSet;
use smallvec::SmallVec;

use super::argument::{Args, Argument, Kwargs};
use super::copy::mapped_inputs;
use super::graph::{Graph, Inputs, Notes, input_indices};
use super::mentions::Path;
use super::names::NameSpace;
use super::node::NodeRef;
use super::op::Op;
use crate::error::{Error, ErrorKind, Result};
use crate::value::handle::NodeId;

impl Graph {
    /// Removes a node that nothing uses.
    ///
    /// # Errors
    /// When the node has users, which the error lists, or is not in this graph.
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
        let (prev, next) = (self.order.prev(index), self.order.next(index));
        self.cursor.leave(index, prev, next);
        self.uses.clear_inputs(index);
        self.wide.forget(index);
        self.order_gone(index);
        self.order.remove(index);
        self.forget_name(index);
        self.forget_member(index);
        self.order.set_stamp(index, None);
        self.marks.clear(index);
        self.inputs[index as usize] = Inputs::default();
        self.notes[index as usize] = Notes::default();
        self.free.push(index);
        self.len -= 1;
        Ok(())
    }

    /// Moves a node before another, or to the end for `ROOT`.
    pub(super) fn move_before(&mut self, index: u32, next: u32) {
        if index == next || self.order.next(index) == next {
            return;
        }
        self.order_moved(index, next);
        let (before, after) = (self.order.prev(index), self.order.next(index));
        self.cursor.leave(index, before, after);
        self.order.remove(index);
        self.order.insert_before(index, next);
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

    /// Gives a node another opcode or target.
    pub(super) fn set_op(&mut self, index: u32, op: Op) -> Result<()> {
        let op = self.intern(op)?;
        self.forget_member(index);
        self.heads[index as usize].op = op;
        self.add_member(index);
        Ok(())
    }

    /// Gives a node the wanted name, or with a number where that is taken.
    pub(super) fn rename(&mut self, index: u32, wanted: &str) {
        if self.name_of(index) == wanted {
            return;
        }
        self.forget_name(index);
        self.heads[index as usize].name = self.names.create(wanted);
        self.add_name(index);
    }

    /// Gives every node the name that it would have if the nodes were made anew, in order, with these names wanted;
    /// placeholders keep theirs. Gives whether any name changed.
    pub(crate) fn rename_all(&mut self, wanted: impl Fn(NodeRef<'_>) -> &str) -> bool {
        let mut names = NameSpace::with_capacity(self.names.bases());
        let mut given = Vec::with_capacity(self.len());
        let inputs = self.placeholders().map(|node| (node, true));
        let rest = self.nodes().map(|node| (node, false));
        let rest = rest.filter(|(node, _)| !matches!(node.op(), Op::Placeholder(_)));
        let mut renamed = false;
        for (node, keep) in inputs.chain(rest) {
            let id = match keep {
                true => names.create_like(node.name()),
                false => names.create(wanted(node)),
            };
            renamed |= names.get(id) != node.name();
            given.push((node.index, id));
        }
        for (index, id) in given {
            self.heads[index as usize].name = id;
        }
        self.names = names;
        self.by_name = OnceLock::new();
        renamed
    }

    /// A node has the place in the source and in the modules that another one has.
    pub(super) fn come_from(&mut self, index: u32, other: u32) {
        let Notes {
            location, scope, ..
        } = *self.notes_of(other);
        let notes = self.notes_of_mut(index);
        (notes.location, notes.scope) = (location, scope);
    }

    /// Puts the nodes in another order, which has all of them.
    ///
    /// # Errors
    /// When a node is missing, is there twice, or is not in this graph; nothing changes then.
    pub(crate) fn rearrange(&mut self, order: &[NodeId]) -> Result<()> {
        let mut seen = vec![false; self.heads.len()];
        let mut indices = Vec::with_capacity(order.len());
        for id in order {
            let index = self.index(*id)?;
            if std::mem::replace(&mut seen[index as usize], true) {
                return Err(Error::msg("an order has every node once"));
            }
            indices.push(index);
        }
        if indices.len() != self.len() {
            return Err(Error::msg("an order has every node"));
        }
        self.order_rearranged(&indices);
        self.order.rearrange(&indices);
        Ok(())
    }

    /// Refuses arguments that name dead or foreign nodes, or nest too deep.
    pub(super) fn checked_inputs(&self, args: Args, kwargs: Kwargs) -> Result<Inputs> {
        if kwargs.len() > 1 {
            let mut names = FxHashSet::default();
            if let Some((twice, _)) = kwargs.iter().find(|(name, _)| !names.insert(name)) {
                return Err(Error::msg(format_args!(
                    "the keyword argument `{twice}` is given twice"
                )));
            }
        }
        for arg in args.iter().chain(kwargs.iter().map(|(_, a)| a)) {
            self.check_argument(arg)?;
        }
        Ok(Inputs {
            args,
            kwargs: (!kwargs.is_empty()).then(|| Box::new(kwargs)),
        })
    }

    /// Refuses an argument that names dead or foreign nodes, or nests too deep.
    fn check_argument(&self, arg: &Argument) -> Result<()> {
        if arg.is_leaf() {
            return match arg {
                Argument::Node(id) => self.index(*id).map(drop),
                _ => Ok(()),
            };
        }
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
        self.uses.set_inputs(index, defs.iter().copied());
        self.inputs[index as usize] = inputs;
        Ok(())
    }

    /// Puts an argument in the place of one, by its position among positional and then keyword arguments.
    pub(super) fn set_argument(&mut self, index: u32, at: u32, new: Argument) -> Result<()> {
        self.check_argument(&new)?;
        let mut defs: SmallVec<[u32; 4]> = SmallVec::new();
        new.for_each_node(&mut |id| defs.push(id.index));
        self.admit(&defs, &[index])?;
        self.write_at(index, &[Path::from_slice(&[at])], &new);
        Ok(())
    }

    /// Puts an argument in some places of a node's arguments; the uses follow.
    fn write_at(&mut self, user: u32, places: &[Path], new: &Argument) {
        let inputs = &mut self.inputs[user as usize];
        let Some(mentions) = self.wide.of(user, inputs, &self.uses) else {
            for place in places {
                if let Some(slot) = inputs.at_mut(place) {
                    *slot = new.clone();
                }
            }
            let defs = input_indices(inputs);
            self.uses.set_inputs(user, defs.into_iter());
            return;
        };
        for place in places {
            if let Some(slot) = inputs.at_mut(place) {
                mentions.remove(&mut self.uses, slot, place);
                *slot = new.clone();
            }
        }
        for place in places {
            mentions.add(&mut self.uses, new, place);
        }
        mentions.settle(&mut self.uses);
    }

    /// Every user of `old` but `new` itself, and those that `filter` refuses, uses `new` instead.
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
        let users: SmallVec<[u32; 4]> = self
            .uses
            .users(old)
            .filter(|user| filter(NodeRef::new(self, *user)) && *user != new_index)
            .collect();
        self.admit(&[new_index], &users)?;
        for user in &users {
            self.replace_input(*user, old, new);
        }
        if !users.is_empty() {
            self.note_replaced(old, new_index);
            self.move_returned(old, new_index);
        }
        Ok(users.into_iter().map(|user| self.id_of(user)).collect())
    }

    /// One node uses `new` in the place of `old`, if it uses that.
    pub(super) fn replace_in(&mut self, user: u32, old: u32, new: NodeId) -> Result<()> {
        let new_index = self.index(new)?;
        let is_user = match self.wide.of(user, &self.inputs[user as usize], &self.uses) {
            Some(mentions) => mentions.has(old),
            None => self.uses.inputs(user).any(|input| input == old),
        };
        if new_index != old && is_user {
            self.admit(&[new_index], &[user])?;
            self.replace_input(user, old, new);
        }
        Ok(())
    }

    /// One user of `old` uses `new` instead.
    fn replace_input(&mut self, user: u32, old: u32, new: NodeId) {
        self.tell(|observer, graph| {
            observer.replaced(
                NodeRef::new(graph, old),
                NodeRef::new(graph, new.index),
                NodeRef::new(graph, user),
            );
        });
        self.forget_unless_alike(user, old, &Argument::Node(new));
        if let Some(mentions) = self.wide.of(user, &self.inputs[user as usize], &self.uses) {
            let places = mentions.places(old);
            return self.write_at(user, &places, &Argument::Node(new));
        }
        let retargeted = self.uses.retarget(user, old, new.index);
        let Inputs { args, kwargs } = &mut self.inputs[user as usize];
        let kwargs = kwargs.iter_mut().flat_map(|k| k.iter_mut().map(|(_, a)| a));
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
        if !retargeted {
            let defs = input_indices(&self.inputs[user as usize]);
            self.uses.set_inputs(user, defs.into_iter());
        }
    }

    /// Puts an argument, a literal or a structure, in the place of a node wherever others use it.
    pub(crate) fn put_in_place_of(&mut self, node: NodeId, new: &Argument) -> Result<()> {
        let users: Vec<NodeId> = self.node(node)?.users().map(|user| user.id()).collect();
        users
            .into_iter()
            .try_for_each(|user| self.put_for(user, node, new))
    }

    /// Puts arguments in the places of nodes wherever others use them, each user's arguments written once. What uses a node
    /// keeps its shape where what is put there has the node's.
    ///
    /// # Errors
    /// When a node is not in this graph. Nothing may come to depend on itself: what is put there comes before the users.
    pub(crate) fn put_all(&mut self, new: &[(NodeId, Argument)]) -> Result<()> {
        let mut place: Vec<u32> = vec![0; self.heads.len()];
        for (at, (old, _)) in new.iter().enumerate() {
            place[self.index(*old)? as usize] = u32::try_from(at + 1).unwrap_or(u32::MAX);
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
            for (input, new) in replaced {
                self.forget_unless_alike(user, input, new);
            }
            self.map_inputs(user, &mut |id| {
                put(id).cloned().unwrap_or(Argument::Node(id))
            })?;
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

    /// Puts an argument in the place of a node in one user's arguments.
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

    /// Writes a node's arguments with what `map` gives in the place of each input.
    fn map_inputs(&mut self, user: u32, map: &mut dyn FnMut(NodeId) -> Argument) -> Result<()> {
        let Inputs { args, kwargs } = mapped_inputs(NodeRef::new(self, user), map);
        self.set_inputs(user, args, kwargs.map(|kwargs| *kwargs).unwrap_or_default())
    }
}
