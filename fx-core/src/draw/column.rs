//! `Column`: a number for each node of a page, and what it is in sum for modules.
//!
//! Invariant: a node that runs graphs counts by its own number, not by those of the nodes inside.

use std::sync::Arc;

use indexmap::IndexMap;
use rustc_hash::FxHashMap;

use super::scene::{Item, Scene};
use crate::ir::node::NodeRef;
use crate::passes::{MemoryPlan, Profile};

/// The number that a size with a name has where nothing else is said.
const STANDS_FOR: i64 = 64;

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

    /// The bytes that are there while each node runs, with a line over time. Where they depend on sizes with names, each
    /// of those stands for 64, and the title says so; [`memory_for`](Column::memory_for) takes other sizes.
    pub fn memory(plan: &MemoryPlan) -> Self {
        Column::memory_for(plan, [])
    }

    /// [`memory`](Column::memory) with numbers for sizes that have names.
    ///
    /// ```
    /// use fx_core::prelude::*;
    /// use fx_core::draw::{Column, Page};
    /// use fx_core::passes::memory_plan;
    /// use fx_core::shapes::spec;
    /// let mut gm = symbolic_trace(traced!(|x: Value, y: Value| Ok((y, x))))?;
    /// gm.infer_shapes(&[spec!["n", 8; F32], spec!["m"; I64]])?;
    /// let plan = memory_plan(&gm)?;
    /// let page = gm.html(&Page::new().column(Column::memory_for(&plan, [("n", 2)])))?;
    /// assert!(page.contains(r#"title:"live memory, n = 2, m = 64""#));
    /// # Ok::<(), Error>(())
    /// ```
    pub fn memory_for<'s>(
        plan: &MemoryPlan,
        sizes: impl IntoIterator<Item = (&'s str, i64)>,
    ) -> Self {
        let given: Vec<(&str, i64)> = sizes.into_iter().collect();
        let mut sizes: IndexMap<Arc<str>, i64> = IndexMap::default();
        for node in &plan.nodes {
            for name in node.live.symbols() {
                let size = given.iter().find(|(known, _)| *known == &*name);
                let size = size.map_or(STANDS_FOR, |(_, size)| *size);
                sizes.entry(name).or_insert(size);
            }
        }
        let nodes = plan.nodes.iter();
        let live: FxHashMap<_, _> = nodes
            .filter_map(|node| {
                let bytes = node.live.eval(|name| sizes.get(name).copied()).ok()?;
                Some((node.node, bytes as f64))
            })
            .collect();
        let mut title = String::from("live memory");
        for (name, size) in &sizes {
            title.push_str(&format!(", {name} = {size}"));
        }
        let column = Column::new(title, move |node| live.get(&node.id()).copied());
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
