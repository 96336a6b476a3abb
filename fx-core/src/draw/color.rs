//! `ColorBy`: what the colours of a drawing stand for.
//!
//! Invariant: equal labels have equal colours, in the order in which they first appear.

use indexmap::IndexMap;
use rustc_hash::{FxBuildHasher, FxHashMap};

use super::column::totals;
use super::geometry::texts;
use super::scene::{Change, Scene, Unit};
use crate::graph_module::GraphModule;
use crate::ir::node::NodeRef;
use crate::passes::Region;
use crate::passes::backend::{Metas, OperatorSupport, Support};
use crate::value::handle::NodeId;

/// The fill of boxes by label, for light and dark; the first is that of boxes without one.
pub(super) const PALETTE: [[&str; 2]; 13] = [
    ["#f4f4f5", "#2a2d33"],
    ["#cfe3f7", "#1f4266"],
    ["#fbdcc4", "#6b3f1d"],
    ["#cfeccf", "#23532a"],
    ["#f7cfd3", "#6a2730"],
    ["#e3d7f3", "#46316b"],
    ["#ecdccb", "#54412f"],
    ["#f9d5ec", "#67305a"],
    ["#e8e8a8", "#55551d"],
    ["#c4ecef", "#1d5258"],
    ["#d7dde6", "#3a4554"],
    ["#dff0b8", "#435a17"],
    ["#ffe7a3", "#624d0c"],
];
/// The fill of boxes by value, from little to much.
pub(super) const HEAT: [[&str; 2]; 6] = [
    ["#fdf3e7", "#2d2a27"],
    ["#fde2c0", "#46341f"],
    ["#fcc98d", "#664419"],
    ["#f8a865", "#8a5216"],
    ["#ec7c45", "#b25f17"],
    ["#d9542b", "#d8691a"],
];
/// The fill of boxes in a difference: new, gone, changed.
pub(super) const CHANGES: [[&str; 2]; 3] = [
    ["#c9efc9", "#1d5a2a"],
    ["#f8cfcf", "#70272b"],
    ["#fdeab0", "#675312"],
];

type Label<'a> = Box<dyn Fn(NodeRef<'_>) -> Option<String> + 'a>;
type Value<'a> = Box<dyn Fn(NodeRef<'_>) -> Option<f64> + 'a>;

/// What the colours of a drawing stand for.
#[derive(Default)]
pub struct ColorBy<'a>(Kind<'a>);

#[derive(Default)]
enum Kind<'a> {
    #[default]
    Operation,
    Module,
    Change,
    Label(Label<'a>),
    Value(Value<'a>),
}

impl<'a> ColorBy<'a> {
    /// A colour per operation: the function, method or type of module that a node calls.
    pub fn operation() -> Self {
        ColorBy(Kind::Operation)
    }

    /// A colour per innermost module that nodes come from.
    pub fn module() -> Self {
        ColorBy(Kind::Module)
    }

    pub(super) fn change() -> Self {
        ColorBy(Kind::Change)
    }

    /// A colour per label.
    pub fn label(label: impl Fn(NodeRef<'_>) -> Option<String> + 'a) -> Self {
        ColorBy(Kind::Label(Box::new(label)))
    }

    /// The stronger a colour, the greater the value: a cost, a time, a range of activations.
    pub fn value(value: impl Fn(NodeRef<'_>) -> Option<f64> + 'a) -> Self {
        ColorBy(Kind::Value(Box::new(value)))
    }

    /// A colour per part: see [`Partitioner`](crate::passes::backend::Partitioner).
    pub fn partition(parts: &[Region]) -> Self {
        let mut part_of: FxHashMap<NodeId, usize> = FxHashMap::default();
        for (part, region) in parts.iter().enumerate() {
            part_of.extend(region.nodes().iter().map(|id| (*id, part)));
        }
        ColorBy::label(move |node| Some(format!("part {}", part_of.get(&node.id())?)))
    }

    /// A colour per answer of a backend's support.
    pub fn support(gm: &'a GraphModule, support: &'a (impl OperatorSupport + ?Sized)) -> Self {
        ColorBy::label(move |node| {
            let call = gm.call(node).ok().filter(|_| node.op().is_call())?;
            let label = match support.supports(&call, &Metas::of(gm.graph(), node)) {
                Support::Yes => "supported".into(),
                Support::IfFused => "supported if fused".into(),
                Support::WithReader => "supported with its reader".into(),
                Support::No(reason) => format!("not supported: {reason}"),
            };
            Some(label)
        })
    }

    pub(super) fn colors(&self, scene: &Scene<'_>) -> Colors {
        match &self.0 {
            Kind::Value(value) => {
                let values = scene.items.iter().map(|item| value(item.node));
                let values: Vec<Option<f64>> = values.collect();
                Colors::of_numbers(scene, &values)
            }
            Kind::Change => Colors::of_changes(scene),
            Kind::Operation => Colors::of_labels(scene, &|node| {
                let [_, called] = texts(node);
                node.op().is_call().then_some(called)
            }),
            Kind::Module => Colors::of_labels(scene, &|node| {
                let scope = node.module_stack().next()?;
                Some(scope.path.to_string()).filter(|path| !path.is_empty())
            }),
            Kind::Label(label) => Colors::of_labels(scene, &**label),
        }
    }
}

/// The colour of each box.
pub(super) struct Colors {
    items: Vec<usize>,
    groups: Vec<usize>,
    palette: Vec<[&'static str; 2]>,
    /// What each colour stands for, with the colour's number.
    pub legend: Vec<(String, usize)>,
}

impl Colors {
    fn of_labels(scene: &Scene<'_>, label: &dyn Fn(NodeRef<'_>) -> Option<String>) -> Self {
        let mut labels: IndexMap<String, usize, FxBuildHasher> = IndexMap::default();
        let items = scene.items.iter().map(|item| {
            let Some(label) = label(item.node) else {
                return 0;
            };
            let next = 1 + labels.len() % (PALETTE.len() - 1);
            *labels.entry(label).or_insert(next)
        });
        Colors {
            items: items.collect(),
            groups: vec![0; scene.groups.len()],
            palette: PALETTE.to_vec(),
            legend: labels.into_iter().collect(),
        }
    }

    /// The colours of a number for each item.
    pub fn of_numbers(scene: &Scene<'_>, values: &[Option<f64>]) -> Self {
        let is_known = |value: &f64| value.is_finite() && *value >= 0.0;
        let known = values.iter().map(|value| value.filter(is_known));
        let known: Vec<Option<f64>> = known.collect();
        let most = known.iter().flatten().copied().fold(0.0, f64::max);
        // A group is as strong as what is in it, taken together.
        let totals = totals(scene, &known);
        let whole = totals.first().copied().unwrap_or(0.0);
        let steps = HEAT.len() - 1;
        let step = |value: f64, most: f64| match most > 0.0 {
            true => 1 + (((value / most).sqrt() * steps as f64).round() as usize).min(steps),
            false => 1,
        };
        let mut palette = vec![PALETTE[0]];
        palette.extend(HEAT);
        Colors {
            items: known
                .iter()
                .map(|value| value.map_or(0, |value| step(value, most)))
                .collect(),
            groups: totals.iter().map(|total| step(*total, whole)).collect(),
            palette,
            legend: vec![("0".into(), 1), (format!("{most}"), HEAT.len())],
        }
    }

    fn of_changes(scene: &Scene<'_>) -> Self {
        let color = |change: Change| match change {
            Change::Same => 0,
            Change::New => 1,
            Change::Gone => 2,
            Change::Changed => 3,
        };
        let mut groups = vec![0; scene.groups.len()];
        for item in scene
            .items
            .iter()
            .filter(|item| item.change != Change::Same)
        {
            let mut around = Some(item.group);
            while let Some(group) = around {
                groups[group as usize] = 3;
                around = scene.groups[group as usize].parent;
            }
        }
        let mut palette = vec![PALETTE[0]];
        palette.extend(CHANGES);
        Colors {
            items: scene.items.iter().map(|item| color(item.change)).collect(),
            groups,
            palette,
            legend: vec![("new".into(), 1), ("gone".into(), 2), ("changed".into(), 3)],
        }
    }

    pub fn of_item(&self, item: u32) -> usize {
        self.items[item as usize]
    }

    pub fn of_group(&self, group: u32) -> usize {
        self.groups[group as usize]
    }

    pub fn of(&self, unit: Unit) -> usize {
        match unit {
            Unit::Item(item) => self.of_item(item),
            Unit::Group(group) => self.of_group(group),
        }
    }

    /// The colour in a light viewer.
    pub fn hex(&self, color: usize) -> &'static str {
        self.palette[color][0]
    }

    pub fn palette(&self) -> &[[&'static str; 2]] {
        &self.palette
    }
}
