//! `ShardReport`: what propagation has found: how much is shared, what has to be moved, and where it ended.

use std::fmt;

use fx_nn::ir::NodeRef;
use fx_nn::{GraphModule, Result};

use super::flow::{Flow, Layout};
use super::plan::{Move, moves};
use super::sharding::Sharding;

/// A value that one call gives in one sharding, and that another takes in a different one: XLA moves it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Reshard {
    /// The name of the value's node.
    pub value: String,
    /// The source line of the value.
    pub value_at: Option<String>,
    /// The name of the node that takes it.
    pub user: String,
    /// The source line of the user.
    pub user_at: Option<String>,
    /// The other operand or the result whose axes were kept, if two disagree.
    pub against: Option<String>,
    /// What the value has.
    pub from: String,
    /// What its user takes.
    pub to: String,
}

impl fmt::Display for Reshard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let at = |place: &Option<String>| {
            let place = place.as_ref();
            place.map_or(String::new(), |place| format!(" ({place})"))
        };
        write!(
            f,
            "%{}{} is {}, and %{}{} takes {}",
            self.value,
            at(&self.value_at),
            self.from,
            self.user,
            at(&self.user_at),
            self.to
        )?;
        match &self.against {
            Some(other) => write!(f, ", as %{other} has it"),
            None => Ok(()),
        }
    }
}

/// What [`shard`](super::shard()) did.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ShardReport {
    /// The parameters, inputs and outputs that rules are for.
    pub fixed: usize,
    /// The values that are shared along an axis, fixed ones included.
    pub sharded: usize,
    /// The values of tensors.
    pub values: usize,
    /// What has to be moved from one sharding to another.
    pub reshards: Vec<Reshard>,
    /// The calls that ended propagation, for their function has no [`ShardRule`](super::ShardRule): node and function.
    pub without_rule: Vec<(String, String)>,
}

impl fmt::Display for ShardReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} of {} values are shared, {} by rules",
            self.sharded, self.values, self.fixed
        )?;
        for reshard in &self.reshards {
            write!(f, "\nreshard: {reshard}")?;
        }
        for (node, function) in &self.without_rule {
            write!(f, "\nno rule: %{node} = {function} is computed whole")?;
        }
        Ok(())
    }
}

fn place_of(node: NodeRef<'_>) -> Option<String> {
    node.location().map(ToString::to_string)
}

impl Flow<'_> {
    fn shown(&self, layout: &Layout) -> String {
        let dims = layout.iter().map(|axes| {
            let axes = axes.iter().map(|axis| self.mesh.name(*axis).clone());
            super::sharding::DimSharding {
                axes: axes.collect(),
                open: false,
            }
        });
        Sharding::new(dims).to_string()
    }

    pub(super) fn report(&self, gm: &GraphModule, fixed: usize) -> Result<ShardReport> {
        let graph = gm.graph();
        let is_shared = |layout: &Layout| layout.iter().any(|axes| !axes.is_empty());
        let mut report = ShardReport {
            fixed,
            sharded: 0,
            values: 0,
            reshards: Vec::new(),
            without_rule: Vec::new(),
        };
        for at in &self.unknown {
            let node = graph.node(self.nodes[*at])?;
            let named = (node.name().to_string(), node.target().to_string());
            report.without_rule.push(named);
        }
        for (at, id) in self.nodes.iter().enumerate() {
            let node = graph.node(*id)?;
            let Some(value) = &self.values[at] else {
                continue;
            };
            report.values += 1;
            report.sharded += usize::from(is_shared(&value.layout));
            if !node.op().is_call() {
                continue;
            }
            let plan = self.plan(at);
            let mut add = |place: usize, from: &Layout, to: &Layout, against: Option<usize>| {
                let gathers = |one: &Move| matches!(one, Move::Gather { .. });
                if !moves(from, to).iter().any(gathers) {
                    return Ok(());
                }
                let value = graph.node(self.nodes[place])?;
                let against = against.map(|at| graph.node(self.nodes[at])).transpose()?;
                report.reshards.push(Reshard {
                    value: value.name().to_string(),
                    value_at: place_of(value),
                    user: node.name().to_string(),
                    user_at: place_of(node),
                    against: against.map(|node| node.name().to_string()),
                    from: self.shown(from),
                    to: self.shown(to),
                });
                Ok::<(), fx_nn::Error>(())
            };
            for input in node.all_input_nodes() {
                let Some(place) = self.places.get(&input.id()).copied() else {
                    continue;
                };
                let Some(operand) = &self.values[place] else {
                    continue;
                };
                let planned = plan.operands.iter().find(|(known, _)| *known == place);
                let whole = vec![Vec::new(); operand.shape.len()];
                let to = planned.map_or(&whole, |(_, layout)| layout);
                add(place, &operand.layout, to, self.against(at, place, to))?;
            }
            let mut computed = plan.computed.clone();
            for one in &plan.after {
                if let Move::Scatter { dim, axes } = one {
                    computed[*dim].extend(axes);
                }
            }
            add(at, &computed, &value.layout, None)?;
        }
        Ok(report)
    }

    /// The value of a call whose axes stand against those of an operand.
    fn against(&self, at: usize, place: usize, to: &Layout) -> Option<usize> {
        let factors = self.calls[at].as_ref()?;
        let value = self.values[place].as_ref()?;
        let mut operands = factors.operands.iter();
        let (_, dims) = operands.find(|(node, _)| self.places.get(node) == Some(&place))?;
        let lost = (0..dims.len()).find(|dim| !to[*dim].starts_with(&value.layout[*dim]))?;
        let (wanted, factor) = (&value.layout[lost], dims[lost]?);
        let has_other = |other: usize, dims: &[Option<usize>]| {
            let other = self.values[other].as_ref();
            other.is_some_and(|other| {
                (0..dims.len()).any(|dim| {
                    let axes = &other.layout[dim];
                    let is_same = dims[dim] == Some(factor) && !axes.starts_with(wanted);
                    let is_taken =
                        dims[dim] != Some(factor) && axes.iter().any(|axis| wanted.contains(axis));
                    !axes.is_empty() && (is_same || is_taken)
                })
            })
        };
        let others = factors.operands.iter();
        let mut others = others.map(|(node, dims)| (self.places[node], dims));
        let found = others.find(|(other, dims)| *other != place && has_other(*other, dims));
        let result = || has_other(at, &factors.result).then_some(at);
        found.map(|(other, _)| other).or_else(result)
    }
}
