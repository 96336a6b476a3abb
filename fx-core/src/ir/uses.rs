//! Use lists: for every node its users, in the order of first use, and for every node its distinct inputs.
//!
//! Invariant: there is one `Use` for each pair (user, input), whatever the number of mentions.

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

/// The use lists of a graph; indices are the graph's.
#[derive(Debug, Clone)]
pub(crate) struct Uses {
    uses: Vec<Use>,
    free: Vec<u32>,
    ends: Vec<Ends>,
    /// Marks inputs already seen while a user's inputs are collected: `seen[def] == round`.
    seen: Vec<u32>,
    round: u32,
}

impl Uses {
    /// No uses; the sentinel's place alone.
    pub fn with_capacity(nodes: usize) -> Self {
        let mut uses = Uses {
            uses: Vec::with_capacity(nodes),
            free: Vec::new(),
            ends: Vec::with_capacity(nodes + 1),
            seen: Vec::with_capacity(nodes + 1),
            round: 0,
        };
        uses.grow();
        uses
    }

    pub fn grow(&mut self) {
        self.ends.push(EMPTY);
        self.seen.push(0);
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

    /// The uses of a user, in the order of its inputs, with the inputs.
    pub fn edges(&self, user: u32) -> impl Iterator<Item = (u32, u32)> + '_ {
        let mut at = self.ends[user as usize].first_input;
        std::iter::from_fn(move || {
            let found = self.uses.get(at as usize)?;
            let edge = (at, found.def);
            at = found.next_input;
            Some(edge)
        })
    }

    /// Puts a use among its user's inputs, after another one or first.
    pub fn chain(&mut self, user: u32, at: u32, prev: u32) {
        let place = match self.uses.get_mut(prev as usize) {
            Some(prev) => &mut prev.next_input,
            None => &mut self.ends[user as usize].first_input,
        };
        let next = std::mem::replace(place, at);
        self.uses[at as usize].next_input = next;
    }

    /// Takes a use out from its user's inputs, where it is after another one or first.
    pub fn unchain(&mut self, user: u32, at: u32, prev: u32) {
        let next = self.uses[at as usize].next_input;
        match self.uses.get_mut(prev as usize) {
            Some(prev) => prev.next_input = next,
            None => self.ends[user as usize].first_input = next,
        }
    }

    /// Replaces all inputs of a user by the distinct ones among `defs`; a kept input keeps its place
    /// among its users.
    pub fn set_inputs(&mut self, user: u32, defs: impl Iterator<Item = u32> + Clone) {
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
                None => self.link(user, def),
            };
            self.uses[at as usize].next_input = NONE;
            if last == NONE {
                self.ends[user as usize].first_input = at;
            } else {
                self.uses[last as usize].next_input = at;
            }
            last = at;
        }
        for at in kept.rest() {
            self.unlink(at);
        }
    }

    /// Makes a user of `old` a user of `new` instead, in the same place among its inputs; `false`, and
    /// nothing done, where it uses both.
    pub fn retarget(&mut self, user: u32, old: u32, new: u32) -> bool {
        let mut edge = NONE;
        let mut at = self.ends[user as usize].first_input;
        while let Some(found) = self.uses.get(at as usize) {
            if found.def == new {
                return false;
            }
            if found.def == old {
                edge = at;
            }
            at = found.next_input;
        }
        if edge == NONE {
            return false;
        }
        self.detach(edge);
        self.uses[edge as usize].def = new;
        self.attach(edge);
        true
    }

    /// Gives a new node its inputs.
    pub fn add_inputs(&mut self, user: u32, defs: impl Iterator<Item = u32>) {
        let round = self.next_round();
        let mut last = NONE;
        for def in defs {
            if std::mem::replace(&mut self.seen[def as usize], round) == round {
                continue;
            }
            let at = self.link(user, def);
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
            self.unlink(at);
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

    /// A use, which is not among its user's inputs yet.
    pub fn link(&mut self, user: u32, def: u32) -> u32 {
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
                u32::try_from(self.uses.len() - 1).unwrap_or(NONE)
            }
        };
        self.attach(at);
        at
    }

    /// A use, which is not among its user's inputs any more, is gone.
    pub fn unlink(&mut self, at: u32) {
        self.detach(at);
        self.free.push(at);
    }

    /// Puts a use at the end of its input's list of users.
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

    /// Takes a use out of its input's list of users.
    fn detach(&mut self, at: u32) {
        let Use {
            def, prev, next, ..
        } = self.uses[at as usize];
        let ends = &mut self.ends[def as usize];
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

/// The uses that a user had, by input: a short list, or a map where there are many.
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

    /// What was not taken out again, in the order of the inputs' places.
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
