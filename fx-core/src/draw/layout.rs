//! The layout of each group by itself: rows of boxes, and lines that bend where rows lie between.
//!
//! Invariant: boxes of a row do not overlap while all groups are closed, and a line only crosses a
//! row where it bends.

use rustc_hash::FxHashMap;

use super::geometry::{Extent, closed_extent};
use super::scene::{Scene, Unit, index};
use super::slots::{GroupLayout, Line, Place, Reference, Slot};

/// Lines over more rows than this are drawn as names at both ends.
const MOST_ROWS: usize = 12;
/// The space between two boxes of a row.
pub(super) const GAP: i32 = 22;
/// More values that cross a border one way are shown as one.
const MOST_PORTS: usize = 24;
const SWEEPS: usize = 4;

/// The values that cross each group's border, and who uses what among its children.
#[derive(Default, Clone)]
struct Uses {
    /// From, to: places of the group, each pair once.
    pairs: Vec<(Place, Place)>,
}

/// Lays out every group.
pub(crate) fn layouts(scene: &Scene<'_>) -> Vec<GroupLayout> {
    let uses = uses_by_group(scene);
    let groups = scene.groups.iter().zip(uses);
    groups
        .map(|(group, uses)| layout(scene, &group.children, uses))
        .collect()
}

/// Projects each use of a value onto the groups that it passes through.
fn uses_by_group(scene: &Scene<'_>) -> Vec<Uses> {
    let mut uses = vec![Uses::default(); scene.groups.len()];
    let group_of = |item: u32| scene.items[item as usize].group;
    let up = |group: u32| scene.groups[group as usize].parent.unwrap_or(0);
    let depth = |group: u32| scene.groups[group as usize].depth;
    for (to, item) in scene.items.iter().enumerate() {
        let to = index(to);
        for from in &item.inputs {
            let (mut a, mut b) = (group_of(*from), group_of(to));
            let (mut source, mut user) = (
                Place::Child(scene.unit_of(*from)),
                Place::Child(scene.unit_of(to)),
            );
            // Up from both until they meet.
            while a != b {
                if depth(b) >= depth(a) {
                    uses[b as usize].pairs.push((Place::In(*from), user));
                    (user, b) = (Place::Child(Unit::Group(b)), up(b));
                } else {
                    uses[a as usize].pairs.push((source, Place::Out(*from)));
                    (source, a) = (Place::Child(Unit::Group(a)), up(a));
                }
            }
            uses[a as usize].pairs.push((source, user));
        }
    }
    uses.iter_mut().for_each(Uses::merge_ports);
    uses
}

impl Uses {
    /// Shows many values as one.
    fn merge_ports(&mut self) {
        let count = |of: fn(&(Place, Place)) -> Option<u32>| {
            let mut values: Vec<u32> = self.pairs.iter().filter_map(of).collect();
            values.sort_unstable();
            values.dedup();
            values.len()
        };
        let ins = count(|(a, _)| match a {
            Place::In(item) => Some(*item),
            _ => None,
        });
        let outs = count(|(_, b)| match b {
            Place::Out(item) => Some(*item),
            _ => None,
        });
        for (a, b) in &mut self.pairs {
            if ins > MOST_PORTS && matches!(a, Place::In(_)) {
                *a = Place::Ins(index(ins));
            }
            if outs > MOST_PORTS && matches!(b, Place::Out(_)) {
                *b = Place::Outs(index(outs));
            }
        }
    }
}

fn layout(scene: &Scene<'_>, children: &[Unit], mut uses: Uses) -> GroupLayout {
    let mut places: Vec<Place> = Vec::new();
    let mut numbers: FxHashMap<Place, usize> = FxHashMap::default();
    let mut add = |place: Place| {
        numbers.entry(place).or_insert_with(|| {
            places.push(place);
            places.len() - 1
        });
    };
    // Inputs, children, outputs: so that each use goes forward, except one that makes a circle.
    let is_child = |place: &Place| matches!(place, Place::Child(_));
    let ins = uses.pairs.iter().map(|(source, _)| *source);
    ins.filter(|place| !is_child(place)).for_each(&mut add);
    children.iter().for_each(|unit| add(Place::Child(*unit)));
    let outs = uses.pairs.iter().map(|(_, user)| *user);
    outs.filter(|place| !is_child(place)).for_each(&mut add);
    let mut pairs: Vec<(usize, usize)> = uses
        .pairs
        .drain(..)
        .filter_map(|(a, b)| Some((*numbers.get(&a)?, *numbers.get(&b)?)))
        .filter(|(a, b)| a != b)
        .collect();
    pairs.sort_unstable();
    pairs.dedup();
    let rows = ranks(&places, &pairs);
    let mut rows = Rows::new(scene, &places, rows, &pairs);
    rows.order();
    rows.place();
    rows.finish()
}

/// The row of each place: below all that it uses.
fn ranks(places: &[Place], pairs: &[(usize, usize)]) -> Vec<usize> {
    let mut rank = vec![0usize; places.len()];
    let mut has_source = vec![false; places.len()];
    // Sorted by their sources, which come before their users.
    for (a, b) in pairs.iter().filter(|(a, b)| a < b) {
        has_source[*b] = true;
        rank[*b] = rank[*b].max(rank[*a] + 1);
    }
    // What uses nothing stands above its first user.
    let mut first_user = vec![usize::MAX; places.len()];
    for (a, b) in pairs.iter().filter(|(a, b)| a < b) {
        first_user[*a] = first_user[*a].min(rank[*b]);
    }
    for at in 0..places.len() {
        if !has_source[at] && first_user[at] != usize::MAX {
            rank[at] = first_user[at].saturating_sub(1);
        }
    }
    let last = rank.iter().copied().max().unwrap_or(0);
    for (place, rank) in places.iter().zip(&mut rank) {
        if matches!(place, Place::Out(_) | Place::Outs(_)) {
            *rank = last;
        }
    }
    rank
}

/// The rows in the order in which they are improved, downward and upward in turn.
fn sweeps(rows: usize) -> impl Iterator<Item = (bool, usize)> {
    (0..SWEEPS).flat_map(move |sweep| {
        let is_down = sweep % 2 == 0;
        (0..rows).map(move |step| (is_down, if is_down { step } else { rows - 1 - step }))
    })
}

/// The slots while they are ordered.
struct Rows {
    slots: Vec<Slot>,
    extents: Vec<Extent>,
    rows: Vec<Vec<u32>>,
    lines: Vec<Line>,
    references: Vec<Reference>,
    /// The neighbours of each slot in the row above, and below.
    above: Vec<Vec<u32>>,
    below: Vec<Vec<u32>>,
}

impl Rows {
    fn new(
        scene: &Scene<'_>,
        places: &[Place],
        ranks: Vec<usize>,
        pairs: &[(usize, usize)],
    ) -> Self {
        let mut rows = Rows {
            slots: Vec::with_capacity(places.len()),
            extents: Vec::with_capacity(places.len()),
            rows: vec![Vec::new(); ranks.iter().max().map_or(0, |last| last + 1)],
            lines: Vec::new(),
            references: Vec::new(),
            above: Vec::new(),
            below: Vec::new(),
        };
        for (place, rank) in places.iter().zip(&ranks) {
            rows.push(*place, *rank, closed_extent(scene, *place));
        }
        // The bends of a source's lines: the lines to several users share them.
        let mut bends: FxHashMap<(usize, usize), u32> = FxHashMap::default();
        for (a, b) in pairs {
            let (from, to) = (ranks[*a], ranks[*b]);
            let (source, user) = (index(*a), index(*b));
            if to <= from || to - from > MOST_ROWS {
                rows.references.push(Reference { user, source });
                continue;
            }
            let mut slots = vec![source];
            for row in from + 1..to {
                let bend = *bends
                    .entry((*a, row))
                    .or_insert_with(|| rows.push(Place::Bend, row, Extent::BEND));
                slots.push(bend);
            }
            slots.push(user);
            for pair in slots.windows(2) {
                let (up, down) = (pair[0], pair[1]);
                if !rows.below[up as usize].contains(&down) {
                    rows.below[up as usize].push(down);
                    rows.above[down as usize].push(up);
                }
            }
            rows.lines.push(Line { slots });
        }
        rows
    }

    fn push(&mut self, place: Place, row: usize, extent: Extent) -> u32 {
        let slot = index(self.slots.len());
        self.slots.push(Slot {
            place,
            row: index(row),
            x: 0,
        });
        self.extents.push(extent);
        self.rows[row].push(slot);
        self.above.push(Vec::new());
        self.below.push(Vec::new());
        slot
    }

    /// Orders each row by the middle of the neighbours, downward and upward, so that few lines cross.
    fn order(&mut self) {
        let mut position = vec![0u32; self.slots.len()];
        let note = |row: &[u32], position: &mut [u32]| {
            for (at, slot) in row.iter().enumerate() {
                position[*slot as usize] = index(at);
            }
        };
        self.rows.iter().for_each(|row| note(row, &mut position));
        for (is_down, at) in sweeps(self.rows.len()) {
            let neighbours = if is_down { &self.above } else { &self.below };
            let middle = |slot: u32| {
                let around = &neighbours[slot as usize];
                match around.len() {
                    0 => f64::from(position[slot as usize]),
                    n => {
                        let sum: f64 = around
                            .iter()
                            .map(|at| f64::from(position[*at as usize]))
                            .sum();
                        sum / n as f64
                    }
                }
            };
            let mut keyed: Vec<(f64, u32)> = self.rows[at]
                .iter()
                .map(|slot| (middle(*slot), *slot))
                .collect();
            keyed.sort_by(|(a, _), (b, _)| a.total_cmp(b));
            let row: Vec<u32> = keyed.into_iter().map(|(_, slot)| slot).collect();
            note(&row, &mut position);
            self.rows[at] = row;
        }
    }

    /// Places the boxes of each row near the middle of their neighbours.
    fn place(&mut self) {
        for at in 0..self.rows.len() {
            self.spread(at, |_| None);
        }
        for (is_down, at) in sweeps(self.rows.len()) {
            let around = if is_down { &self.above } else { &self.below };
            let slots = &self.slots;
            let wanted: Vec<Option<i32>> = self.rows[at]
                .iter()
                .map(|slot| {
                    let around = &around[*slot as usize];
                    let sum: i64 = around
                        .iter()
                        .map(|at| i64::from(slots[*at as usize].x))
                        .sum();
                    let count = i64::try_from(around.len()).ok().filter(|n| *n > 0)?;
                    i32::try_from(sum / count).ok()
                })
                .collect();
            self.spread(at, |slot| wanted[slot]);
        }
    }

    /// Moves the boxes of a row to where they are wanted, as far as they do not overlap.
    fn spread(&mut self, row: usize, wanted: impl Fn(usize) -> Option<i32>) {
        let mut right = None;
        let (mut moved, mut count) = (0i64, 0i64);
        let row = &self.rows[row];
        for (at, slot) in row.iter().enumerate() {
            let extent = self.extents[*slot as usize];
            let least = right.map(|right: i32| right + GAP + extent.left);
            let wish = wanted(at).unwrap_or(self.slots[*slot as usize].x);
            let x = least.map_or(wish, |least| least.max(wish));
            self.slots[*slot as usize].x = x;
            right = Some(x + extent.right);
            moved += i64::from(x - wish);
            count += 1;
        }
        // Half of what was pushed to the right goes back.
        let back = i32::try_from(moved / count.max(1)).unwrap_or(0);
        for slot in row {
            self.slots[*slot as usize].x -= back;
        }
    }

    /// The slots in the order of the rows.
    fn finish(self) -> GroupLayout {
        let mut now = vec![0u32; self.slots.len()];
        let mut slots = Vec::with_capacity(self.slots.len());
        for slot in self.rows.iter().flatten() {
            now[*slot as usize] = index(slots.len());
            slots.push(self.slots[*slot as usize]);
        }
        let renumber = |slot: u32| now[slot as usize];
        let mut lines = self.lines;
        for line in &mut lines {
            line.slots
                .iter_mut()
                .for_each(|slot| *slot = renumber(*slot));
        }
        let references = self.references.into_iter().map(|found| Reference {
            user: renumber(found.user),
            source: renumber(found.source),
        });
        GroupLayout {
            slots,
            lines,
            references: references.collect(),
        }
    }
}
