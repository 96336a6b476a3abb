//! `Nested`: structures of any depth, traversed without recursion.
//!
//! Invariant: nothing here recurses over the depth. Graphs reject anything deeper than
//! [`MAX_DEPTH`], so that other walks may recurse.

use smallvec::SmallVec;

use crate::error::{Error, Result};

/// The deepest nesting of structures in graphs.
pub(crate) const MAX_DEPTH: usize = 64;

/// A leaf, or a structure of items of the same type.
pub(crate) trait Nested: Clone {
    fn is_structure(&self) -> bool;

    /// The item of a structure at a position.
    fn child(&self, at: usize) -> Option<&Self>;

    /// Moves nested structures that are not shared into `out`, leaving leaves in their places.
    fn take_structures(&mut self, out: &mut SmallVec<[Self; 4]>);

    /// The same structure with other items.
    fn with(&self, inside: Vec<Self>) -> Self;

    /// Whether both are equal leaves, or structures that match except for their items: the same
    /// kind, with as many items of the same names.
    fn is_like(&self, other: &Self) -> bool;
}

/// Empties a structure that is being dropped.
#[inline]
pub(crate) fn release<T: Nested>(top: &mut T) {
    if top.is_structure() {
        release_structure(top);
    }
}

fn release_structure<T: Nested>(top: &mut T) {
    let mut pending: SmallVec<[T; 4]> = SmallVec::new();
    top.take_structures(&mut pending);
    while let Some(mut one) = pending.pop() {
        one.take_structures(&mut pending);
    }
}

/// A copy of a structure.
pub(crate) fn copy<T: Nested>(top: &T) -> T {
    let mut stack: SmallVec<[(&T, Vec<T>); 4]> = SmallVec::new();
    let (mut source, mut done) = (top, Vec::new());
    loop {
        match source.child(done.len()) {
            Some(child) if child.is_structure() => {
                stack.push((source, done));
                (source, done) = (child, Vec::new());
            }
            Some(leaf) => done.push(leaf.clone()),
            None => {
                let copy = source.with(done);
                match stack.pop() {
                    None => return copy,
                    Some(outer) => (source, done) = outer,
                }
                done.push(copy);
            }
        }
    }
}

/// Whether both are equal at every level.
pub(crate) fn are_equal<T: Nested>(a: &T, b: &T) -> bool {
    let mut pending: SmallVec<[(&T, &T); 8]> = SmallVec::new();
    pending.push((a, b));
    while let Some((a, b)) = pending.pop() {
        if !a.is_like(b) {
            return false;
        }
        let inside = (0..).map_while(|at| Some((a.child(at)?, b.child(at)?)));
        pending.extend(inside);
    }
    true
}

/// Rejects structures that nest deeper than graphs allow.
///
/// # Errors
/// Returns an error if `what`, such as `an argument`, nests deeper than [`MAX_DEPTH`] levels.
#[inline]
pub(crate) fn check_depth<T: Nested>(top: &T, what: &str) -> Result<()> {
    match top.is_structure() {
        true => check_depth_inside(top, what),
        false => Ok(()),
    }
}

fn check_depth_inside<T: Nested>(top: &T, what: &str) -> Result<()> {
    let mut pending: SmallVec<[(&T, usize); 8]> = SmallVec::new();
    pending.push((top, 0));
    while let Some((one, depth)) = pending.pop() {
        if depth > MAX_DEPTH {
            return Err(Error::limit(
                MAX_DEPTH,
                format_args!("{what} nests deeper than {MAX_DEPTH} levels"),
            ));
        }
        if one.is_structure() {
            let inside = (0..).map_while(|at| one.child(at));
            pending.extend(inside.map(|child| (child, depth + 1)));
        }
    }
    Ok(())
}

/// A structure to be shown, and the number of levels to show.
pub(crate) struct Shown<'a, T>(pub &'a T, pub usize);

/// The items of a structure to be shown, and the number of levels to show.
pub(crate) struct ShownItems<'a, T>(pub &'a [T], pub usize);

impl<T> std::fmt::Debug for ShownItems<'_, T>
where
    for<'a> Shown<'a, T>: std::fmt::Debug,
{
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let items = self.0.iter().map(|item| Shown(item, self.1));
        f.debug_list().entries(items).finish()
    }
}
