//! What the layout of a group consists of: slots in rows, lines between them, and names at the ends
//! of long lines.
//!
//! Invariant: slots lie row by row, from left to right; what names a slot names it by its index.

use super::scene::Unit;

/// What is in a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Place {
    /// A child of the group.
    Child(Unit),
    /// A value from outside, which nodes inside use.
    In(u32),
    /// A value from inside, which nodes outside use.
    Out(u32),
    /// So many values from outside, which are not shown one by one; and from inside.
    Ins(u32),
    Outs(u32),
    /// A line that passes.
    Bend,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Slot {
    pub place: Place,
    pub row: u32,
    /// The middle, while all groups are closed.
    pub x: i32,
}

/// A line from a slot to another, over bends.
#[derive(Debug, Clone)]
pub(crate) struct Line {
    pub slots: Vec<u32>,
}

/// A value that is used far away: the name of the producer stands at the user.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Reference {
    pub user: u32,
    /// The slot that the value comes from.
    pub source: u32,
}

#[derive(Debug, Default)]
pub(crate) struct GroupLayout {
    /// The slots, row by row, from left to right.
    pub slots: Vec<Slot>,
    pub lines: Vec<Line>,
    pub references: Vec<Reference>,
}
