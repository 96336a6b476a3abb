//! `Column`: a number for each node of a page, and what it is in sum for modules.
//!
//! Invariant: a node that runs graphs counts by its own number, not by those of the nodes inside.

use rustc_hash::FxHashMap;

use super::scene::{Item, Scene};
use crate::ir::node::NodeRef;
use crate::passes::{MemoryPlan, Profile};

/// How a page shows a column beside the boxes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Chart {
    /// Not at all: as colours, and in the text of a node.
    #[default]
    None,
    /// As nested bars, as wide as what a module and the nodes in it cost.
    Flame,
    /// As a line over the nodes in their order.
    Line,
    /// As a strip of colours over the nodes in their order.
    Heat,
}

impl Chart {
    pub(super) fn name(self) -> &'static str {
        match self {
            Chart::None => "",
            Chart::Flame => "flame",
            Chart::Line => "line",
            Chart::Heat => "heat",
        }
    }
}

/// A number for each node, which a [`Page`](super::Page) shows as colours, as text and as a chart.
///
/// ```
/// use fx_core::prelude::*;
/// use fx_core::draw::{Chart, Column, Page};
/// let gm = symbolic_trace(traced!(|x: Float| (x * 2.0)? + 1.0))?;
/// let users = Column::new("users", |node| Some(node.num_users() as f64)).chart(Chart::Heat);
/// let page = Page::new().column(users).column(Column::profile(&gm.profile(3, 1.5)?));
/// assert!(gm.html(&page)?.contains(r#"title:"users""#));
/// # Ok::<(), Error>(())
/// ```
pub struct Column<'a> {
    pub(super) title: String,
    pub(super) unit: String,
    pub(super) chart: Chart,
    value: Box<Of<'a>>,
}

type Of<'a> = dyn Fn(&str, NodeRef<'_>) -> Option<f64> + 'a;

impl<'a> Column<'a> {
    /// A number for each node, of the graphs inside too.
    pub fn new(title: impl Into<String>, value: impl Fn(NodeRef<'_>) -> Option<f64> + 'a) -> Self {
        Column::by_graph(title.into(), move |_, node| value(node))
    }

    fn by_graph(title: String, value: impl Fn(&str, NodeRef<'_>) -> Option<f64> + 'a) -> Self {
        Column {
            title,
            unit: String::new(),
            chart: Chart::None,
            value: Box::new(value),
        }
    }

    /// How long each node took, in microseconds over all runs, with a flame chart.
    pub fn profile(profile: &Profile) -> Self {
        let mut times: FxHashMap<(String, String), f64> = FxHashMap::default();
        for node in profile.nodes() {
            let key = (node.inside.clone(), node.name.clone());
            times.insert(key, node.time.as_secs_f64() * 1e6);
        }
        let time = move |inside: &str, node: NodeRef<'_>| {
            let key = (inside.to_string(), node.name().to_string());
            times.get(&key).copied()
        };
        let column = Column::by_graph("time".into(), time);
        column.unit("µs").chart(Chart::Flame)
    }

    /// The bytes that are there while each node runs, with a line over time. Bytes that depend on a
    /// symbol are left out.
    pub fn memory(plan: &MemoryPlan) -> Self {
        let nodes = plan.nodes.iter();
        let live: FxHashMap<_, _> = nodes
            .filter_map(|node| Some((node.node, node.live.as_number()? as f64)))
            .collect();
        let column = Column::new("live memory", move |node| live.get(&node.id()).copied());
        column.unit("bytes").chart(Chart::Line)
    }

    /// The unit of the numbers.
    #[must_use]
    pub fn unit(mut self, unit: impl Into<String>) -> Self {
        self.unit = unit.into();
        self
    }

    /// The chart that shows it.
    #[must_use]
    pub fn chart(mut self, chart: Chart) -> Self {
        self.chart = chart;
        self
    }

    /// The number of each item.
    pub(super) fn values(&self, scene: &Scene<'_>) -> Vec<Option<f64>> {
        let of = |item: &Item<'_>| (self.value)(&item.inside, item.node).filter(|v| v.is_finite());
        scene.items.iter().map(of).collect()
    }
}

/// The sum of each group.
pub(super) fn totals(scene: &Scene<'_>, values: &[Option<f64>]) -> Vec<f64> {
    let mut totals = vec![0.0; scene.groups.len()];
    for (item, value) in scene.items.iter().zip(values) {
        let Some(value) = value else {
            continue;
        };
        if let Some(opens) = item.opens {
            totals[opens as usize] = *value;
        }
        let mut around = Some(item.group);
        while let Some(group) = around {
            let caller = scene.groups[group as usize].caller;
            if caller.is_some_and(|caller| values[caller as usize].is_some()) {
                break;
            }
            totals[group as usize] += value;
            around = scene.groups[group as usize].parent;
        }
    }
    totals
}
