//! Sizes of texts and boxes, and where the boxes of open groups are.
//!
//! Invariant: a text is at most as wide as it is counted, in a monospaced font.

use super::scene::{Item, Scene, Unit};
use super::slots::{GroupLayout, Place};
use crate::ir::node::NodeRef;
use crate::ir::op::Op;
use crate::ir::value_meta::ValueMeta;

/// A character of a name, in hundredths of a pixel at 12 pixels; of the smaller text at 10.
const WIDE: i32 = 740;
const NARROW: i32 = 620;
/// The height of a box, of a port, of the shape under a box, and of the head of an open group.
pub(super) const BOX: i32 = 38;
pub(super) const PORT: i32 = 20;
pub(super) const LABEL: i32 = 15;
pub(super) const HEAD: i32 = 30;
pub(super) const MARGIN: i32 = 14;
/// The space between two rows.
pub(super) const ROW_GAP: i32 = 34;
/// Longer texts are cut.
const MOST_CHARACTERS: usize = 34;

/// A box around the middle, where lines begin and end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Extent {
    pub left: i32,
    pub right: i32,
    pub height: i32,
}

impl Extent {
    pub const BEND: Extent = Extent {
        left: 4,
        right: 4,
        height: 0,
    };
}

/// A text as it is drawn: long ones lose their middle.
pub(crate) fn cut(text: &str) -> String {
    let count = text.chars().count();
    if count <= MOST_CHARACTERS {
        return text.to_string();
    }
    let half = MOST_CHARACTERS / 2;
    let first: String = text.chars().take(half).collect();
    let last: String = text.chars().skip(count - half + 1).collect();
    format!("{first}…{last}")
}

/// The pixels of a text, where a character outside ASCII may be twice as wide.
fn width(text: &str, character: i32) -> i32 {
    let cells: usize = text.chars().map(|c| if c.is_ascii() { 1 } else { 2 }).sum();
    let cells = i32::try_from(cells).unwrap_or(i32::MAX / WIDE);
    (cells * character).div_euclid(100) + 1
}

/// The lines in a node's box: its name, and what it calls.
pub(crate) fn texts(node: NodeRef<'_>) -> [String; 2] {
    let called = match node.op() {
        Op::CallFunction(function) => function.name().to_string(),
        Op::CallMethod(method) => format!(".{method}"),
        Op::CallModule(path) => {
            let mut scopes = node.module_stack();
            let own = scopes.find(|scope| path.ends_with(&*scope.path) && !scope.path.is_empty());
            match own {
                Some(scope) => crate::value::object::short_type_name(&scope.type_name),
                None => path.to_string(),
            }
        }
        Op::GetAttr(path) => path.to_string(),
        Op::Placeholder(_) => "input".into(),
        Op::Output => "output".into(),
    };
    [cut(&node.name().to_string()), cut(&called)]
}

/// The shape and dtype of a node's value, if they are known.
pub(crate) fn shape(node: NodeRef<'_>) -> Option<String> {
    let meta = node.meta::<ValueMeta>()?;
    Some(cut(&meta.to_string()))
}

/// The lines in the box of a closed group.
pub(crate) fn group_texts(scene: &Scene<'_>, group: u32) -> [String; 2] {
    let group = &scene.groups[group as usize];
    let what = match group.type_name.as_str() {
        "" => crate::text::count(group.nodes as usize, "node"),
        name => format!(
            "{name}, {}",
            crate::text::count(group.nodes as usize, "node")
        ),
    };
    [cut(&format!("▸ {}", group.title)), cut(&what)]
}

pub(crate) fn port_text(scene: &Scene<'_>, item: u32) -> String {
    cut(&scene.items[item as usize].node.name().to_string())
}

/// The shape under the box of a child: that of the value that it gives.
pub(crate) fn label(scene: &Scene<'_>, unit: Unit) -> Option<String> {
    let of = |item: &Item<'_>| shape(item.node);
    match unit {
        Unit::Item(item) => of(&scene.items[item as usize]),
        Unit::Group(group) => {
            let caller = scene.groups[group as usize].caller?;
            of(&scene.items[caller as usize])
        }
    }
}

/// The box of a place while all groups are closed.
pub(crate) fn closed_extent(scene: &Scene<'_>, place: Place) -> Extent {
    let of_texts = |texts: [String; 2], label: Option<String>| {
        let [name, called] = texts;
        let half = (width(&name, WIDE).max(width(&called, NARROW)) + 20) / 2;
        let beside = label.as_ref().map_or(0, |label| width(label, NARROW) + 8);
        Extent {
            left: half,
            right: half.max(beside),
            height: BOX + label.map_or(0, |_| LABEL),
        }
    };
    match place {
        Place::Child(Unit::Item(item)) => {
            let node = scene.items[item as usize].node;
            of_texts(texts(node), shape(node))
        }
        Place::Child(unit @ Unit::Group(group)) => {
            of_texts(group_texts(scene, group), label(scene, unit))
        }
        Place::In(item) | Place::Out(item) => port_extent(&port_text(scene, item)),
        Place::Ins(count) | Place::Outs(count) => port_extent(&many(count)),
        Place::Bend => Extent::BEND,
    }
}

pub(crate) fn many(values: u32) -> String {
    crate::text::count(values as usize, "value")
}

fn port_extent(text: &str) -> Extent {
    let half = (width(text, NARROW) + 16) / 2;
    Extent {
        left: half,
        right: half,
        height: PORT,
    }
}

/// Where the slots of an open group are, within it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Placed {
    /// The middle of each slot.
    pub x: Vec<i32>,
    pub extents: Vec<Extent>,
    /// The top and the height of each row.
    pub rows: Vec<(i32, i32)>,
    pub width: i32,
    pub height: i32,
}

/// Places the slots of a group whose children have these extents: what grows pushes its neighbours
/// to both sides.
pub(crate) fn placed(layout: &GroupLayout, closed: &[Extent], now: Vec<Extent>) -> Placed {
    let mut placed = Placed {
        x: layout.slots.iter().map(|slot| slot.x).collect(),
        extents: now,
        ..Placed::default()
    };
    let mut at = 0;
    let mut top = HEAD;
    let (mut left, mut right) = (i32::MAX, i32::MIN);
    while let Some(slot) = layout.slots.get(at) {
        let end = at
            + layout.slots[at..]
                .iter()
                .take_while(|s| s.row == slot.row)
                .count();
        let (mut shift, mut of_grown, mut grown) = (0, 0, 0);
        for (slot, before) in closed.iter().enumerate().take(end).skip(at) {
            let after = placed.extents[slot];
            shift += after.left - before.left;
            placed.x[slot] += shift;
            if *before != after {
                of_grown += shift;
                grown += 1;
            }
            shift += after.right - before.right;
        }
        let back = of_grown / grown.max(1);
        let height = placed.extents[at..end]
            .iter()
            .map(|extent| extent.height)
            .max();
        for slot in at..end {
            placed.x[slot] -= back;
            left = left.min(placed.x[slot] - placed.extents[slot].left);
            right = right.max(placed.x[slot] + placed.extents[slot].right);
        }
        let height = height.unwrap_or(0);
        placed.rows.push((top, height));
        top += height + ROW_GAP;
        at = end;
    }
    if layout.slots.is_empty() {
        (left, right) = (0, 0);
        top += ROW_GAP;
    }
    let shift = MARGIN - left;
    placed.x.iter_mut().for_each(|x| *x += shift);
    placed.width = right - left + 2 * MARGIN;
    placed.height = top - ROW_GAP + MARGIN;
    placed
}
