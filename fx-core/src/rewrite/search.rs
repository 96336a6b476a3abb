//! The search for a pattern: an explicit stack of what is left to compare, with choices to come back to.
//!
//! Invariant: what is bound is on the trail, and undone to the choice that is taken back.

use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use super::compare::{is_commutative, pairs, same_literal, shown};
use super::found::Match;
use super::matcher::SubgraphMatcher;
use crate::error::Result;
use crate::ir::argument::Argument;
use crate::ir::graph::Graph;
use crate::ir::node::NodeRef;
use crate::ir::op::Op;
use crate::module::attributes::Attributes;
use crate::value::handle::NodeId;

const NONE: u32 = u32::MAX;

/// A comparison that is left.
#[derive(Clone)]
enum Task<'p> {
    Argument(&'p Argument, Argument),
    Node(u32, NodeId),
}

/// Comparisons that are left, as a list whose tails are shared by the choices.
struct Left<'p> {
    tasks: Vec<(Task<'p>, u32)>,
}

impl<'p> Left<'p> {
    fn push(&mut self, task: Task<'p>, rest: u32) -> u32 {
        self.tasks.push((task, rest));
        self.tasks.len() as u32 - 1
    }
}

/// Where to go on when what was tried does not fit.
struct Choice {
    trail: usize,
    /// How many comparisons there were: those that its list may share.
    tasks: usize,
    left: u32,
    /// The optional node that is absent on this way.
    absent: u32,
}

/// Why something is no match although its anchor is one of the pattern's.
#[derive(Debug, Clone)]
pub(super) struct Near {
    pub anchor: NodeId,
    /// Nodes of the pattern that were found.
    pub found: usize,
    pub why: String,
}

pub(super) struct Search<'a> {
    matcher: &'a SubgraphMatcher,
    graph: &'a Graph,
    attributes: &'a Attributes,
    /// What each place of the pattern is bound to.
    bound: Vec<Option<Argument>>,
    absent: Vec<bool>,
    trail: Vec<u32>,
    /// The place that a node of the graph is bound to, with the attempt that bound it, by the node's index.
    owners: Vec<(u32, u32)>,
    attempt: u32,
    /// Nodes that belong to matches, by index.
    taken: Vec<bool>,
    /// Longest way from an input, by index; empty where the pattern is not deep.
    depths: Vec<u32>,
    depth: u32,
    /// Whether an op of the graph fits an op of the pattern, by their numbers.
    fits: FxHashMap<(u32, u32), bool>,
    /// The op's number of each place; a place with a rule of its own has a number of its own.
    ops: Vec<u32>,
    has_optional: bool,
    /// Users of each place in the pattern, but the output.
    users: Vec<usize>,
    /// Asked for why attempts fail.
    pub near: Option<Vec<Near>>,
    why: Option<(usize, String)>,
    left: Left<'a>,
    choices: Vec<Choice>,
}

/// How deep a pattern has to be for the graph's depths to be worth knowing.
const DEEP: u32 = 8;
/// How many near misses are kept.
const NEAR: usize = 16;

impl<'a> Search<'a> {
    pub fn new(
        matcher: &'a SubgraphMatcher,
        graph: &'a Graph,
        attributes: &'a Attributes,
    ) -> Result<Self> {
        let depth_of = |node: NodeRef<'_>, depths: &[u32], is_there: bool| {
            let inputs = node
                .all_input_nodes()
                .map(|i| depths[i.id().index as usize]);
            inputs.max().unwrap_or(0)
                + u32::from(is_there && node.all_input_nodes().next().is_some())
        };
        let pattern = matcher.graph();
        let mut depths = vec![0; pattern.index_bound()];
        let mut users = Vec::with_capacity(matcher.order.len());
        let mut ops = Vec::with_capacity(matcher.order.len());
        for (place, id) in matcher.order.iter().enumerate() {
            let node = pattern.node(*id)?;
            let is_there = !matcher.rules[place].optional;
            ops.push(match matcher.rules[place].is_plain() {
                true => node.op_number(),
                false => u32::MAX - place as u32,
            });
            depths[id.index as usize] = depth_of(node, &depths, is_there);
            users.push(node.users().filter(|user| *user.op() != Op::Output).count());
        }
        let first = matcher.anchors[0] as usize;
        let depth = depths[matcher.order[first].index as usize];
        let mut depths = Vec::new();
        if depth > DEEP {
            depths = vec![0; graph.index_bound()];
            for node in graph.nodes() {
                depths[node.id().index as usize] = depth_of(node, &depths, true);
            }
        }
        Ok(Search {
            bound: vec![None; matcher.order.len()],
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
            near: None,
            why: None,
            left: Left { tasks: Vec::new() },
            choices: Vec::new(),
            matcher,
            graph,
            attributes,
        })
    }

    /// Gives every match to `accept`; what it refuses leaves its nodes to others.
    pub fn run(&mut self, accept: &mut dyn FnMut(Match) -> Result<bool>) -> Result<()> {
        let first = self.matcher.anchors[0];
        for node in self.graph.nodes() {
            let index = node.id().index as usize;
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
            let found = Match {
                shape: self.matcher.shape.clone(),
                bound: self.bound.clone().into(),
                replacements: SmallVec::new(),
            };
            if accept(found)? && self.matcher.remove_overlapping {
                for (place, bound) in self.bound.iter().enumerate() {
                    if let Some(Argument::Node(id)) = bound
                        && self.is_inside(place as u32)
                    {
                        self.taken[id.index as usize] = true;
                    }
                }
            }
        }
        Ok(())
    }

    /// Whether a place is a call: what a match replaces.
    fn is_inside(&self, place: u32) -> bool {
        let node = self.matcher.node_at(place);
        node.is_ok_and(|node| !matches!(node.op(), Op::Placeholder(_) | Op::GetAttr(_)))
    }

    fn op_fits(&mut self, place: u32, node: NodeRef<'_>) -> bool {
        let (matcher, attributes) = (self.matcher, self.attributes);
        *self
            .fits
            .entry((self.ops[place as usize], node.op_number()))
            .or_insert_with(|| matcher.op_fits(place, node, attributes))
    }

    fn fail(&mut self, why: impl FnOnce() -> String) -> bool {
        if self.near.is_some() {
            let found = self.trail.len();
            if found > 0 && self.why.as_ref().is_none_or(|(most, _)| found > *most) {
                self.why = Some((found, why()));
            }
        }
        false
    }

    /// Whether the pattern is found with this anchor; what stands for its nodes is in `bound` then.
    fn try_at(&mut self, first: u32, anchor: NodeRef<'a>) -> Result<bool> {
        self.undo(0);
        self.attempt += 1;
        self.why = None;
        self.left.tasks.clear();
        self.choices.clear();
        let mut left = self.left.push(Task::Node(first, anchor.id()), NONE);
        loop {
            let fits = if left == NONE {
                match self.next_anchor()? {
                    Some((place, candidates)) => {
                        // The first in the order of the graph is tried first.
                        for id in candidates.into_iter().rev() {
                            let way = self.left.push(Task::Node(place, id), NONE);
                            self.choose(way, NONE);
                        }
                        false
                    }
                    None if self.is_whole()? => return Ok(true),
                    None => false,
                }
            } else {
                let (task, rest) = self.take(left);
                left = rest;
                match task {
                    Task::Node(place, id) => {
                        let node = self.graph.node(id)?;
                        self.node(place, node, &mut left)?
                    }
                    Task::Argument(ours, theirs) => self.argument(ours, &theirs, &mut left)?,
                }
            };
            if !fits {
                let Some(choice) = self.choices.pop() else {
                    return Ok(false);
                };
                self.undo(choice.trail);
                left = choice.left;
                if choice.absent != NONE {
                    self.absent[choice.absent as usize] = true;
                    self.trail.push(choice.absent);
                }
            }
        }
    }

    /// The first of the comparisons that are left, and the others; it is forgotten where no choice comes back to it.
    fn take(&mut self, left: u32) -> (Task<'a>, u32) {
        let kept = self.choices.last().map_or(0, |choice| choice.tasks);
        let tasks = &mut self.left.tasks;
        let is_last = left as usize + 1 == tasks.len() && tasks.len() > kept;
        match is_last.then(|| tasks.pop()).flatten() {
            Some(taken) => taken,
            None => tasks[left as usize].clone(),
        }
    }

    fn choose(&mut self, left: u32, absent: u32) {
        self.choices.push(Choice {
            trail: self.trail.len(),
            tasks: self.left.tasks.len(),
            left,
            absent,
        });
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

    fn bind(&mut self, place: u32, to: Argument) {
        if let Argument::Node(id) = to {
            self.owners[id.index as usize] = (self.attempt, place);
        }
        self.bound[place as usize] = Some(to);
        self.trail.push(place);
    }

    fn owner(&self, id: NodeId) -> Option<u32> {
        let (attempt, place) = self.owners[id.index as usize];
        (attempt == self.attempt).then_some(place)
    }

    /// Compares an argument of the pattern with one of the graph.
    fn argument(&mut self, ours: &'a Argument, theirs: &Argument, left: &mut u32) -> Result<bool> {
        let items = |a: &'a [Argument], b: &[Argument], left: &mut u32, rest: &mut Left<'a>| {
            for (a, b) in a.iter().zip(b).rev() {
                *left = rest.push(Task::Argument(a, b.clone()), *left);
            }
            a.len() == b.len()
        };
        Ok(match (ours, theirs) {
            (Argument::Node(id), theirs) => {
                let place = self.matcher.place_of(*id);
                let pattern = self.matcher.node_at(place)?;
                if let Op::Placeholder(_) = pattern.op() {
                    return Ok(self.input(place, theirs));
                }
                match theirs {
                    Argument::Node(theirs) => {
                        let node = self.graph.node(*theirs)?;
                        return self.node(place, node, left);
                    }
                    theirs => self.fail(|| {
                        format!(
                            "{} is where %{} is looked for",
                            shown(theirs),
                            pattern.name()
                        )
                    }),
                }
            }
            (Argument::List(a), Argument::List(b)) | (Argument::Tuple(a), Argument::Tuple(b)) => {
                items(a, b, left, &mut self.left)
                    || self.fail(|| "a list has another length".to_string())
            }
            (Argument::Slice(a), Argument::Slice(b)) | (Argument::Range(a), Argument::Range(b)) => {
                items(&a[..], &b[..], left, &mut self.left)
            }
            (Argument::Dict(a), Argument::Dict(b)) => {
                let same =
                    a.len() == b.len() && a.iter().zip(b.iter()).all(|((k, _), (l, _))| k == l);
                for ((_, a), (_, b)) in a.iter().zip(b.iter()).rev() {
                    *left = self.left.push(Task::Argument(a, b.clone()), *left);
                }
                same || self.fail(|| "a dict has other keys".to_string())
            }
            (ours, theirs) => {
                let ignored = self.matcher.ignore_literals
                    && ours.is_leaf()
                    && theirs.is_leaf()
                    && theirs.as_node().is_none();
                ignored
                    || same_literal(ours, theirs)
                    || self.fail(|| {
                        format!("{} is where {} is looked for", shown(theirs), shown(ours))
                    })
            }
        })
    }

    /// An input of the pattern stands for anything, but for one thing.
    fn input(&mut self, place: u32, theirs: &Argument) -> bool {
        if let Some(bound) = &self.bound[place as usize] {
            return same_literal(bound, theirs)
                || self.fail(|| "an input stands for two values".to_string());
        }
        if let Argument::Node(id) = theirs {
            if self.owner(*id).is_some() {
                return self.fail(|| "one value is where two are looked for".to_string());
            }
            let is_input = self
                .graph
                .node(*id)
                .is_ok_and(|node| matches!(node.op(), Op::Placeholder(_)));
            if self.matcher.match_placeholder && !is_input {
                return self
                    .fail(|| "a computed value is where an input is looked for".to_string());
            }
        }
        self.bind(place, theirs.clone());
        true
    }

    /// Compares a node of the pattern with one of the graph.
    fn node(&mut self, place: u32, node: NodeRef<'a>, left: &mut u32) -> Result<bool> {
        if let Some(bound) = &self.bound[place as usize] {
            let same = bound.as_node() == Some(node.id());
            return Ok(same
                || self.fail(|| format!("%{} is where another value is looked for", node.name())));
        }
        let pattern = self.matcher.node_at(place)?;
        if self.absent[place as usize] {
            // Its first argument stands for it.
            let first = pattern.args().first();
            return first.map_or(Ok(false), |first| {
                self.argument(first, &Argument::Node(node.id()), left)
            });
        }
        if self.matcher.rules[place as usize].optional
            && let Some(first) = pattern.args().first()
        {
            let without = self
                .left
                .push(Task::Argument(first, Argument::Node(node.id())), *left);
            self.choose(without, place);
        }
        if !self.op_fits(place, node) {
            return Ok(self.fail(|| {
                format!(
                    "%{} is {} where {} is looked for",
                    node.name(),
                    node.target(),
                    pattern.target()
                )
            }));
        }
        if self.owner(node.id()).is_some() {
            return Ok(self.fail(|| format!("%{} is where two values are looked for", node.name())));
        }
        if self.taken[node.id().index as usize] && self.is_inside(place) {
            return Ok(self.fail(|| format!("%{} belongs to another match", node.name())));
        }
        let is_returned = self.matcher.shape.returned.contains(&place);
        let is_parameter = matches!(pattern.op(), Op::GetAttr(_));
        if !is_returned
            && !is_parameter
            && !self.has_optional
            && node.num_users() > self.users[place as usize]
        {
            return Ok(self.fail(|| format!("%{} is used outside of the match too", node.name())));
        }
        self.bind(place, Argument::Node(node.id()));
        if is_parameter {
            return Ok(true);
        }
        let matcher = self.matcher;
        let rule = |param: &str| matcher.literals(place, param);
        let rule: Option<&dyn Fn(&str) -> super::compare::Literals<'a>> =
            matcher.has_literal_rules(place).then_some(&rule);
        let pairs = match pairs(pattern, node, self.attributes, rule) {
            Ok(pairs) => pairs,
            Err(why) => return Ok(self.fail(|| format!("of %{} {why}", node.name()))),
        };
        let rest = *left;
        for (ours, theirs) in pairs.iter().rev() {
            *left = self.left.push(Task::Argument(ours, theirs.clone()), *left);
        }
        if let [(a, x), (b, y), others @ ..] = pairs.as_slice()
            && is_commutative(node.op())
        {
            let straight = self.plausible(a, x) && self.plausible(b, y);
            if self.plausible(a, y) && self.plausible(b, x) {
                let mut crossed = rest;
                for (ours, theirs) in others.iter().rev() {
                    crossed = self
                        .left
                        .push(Task::Argument(ours, theirs.clone()), crossed);
                }
                crossed = self.left.push(Task::Argument(b, x.clone()), crossed);
                crossed = self.left.push(Task::Argument(a, y.clone()), crossed);
                if straight {
                    self.choose(crossed, NONE);
                } else {
                    *left = crossed;
                }
            }
        }
        Ok(true)
    }

    /// Whether two arguments may fit, as far as can be seen without going into them.
    fn plausible(&mut self, ours: &Argument, theirs: &Argument) -> bool {
        let Argument::Node(id) = ours else {
            return theirs.as_node().is_none()
                && (self.matcher.ignore_literals || same_literal(ours, theirs))
                || !ours.is_leaf();
        };
        let place = self.matcher.place_of(*id);
        if let Some(bound) = &self.bound[place as usize] {
            return same_literal(bound, theirs);
        }
        let Ok(pattern) = self.matcher.node_at(place) else {
            return false;
        };
        match (pattern.op(), theirs) {
            (Op::Placeholder(_), Argument::Node(id)) => self.owner(*id).is_none(),
            (Op::Placeholder(_), _) => true,
            (_, Argument::Node(id)) => {
                self.matcher.rules[place as usize].optional
                    || self.owner(*id).is_none()
                        && self
                            .graph
                            .node(*id)
                            .is_ok_and(|node| self.op_fits(place, node))
            }
            _ => false,
        }
    }

    /// A node of the pattern that is not bound although one of its inputs is, with what may stand for it.
    fn next_anchor(&mut self) -> Result<Option<(u32, SmallVec<[NodeId; 4]>)>> {
        for place in 0..self.matcher.order.len() as u32 {
            if self.bound[place as usize].is_some() || self.absent[place as usize] {
                continue;
            }
            let pattern = self.matcher.node_at(place)?;
            let mut inputs = pattern
                .all_input_nodes()
                .map(|input| self.matcher.place_of(input.id()));
            let known = inputs.find_map(|input| self.bound[input as usize].as_ref()?.as_node());
            if let Some(known) = known {
                let mut users: SmallVec<[NodeId; 4]> = SmallVec::new();
                for user in self.graph.node(known)?.users() {
                    if self.op_fits(place, user) && self.owner(user.id()).is_none() {
                        users.push(user.id());
                    }
                }
                if users.len() > 1 {
                    users.sort_by(|a, b| match self.graph.is_before(*a, *b) {
                        Ok(true) => std::cmp::Ordering::Less,
                        _ if a == b => std::cmp::Ordering::Equal,
                        _ => std::cmp::Ordering::Greater,
                    });
                }
                return Ok(Some((place, users)));
            }
        }
        Ok(None)
    }

    /// Whether all of the pattern is found, and nothing inside is used outside.
    fn is_whole(&mut self) -> Result<bool> {
        for place in 0..self.matcher.order.len() as u32 {
            let Some(Argument::Node(id)) = self.bound[place as usize] else {
                let is_there = self.bound[place as usize].is_some() || self.absent[place as usize];
                // What only an absent node uses is not there either.
                if !is_there && !self.has_optional {
                    return Ok(self.fail(|| "not all of it is there".to_string()));
                }
                continue;
            };
            if !self.is_inside(place) || self.matcher.shape.returned.contains(&place) {
                continue;
            }
            let node = self.graph.node(id)?;
            if let Some(user) = node.users().find(|user| self.owner(user.id()).is_none()) {
                return Ok(
                    self.fail(|| format!("%{} is used by %{} too", node.name(), user.name()))
                );
            }
        }
        if !self.matcher.match_output {
            return Ok(true);
        }
        let output = self.graph.output_node();
        let returned = self.matcher.shape.returned.iter();
        let all = returned.map(|place| {
            self.bound[*place as usize]
                .as_ref()
                .and_then(Argument::as_node)
        });
        let theirs: Vec<Option<NodeId>> = output
            .map(|output| {
                output
                    .all_input_nodes()
                    .map(|node| Some(node.id()))
                    .collect()
            })
            .unwrap_or_default();
        let same = all.eq(theirs);
        Ok(same || self.fail(|| "the graph returns something else".to_string()))
    }
}
