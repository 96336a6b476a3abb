//! Where a node with many arguments mentions each input, so that one is replaced without scanning
//! the others.
//!
//! Invariant: mentions kept here agree with the node's arguments; an edit that writes all arguments
//! drops them. They are built when one argument of many is first replaced.

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use super::argument::Argument;
use super::columns::Inputs;
use super::uses::{NONE, Uses};

/// The place of an argument: its position among positional and then keyword arguments, then
/// positions in structures.
pub(super) type Path = SmallVec<[u32; 4]>;

/// A node with more arguments than this has its mentions kept.
const MANY: usize = 32;

/// The mentions of one node.
#[derive(Debug)]
pub(super) struct Mentions {
    user: u32,
    /// Inputs and the places where they occur.
    all: BTreeSet<(u32, Path)>,
    /// The use of each input, by its first place: the order of the inputs.
    firsts: BTreeMap<Path, u32>,
    /// The use of each input.
    uses: FxHashMap<u32, u32>,
    /// Inputs that may no longer occur anywhere.
    loose: Vec<u32>,
}

/// The mentions of the nodes that have many arguments.
#[derive(Debug, Default)]
pub(super) struct Wide(FxHashMap<u32, Mentions>);

impl Clone for Wide {
    /// A clone starts empty; mentions are rebuilt on demand.
    fn clone(&self) -> Self {
        Wide::default()
    }
}

impl Wide {
    /// Whether no mentions are kept.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The mentions of a node, if it has many arguments.
    pub fn of(&mut self, user: u32, inputs: &Inputs, uses: &Uses) -> Option<&mut Mentions> {
        if self.0.is_empty() && !has_many(inputs) {
            return None;
        }
        match self.0.entry(user) {
            Entry::Occupied(known) => Some(known.into_mut()),
            Entry::Vacant(place) if has_many(inputs) => {
                Some(place.insert(Mentions::new(user, inputs, uses)))
            }
            Entry::Vacant(_) => None,
        }
    }

    /// The mentions of a node, if they are already kept.
    pub fn known(&mut self, user: u32) -> Option<&mut Mentions> {
        self.0.get_mut(&user)
    }

    /// Drops a node's mentions, because its arguments are rewritten.
    pub fn forget(&mut self, user: u32) {
        if !self.0.is_empty() {
            self.0.remove(&user);
        }
    }
}

/// Whether all arguments are leaves, and too few to be [`Wide`].
pub(super) fn has_few_leaves(args: &[Argument]) -> bool {
    args.len() <= MANY && args.iter().all(Argument::is_leaf)
}

fn has_many(inputs: &Inputs) -> bool {
    fn count(arg: &Argument, left: usize) -> usize {
        let mut counted = 1;
        for child in (0..).map_while(|at| child(arg, at)) {
            if counted > left {
                break;
            }
            counted += count(child, left - counted);
        }
        counted
    }
    if inputs.kwargs.is_none() && has_few_leaves(&inputs.args) {
        return false;
    }
    let mut counted = 0;
    for arg in (0..).map_while(|at| inputs.argument(at)) {
        if counted > MANY {
            break;
        }
        counted += count(arg, MANY - counted);
    }
    counted > MANY
}

fn child(arg: &Argument, at: u32) -> Option<&Argument> {
    let at = at as usize;
    match arg {
        Argument::List(items) | Argument::Tuple(items) => items.get(at),
        Argument::Dict(items) => items.get(at).map(|(_, item)| item),
        Argument::Slice(parts) | Argument::Range(parts) => parts.get(at),
        _ => None,
    }
}

fn child_mut(arg: &mut Argument, at: u32) -> Option<&mut Argument> {
    let at = at as usize;
    match arg {
        Argument::List(items) | Argument::Tuple(items) => Arc::make_mut(items).get_mut(at),
        Argument::Dict(items) => Arc::make_mut(items).get_mut(at).map(|(_, item)| item),
        Argument::Slice(parts) | Argument::Range(parts) => Arc::make_mut(parts).get_mut(at),
        _ => None,
    }
}

impl Inputs {
    /// An argument by its position among positional and then keyword arguments.
    fn argument(&self, at: u32) -> Option<&Argument> {
        let at = at as usize;
        match at.checked_sub(self.args.len()) {
            None => self.args.get(at),
            Some(at) => self.kwargs.as_ref()?.get(at).map(|(_, arg)| arg),
        }
    }

    /// The argument at a place; shared structures on the way become the node's own.
    pub(super) fn at_mut(&mut self, path: &[u32]) -> Option<&mut Argument> {
        let (first, rest) = path.split_first()?;
        let at = *first as usize;
        let mut arg = match at.checked_sub(self.args.len()) {
            None => self.args.get_mut(at)?,
            Some(at) => Arc::make_mut(self.kwargs.as_mut()?)
                .get_mut(at)
                .map(|(_, arg)| arg)?,
        };
        for at in rest {
            arg = child_mut(arg, *at)?;
        }
        Some(arg)
    }
}

/// Calls `visit` with every node in the argument at a place, and its place.
fn for_each_mention(arg: &Argument, path: &mut Path, visit: &mut dyn FnMut(u32, &Path)) {
    if let Argument::Node(id) = arg {
        return visit(id.index, path);
    }
    for (at, child) in (0..).map_while(|at| Some((at, child(arg, at)?))) {
        path.push(at);
        for_each_mention(child, path, visit);
        path.pop();
    }
}

impl Mentions {
    fn new(user: u32, inputs: &Inputs, uses: &Uses) -> Self {
        let mut found: Vec<(u32, Path)> = Vec::new();
        for (at, arg) in (0..).map_while(|at| Some((at, inputs.argument(at)?))) {
            let mut path = Path::from_slice(&[at]);
            for_each_mention(arg, &mut path, &mut |def, path| {
                found.push((def, path.clone()));
            });
        }
        let mut mentions = Mentions {
            user,
            all: BTreeSet::new(),
            firsts: BTreeMap::new(),
            uses: uses.edges(user).map(|(at, def)| (def, at)).collect(),
            loose: Vec::new(),
        };
        let mut came = rustc_hash::FxHashSet::default();
        for (def, path) in &found {
            if let Some(at) = mentions.uses.get(def)
                && came.insert(*def)
            {
                mentions.firsts.insert(path.clone(), *at);
            }
        }
        mentions.all = found.into_iter().collect();
        mentions
    }

    /// The places where an input occurs.
    pub fn places(&self, def: u32) -> Vec<Path> {
        let all = self.all.range((def, Path::new())..);
        let own = all.take_while(|(other, _)| *other == def);
        own.map(|(_, path)| path.clone()).collect()
    }

    pub fn has(&self, def: u32) -> bool {
        self.uses.contains_key(&def)
    }

    fn first(&self, def: u32) -> Option<&Path> {
        let (found, path) = self.all.range((def, Path::new())..).next()?;
        (*found == def).then_some(path)
    }

    /// Removes the argument at a place; uses are consistent again after
    /// [`settle`](Mentions::settle).
    pub fn remove(&mut self, uses: &mut Uses, arg: &Argument, path: &Path) {
        for_each_mention(arg, &mut path.clone(), &mut |def, path| {
            let Some(at) = self.uses.get(&def).copied() else {
                return;
            };
            self.all.remove(&(def, path.clone()));
            if self.firsts.get(path) == Some(&at) {
                self.leave(uses, at, path);
                match self.first(def).cloned() {
                    Some(later) => self.enter(uses, at, later),
                    None => self.loose.push(def),
                }
            }
        });
    }

    /// Adds an argument at a place that was empty.
    pub fn add(&mut self, uses: &mut Uses, arg: &Argument, path: &Path) {
        for_each_mention(arg, &mut path.clone(), &mut |def, path| {
            let user = self.user;
            let at = *self.uses.entry(def).or_insert_with(|| uses.link(user, def));
            match self.first(def).cloned() {
                Some(first) if first < *path => {}
                first => {
                    if let Some(first) = first {
                        self.leave(uses, at, &first);
                    }
                    self.enter(uses, at, path.clone());
                }
            }
            self.all.insert((def, path.clone()));
        });
    }

    /// The use of each node in an argument, if there is one.
    pub fn slots(&self, argument: &Argument) -> Vec<(u32, Option<u32>)> {
        let mut slots = Vec::new();
        argument.for_each_node(&mut |id| {
            slots.push((id.index, self.uses.get(&id.index).copied()));
        });
        slots
    }

    /// Restores the former arguments at some places, and the uses as [`slots`](Mentions::slots)
    /// returned them.
    pub fn give_back(
        &mut self,
        now: &[(Path, Argument)],
        former: &[(Path, Argument)],
        slots: &[(u32, Option<u32>)],
    ) {
        for (def, _) in slots {
            if let Some(first) = self.first(*def).cloned() {
                self.firsts.remove(&first);
            }
        }
        for (path, argument) in now {
            for_each_mention(argument, &mut path.clone(), &mut |def, path| {
                self.all.remove(&(def, path.clone()));
            });
        }
        for (path, argument) in former {
            for_each_mention(argument, &mut path.clone(), &mut |def, path| {
                self.all.insert((def, path.clone()));
            });
        }
        for (def, slot) in slots {
            match (slot, self.first(*def).cloned()) {
                (Some(at), Some(first)) => {
                    self.uses.insert(*def, *at);
                    self.firsts.insert(first, *at);
                }
                _ => drop(self.uses.remove(def)),
            }
        }
    }

    /// Removes the uses of inputs that no longer occur.
    pub fn settle(&mut self, uses: &mut Uses) {
        for def in std::mem::take(&mut self.loose) {
            if self.first(def).is_none()
                && let Some(at) = self.uses.remove(&def)
            {
                uses.unlink(at);
            }
        }
    }

    /// Removes a use from its place among the inputs.
    fn leave(&mut self, uses: &mut Uses, at: u32, path: &Path) {
        self.firsts.remove(path);
        uses.unchain(self.user, at, self.before(path));
    }

    /// Adds a use at a place among the inputs.
    fn enter(&mut self, uses: &mut Uses, at: u32, path: Path) {
        uses.chain(self.user, at, self.before(&path));
        self.firsts.insert(path, at);
    }

    /// The use before a place.
    fn before(&self, path: &Path) -> u32 {
        let before = self.firsts.range::<Path, _>(..path).next_back();
        before.map_or(NONE, |(_, at)| *at)
    }
}
