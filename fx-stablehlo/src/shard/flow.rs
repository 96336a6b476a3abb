//! `Flow`: the shardings of a graph's values while they are propagated; axes are only ever added, so it ends.

use std::collections::VecDeque;

use fx_nn::ir::{Op, ValueMeta};
use fx_nn::value::NodeId;
use fx_nn::{Error, GraphModule, Result};
use rustc_hash::FxHashMap;

use super::factors::{Factors, ShardCall, ShardRule, shape_of};
use super::mesh::Mesh;
use super::sharding::{DimSharding, Sharding};

/// The axes of each dim, the slowest first.
pub(super) type Layout = Vec<Vec<usize>>;

/// A value of tensors.
#[derive(Debug, Clone)]
pub(super) struct Flowing {
    pub shape: Vec<usize>,
    pub bytes: usize,
    pub layout: Layout,
    pub open: Vec<bool>,
    /// Whether it is a parameter, a buffer or a constant.
    pub is_stored: bool,
}

/// The values and the calls of a graph, by place in its order.
pub(super) struct Flow<'m> {
    pub mesh: &'m Mesh,
    pub nodes: Vec<NodeId>,
    pub places: FxHashMap<NodeId, usize>,
    pub values: Vec<Option<Flowing>>,
    pub calls: Vec<Option<Factors>>,
    /// Calls on tensors whose function has no rule.
    pub unknown: Vec<usize>,
}

/// A dim of a call's operand or result: the value, the dim, its factor.
type Place = (usize, usize, usize);

impl<'m> Flow<'m> {
    /// The values of a graph, with no sharding.
    ///
    /// # Errors
    /// Returns an error if a rule fails, or gives what does not fit its call.
    pub fn new(gm: &GraphModule, mesh: &'m Mesh) -> Result<Self> {
        let graph = gm.graph();
        let mut flow = Flow {
            mesh,
            nodes: Vec::with_capacity(graph.len()),
            places: FxHashMap::default(),
            values: Vec::with_capacity(graph.len()),
            calls: Vec::with_capacity(graph.len()),
            unknown: Vec::new(),
        };
        for (at, node) in graph.nodes().enumerate() {
            flow.nodes.push(node.id());
            flow.places.insert(node.id(), at);
            let meta = node.meta::<ValueMeta>();
            let shape = meta.filter(|_| *node.op() != Op::Output).and_then(shape_of);
            let is_stored = matches!(node.op(), Op::GetAttr(_));
            let mut factors = None;
            if let (Op::CallFunction(_) | Op::CallMethod(_), Some(_)) = (node.op(), &shape) {
                let blame = |error| node.blame("sharding", error);
                if let Some(call) = ShardCall::of(node, gm.attributes())? {
                    factors = call.factors().map_err(blame)?;
                    if ShardRule::of(call.function())?.is_none() && !call.all_tensors().is_empty() {
                        flow.unknown.push(at);
                    }
                } else {
                    flow.unknown.push(at);
                }
                if let Some(factors) = &factors {
                    flow.check(factors, shape.as_deref().unwrap_or_default())
                        .map_err(blame)?;
                }
            }
            let is_open = factors.is_some() || !node.op().is_call();
            flow.values.push(shape.map(|shape| Flowing {
                layout: vec![Vec::new(); shape.len()],
                open: vec![is_open; shape.len()],
                bytes: meta.map_or(0, ValueMeta::bytes),
                is_stored,
                shape,
            }));
            flow.calls.push(factors);
        }
        Ok(flow)
    }

    /// The values of a graph with the shardings that its nodes have.
    ///
    /// # Errors
    /// As [`new`](Flow::new), and if a sharding does not fit the mesh or its value.
    pub fn read(gm: &GraphModule, mesh: &'m Mesh) -> Result<Self> {
        let mut flow = Flow::new(gm, mesh)?;
        let mut has_one = false;
        for (at, node) in gm.graph().nodes().enumerate() {
            let (Some(value), Some(sharding)) = (&mut flow.values[at], node.meta::<Sharding>())
            else {
                continue;
            };
            has_one = true;
            value
                .take(mesh, sharding.dims())
                .map_err(|error| node.blame("reading the sharding of", error))?;
        }
        flow.forget_single();
        match has_one {
            true => Ok(flow),
            false => Err(Error::msg(
                "no node has a sharding: call `shard` with the mesh and rules first",
            )),
        }
    }

    /// Takes out axes of one device, along which nothing is shared.
    pub fn forget_single(&mut self) {
        let mesh = self.mesh;
        for value in self.values.iter_mut().flatten() {
            for axes in &mut value.layout {
                axes.retain(|axis| mesh.product(&[*axis]) > 1);
            }
        }
    }

    /// That a rule's dims are those of its tensors.
    fn check(&self, factors: &Factors, shape: &[usize]) -> Result<()> {
        let count = factors.factors.len();
        // What shares a factor shares its dims.
        let fits = |dims: &[Option<usize>], shape: &[usize]| {
            dims.len() == shape.len()
                && dims.iter().zip(shape).all(|(factor, size)| {
                    factor.is_none_or(|factor| {
                        factor < count
                            && (*size).is_multiple_of(factors.factors[factor].size.max(1))
                    })
                })
        };
        let operands = factors.operands.iter().all(|(node, dims)| {
            let value = self
                .places
                .get(node)
                .and_then(|at| self.values[*at].as_ref());
            value.is_some_and(|value| fits(dims, &value.shape))
        });
        match operands && fits(&factors.result, shape) {
            true => Ok(()),
            false => Err(Error::msg(
                "its `ShardRule` gives other dims than its tensors have, or factors that do not divide them",
            )),
        }
    }

    /// The dims of a call that have a factor, the result's first.
    fn dims_of(&self, at: usize) -> Vec<Place> {
        let Some(factors) = &self.calls[at] else {
            return Vec::new();
        };
        let operands = factors
            .operands
            .iter()
            .map(|(node, dims)| (self.places[node], dims));
        let all = std::iter::once((at, &factors.result)).chain(operands);
        let all = all.flat_map(|(value, dims)| {
            let dims = dims.iter().enumerate();
            dims.filter_map(move |(dim, factor)| Some((value, dim, (*factor)?)))
        });
        all.collect()
    }

    fn axes(&self, (value, dim, _): Place) -> &[usize] {
        self.values[value]
            .as_ref()
            .map_or(&[], |value| &value.layout[dim])
    }

    /// The axes that a call is computed along, by factor: an axis is that of one factor at most.
    pub fn chosen(&self, at: usize) -> Vec<Vec<usize>> {
        let Some(factors) = &self.calls[at] else {
            return Vec::new();
        };
        let dims = self.dims_of(at);
        let mut best: Vec<(Vec<usize>, (bool, bool, usize))> =
            vec![Default::default(); factors.factors.len()];
        for place in &dims {
            let axes = self.axes(*place);
            let Some(value) = self.values[place.0].as_ref().filter(|_| !axes.is_empty()) else {
                continue;
            };
            let key = (!value.open[place.1], !value.is_stored, axes.len());
            let best = &mut best[place.2];
            if best.0.is_empty() || key > best.1 {
                *best = (axes.to_vec(), key);
            }
        }
        let mut chosen: Vec<Vec<usize>> = best.into_iter().map(|(axes, _)| axes).collect();
        for (axes, factor) in chosen.iter_mut().zip(&factors.factors) {
            while !fits(factor.size, self.mesh.product(axes)) {
                axes.pop();
            }
        }
        for axis in 0..self.mesh.axes().len() {
            let claims = |factor: usize| {
                let mut moved = (0usize, 0usize);
                for place in dims.iter().filter(|place| place.2 == factor) {
                    if let Some(value) = &self.values[place.0]
                        && value.layout[place.1].contains(&axis)
                    {
                        moved.0 += if value.is_stored { 0 } else { value.bytes };
                        moved.1 += value.bytes;
                    }
                }
                moved
            };
            let all = (0..chosen.len()).filter(|factor| chosen[*factor].contains(&axis));
            let all: Vec<usize> = all.collect();
            if all.len() < 2 {
                continue;
            }
            // What would have to be moved otherwise is more.
            let winner = all
                .iter()
                .copied()
                .max_by_key(|factor| (claims(*factor), std::cmp::Reverse(*factor)));
            for factor in all.into_iter().filter(|factor| Some(*factor) != winner) {
                let end = chosen[factor].iter().position(|other| *other == axis);
                chosen[factor].truncate(end.unwrap_or(0));
            }
        }
        chosen
    }

    /// Adds the axes of each call's factors to the dims that are open to them, until nothing changes.
    pub fn propagate(&mut self, gm: &GraphModule) -> Result<()> {
        let mut queue: VecDeque<usize> = (0..self.nodes.len())
            .filter(|at| self.calls[*at].is_some())
            .collect();
        let mut is_queued: Vec<bool> = self.calls.iter().map(Option::is_some).collect();
        while let Some(at) = queue.pop_front() {
            is_queued[at] = false;
            let chosen = self.chosen(at);
            for (value, dim, factor) in self.dims_of(at) {
                let axes = &chosen[factor];
                let mesh = self.mesh;
                let Some(flowing) = &mut self.values[value] else {
                    continue;
                };
                let now = &flowing.layout[dim];
                let is_more = axes.len() > now.len() && axes.starts_with(now);
                let is_used = |axis: &usize| {
                    let mut others = flowing.layout.iter().enumerate();
                    others.any(|(other, axes)| other != dim && axes.contains(axis))
                };
                if !flowing.open[dim]
                    || !is_more
                    || axes.iter().any(is_used)
                    || !fits(flowing.shape[dim], mesh.product(axes))
                {
                    continue;
                }
                flowing.layout[dim].clone_from(axes);
                let node = gm.graph().node(self.nodes[value])?;
                let users = node.users().filter_map(|user| self.places.get(&user.id()));
                for other in users.copied().chain([value]) {
                    if self.calls[other].is_some() && !is_queued[other] {
                        is_queued[other] = true;
                        queue.push_back(other);
                    }
                }
            }
        }
        Ok(())
    }
}

/// Whether a dim of a size can be shared by so many devices.
pub(super) fn fits(size: usize, devices: usize) -> bool {
    devices <= 1 || (size >= devices && size.is_multiple_of(devices))
}

impl Flowing {
    /// Takes a sharding.
    ///
    /// # Errors
    /// Returns an error that lists what does not fit the mesh or the value.
    pub fn take(&mut self, mesh: &Mesh, dims: &[DimSharding]) -> Result<()> {
        let mut problems = Vec::new();
        if dims.len() != self.shape.len() {
            return Err(Error::msg(format_args!(
                "{} dims are shared, and the value has {}",
                dims.len(),
                self.shape.len()
            )));
        }
        let mut layout: Layout = Vec::with_capacity(dims.len());
        for (at, dim) in dims.iter().enumerate() {
            let mut axes = Vec::new();
            for name in &dim.axes {
                match mesh.axis(name) {
                    None => problems.push(format!("{mesh} has no axis `{name}`")),
                    Some(axis) if axes.contains(&axis) || layout.concat().contains(&axis) => {
                        problems.push(format!("the axis `{name}` is used twice"));
                    }
                    Some(axis) => axes.push(axis),
                }
            }
            let devices = mesh.product(&axes);
            if !fits(self.shape[at], devices) {
                problems.push(format!(
                    "{devices} devices along `{dim}` do not divide dim {at}, which is {}",
                    self.shape[at]
                ));
            }
            layout.push(axes);
        }
        if !problems.is_empty() {
            return Err(Error::msg(problems.join("; ")));
        }
        self.layout = layout;
        self.open = dims.iter().map(|dim| dim.open).collect();
        Ok(())
    }

    /// The sharding of an entry.
    pub fn sharding(&self, mesh: &Mesh) -> Sharding {
        Sharding::new(self.layout.iter().zip(&self.open).map(|(axes, open)| {
            let axes = axes.iter().map(|axis| mesh.name(*axis).clone());
            DimSharding {
                axes: axes.collect(),
                open: *open,
            }
        }))
    }
}
