//! `CallPlan`: how the devices compute a call: what is moved before it and behind it, and the layout in between.

use std::fmt;

use super::factors::Reduction;
use super::flow::{Flow, Layout};
use super::mesh::Mesh;

/// The kinds of collectives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum CollectiveKind {
    /// Parts of a dim are put together on each device.
    AllGather,
    /// Partial results are put together on each device.
    AllReduce,
    /// Partial results are put together, and each device has a part of them.
    ReduceScatter,
}

impl fmt::Display for CollectiveKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            CollectiveKind::AllGather => "all_gather",
            CollectiveKind::AllReduce => "all_reduce",
            CollectiveKind::ReduceScatter => "reduce_scatter",
        })
    }
}

/// A step from one layout to another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Move {
    /// The parts along axes are put together.
    Gather { dim: usize, axes: Vec<usize> },
    /// A device takes its part.
    Slice { dim: usize, axes: Vec<usize> },
    /// Partial results are put together.
    Reduce { by: Reduction, axes: Vec<usize> },
    /// Partial sums are added, and a device takes its part.
    Scatter { dim: usize, axes: Vec<usize> },
}

impl Move {
    pub fn kind(&self) -> Option<CollectiveKind> {
        match self {
            Move::Gather { .. } => Some(CollectiveKind::AllGather),
            Move::Reduce { .. } => Some(CollectiveKind::AllReduce),
            Move::Scatter { .. } => Some(CollectiveKind::ReduceScatter),
            Move::Slice { .. } => None,
        }
    }

    pub fn axes(&self) -> &[usize] {
        match self {
            Move::Gather { axes, .. }
            | Move::Slice { axes, .. }
            | Move::Reduce { axes, .. }
            | Move::Scatter { axes, .. } => axes,
        }
    }
}

/// How a call is computed.
#[derive(Debug, Clone, Default)]
pub(super) struct CallPlan {
    /// The layouts of its operands, by place of the value; what is not here is whole.
    pub operands: Vec<(usize, Layout)>,
    /// The layout of what each device computes.
    pub computed: Layout,
    /// The axes along which results are partial.
    pub partial: Vec<usize>,
    /// From what is computed to the value's layout.
    pub after: Vec<Move>,
    /// Whether each device computes the whole.
    pub is_whole: bool,
}

/// From one layout to another.
pub(super) fn moves(from: &Layout, to: &Layout) -> Vec<Move> {
    let mut gathers = Vec::new();
    let mut slices = Vec::new();
    for (dim, (from, to)) in from.iter().zip(to).enumerate() {
        let common = from.iter().zip(to).take_while(|(a, b)| a == b).count();
        if from.len() > common {
            let axes = from[common..].to_vec();
            gathers.push(Move::Gather { dim, axes });
        }
        if to.len() > common {
            let axes = to[common..].to_vec();
            slices.push(Move::Slice { dim, axes });
        }
    }
    gathers.extend(slices);
    gathers
}

/// The bytes of a value's part.
pub(super) fn part(mesh: &Mesh, bytes: usize, layout: &Layout) -> usize {
    let devices: usize = layout.iter().map(|axes| mesh.product(axes)).product();
    bytes.div_ceil(devices.max(1))
}

/// The layouts behind each move, from one.
pub(super) fn along(from: &Layout, moves: &[Move]) -> Vec<Layout> {
    let mut now = from.clone();
    let mut all = Vec::with_capacity(moves.len());
    for one in moves {
        match one {
            Move::Gather { dim, axes } => {
                let left = now[*dim].len().saturating_sub(axes.len());
                now[*dim].truncate(left);
            }
            Move::Slice { dim, axes } | Move::Scatter { dim, axes } => {
                now[*dim].extend(axes);
            }
            Move::Reduce { .. } => {}
        }
        all.push(now.clone());
    }
    all
}

impl Flow<'_> {
    /// How the call at a place is computed.
    pub(super) fn plan(&self, at: usize) -> CallPlan {
        let Some(value) = &self.values[at] else {
            return CallPlan::default();
        };
        let whole: Layout = vec![Vec::new(); value.shape.len()];
        let as_whole = |operands| CallPlan {
            operands,
            after: moves(&whole, &value.layout),
            computed: whole.clone(),
            partial: Vec::new(),
            is_whole: true,
        };
        let Some(factors) = &self.calls[at] else {
            return as_whole(Vec::new());
        };
        if factors.local == super::factors::Local::Whole {
            return as_whole(Vec::new());
        }
        let chosen = self.chosen(at);
        let layout = |dims: &[Option<usize>]| -> Layout {
            let dims = dims.iter();
            dims.map(|factor| factor.map_or(Vec::new(), |factor| chosen[factor].clone()))
                .collect()
        };
        let mut operands: Vec<(usize, Layout)> = Vec::new();
        for (node, dims) in &factors.operands {
            let (place, layout) = (self.places[node], layout(dims));
            match operands.iter().find(|(known, _)| *known == place) {
                Some((_, known)) if *known == layout => {}
                // One value that the call takes in two layouts.
                Some(_) => return as_whole(Vec::new()),
                None => operands.push((place, layout)),
            }
        }
        for place in factors.free.iter().filter_map(|node| self.places.get(node)) {
            if let Some(value) = &self.values[*place]
                && operands.iter().all(|(known, _)| known != place)
            {
                operands.push((*place, value.layout.clone()));
            }
        }
        let mut computed = layout(&factors.result);
        let mut after = Vec::new();
        let mut partial = Vec::new();
        for (axes, factor) in chosen.iter().zip(&factors.factors) {
            let Some(by) = factor.contracted.filter(|_| !axes.is_empty()) else {
                continue;
            };
            partial.extend(axes);
            let axes = axes.clone();
            let scattered = (0..computed.len()).find(|dim| {
                let to = &value.layout[*dim];
                by == Reduction::Sum && *to == [&computed[*dim][..], &axes].concat()
            });
            match scattered {
                Some(dim) => {
                    computed[dim].extend(&axes);
                    after.push(Move::Scatter { dim, axes });
                }
                None => after.push(Move::Reduce { by, axes }),
            }
        }
        after.extend(moves(&computed, &value.layout));
        let computed = layout(&factors.result);
        CallPlan {
            operands,
            computed,
            partial,
            after,
            is_whole: false,
        }
    }
}
