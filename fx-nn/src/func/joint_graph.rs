//! `JointGraph`: what is known of a graph that gives a value and what is pulled back from it: its forward part, the
//! bytes of its values and what it costs to compute them.
//!
//! Invariant: the forward part is whatever the first of the results depends on.

use fx_core::ir::{Argument, FunctionTable, NodeRef, Op, ValueMeta, operator};
use fx_core::shapes::Spec;
use fx_core::trace::CallArgs;
use fx_core::value::{Dim, NodeId};
use fx_core::{Error, GraphModule, Result};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::multiply_adds::{CountedCall, MultiplyAdds};
use crate::op_kind::OpKind;

/// A node of a joint graph.
pub(super) struct JointNode {
    pub id: NodeId,
    pub name: String,
    /// The places of the nodes that it reads.
    pub inputs: Vec<u32>,
    pub is_forward: bool,
    /// Whether it is there anyway: an input or a parameter.
    pub is_given: bool,
    /// Whether it is a result as it is.
    pub is_result: bool,
    /// The bytes of its value.
    pub bytes: u64,
    /// The node that it is a view of: then the bytes are not its own.
    pub viewed: Option<u32>,
    /// What it costs to compute it, in picoseconds of an ordinary processor, of which the proportions matter; none if it
    /// must not be computed twice.
    pub cost: Option<u64>,
    /// The paths of the modules that it is in, the innermost first.
    pub modules: Vec<String>,
}

/// A graph of a value and what is pulled back from it: its nodes in their order, but for the output.
pub(super) struct JointGraph {
    pub nodes: Vec<JointNode>,
}

/// What a multiplication with an addition takes, and a byte that is read or written.
const COST_OF_PRODUCT: u64 = 40;
const COST_OF_BYTE: u64 = 120;

impl JointGraph {
    /// # Errors
    /// Returns an error if the graph does not give a value and what is pulled back from it, or a size is not a number.
    pub fn of(gm: &GraphModule) -> Result<Self> {
        let graph = gm.graph();
        let forward = forward_part(gm)?;
        let output = graph.output_node().into_iter();
        let results: FxHashSet<NodeId> = output
            .flat_map(NodeRef::all_input_nodes)
            .map(NodeRef::id)
            .collect();
        let ordered = gm.ordered();
        let kinds = FunctionTable::<OpKind>::registered()?;
        let mut place_of: FxHashMap<NodeId, u32> = FxHashMap::default();
        let mut nodes: Vec<JointNode> = Vec::with_capacity(graph.len());
        for node in graph.nodes().filter(|node| *node.op() != Op::Output) {
            place_of.insert(node.id(), u32::try_from(nodes.len()).map_err(Error::other)?);
            let inputs = node.all_input_nodes().map(|input| place_of[&input.id()]);
            let inputs: Vec<u32> = inputs.collect();
            let kind = node.function().and_then(|function| kinds.get(function));
            let is_view = kind == Some(&OpKind::View) || is_item(node);
            let bytes = match kind {
                Some(OpKind::Update) => 0,
                _ => bytes_of(node)?,
            };
            let read = inputs.iter().map(|at| nodes[*at as usize].bytes);
            let moved = match is_view {
                true => 0,
                false => read.fold(bytes, u64::saturating_add),
            };
            let may_repeat = node.function().is_some() && !ordered.contains(node);
            let cost = match may_repeat {
                true => {
                    let products = products_of(node)?.saturating_mul(COST_OF_PRODUCT);
                    let moved = moved.saturating_mul(COST_OF_BYTE);
                    Some(products.saturating_add(moved).saturating_add(1))
                }
                false => None,
            };
            nodes.push(JointNode {
                id: node.id(),
                name: node.name().to_string(),
                is_forward: forward.contains(&node.id()),
                is_given: matches!(node.op(), Op::Placeholder(_) | Op::GetAttr(_)),
                is_result: results.contains(&node.id()),
                bytes,
                viewed: is_view.then(|| inputs.first().copied()).flatten(),
                cost,
                modules: node
                    .module_stack()
                    .map(|scope| scope.path.to_string())
                    .collect(),
                inputs,
            });
        }
        Ok(JointGraph { nodes })
    }

    /// Whether the backward part reads each value of the forward part that is not there anyway.
    pub fn read_behind(&self) -> Vec<bool> {
        let mut is_read = vec![false; self.nodes.len()];
        for node in self.nodes.iter().filter(|node| !node.is_forward) {
            for input in &node.inputs {
                let from = &self.nodes[*input as usize];
                is_read[*input as usize] |= from.is_forward && !from.is_given;
            }
        }
        is_read
    }

    /// Which values of the forward part are computed again for the backward part, and which are kept, if some may be
    /// computed again: what nobody reads then is neither.
    pub fn needed(&self, may_repeat: &[bool]) -> Needed {
        let mut needed = Needed {
            again: vec![false; self.nodes.len()],
            kept: vec![false; self.nodes.len()],
        };
        let mut is_read = self.read_behind();
        for (at, node) in self.nodes.iter().enumerate().rev() {
            if !is_read[at] {
                continue;
            }
            if node.is_result || !may_repeat[at] || node.cost.is_none() {
                needed.kept[at] = true;
                continue;
            }
            needed.again[at] = true;
            for input in &node.inputs {
                is_read[*input as usize] |= !self.nodes[*input as usize].is_given;
            }
        }
        needed
    }

    /// The places of the nodes in the order of a run in which some are computed again, each right before it is first
    /// read there; with whether it is for the second time.
    pub fn order(&self, again: &[bool]) -> Vec<(u32, bool)> {
        let mut order = Vec::with_capacity(self.nodes.len());
        let mut is_made = vec![false; self.nodes.len()];
        let mut pending: Vec<(u32, bool)> = Vec::new();
        for (at, node) in (0u32..).zip(&self.nodes) {
            if !node.is_forward {
                pending.extend(node.inputs.iter().rev().map(|input| (*input, false)));
                while let Some((input, is_ready)) = pending.pop() {
                    let place = input as usize;
                    if !again[place] || is_made[place] {
                        continue;
                    }
                    if is_ready {
                        is_made[place] = true;
                        order.push((input, true));
                        continue;
                    }
                    pending.push((input, true));
                    let inputs = self.nodes[place].inputs.iter().rev();
                    pending.extend(inputs.map(|input| (*input, false)));
                }
            }
            order.push((at, false));
        }
        order
    }

    /// The most bytes that are there at once in a run in which some are computed again: of values that are computed, each
    /// from its node to the last that reads it or a view of it.
    pub fn peak(&self, again: &[bool]) -> u64 {
        let count = self.nodes.len();
        // The memory that each value is in: that of a second time is behind those of the first.
        let mut memory: Vec<usize> = (0..2 * count).collect();
        let mut last_read: Vec<usize> = vec![0; 2 * count];
        let order = self.order(again);
        for (step, (at, is_second)) in order.iter().enumerate() {
            let node = &self.nodes[*at as usize];
            let is_behind = *is_second || !node.is_forward;
            let read = |input: u32| match is_behind && again[input as usize] {
                true => count + input as usize,
                false => input as usize,
            };
            let own = *at as usize + if *is_second { count } else { 0 };
            if let Some(viewed) = node.viewed {
                memory[own] = memory[read(viewed)];
            }
            last_read[memory[own]] = step;
            for input in &node.inputs {
                last_read[memory[read(*input)]] = step;
            }
            if node.is_result {
                last_read[memory[own]] = order.len();
            }
        }
        let mut gone: Vec<u64> = vec![0; order.len() + 1];
        let (mut now, mut most) = (0u64, 0u64);
        for (step, (at, is_second)) in order.iter().enumerate() {
            let node = &self.nodes[*at as usize];
            let own = *at as usize + if *is_second { count } else { 0 };
            if memory[own] == own && !node.is_given {
                now += node.bytes;
                gone[last_read[own]] += node.bytes;
            }
            most = most.max(now);
            now -= gone[step];
        }
        most
    }
}

/// What becomes of the values of a forward part that the backward part reads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Needed {
    /// Those that are computed again.
    pub again: Vec<bool>,
    /// Those that are kept.
    pub kept: Vec<bool>,
}

/// The nodes that the first of the results depends on.
fn forward_part(gm: &GraphModule) -> Result<FxHashSet<NodeId>> {
    let graph = gm.graph();
    let [first, _, ..] = graph.results() else {
        return Err(Error::msg(
            "a joint graph gives a tuple, of a value and of what is pulled back from it: that of `value_and_grad` does, or of `vjp`",
        ));
    };
    let mut forward = FxHashSet::default();
    first.for_each_node(&mut |id| {
        forward.insert(id);
    });
    for node in graph.nodes().rev() {
        if forward.contains(&node.id()) {
            forward.extend(node.all_input_nodes().map(NodeRef::id));
        }
    }
    Ok(forward)
}

/// Whether a node takes an item out of a structure.
fn is_item(node: NodeRef<'_>) -> bool {
    let of = node.all_input_nodes().next();
    let of = of.and_then(|of| of.meta::<ValueMeta>());
    node.function() == Some(operator::getitem) && of.is_some_and(|of| of.items().is_some())
}

fn known(node: NodeRef<'_>, dim: &Dim) -> Result<u64> {
    let number = dim.as_known().and_then(|number| u64::try_from(number).ok());
    number.ok_or_else(|| {
        Error::msg(format_args!(
            "%{} takes {dim} bytes or products: give the shapes of a joint graph as numbers",
            node.name()
        ))
    })
}

fn bytes_of(node: NodeRef<'_>) -> Result<u64> {
    match node.meta::<ValueMeta>() {
        Some(meta) => known(node, &meta.memory()?),
        None => Err(Error::msg(format_args!(
            "the shape of %{} is not known: infer the shapes of the graph first",
            node.name()
        ))),
    }
}

/// The multiplications with an addition of a call.
fn products_of(node: NodeRef<'_>) -> Result<u64> {
    let table = FunctionTable::<MultiplyAdds>::registered()?;
    let known_of = node.function().and_then(|f| Some((f, table.get(f)?)));
    let (Some((function, MultiplyAdds(count))), Some(output)) =
        (known_of, node.meta::<ValueMeta>())
    else {
        return Ok(0);
    };
    let graph = node.graph();
    let value = |argument: &Argument| {
        argument.to_value(&mut |id| match graph.node(id)?.meta::<ValueMeta>() {
            Some(meta) => Spec::of_meta(meta)?.fake_value(),
            None => Err(Error::msg("the shape of an argument is not known")),
        })
    };
    let kwargs = node.kwargs().iter();
    let call = CallArgs {
        args: node.args().iter().map(value).collect::<Result<_>>()?,
        kwargs: kwargs
            .map(|(name, argument)| Ok((name.clone(), value(argument)?)))
            .collect::<Result<_>>()?,
    };
    known(node, &count(&CountedCall::new(function, &call, output))?)
}
