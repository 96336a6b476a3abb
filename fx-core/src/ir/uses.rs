//! Use lists: for every node its users, in order of first use, and its distinct inputs.
//!
//! Invariants: there is one `Use` for each pair (user, input), whatever the number of mentions. A
//! use given up in an edit keeps its neighbours, and is not reused until it is restored or freed.

use smallvec::SmallVec;

use super::small_set::SmallSet;

pub(super) const NONE: u32 = u32::MAX;

#[derive(Debug, Clone, Copy)]
struct Use {
    user: u32,
    def: u32,
    /// Neighbours in the list of the input's users.
    prev: u32,
    next: u32,
    /// The next distinct input of the user.
    next_input: u32,
}

#[derive(Debug, Clone, Copy)]
struct Ends {
    first: u32,
    last: u32,
    count: u32,
    first_input: u32,
}

const EMPTY: Ends = Ends {
    first: NONE,
    last: NONE,
    count: 0,
    first_input: NONE,
};

/// The use lists of a graph; they share the graph's indices.
#[derive(Debug, Clone)]
pub(crate) struct Uses {
    uses: Vec<Use>,
    free: Vec<u32>,
    ends: Vec<Ends>,
    /// Marks inputs already seen while a user's inputs are collected: `seen[def] == round`.
    seen: Vec<u32>,
    round: u32,
    /// Individual changes, while they are recorded.
    changes: Option<Vec<UseChange>>,
}

/// The uses of a user, before they were rewritten.
#[derive(Debug, Default)]
pub(super) struct Edges {
    /// In input order.
    all: SmallVec<[u32; 4]>,
    /// Those that were dropped, in the order of dropping.
    dropped: SmallVec<[u32; 4]>,
}

/// A use that was moved to another input, and its former neighbours.
#[derive(Debug, Clone, Copy)]
pub(super) struct Retarget {
    edge: u32,
    prev: u32,
    next: u32,
}

/// An individual change.
#[derive(Debug, Clone, Copy)]
pub(super) enum UseChange {
    Linked(u32),
    Unlinked(u32),
    /// A user's first use was replaced.
    First {
        user: u32,
        was: u32,
    },
    /// A use's successor among its user's uses was replaced.
    Next {
        at: u32,
        was: u32,
    },
}

impl Uses {
    /// No uses, with only the sentinel's place.
    pub fn with_capacity(nodes: usize) -> Self {
        let mut uses = Uses {
            uses: Vec::with_capacity(nodes),
            free: Vec::new(),
            ends: Vec::with_capacity(nodes + 1),
            seen: Vec::with_capacity(nodes + 1),
            round: 0,
            changes: None,
        };
        uses.grow();
        uses
    }

    pub fn grow(&mut self) {
        self.ends.push(EMPTY);
        self.seen.push(0);
    }

    /// Removes the last index, which must have no users and no inputs.
    pub fn shrink(&mut self) {
        self.ends.pop();
        self.seen.pop();
    }

    pub fn count(&self, def: u32) -> u32 {
        self.ends[def as usize].count
    }

    pub fn users(&self, def: u32) -> impl Iterator<Item = u32> + '_ {
        let mut at = self.ends[def as usize].first;
        std::iter::from_fn(move || {
            let found = self.uses.get(at as usize)?;
            at = found.next;
            Some(found.user)
        })
    }

    pub fn inputs(&self, user: u32) -> impl Iterator<Item = u32> + '_ {
        let mut at = self.ends[user as usize].first_input;
        std::iter::from_fn(move || {
            let found = self.uses.get(at as usize)?;
            at = found.next_input;
            Some(found.def)
        })
    }

    /// The uses of a user with their inputs, in input order.
    pub fn edges(&self, user: u32) -> impl Iterator<Item = (u32, u32)> + '_ {
        let mut at = self.ends[user as usize].first_input;
        std::iter::from_fn(move || {
            let found = self.uses.get(at as usize)?;
            let edge = (at, found.def);
            at = found.next_input;
            Some(edge)
        })
    }

    /// Inserts a use among its user's inputs, after another one or first.
    pub fn chain(&mut self, user: u32, at: u32, prev: u32) {
        let next = match self.uses.get(prev as usize) {
            Some(prev) => prev.next_input,
            None => self.ends[user as usize].first_input,
        };
        self.set_next_input(at, next);
        self.put_behind(user, prev, at);
    }

    /// Removes a use from its user's inputs, where it is after another one or first.
    pub fn unchain(&mut self, user: u32, at: u32, prev: u32) {
        let next = self.uses[at as usize].next_input;
        self.put_behind(user, prev, next);
    }

    /// Puts a use after another one, or makes it the first of a user.
    fn put_behind(&mut self, user: u32, prev: u32, at: u32) {
        if (prev as usize) < self.uses.len() {
            self.set_next_input(prev, at);
            return;
        }
        let first = &mut self.ends[user as usize].first_input;
        let was = std::mem::replace(first, at);
        if let Some(changes) = &mut self.changes {
            changes.push(UseChange::First { user, was });
        }
    }

    fn set_next_input(&mut self, at: u32, next: u32) {
        let was = std::mem::replace(&mut self.uses[at as usize].next_input, next);
        if let Some(changes) = &mut self.changes {
            changes.push(UseChange::Next { at, was });
        }
    }

    /// Replaces all inputs of a user by the distinct ones among `defs`; an input that is kept stays
    /// in place among its users.
    pub fn set_inputs(&mut self, user: u32, defs: &[u32]) {
        // Often only the form of the arguments changes.
        if self.inputs(user).eq(defs.iter().copied()) {
            return;
        }
        for at in self.write_inputs(user, defs.iter().copied()) {
            self.free.push(at);
        }
    }

    /// Same as [`set_inputs`](Uses::set_inputs), returning what is needed to undo it.
    pub fn set_inputs_kept(&mut self, user: u32, defs: impl Iterator<Item = u32> + Clone) -> Edges {
        let all = self.edges(user).map(|(at, _)| at).collect();
        let dropped = self.write_inputs(user, defs).into();
        Edges { all, dropped }
    }

    /// Writes a user's inputs; returns the uses that are no longer in any list.
    fn write_inputs(&mut self, user: u32, defs: impl Iterator<Item = u32>) -> Vec<u32> {
        let mut kept = Kept::default();
        let mut at = self.ends[user as usize].first_input;
        while let Some(found) = self.uses.get(at as usize).copied() {
            kept.insert(found.def, at);
            at = found.next_input;
        }
        self.ends[user as usize].first_input = NONE;
        let round = self.next_round();
        let mut last = NONE;
        for def in defs {
            if std::mem::replace(&mut self.seen[def as usize], round) == round {
                continue;
            }
            let at = match kept.remove(def) {
                Some(at) => at,
                None => self.make(user, def),
            };
            self.uses[at as usize].next_input = NONE;
            if last == NONE {
                self.ends[user as usize].first_input = at;
            } else {
                self.uses[last as usize].next_input = at;
            }
            last = at;
        }
        let rest = kept.rest();
        for at in &rest {
            self.detach(*at);
        }
        rest
    }

    /// Restores a user's uses from before they were rewritten.
    pub fn give_back(&mut self, user: u32, edges: Edges) {
        for at in edges.dropped.iter().rev() {
            self.splice(*at);
        }
        let now: SmallVec<[u32; 4]> = self.edges(user).map(|(at, _)| at).collect();
        let former: SmallSet = edges.all.iter().copied().collect();
        for at in now.iter().rev().filter(|at| !former.contains(**at)) {
            self.detach(*at);
            self.free.push(*at);
        }
        let mut behind = NONE;
        for at in edges.all.iter().rev() {
            self.uses[*at as usize].next_input = behind;
            behind = *at;
        }
        self.ends[user as usize].first_input = behind;
    }

    pub fn free_edges(&mut self, edges: &Edges) {
        self.free.extend(edges.dropped.iter().copied());
    }

    /// Removes a user's uses from the lists; they keep their neighbours, and the user keeps them.
    pub fn put_away_inputs(&mut self, user: u32) {
        let mut at = self.ends[user as usize].first_input;
        while let Some(found) = self.uses.get(at as usize).copied() {
            self.detach(at);
            at = found.next_input;
        }
    }

    /// Restores a user's uses that were [put away](Uses::put_away_inputs).
    pub fn give_back_all(&mut self, user: u32) {
        let all: SmallVec<[u32; 8]> = self.edges(user).map(|(at, _)| at).collect();
        for at in all.into_iter().rev() {
            self.splice(at);
        }
    }

    /// Frees a user's uses that were put away.
    pub fn free_inputs(&mut self, user: u32) {
        let mut at = std::mem::replace(&mut self.ends[user as usize].first_input, NONE);
        while let Some(found) = self.uses.get(at as usize).copied() {
            self.free.push(at);
            at = found.next_input;
        }
    }

    /// Starts recording individual changes.
    pub fn keep_changes(&mut self) {
        self.changes = Some(Vec::new());
    }

    /// The recorded individual changes.
    pub fn kept_changes(&mut self) -> Option<Vec<UseChange>> {
        self.changes.take()
    }

    pub fn undo(&mut self, change: UseChange) {
        match change {
            UseChange::Linked(at) => {
                self.detach(at);
                self.free.push(at);
            }
            UseChange::Unlinked(at) => self.splice(at),
            UseChange::First { user, was } => self.ends[user as usize].first_input = was,
            UseChange::Next { at, was } => self.uses[at as usize].next_input = was,
        }
    }

    pub fn free_changes(&mut self, changes: &[UseChange]) {
        let free = changes.iter().filter_map(|change| match change {
            UseChange::Unlinked(at) => Some(*at),
            _ => None,
        });
        self.free.extend(free);
    }

    /// Changes a use of `old` into a use of `new`, in the same place among the user's inputs. Does
    /// nothing and returns `None` if the user uses both.
    pub fn retarget(&mut self, user: u32, old: u32, new: u32) -> Option<Retarget> {
        let mut edge = NONE;
        let mut at = self.ends[user as usize].first_input;
        while let Some(found) = self.uses.get(at as usize) {
            if found.def == new {
                return None;
            }
            if found.def == old {
                edge = at;
            }
            at = found.next_input;
        }
        let Use { prev, next, .. } = *self.uses.get(edge as usize)?;
        self.detach(edge);
        self.uses[edge as usize].def = new;
        self.attach(edge);
        Some(Retarget { edge, prev, next })
    }

    /// Undoes [`retarget`](Uses::retarget).
    pub fn retarget_back(&mut self, retarget: Retarget, old: u32) {
        let Retarget { edge, prev, next } = retarget;
        self.detach(edge);
        let found = &mut self.uses[edge as usize];
        (found.def, found.prev, found.next) = (old, prev, next);
        self.splice(edge);
    }

    /// Sets the inputs of a new node.
    pub fn add_inputs(&mut self, user: u32, defs: impl Iterator<Item = u32>) {
        let round = self.next_round();
        let mut last = NONE;
        for def in defs {
            if std::mem::replace(&mut self.seen[def as usize], round) == round {
                continue;
            }
            let at = self.make(user, def);
            if last == NONE {
                self.ends[user as usize].first_input = at;
            } else {
                self.uses[last as usize].next_input = at;
            }
            last = at;
        }
    }

    pub fn clear_inputs(&mut self, user: u32) {
        let mut at = std::mem::replace(&mut self.ends[user as usize].first_input, NONE);
        while let Some(found) = self.uses.get(at as usize).copied() {
            self.detach(at);
            self.free.push(at);
            at = found.next_input;
        }
    }

    fn next_round(&mut self) -> u32 {
        self.round = match self.round.checked_add(1) {
            Some(round) => round,
            None => {
                self.seen.fill(0);
                1
            }
        };
        self.round
    }

    /// Creates a use that is not yet among its user's inputs.
    pub fn link(&mut self, user: u32, def: u32) -> u32 {
        let at = self.make(user, def);
        if let Some(changes) = &mut self.changes {
            changes.push(UseChange::Linked(at));
        }
        at
    }

    fn make(&mut self, user: u32, def: u32) -> u32 {
        let new = Use {
            user,
            def,
            prev: NONE,
            next: NONE,
            next_input: NONE,
        };
        let at = match self.free.pop() {
            Some(at) => {
                self.uses[at as usize] = new;
                at
            }
            None => {
                self.uses.push(new);
                let last = u32::try_from(self.uses.len() - 1);
                last.expect("uses are numbered by 32 bits: more do not fit into memory")
            }
        };
        self.attach(at);
        at
    }

    /// Removes a use that is no longer among its user's inputs.
    pub fn unlink(&mut self, at: u32) {
        self.detach(at);
        match &mut self.changes {
            Some(changes) => changes.push(UseChange::Unlinked(at)),
            None => self.free.push(at),
        }
    }

    /// Restores a removed use between its neighbours.
    fn splice(&mut self, at: u32) {
        let Use {
            def, prev, next, ..
        } = self.uses[at as usize];
        let ends = &mut self.ends[def as usize];
        ends.count += 1;
        match self.uses.get_mut(prev as usize) {
            Some(prev) => prev.next = at,
            None => ends.first = at,
        }
        match self.uses.get_mut(next as usize) {
            Some(next) => next.prev = at,
            None => ends.last = at,
        }
    }

    /// Appends a use to its input's list of users.
    fn attach(&mut self, at: u32) {
        let ends = &mut self.ends[self.uses[at as usize].def as usize];
        ends.count += 1;
        let last = std::mem::replace(&mut ends.last, at);
        if last == NONE {
            ends.first = at;
        } else {
            self.uses[last as usize].next = at;
        }
        let new = &mut self.uses[at as usize];
        new.prev = last;
        new.next = NONE;
    }

    /// Removes a use from its input's list of users.
    fn detach(&mut self, at: u32) {
        let Use {
            def, prev, next, ..
        } = self.uses[at as usize];
        let ends = &mut self.ends[def as usize];
        debug_assert!(ends.count > 0, "an input that has a use counts it");
        debug_assert!(
            prev != NONE || ends.first == at,
            "a use without one before it is the first"
        );
        debug_assert!(
            next != NONE || ends.last == at,
            "a use without one behind it is the last"
        );
        ends.count -= 1;
        if prev == NONE {
            ends.first = next;
        } else {
            self.uses[prev as usize].next = next;
        }
        if next == NONE {
            self.ends[def as usize].last = prev;
        } else {
            self.uses[next as usize].prev = prev;
        }
    }
}

/// The former uses of a user, by input: a short list, plus a map if there are many.
#[derive(Default)]
struct Kept {
    few: smallvec::SmallVec<[(u32, u32); 8]>,
    many: rustc_hash::FxHashMap<u32, u32>,
}

impl Kept {
    fn insert(&mut self, def: u32, at: u32) {
        if self.few.len() < 8 {
            self.few.push((def, at));
        } else {
            self.many.insert(def, at);
        }
    }

    fn remove(&mut self, def: u32) -> Option<u32> {
        match self.few.iter().position(|(d, _)| *d == def) {
            Some(i) => Some(self.few.swap_remove(i).1),
            None if self.many.is_empty() => None,
            None => self.many.remove(&def),
        }
    }

    /// The uses that were not taken out, in index order.
    fn rest(self) -> Vec<u32> {
        let mut rest: Vec<u32> = self
            .few
            .into_iter()
            .map(|(_, at)| at)
            .chain(self.many.into_values())
            .collect();
        rest.sort_unstable();
        rest
    }
}
