//! The choices of a search, and which of them a failure depends on.
//!
//! Invariant: what a choice lies below is deeper in the stack than the choice itself, and a choice is passed over only
//! where what failed would fail whatever is chosen there.

use smallvec::SmallVec;

use super::candidates::Candidates;
use crate::value::handle::NodeId;

/// No choice, no task, no place.
pub(super) const NONE: u32 = u32::MAX;

/// What a choice has left to try.
pub(super) enum Next {
    Nothing,
    /// The comparisons to go on with; the optional node that is absent on this way.
    Way {
        left: u32,
        absent: u32,
    },
    /// Nodes that may stand for a place; the place, and the one that is tried now.
    Candidates {
        place: u32,
        tried: NodeId,
        others: Candidates,
    },
}

/// Where to go on when what was tried does not fit.
pub(super) struct Choice {
    /// The choice that it lies below: the last on the way from the anchor to the node that is compared here.
    pub parent: u32,
    /// How many choices are on that way, this one among them.
    pub depth: u32,
    /// The comparison that it is about, for a choice between ways.
    pub about: Option<(u32, NodeId)>,
    pub next: Next,
    /// How many bindings and comparisons there were.
    pub trail: usize,
    pub tasks: usize,
    /// What the ways that were tried failed for.
    pub blamed: Conflict,
}

/// The choices that a failure depends on.
#[derive(Clone, Default)]
pub(super) struct Conflict {
    /// The lowest of them, the deepest in the stack last: all that these lie below belong to it.
    tips: SmallVec<[u32; 4]>,
    /// How far down the choice is below which all that disagrees lies, in choices; `None` where nothing disagrees with
    /// anything else: the comparison fails by itself.
    common: Option<u32>,
}

impl Conflict {
    /// Whether a choice as deep as this one has all that disagrees below it.
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

    /// How much there is to look through.
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

    /// A comparison below a choice fails by itself.
    pub fn alone(&self, cause: u32) -> Conflict {
        let mut conflict = Conflict::default();
        conflict.add(cause);
        conflict
    }

    /// A comparison below a choice disagrees with what is below another one.
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

    /// Several things that were found below these choices do not go together.
    pub fn among(&self, causes: impl Iterator<Item = u32>) -> Conflict {
        let mut conflict = Conflict {
            tips: SmallVec::new(),
            common: Some(0),
        };
        causes.for_each(|cause| conflict.add(cause));
        conflict
    }

    /// Any other choice might help.
    pub fn all(&self) -> Conflict {
        self.among(0..self.next())
    }

    /// What is found is found: another one differs in what stands for a place that has candidates, or in what they are.
    pub fn candidates(&self) -> Conflict {
        let is_candidates = |one: &Choice| matches!(one.next, Next::Candidates { .. });
        let chosen = self.stack.iter().enumerate();
        let chosen = chosen.filter(|(_, one)| is_candidates(one));
        self.among(chosen.map(|(at, _)| at as u32))
    }

    /// The deepest choice that a failure depends on; those after it are taken back.
    pub fn last(&mut self, conflict: &mut Conflict) -> Option<(u32, &mut Choice)> {
        let at = conflict.tips.pop()?;
        self.stack.truncate(at as usize + 1);
        Some((at, self.stack.last_mut()?))
    }

    /// The last choice tries something else.
    pub fn retry(&mut self, next: Next) {
        if let Some(choice) = self.stack.last_mut() {
            choice.next = next;
        }
    }

    /// The last choice has nothing left to try: what its ways failed for is what failed.
    pub fn give_up(&mut self, conflict: &mut Conflict) -> Option<Choice> {
        let choice = self.stack.pop()?;
        conflict.add_all(&choice.blamed);
        conflict.add(choice.parent);
        Some(choice)
    }
}

impl Choice {
    /// Another way is tried: what the one before failed for counts where this one fails too.
    pub fn blame(&mut self, conflict: &Conflict) {
        self.blamed.add_all(conflict);
    }
}
