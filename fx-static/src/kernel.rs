//! `Kernel`: what each step of a crate is.
//!
//! Invariant: a kernel has nothing but sizes and numbers; what it reads and writes is lent for each run.

use crate::Source;

/// A step: reads slices and writes one.
///
/// A kernel trusts its settings, which whoever writes them has checked: with slices of other lengths it panics.
pub trait Kernel: Source {
    /// Writes `out`, which may hold anything before.
    fn run(&self, reads: &[&[f32]], out: &mut [f32]);
}

/// The next slice that a kernel reads.
pub(crate) fn next<'a>(reads: &mut core::slice::Iter<'_, &'a [f32]>) -> &'a [f32] {
    reads.next().expect("a kernel is given all that it reads")
}

/// The next slice, if the kernel reads one.
pub(crate) fn next_if<'a>(
    reads: &mut core::slice::Iter<'_, &'a [f32]>,
    is_read: bool,
) -> Option<&'a [f32]> {
    is_read.then(|| next(reads))
}
