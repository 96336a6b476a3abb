//! Room on the stack for what goes as deep as modules nest.
//!
//! Invariant: a level takes less than [`SPARE`].

/// What is free before a level begins.
const SPARE: usize = 256 << 10;
/// What is added where it is not.
const PIECE: usize = 4 << 20;

/// Runs one level of a recursion, on more stack if there is little left.
#[inline]
pub(crate) fn level<R>(run: impl FnOnce() -> R) -> R {
    stacker::maybe_grow(SPARE, PIECE, run)
}
