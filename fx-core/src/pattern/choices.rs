//! The choices of a search, and the choices that a failure depends on.
//!
//! Invariant: a choice's parent is earlier in the stack than the choice itself, and a choice is
//! skipped only if the same failure would happen whatever is chosen there.

use smallvec::SmallVec;

use super::candidates::Candidates;
use crate::value::handle::NodeId;

/// No choice, no task, no place.
pub(super) const NONE: u32 = u32::MAX;

/// What a choice has left to try.
pub(super) enum Next {
    Nothing,
    /// The comparisons to continue with; the optional node that is absent in this way.
    Way {
        left: u32,
        absent: u32,
    },
    /// Nodes that may stand for a place; the place, and the node being tried.
    Candidates {
        place: u32,
        tried: NodeId,
        others: Candidates,
    },
}

/// Where to continue if an attempt does not fit.
pub(super) struct Choice {
    /// The choice below which it lies: the last on the way from the anchor to the node compared
    /// here.
    pub parent: u32,
    /// How many choices are on that way, including this one.
    pub depth: u32,
    /// The comparison that it is about, for a choice between ways.
    pub about: Option<(u32, NodeId)>,
    pub next: Next,
    /// How many bindings and comparisons there were before it.
    pub trail: usize,
    pub tasks: usize,
    /// The conflicts of the ways that were tried.
    pub blamed: Conflict,
}

/// The choices that a failure depends on.
#[derive(Clone, Default)]
pub(super) struct Conflict {
    /// The lowest of them, the latest in the stack last: all choices above these belong to it too.
    tips: SmallVec<[u32; 4]>,
    /// The depth, in choices, of the choice below which everything lies that disagrees; `None` if
    /// nothing disagrees with anything else: the comparison fails by itself.
    common: Option<u32>,
}

impl Conflict {
    /// Whether everything that disagrees is below a choice of this depth.
    pub fn is_below(&self, depth: u32) -> bool {
        self.common.is_none_or(|common| common >= depth)
    }

    fn add(&mut self, tip: u32) {
        if tip != NONE
            && let Err(at) = self.tips.binary_search(&tip)
        {
            self.tips.insert(at, tip);
        }
    }

    fn add_all(&mut self, other: &Conflict) {
        for tip in &other.tips {
            self.add(*tip);
        }
        self.common = match (self.common, other.common) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        };
    }

    /// How many choices there are to look through.
    pub fn len(&self) -> usize {
        self.tips.len()
    }
}

/// The stack of choices.
#[derive(Default)]
pub(super) struct Choices {
    stack: Vec<Choice>,
}

impl Choices {
    pub fn clear(&mut self) {
        self.stack.clear();
    }

    /// How many comparisons the last choice may share.
    pub fn tasks(&self) -> usize {
        self.stack.last().map_or(0, |choice| choice.tasks)
    }

    /// The number that the next choice gets.
    pub fn next(&self) -> u32 {
        self.stack.len() as u32
    }

    pub fn push(
        &mut self,
        parent: u32,
        next: Next,
        about: Option<(u32, NodeId)>,
        trail: usize,
        tasks: usize,
    ) {
        self.stack.push(Choice {
            parent,
            depth: self.depth(parent) + 1,
            about,
            next,
            trail,
            tasks,
            blamed: Conflict::default(),
        });
    }

    pub fn depth(&self, choice: u32) -> u32 {
        self.stack.get(choice as usize).map_or(0, |one| one.depth)
    }

    /// The conflict of a comparison, below a choice, that fails by itself.
    pub fn alone(&self, cause: u32) -> Conflict {
        let mut conflict = Conflict::default();
        conflict.add(cause);
        conflict
    }

    /// The conflict of a comparison below a choice with a binding below another one.
    pub fn between(&self, a: u32, b: u32) -> Conflict {
        let mut conflict = self.alone(a);
        conflict.add(b);
        let (mut a, mut b) = (a, b);
        while a != b {
            if self.depth(a) < self.depth(b) {
                std::mem::swap(&mut a, &mut b);
            }
            a = self.stack.get(a as usize).map_or(NONE, |one| one.parent);
        }
        conflict.common = Some(self.depth(a));
        conflict
    }

    /// The conflict of several bindings below these choices that do not go together.
    pub fn among(&self, causes: impl Iterator<Item = u32>) -> Conflict {
        let mut conflict = Conflict {
            tips: SmallVec::new(),
            common: Some(0),
        };
        causes.for_each(|cause| conflict.add(cause));
        conflict
    }

    /// A conflict that any other choice might resolve.
    pub fn all(&self) -> Conflict {
        self.among(0..self.next())
    }

    /// The choices of candidates: another match differs in a chosen candidate, or in what the
    /// candidates are.
    pub fn candidates(&self) -> Conflict {
        let is_candidates = |one: &Choice| matches!(one.next, Next::Candidates { .. });
        let chosen = self.stack.iter().enumerate();
        let chosen = chosen.filter(|(_, one)| is_candidates(one));
        self.among(chosen.map(|(at, _)| at as u32))
    }

    /// The latest choice that a failure depends on; those after it are undone.
    pub fn last(&mut self, conflict: &mut Conflict) -> Option<(u32, &mut Choice)> {
        let at = conflict.tips.pop()?;
        self.stack.truncate(at as usize + 1);
        Some((at, self.stack.last_mut()?))
    }

    /// Has the last choice try something else.
    pub fn retry(&mut self, next: Next) {
        if let Some(choice) = self.stack.last_mut() {
            choice.next = next;
        }
    }

    /// Removes the last choice, which has nothing left to try: the conflicts of its ways become the
    /// conflict.
    pub fn give_up(&mut self, conflict: &mut Conflict) -> Option<Choice> {
        let choice = self.stack.pop()?;
        conflict.add_all(&choice.blamed);
        conflict.add(choice.parent);
        Some(choice)
    }
}

impl Choice {
    /// Notes the conflict of a way before another one is tried: it counts if that one fails too.
    pub fn blame(&mut self, conflict: &Conflict) {
        self.blamed.add_all(conflict);
    }
}
