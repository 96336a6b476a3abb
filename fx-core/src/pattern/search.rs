//! The search for a pattern: an explicit stack of pending comparisons, with choices to come back
//! to.
//!
//! Invariants: bindings are on the trail, and undone down to the choice that the search goes back
//! to; a failure is reported with the choices that it depends on, so that no others are tried again
//! for it; work beyond the budget is an error.

use std::borrow::Cow;

use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;

use super::candidates::Lists;
use super::choices::{Choices, Conflict, NONE, Next};
use super::found::Match;
use super::matcher::SubgraphMatcher;
use crate::error::{Error, Result};
use crate::graph_module::GraphModule;
use crate::ir::argument::Argument;
use crate::ir::graph::Graph;
use crate::ir::node::NodeRef;
use crate::ir::op::Op;
use crate::module::attributes::Attributes;
use crate::value::handle::NodeId;

/// A pending comparison.
#[derive(Clone)]
pub(super) enum Task<'p> {
    Argument(&'p Argument, Cow<'p, Argument>),
    Node(u32, NodeId),
}

/// Pending comparisons, as a list whose tails the choices share.
#[derive(Default)]
pub(super) struct Left<'p> {
    tasks: Vec<Entry<'p>>,
}

/// A comparison, the choice that it lies below, and where the next one is.
#[derive(Clone)]
struct Entry<'p> {
    task: Task<'p>,
    cause: u32,
    rest: u32,
}

impl<'p> Left<'p> {
    pub fn push(&mut self, task: Task<'p>, cause: u32, rest: u32) -> u32 {
        self.tasks.push(Entry { task, cause, rest });
        self.tasks.len() as u32 - 1
    }

    pub fn len(&self) -> usize {
        self.tasks.len()
    }
}

/// Why something is not a match although its anchor fits the pattern's.
#[derive(Debug, Clone)]
pub(super) struct Near {
    pub anchor: NodeId,
    /// The number of nodes of the pattern that were found.
    pub found: usize,
    pub why: String,
}

pub(super) struct Search<'a> {
    pub(super) matcher: &'a SubgraphMatcher,
    pub(super) graph: &'a Graph,
    pub(super) attributes: &'a Attributes,
    /// What each place of the pattern is bound to, and the choice below which that was found.
    pub(super) bound: Vec<Option<Argument>>,
    pub(super) causes: Vec<u32>,
    pub(super) absent: Vec<bool>,
    pub(super) trail: Vec<u32>,
    /// The place that a node of the graph is bound to, with the attempt that bound it, by the
    /// node's index.
    owners: Vec<(u32, u32)>,
    attempt: u32,
    /// Nodes that belong to matches, by index.
    pub(super) taken: Vec<bool>,
    /// The longest way from an input, by index; empty if the pattern is not deep.
    depths: Vec<u32>,
    depth: u32,
    /// Whether an op of the graph fits an op of the pattern, by their numbers.
    fits: FxHashMap<(u32, u32), bool>,
    /// The op's number of each place; a place with a rule has a number of its own.
    pub(super) ops: Vec<u32>,
    pub(super) has_optional: bool,
    /// The most users in a match of what stands for each place.
    pub(super) users: Vec<usize>,
    /// How many of a place's users have an op, by the place and the op's number; counted on demand.
    pub(super) needed: FxHashMap<(u32, u32), usize>,
    pub(super) lists: Lists,
    /// Places, and the indices of nodes that stand for them in no match, with the reason if reasons
    /// are wanted.
    pub(super) hopeless: FxHashMap<(u32, u32), String>,
    /// Whether a comparison depended on choices that are not on its way: any choice might fix it.
    pub(super) entangled: bool,
    anchor: Option<NodeId>,
    /// Whether this attempt has gone back to a choice: from then on work counts.
    went_back: bool,
    work: u64,
    budget: u64,
    /// Set to collect why attempts fail.
    pub near: Option<Vec<Near>>,
    why: Option<(usize, String)>,
    pub(super) left: Left<'a>,
    pub(super) choices: Choices,
    /// The conflict of the last comparison.
    conflict: Conflict,
}

/// How deep a pattern has to be to make the graph's depths worth computing.
const DEEP: u32 = 8;
/// How many near misses are kept.
const NEAR: usize = 16;

impl SubgraphMatcher {
    /// The matches, in the order of their first anchors in the graph. Two matches differ in what
    /// stands for an anchor: a node that the pattern returns and does not use itself. Without
    /// [overlaps removed](SubgraphMatcher::remove_overlapping_matches) these are all combinations.
    ///
    /// A match can be replaced: nothing inside is used outside, except what the pattern returns,
    /// and no input depends on what it returns. An input that connects parts of the pattern stands
    /// for a node.
    ///
    /// # Errors
    /// Returns an error if the graph breaks its rules, or the [budget](SubgraphMatcher::budget) is
    /// spent.
    pub fn find(&self, gm: &GraphModule) -> Result<Vec<Match>> {
        self.find_in(gm.graph(), gm.attributes())
    }

    /// As [`find`](SubgraphMatcher::find), in a graph with its attributes.
    ///
    /// # Errors
    /// As `find`.
    pub fn find_in(&self, graph: &Graph, attributes: &Attributes) -> Result<Vec<Match>> {
        let mut found = Vec::new();
        let mut search = Search::new(self, graph, attributes)?;
        search.run(&mut |one| {
            found.push(one);
            Ok(true)
        })?;
        Ok(found)
    }
}

impl<'a> Search<'a> {
    pub fn new(
        matcher: &'a SubgraphMatcher,
        graph: &'a Graph,
        attributes: &'a Attributes,
    ) -> Result<Self> {
        let depth_of = |node: NodeRef<'_>, depths: &[u32], is_there: bool| {
            let inputs = node.all_input_nodes().map(|i| depths[i.index()]);
            inputs.max().unwrap_or(0)
                + u32::from(is_there && node.all_input_nodes().next().is_some())
        };
        let pattern = matcher.graph();
        let mut depths = vec![0; pattern.index_bound()];
        let mut ops = Vec::with_capacity(matcher.order.len());
        for (place, id) in matcher.order.iter().enumerate() {
            let node = pattern.node(*id)?;
            let is_there = !matcher.rules[place].optional;
            ops.push(match matcher.rules[place].is_plain() {
                true => node.op_number(),
                false => u32::MAX - place as u32,
            });
            depths[id.index as usize] = depth_of(node, &depths, is_there);
        }
        let mut users = vec![0usize; matcher.order.len()];
        for (place, id) in matcher.order.iter().enumerate().rev() {
            let node = pattern.node(*id)?;
            for user in node.users().filter(|user| *user.op() != Op::Output) {
                let at = matcher.place_of(user.id());
                // Where an optional user is absent, its own users use this value.
                let first = user.args().first().and_then(Argument::as_node);
                let stands_for_it = matcher.rules[at as usize].optional && first == Some(node.id());
                users[place] += match stands_for_it {
                    true => users[at as usize].max(1),
                    false => 1,
                };
            }
        }
        let first = matcher.anchors[0] as usize;
        let depth = depths[matcher.order[first].index as usize];
        let mut depths = Vec::new();
        if depth > DEEP {
            depths = vec![0; graph.index_bound()];
            for node in graph.nodes() {
                depths[node.index()] = depth_of(node, &depths, true);
            }
        }
        Ok(Search {
            bound: vec![None; matcher.order.len()],
            causes: vec![NONE; matcher.order.len()],
            absent: vec![false; matcher.order.len()],
            trail: Vec::new(),
            owners: vec![(NONE, 0); graph.index_bound()],
            attempt: 0,
            taken: vec![false; graph.index_bound()],
            depths,
            depth,
            fits: FxHashMap::default(),
            ops,
            has_optional: matcher.rules.iter().any(|rule| rule.optional),
            users,
            needed: FxHashMap::default(),
            lists: Lists::default(),
            hopeless: FxHashMap::default(),
            entangled: false,
            anchor: None,
            went_back: false,
            work: 0,
            budget: matcher.budget_for(graph),
            near: None,
            why: None,
            left: Left::default(),
            choices: Choices::default(),
            conflict: Conflict::default(),
            matcher,
            graph,
            attributes,
        })
    }

    /// Passes every match to `accept`; a match that it refuses leaves its nodes to others.
    pub fn run(&mut self, accept: &mut dyn FnMut(Match) -> Result<bool>) -> Result<()> {
        let first = self.matcher.anchors[0];
        for node in self.graph.nodes() {
            let index = node.index();
            if !self.op_fits(first, node)
                || self.taken[index]
                || self
                    .depths
                    .get(index)
                    .is_some_and(|depth| *depth < self.depth)
            {
                continue;
            }
            if !self.try_at(first, node)? {
                if let (Some(near), Some((found, why))) = (&mut self.near, self.why.take())
                    && near.len() < NEAR
                {
                    let anchor = node.id();
                    near.push(Near { anchor, found, why });
                }
                continue;
            }
            self.give(accept)?;
        }
        Ok(())
    }

    /// Passes on the match that was found, and others with the same first anchor.
    fn give(&mut self, accept: &mut dyn FnMut(Match) -> Result<bool>) -> Result<()> {
        let matcher = self.matcher;
        let is_only = matcher.anchors.len() == 1;
        // What the pattern returns distinguishes matches; other orders of operands may lead to the
        // same one again.
        let mut given: FxHashSet<SmallVec<[u32; 4]>> = FxHashSet::default();
        loop {
            let anchors = matcher.anchors.iter().filter_map(|place| {
                let bound = self.bound[*place as usize].as_ref()?;
                Some(bound.as_node()?.index)
            });
            let anchors: SmallVec<[u32; 4]> = match is_only {
                true => SmallVec::new(),
                false => anchors.collect(),
            };
            if !given.contains(&anchors) {
                let found = Match {
                    shape: matcher.shape.clone(),
                    bound: self.bound.clone().into(),
                    replacements: SmallVec::new(),
                };
                if accept(found)? && matcher.remove_overlapping {
                    self.take_nodes();
                    return Ok(());
                }
                if is_only {
                    return Ok(());
                }
                given.insert(anchors);
            }
            self.spend(matcher.order.len() + 8)?;
            self.conflict = self.choices.candidates();
            match self.back()? {
                Some(left) if self.go_on(left)? => {}
                _ => return Ok(()),
            }
        }
    }

    /// Marks the match's nodes as taken.
    fn take_nodes(&mut self) {
        for (place, bound) in self.bound.iter().enumerate() {
            if let Some(Argument::Node(id)) = bound
                && self.is_inside(place as u32)
            {
                self.taken[id.index as usize] = true;
            }
        }
    }

    /// Whether a place is a call: what a match replaces.
    pub(super) fn is_inside(&self, place: u32) -> bool {
        let node = self.matcher.node_at(place);
        node.is_ok_and(|node| !matches!(node.op(), Op::Placeholder(_) | Op::GetAttr(_)))
    }

    pub(super) fn op_fits(&mut self, place: u32, node: NodeRef<'_>) -> bool {
        let (matcher, attributes) = (self.matcher, self.attributes);
        *self
            .fits
            .entry((self.ops[place as usize], node.op_number()))
            .or_insert_with(|| matcher.op_fits(place, node, attributes))
    }

    // ---- failures ------------------------------------------------------------------------------

    fn fail(&mut self, conflict: Conflict, why: impl FnOnce() -> String) -> bool {
        self.conflict = match self.entangled {
            true => self.choices.all(),
            false => conflict,
        };
        if self.near.is_some() {
            let found = self.trail.len();
            if found > 0 && self.why.as_ref().is_none_or(|(most, _)| found > *most) {
                self.why = Some((found, why()));
            }
        }
        false
    }

    /// Fails a comparison by itself.
    pub(super) fn mismatch(&mut self, cause: u32, why: impl FnOnce() -> String) -> bool {
        let conflict = self.choices.alone(cause);
        self.fail(conflict, why)
    }

    /// Fails a comparison that disagrees with what stands for a place.
    pub(super) fn clash(&mut self, cause: u32, place: u32, why: impl FnOnce() -> String) -> bool {
        let other = self.causes[place as usize];
        self.work += u64::from(self.choices.depth(cause).max(self.choices.depth(other)));
        let conflict = self.choices.between(cause, other);
        self.fail(conflict, why)
    }

    /// Fails because what stands for several places does not go together.
    pub(super) fn misfit(&mut self, places: &[u32], why: impl FnOnce() -> String) -> bool {
        let causes = places.iter().map(|place| self.causes[*place as usize]);
        let conflict = self.choices.among(causes);
        self.fail(conflict, why)
    }

    /// Fails in a way that any other choice might resolve.
    pub(super) fn failure(&mut self, why: impl FnOnce() -> String) -> bool {
        let conflict = self.choices.all();
        self.fail(conflict, why)
    }

    /// Counts work, once the search has gone back to a choice.
    pub(super) fn spend(&mut self, work: usize) -> Result<()> {
        if self.went_back {
            self.work += work as u64;
        }
        if self.work <= self.budget {
            return Ok(());
        }
        let anchor = self.anchor.and_then(|id| self.graph.node(id).ok());
        let error = Error::limit(
            self.budget as usize,
            format_args!(
                "the pattern can stand here in so many ways that its budget of {} comparisons is spent: tell its nodes \
             apart more, or raise `SubgraphMatcher::budget`",
                self.budget
            ),
        );
        Err(match anchor {
            Some(node) => node.blame("matching", error),
            None => error,
        })
    }

    // ---- the search ----------------------------------------------------------------------------

    /// Whether the pattern is found with this anchor; what stands for its nodes is then in `bound`.
    fn try_at(&mut self, first: u32, anchor: NodeRef<'a>) -> Result<bool> {
        self.undo(0);
        self.attempt += 1;
        self.anchor = Some(anchor.id());
        self.why = None;
        self.entangled = false;
        self.went_back = false;
        self.left.tasks.clear();
        self.choices.clear();
        let left = self.left.push(Task::Node(first, anchor.id()), NONE, NONE);
        self.go_on(left)
    }

    /// Does the pending comparisons, until all fit or no choice is left.
    fn go_on(&mut self, mut left: u32) -> Result<bool> {
        loop {
            self.spend(1)?;
            let fits = if left == NONE {
                match self.next_place()? {
                    Some(unknown) => match self.choose_candidate(&unknown)? {
                        Some(way) => {
                            left = way;
                            true
                        }
                        None => false,
                    },
                    None if self.is_whole()? => return Ok(true),
                    None => false,
                }
            } else {
                let Entry { task, cause, rest } = self.take(left);
                left = rest;
                match task {
                    Task::Node(place, id) => {
                        let node = self.graph.node(id)?;
                        self.node(place, node, cause, &mut left)?
                    }
                    Task::Argument(ours, theirs) => {
                        self.argument(ours, theirs, cause, &mut left)?
                    }
                }
            };
            if !fits {
                match self.back()? {
                    Some(way) => left = way,
                    None => return Ok(false),
                }
            }
        }
    }

    /// The first pending comparison, and the others; it is removed if no choice comes back to it.
    fn take(&mut self, left: u32) -> Entry<'a> {
        let kept = self.choices.tasks();
        let tasks = &mut self.left.tasks;
        let is_last = left as usize + 1 == tasks.len() && tasks.len() > kept;
        match is_last.then(|| tasks.pop()).flatten() {
            Some(taken) => taken,
            None => tasks[left as usize].clone(),
        }
    }

    /// Goes back to the last choice that the failure depends on and that has something left to try;
    /// returns the comparisons to continue with.
    fn back(&mut self) -> Result<Option<u32>> {
        let mut conflict = std::mem::take(&mut self.conflict);
        loop {
            let looked_at = conflict.len();
            let Some((at, choice)) = self.choices.last(&mut conflict) else {
                return Ok(None);
            };
            let (trail, tasks, depth) = (choice.trail, choice.tasks, choice.depth);
            choice.blame(&conflict);
            let next = std::mem::replace(&mut choice.next, Next::Nothing);
            self.undo(trail);
            self.left.tasks.truncate(tasks);
            self.went_back = true;
            self.spend(looked_at)?;
            match next {
                Next::Way { left, absent } => {
                    if absent != NONE {
                        self.absent[absent as usize] = true;
                        self.causes[absent as usize] = at;
                        self.trail.push(absent);
                    }
                    return Ok(Some(left));
                }
                Next::Candidates {
                    place,
                    tried,
                    others,
                } => {
                    if conflict.is_below(depth) {
                        self.give_up(place, tried);
                    }
                    if let Some((id, others)) = self.candidate(place, others) {
                        self.choices.retry(Next::Candidates {
                            place,
                            tried: id,
                            others,
                        });
                        return Ok(Some(self.left.push(Task::Node(place, id), at, NONE)));
                    }
                }
                Next::Nothing => {}
            }
            if let Some(choice) = self.choices.give_up(&mut conflict)
                && let Some((place, node)) = choice.about
                && conflict.is_below(choice.depth)
            {
                self.give_up(place, node);
            }
        }
    }

    /// Notes that a node stands for a place in no match.
    fn give_up(&mut self, place: u32, node: NodeId) {
        let why = match (&self.near, &self.why) {
            (Some(_), Some((_, why))) => why.clone(),
            _ => String::new(),
        };
        self.hopeless.insert((place, node.index), why);
    }

    fn undo(&mut self, to: usize) {
        for place in self.trail.drain(to..) {
            let place = place as usize;
            self.absent[place] = false;
            if let Some(Argument::Node(id)) = self.bound[place].take() {
                self.owners[id.index as usize].0 = NONE;
            }
        }
    }

    pub(super) fn bind(&mut self, place: u32, to: Argument, cause: u32) {
        if let Argument::Node(id) = to {
            self.owners[id.index as usize] = (self.attempt, place);
        }
        self.bound[place as usize] = Some(to);
        self.causes[place as usize] = cause;
        self.trail.push(place);
    }

    pub(super) fn owner(&self, id: NodeId) -> Option<u32> {
        let (attempt, place) = self.owners[id.index as usize];
        (attempt == self.attempt).then_some(place)
    }
}
