//! One comparison of a search: an argument, an input or a node of the pattern with its counterpart
//! in the graph.
//!
//! Invariant: a failed comparison names all that it looked at: itself, and what stands for the
//! places that it met.

use std::borrow::Cow;

use super::choices::{NONE, Next};
use super::compare::{Literals, pairs, same_literal, shown};
use super::search::{Left, Search, Task};
use crate::error::Result;
use crate::ir::argument::Argument;
use crate::ir::node::NodeRef;
use crate::ir::op::Op;
use crate::module::call::Call;

impl<'a> Search<'a> {
    /// Compares an argument of the pattern with one of the graph.
    pub(super) fn argument(
        &mut self,
        ours: &'a Argument,
        theirs: Cow<'a, Argument>,
        cause: u32,
        left: &mut u32,
    ) -> Result<bool> {
        let items = |a: &'a [Argument], b: &[Argument], left: &mut u32, rest: &mut Left<'a>| {
            for (a, b) in a.iter().zip(b).rev() {
                let task = Task::Argument(a, Cow::Owned(b.clone()));
                *left = rest.push(task, cause, *left);
            }
            a.len() == b.len()
        };
        Ok(match (ours, &*theirs) {
            (Argument::Node(id), theirs) => {
                let place = self.matcher.place_of(*id);
                let pattern = self.matcher.node_at(place)?;
                if let Op::Placeholder(_) = pattern.op() {
                    return Ok(self.input(place, theirs, cause));
                }
                match theirs {
                    Argument::Node(theirs) => {
                        let node = self.graph.node(*theirs)?;
                        return self.node(place, node, cause, left);
                    }
                    theirs => self.mismatch(cause, || {
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
                    || self.mismatch(cause, || "a list has another length".to_string())
            }
            (Argument::Slice(a), Argument::Slice(b)) | (Argument::Range(a), Argument::Range(b)) => {
                items(&a[..], &b[..], left, &mut self.left)
            }
            (Argument::Dict(a), Argument::Dict(b)) => {
                let same =
                    a.len() == b.len() && a.iter().zip(b.iter()).all(|((k, _), (l, _))| k == l);
                for ((_, a), (_, b)) in a.iter().zip(b.iter()).rev() {
                    let task = Task::Argument(a, Cow::Owned(b.clone()));
                    *left = self.left.push(task, cause, *left);
                }
                same || self.mismatch(cause, || "a dict has other keys".to_string())
            }
            (ours, theirs) => {
                let ignored = self.matcher.ignore_literals
                    && ours.is_leaf()
                    && theirs.is_leaf()
                    && theirs.as_node().is_none();
                ignored
                    || same_literal(ours, theirs)
                    || self.mismatch(cause, || {
                        format!("{} is where {} is looked for", shown(theirs), shown(ours))
                    })
            }
        })
    }

    /// An input of the pattern stands for anything, but only for one thing.
    fn input(&mut self, place: u32, theirs: &Argument, cause: u32) -> bool {
        if let Some(bound) = &self.bound[place as usize] {
            return same_literal(bound, theirs)
                || self.clash(cause, place, || {
                    "an input stands for two values".to_string()
                });
        }
        if let Argument::Node(id) = theirs {
            if let Some(owner) = self.owner(*id) {
                return self.clash(cause, owner, || {
                    "one value is where two are looked for".to_string()
                });
            }
            let is_input = self
                .graph
                .node(*id)
                .is_ok_and(|node| matches!(node.op(), Op::Placeholder(_)));
            if self.matcher.match_placeholder && !is_input {
                return self.mismatch(cause, || {
                    "a computed value is where an input is looked for".to_string()
                });
            }
        }
        self.bind(place, theirs.clone(), cause);
        true
    }

    /// Compares a node of the pattern with one of the graph.
    pub(super) fn node(
        &mut self,
        place: u32,
        node: NodeRef<'a>,
        cause: u32,
        left: &mut u32,
    ) -> Result<bool> {
        if let Some(bound) = &self.bound[place as usize] {
            let same = bound.as_node() == Some(node.id());
            return Ok(same
                || self.clash(cause, place, || {
                    format!("%{} is where another value is looked for", node.name())
                }));
        }
        let pattern = self.matcher.node_at(place)?;
        if self.absent[place as usize] {
            // Its first argument stands for it, because of a choice that is not on this way.
            self.entangled = true;
            let first = pattern.args().first();
            return first.map_or(Ok(false), |first| {
                let node = Cow::Owned(Argument::Node(node.id()));
                self.argument(first, node, cause, left)
            });
        }
        if let Some(why) = self.hopeless.get(&(place, node.id().index)) {
            let why = why.clone();
            return Ok(self.mismatch(cause, || why));
        }
        let mut cause = cause;
        if self.matcher.rules[place as usize].optional
            && let Some(first) = pattern.args().first()
        {
            let choice = self.choices.next();
            let way = Task::Argument(first, Cow::Owned(Argument::Node(node.id())));
            let without = self.left.push(way, choice, *left);
            self.choose(without, place, cause, Some((place, node.id())));
            cause = choice;
        }
        if !self.op_fits(place, node) {
            return Ok(self.mismatch(cause, || {
                format!(
                    "%{} is {} where {} is looked for",
                    node.name(),
                    node.target(),
                    pattern.target()
                )
            }));
        }
        if let Some(owner) = self.owner(node.id()) {
            return Ok(self.clash(cause, owner, || {
                format!("%{} is where two values are looked for", node.name())
            }));
        }
        if self.taken[node.index()] && self.is_inside(place) {
            return Ok(self.mismatch(cause, || {
                format!("%{} belongs to another match", node.name())
            }));
        }
        let is_returned = self.matcher.is_returned[place as usize];
        let is_parameter = matches!(pattern.op(), Op::GetAttr(_));
        if !is_returned && !is_parameter && node.num_users() > self.users[place as usize] {
            return Ok(self.mismatch(cause, || {
                format!("%{} is used outside of the match too", node.name())
            }));
        }
        self.bind(place, Argument::Node(node.id()), cause);
        if is_parameter {
            return Ok(true);
        }
        self.operands(place, node, cause, left)
    }

    /// Continues with the operands of a node that fits.
    fn operands(
        &mut self,
        place: u32,
        node: NodeRef<'a>,
        cause: u32,
        left: &mut u32,
    ) -> Result<bool> {
        let matcher = self.matcher;
        let pattern = matcher.node_at(place)?;
        let rule = |param: &str| matcher.literals(place, param);
        let rule: Option<&dyn Fn(&str) -> Literals<'a>> =
            matcher.has_literal_rules(place).then_some(&rule);
        let pairs = match pairs(pattern, node, self.attributes, rule) {
            Ok(pairs) => pairs,
            Err(why) => {
                return Ok(self.mismatch(cause, || format!("of %{} {why}", node.name())));
            }
        };
        let rest = *left;
        let mut way = cause;
        if let [(a, x), (b, y), others @ ..] = pairs.as_slice()
            // Equal operands in the other order are the same operands.
            && !same_literal(x, y)
            && !same_literal(a, b)
            && Call::of(node, self.attributes).is_commutative()
            && self.plausible(a, y)
            && self.plausible(b, x)
        {
            let straight = self.plausible(a, x) && self.plausible(b, y);
            if straight {
                way = self.choices.next();
            }
            let mut crossed = rest;
            for (ours, theirs) in others.iter().rev() {
                let task = Task::Argument(ours, theirs.clone());
                crossed = self.left.push(task, way, crossed);
            }
            let second = Task::Argument(b, x.clone());
            crossed = self.left.push(second, way, crossed);
            let first = Task::Argument(a, y.clone());
            crossed = self.left.push(first, way, crossed);
            if !straight {
                *left = crossed;
                return Ok(true);
            }
            self.choose(crossed, NONE, cause, Some((place, node.id())));
        }
        for (ours, theirs) in pairs.into_iter().rev() {
            let task = Task::Argument(ours, theirs);
            *left = self.left.push(task, way, *left);
        }
        Ok(true)
    }

    /// Adds another way to come back to, about a comparison.
    fn choose(
        &mut self,
        left: u32,
        absent: u32,
        parent: u32,
        about: Option<(u32, crate::value::handle::NodeId)>,
    ) {
        let next = Next::Way { left, absent };
        let (trail, tasks) = (self.trail.len(), self.left.len());
        self.choices.push(parent, next, about, trail, tasks);
    }

    /// Whether two arguments may fit in any match, as far as can be seen without looking into them.
    fn plausible(&mut self, ours: &Argument, theirs: &Argument) -> bool {
        let Argument::Node(id) = ours else {
            return theirs.as_node().is_none()
                && (self.matcher.ignore_literals || same_literal(ours, theirs))
                || !ours.is_leaf();
        };
        let place = self.matcher.place_of(*id);
        let Ok(pattern) = self.matcher.node_at(place) else {
            return false;
        };
        match (pattern.op(), theirs) {
            (Op::Placeholder(_), _) => true,
            (_, Argument::Node(id)) => {
                self.matcher.rules[place as usize].optional
                    || !self.hopeless.contains_key(&(place, id.index))
                        && self
                            .graph
                            .node(*id)
                            .is_ok_and(|node| self.op_fits(place, node))
            }
            _ => false,
        }
    }
}
