//! `CanonicalizeBy`: one order for graphs that compute the same, by a key that the user gives.
//!
//! Invariant: nodes whose order counts keep it, and nothing crosses a node that the user holds fast.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fmt;

use super::canonicalize::{Canonicalize, arrange};
use super::pass::Pass;
use super::predicate::Predicate;
use crate::error::Result;
use crate::graph_module::GraphModule;
use crate::ir::argument::Argument;
use crate::ir::graph::Graph;
use crate::ir::node::NodeRef;
use crate::ir::op::Op;
use crate::ir::operator;
use crate::module::attributes::Attributes;
use crate::module::call::Call;
use crate::region::ordered::Ordered;
use crate::value::handle::NodeId;

/// The order of a graph, by a user's key.
type OrderBy = dyn Fn(&Constraints<'_>) -> Vec<NodeId> + Send + Sync;

/// [`Canonicalize`] by a key function, made by [`Canonicalize::by_key`].
pub struct CanonicalizeBy {
    order: Box<OrderBy>,
    is_safe: Option<Predicate>,
    groups_getitems: bool,
    keeps_names: bool,
}

impl Canonicalize {
    /// Orders nodes by a key instead: of all nodes whose inputs are placed, the one with the
    /// smallest key comes next. The key function gets a node and the places of its inputs, in the
    /// order of [`all_input_nodes`](NodeRef::all_input_nodes); equal keys keep their order.
    ///
    /// Inputs stay first in their order, a `get_attr` comes before its first user, and the output
    /// is last: for these there is no key. Impure nodes keep their order among themselves.
    ///
    /// ```
    /// use fx_core::prelude::*;
    /// use fx_core::passes::Canonicalize;
    /// let by_target = Canonicalize::by_key(|node, inputs| (node.target().to_string(), inputs.to_vec()));
    /// let mut a = symbolic_trace(traced!(|x: Float| { let (p, q) = ((x * 2.0)?, (x - 1.0)?); p + q }))?;
    /// let mut b = symbolic_trace(traced!(|x: Float| { let (q, p) = ((x - 1.0)?, (x * 2.0)?); p + q }))?;
    /// a.apply(&by_target)?;
    /// b.apply(&by_target)?;
    /// assert_eq!(a.graph().to_string(), b.graph().to_string());
    /// let names: Vec<String> = a.graph().nodes().map(|node| node.name().to_string()).collect();
    /// assert_eq!(names, ["x", "mul", "sub", "add", "output"]);
    /// # Ok::<(), Error>(())
    /// ```
    pub fn by_key<K: Ord + 'static>(
        key: impl Fn(NodeRef<'_>, &[usize]) -> K + Send + Sync + 'static,
    ) -> CanonicalizeBy {
        CanonicalizeBy {
            order: Box::new(move |constraints| constraints.order(&key)),
            is_safe: None,
            groups_getitems: false,
            keeps_names: false,
        }
    }
}

impl CanonicalizeBy {
    /// Nodes for which this is false stay where they are: no other node crosses them. What is safe
    /// besides is up to [`Canonicalize`]: impure nodes never change places.
    #[must_use]
    pub fn is_safe_to_reorder(
        mut self,
        is_safe: impl Fn(NodeRef<'_>) -> bool + Send + Sync + 'static,
    ) -> Self {
        self.is_safe = Some(Box::new(is_safe));
        self
    }

    /// Whether the items that are taken out of a result come right after it, by index: `false`.
    #[must_use]
    pub fn group_getitems(mut self, groups: bool) -> Self {
        self.groups_getitems = groups;
        self
    }

    /// Whether nodes get the names that a trace would give in the new order: `true`.
    #[must_use]
    pub fn rename(mut self, renames: bool) -> Self {
        self.keeps_names = !renames;
        self
    }
}

impl fmt::Debug for CanonicalizeBy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("CanonicalizeBy")
    }
}

impl Pass for CanonicalizeBy {
    fn enters_control(&self) -> bool {
        true
    }

    fn run(&self, gm: &mut GraphModule) -> Result<bool> {
        let mut edit = gm.graph_mut();
        let (graph, attributes) = edit.parts();
        let order = (self.order)(&Constraints::of(self, graph, attributes));
        arrange(graph, &order, !self.keeps_names)
    }
}

/// What an order has to respect besides inputs.
struct Constraints<'g> {
    graph: &'g Graph,
    attributes: &'g Attributes,
    /// By the node's index: the nodes that must come after it, without being its users.
    followers: Vec<Vec<NodeId>>,
    /// By the node's index: how many nodes must come before it.
    waiting: Vec<u32>,
    /// By the node's index: whether it is a `get_attr` that comes right before its first user.
    is_read: Vec<bool>,
    groups_getitems: bool,
}

impl<'g> Constraints<'g> {
    fn of(options: &CanonicalizeBy, graph: &'g Graph, attributes: &'g Attributes) -> Self {
        let ordered = Ordered::of(graph, attributes);
        let bound = graph.index_bound();
        let mut found = Constraints {
            graph,
            attributes,
            followers: vec![Vec::new(); bound],
            waiting: vec![0; bound],
            is_read: vec![false; bound],
            groups_getitems: options.groups_getitems,
        };
        for node in graph.nodes() {
            let is_read = matches!(node.op(), Op::GetAttr(_)) && !ordered.contains(node);
            found.is_read[at(node)] = is_read;
        }
        let (mut last_ordered, mut barrier) = (None, None);
        let mut segment: Vec<NodeId> = Vec::new();
        let keyed: Vec<NodeRef<'_>> = graph.nodes().filter(|n| found.has_key(*n)).collect();
        for node in keyed {
            let inputs = node.all_input_nodes();
            let inputs = inputs.filter(|input| found.has_key(*input)).count();
            found.waiting[at(node)] += u32::try_from(inputs).unwrap_or(u32::MAX);
            let is_safe = options.is_safe.as_ref().is_none_or(|is_safe| is_safe(node));
            found.chain(barrier, node);
            if !is_safe {
                for before in segment.drain(..) {
                    found.chain(Some(before), node);
                }
                barrier = Some(node.id());
                // What comes later is behind the barrier, and so behind these.
                last_ordered = None;
            } else {
                if ordered.contains(node) {
                    found.chain(last_ordered, node);
                    last_ordered = Some(node.id());
                }
                segment.push(node.id());
            }
        }
        found
    }

    /// Whether a key decides the place of a node.
    fn has_key(&self, node: NodeRef<'_>) -> bool {
        !matches!(node.op(), Op::Placeholder(_) | Op::Output) && !self.is_read[at(node)]
    }

    /// Puts a node behind another.
    fn chain(&mut self, before: Option<NodeId>, node: NodeRef<'_>) {
        if let Some(before) = before {
            self.followers[before.index as usize].push(node.id());
            self.waiting[at(node)] += 1;
        }
    }

    fn order<K: Ord>(&self, key: &dyn Fn(NodeRef<'_>, &[usize]) -> K) -> Vec<NodeId> {
        let graph = self.graph;
        let mut places = vec![usize::MAX; graph.index_bound()];
        let mut placed = 0;
        let mut place = |places: &mut Vec<usize>, node: NodeRef<'_>| {
            places[at(node)] = placed;
            placed += 1;
        };
        graph
            .placeholders()
            .for_each(|node| place(&mut places, node));
        let mut reads: Vec<NodeRef<'_>> = graph.nodes().filter(|n| self.is_read[at(*n)]).collect();
        reads.sort_by(|a, b| a.target().cmp(b.target()));
        reads.iter().for_each(|node| place(&mut places, *node));

        let mut waiting = self.waiting.clone();
        let mut ready = BinaryHeap::new();
        let mut count = 0usize;
        let mut entry = |places: &[usize], node: NodeRef<'_>| {
            let inputs = node.all_input_nodes().map(|input| places[at(input)]);
            count += 1;
            Reverse((key(node, &inputs.collect::<Vec<_>>()), count, node.id()))
        };
        for node in graph.nodes().filter(|node| self.has_key(*node)) {
            if waiting[at(node)] == 0 {
                ready.push(entry(&places, node));
            }
        }
        let mut order = Vec::with_capacity(graph.len());
        // Items to place at once, the next one last.
        let mut items: Vec<NodeId> = Vec::new();
        while let Some(id) = items
            .pop()
            .or_else(|| ready.pop().map(|Reverse(top)| top.2))
        {
            let Ok(node) = graph.node(id) else {
                continue;
            };
            place(&mut places, node);
            order.push(id);
            let followers = self.followers[at(node)].iter();
            let followers = followers.filter_map(|id| graph.node(*id).ok());
            let users = node.users().filter(|user| self.has_key(*user));
            let mut group = Vec::new();
            for next in users.chain(followers) {
                let left = &mut waiting[at(next)];
                *left -= 1;
                if *left > 0 {
                    continue;
                }
                match self.item_of(next, id) {
                    Some(index) => group.push((index, next.id())),
                    None => ready.push(entry(&places, next)),
                }
            }
            group.sort_by(|a, b| a.0.cmp(&b.0));
            items.extend(group.into_iter().rev().map(|(_, item)| item));
        }
        self.with_reads(&order, &reads)
    }

    /// The index by which a node takes an item out of another, if these are to stand together.
    fn item_of(&self, node: NodeRef<'_>, whole: NodeId) -> Option<(Option<i64>, String)> {
        let is_item = self.groups_getitems
            && Call::of(node, self.attributes).function() == Some(operator::getitem)
            && node.all_input_nodes().map(|input| input.id()).eq([whole]);
        let index = node.args().get(1).filter(|_| is_item)?;
        let number = match index {
            Argument::Int(number) => Some(*number),
            _ => None,
        };
        Some((number, format!("{index:?}")))
    }

    /// The whole order: inputs first, each `get_attr` before its first user, the output last.
    fn with_reads(&self, order: &[NodeId], reads: &[NodeRef<'_>]) -> Vec<NodeId> {
        let graph = self.graph;
        let mut is_placed = vec![false; graph.index_bound()];
        let mut whole: Vec<NodeId> = graph.placeholders().map(|node| node.id()).collect();
        let mut add_reads = |whole: &mut Vec<NodeId>, node: NodeRef<'_>| {
            if self.is_read[at(node)] && !std::mem::replace(&mut is_placed[at(node)], true) {
                whole.push(node.id());
            }
        };
        for id in order {
            let inputs = graph.node(*id).into_iter();
            let inputs = inputs.flat_map(|node| node.all_input_nodes());
            inputs.for_each(|input| add_reads(&mut whole, input));
            whole.push(*id);
        }
        let outputs = || graph.nodes().filter(|node| *node.op() == Op::Output);
        let last = outputs().flat_map(|output| output.all_input_nodes());
        last.for_each(|input| add_reads(&mut whole, input));
        reads.iter().for_each(|read| add_reads(&mut whole, *read));
        whole.extend(outputs().map(|output| output.id()));
        whole
    }
}

fn at(node: NodeRef<'_>) -> usize {
    node.index()
}
