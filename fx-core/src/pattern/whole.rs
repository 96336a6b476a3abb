//! The end of a search: places that nothing has led to yet, and whether the result is a match as a
//! whole.
//!
//! Invariant: a match can be replaced: nothing inside is used outside, and no input depends on an
//! output.

use smallvec::SmallVec;

use super::candidates::{Candidates, FEW};
use super::choices::{NONE, Next};
use super::place::dependence;
use super::search::{Search, Task};
use crate::error::Result;
use crate::ir::argument::Argument;
use crate::ir::op::Op;
use crate::value::handle::NodeId;

/// An unbound place with a bound input.
pub(super) struct Unknown {
    place: u32,
    /// The input, and the node that stands for it.
    input: u32,
    value: NodeId,
}

impl Search<'_> {
    /// An unbound node of the pattern with a bound input.
    pub(super) fn next_place(&self) -> Result<Option<Unknown>> {
        if self.trail.len() == self.bound.len() {
            return Ok(None);
        }
        for place in 0..self.matcher.order.len() as u32 {
            if self.bound[place as usize].is_some() || self.absent[place as usize] {
                continue;
            }
            let mut best: Option<(usize, Unknown)> = None;
            for input in self.matcher.node_at(place)?.all_input_nodes() {
                let input = self.matcher.place_of(input.id());
                let bound = self.bound[input as usize].as_ref();
                let Some(value) = bound.and_then(Argument::as_node) else {
                    continue;
                };
                let users = self.graph.node(value)?.num_users();
                if best.as_ref().is_none_or(|(fewest, _)| users < *fewest) {
                    let unknown = Unknown {
                        place,
                        input,
                        value,
                    };
                    best = Some((users, unknown));
                }
            }
            if let Some((_, unknown)) = best {
                return Ok(Some(unknown));
            }
        }
        Ok(None)
    }

    /// Chooses among the nodes that may stand for a place, in the order of the graph; returns the
    /// comparisons to continue with.
    pub(super) fn choose_candidate(&mut self, unknown: &Unknown) -> Result<Option<u32>> {
        let Unknown {
            place,
            input,
            value,
        } = *unknown;
        let cause = self.causes[input as usize];
        let needed = self.needed(input, place)?;
        let (candidates, enough) = self.candidates(place, value, needed)?;
        let first = (enough || self.has_optional)
            .then(|| self.candidate(place, candidates))
            .flatten();
        let Some((tried, others)) = first else {
            let pattern = self.matcher.node_at(place)?;
            let value = self.graph.node(value)?.name();
            self.mismatch(cause, || match needed {
                1 => format!("%{value} has no user that fits %{}", pattern.name()),
                _ => format!(
                    "%{value} has fewer than {needed} users that fit %{}",
                    pattern.name()
                ),
            });
            return Ok(None);
        };
        // Even if it is the only one: with another choice, the value that it is a user of may
        // differ.
        let below = self.choices.next();
        let next = Next::Candidates {
            place,
            tried,
            others,
        };
        let (trail, tasks) = (self.trail.len(), self.left.len());
        self.choices.push(cause, next, None, trail, tasks);
        let task = Task::Node(place, tried);
        Ok(Some(self.left.push(task, below, NONE)))
    }

    /// How many users of an input in the pattern have the op of a place.
    fn needed(&mut self, input: u32, place: u32) -> Result<usize> {
        let op = self.ops[place as usize];
        if let Some(known) = self.needed.get(&(input, op)) {
            return Ok(*known);
        }
        let matcher = self.matcher;
        for user in matcher.node_at(input)?.users() {
            if *user.op() != Op::Output {
                let op = self.ops[matcher.place_of(user.id()) as usize];
                *self.needed.entry((input, op)).or_default() += 1;
            }
        }
        let needed = self.needed.get(&(input, op)).copied();
        Ok(needed.expect("a place is among the users of its input"))
    }

    /// The users of a value with the op of a place, in order, and whether that many are in no
    /// match.
    fn candidates(
        &mut self,
        place: u32,
        value: NodeId,
        needed: usize,
    ) -> Result<(Candidates, bool)> {
        let node = self.graph.node(value)?;
        if node.num_users() <= FEW {
            let mut users: SmallVec<[NodeId; 4]> = SmallVec::new();
            for user in node.users() {
                if self.op_fits(place, user) && !self.taken[user.index()] {
                    users.push(user.id());
                }
            }
            // The first is last in the list.
            self.graph.sort_ids(&mut users);
            users.reverse();
            let enough = users.len() >= needed;
            return Ok((Candidates::Few(users), enough));
        }
        let op = self.ops[place as usize];
        let list = match self.lists.get(value.index, op) {
            Some(list) => list,
            None => {
                let mut users = Vec::new();
                for user in node.users() {
                    if self.op_fits(place, user) {
                        users.push(user.id());
                    }
                }
                self.graph.sort_ids(&mut users);
                self.lists.add(value.index, op, users)
            }
        };
        let enough = self.lists.has(list, needed, &self.taken);
        Ok((Candidates::Listed { list, at: 0 }, enough))
    }

    /// The next candidate that may still stand for a place, and the rest.
    pub(super) fn candidate(
        &mut self,
        place: u32,
        candidates: Candidates,
    ) -> Option<(NodeId, Candidates)> {
        let (taken, hopeless) = (&self.taken, &self.hopeless);
        let is_gone =
            |id: NodeId| taken[id.index as usize] || hopeless.contains_key(&(place, id.index));
        match candidates {
            Candidates::Few(mut nodes) => loop {
                let node = nodes.pop()?;
                if !is_gone(node) {
                    return Some((node, Candidates::Few(nodes)));
                }
            },
            Candidates::Listed { list, at } => {
                let (node, at) = self.lists.next(list, at, place, is_gone)?;
                Some((node, Candidates::Listed { list, at }))
            }
        }
    }

    /// Whether the whole pattern is found, nothing inside is used outside, and no input depends on
    /// an output.
    pub(super) fn is_whole(&mut self) -> Result<bool> {
        let matcher = self.matcher;
        if !self.has_optional {
            // What stands for an inner node has at most as many users as the pattern's node, and
            // all of them are found.
            if self.trail.len() < self.bound.len() {
                return Ok(self.failure(|| "not all of it is there".to_string()));
            }
        } else if !self.keeps_its_own()? {
            return Ok(false);
        }
        if matcher.match_output && !self.is_output() {
            let returned = &matcher.shape.returned;
            return Ok(self.misfit(returned, || "the graph returns something else".to_string()));
        }
        self.is_free()
    }

    /// Whether nothing inside is used outside.
    fn keeps_its_own(&mut self) -> Result<bool> {
        for place in 0..self.matcher.order.len() as u32 {
            let Some(Argument::Node(id)) = self.bound[place as usize] else {
                continue;
            };
            if !self.is_inside(place) || self.matcher.is_returned[place as usize] {
                continue;
            }
            let node = self.graph.node(id)?;
            if let Some(user) = node.users().find(|user| self.owner(user.id()).is_none()) {
                return Ok(
                    self.failure(|| format!("%{} is used by %{} too", node.name(), user.name()))
                );
            }
        }
        Ok(true)
    }

    /// Whether what the pattern returns is what the graph returns.
    fn is_output(&self) -> bool {
        let returned = self.matcher.shape.returned.iter();
        let ours = returned.map(|place| self.bound[*place as usize].as_ref()?.as_node());
        let output = self.graph.output_node();
        let theirs = output.iter().flat_map(|output| output.all_input_nodes());
        ours.eq(theirs.map(|node| Some(node.id())))
    }

    /// Whether no input depends on an output, so that something can replace the match.
    fn is_free(&mut self) -> Result<bool> {
        let matcher = self.matcher;
        // An input of the only output cannot depend on it.
        if matcher.shape.returned.len() < 2 {
            return Ok(true);
        }
        let node_at = |place: &u32| {
            let bound = self.bound[*place as usize].as_ref();
            Some((*place, bound?.as_node()?))
        };
        let returned = matcher.shape.returned.iter().filter_map(node_at);
        let outputs: SmallVec<[(u32, NodeId); 4]> = returned.collect();
        let mut inputs: SmallVec<[(u32, NodeId); 4]> = SmallVec::new();
        for place in &matcher.shape.inputs {
            if let Some(bound) = &self.bound[*place as usize] {
                bound.for_each_node(&mut |id| inputs.push((*place, id)));
            }
        }
        let mut looked_at = 0;
        let found = dependence(self.graph, &inputs, &outputs, &mut looked_at)?;
        self.spend(looked_at)?;
        let Some((input, output)) = found else {
            return Ok(true);
        };
        Ok(self.misfit_of(input, output))
    }

    /// Fails because an input depends on an output.
    fn misfit_of(&mut self, input: u32, output: u32) -> bool {
        let matcher = self.matcher;
        let node = self.bound[output as usize]
            .as_ref()
            .and_then(Argument::as_node);
        let name = node.and_then(|id| self.graph.node(id).ok());
        let cause = self.causes[input as usize];
        self.clash(cause, output, || {
            format!(
                "what stands for `{}` depends on %{}, so that nothing can stand for both",
                matcher.shape.names[input as usize],
                name.map_or_else(String::new, |node| node.name().to_string())
            )
        })
    }
}
