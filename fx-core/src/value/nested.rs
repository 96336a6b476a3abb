//! `Nested`: structures that somebody may have nested however deep, gone through without recursion.
//!
//! Invariant: nothing here recurses over the depth. What goes deeper than [`MAX_DEPTH`] is refused by graphs, so that other
//! walks may recurse.

use smallvec::SmallVec;

use crate::error::{Error, Result};

/// How deep structures may nest in graphs.
pub(crate) const MAX_DEPTH: usize = 64;

/// A leaf, or a structure of its own kind.
pub(crate) trait Nested: Clone {
    fn is_structure(&self) -> bool;

    /// What is inside a structure, one by one.
    fn child(&self, at: usize) -> Option<&Self>;

    /// Moves the structures inside out, leaves in their places, where nobody else holds them.
    fn take_structures(&mut self, out: &mut SmallVec<[Self; 4]>);

    /// The same structure with other things inside.
    fn with(&self, inside: Vec<Self>) -> Self;

    /// Whether two are leaves that are equal, or structures that are equal but for what is inside: of one kind, with as many
    /// things of the same names.
    fn is_like(&self, other: &Self) -> bool;
}

/// Empties a structure that is dropped.
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

/// Whether two are equal, all the way down.
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

/// Refuses what nests deeper than graphs hold.
///
/// # Errors
/// When `what`, `an argument`, nests deeper than [`MAX_DEPTH`] levels.
pub(crate) fn check_depth<T: Nested>(top: &T, what: &str) -> Result<()> {
    if !top.is_structure() {
        return Ok(());
    }
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

/// Something to be shown, and how many levels of it.
pub(crate) struct Shown<'a, T>(pub &'a T, pub usize);

/// The items of a structure to be shown, and how many levels of them.
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
