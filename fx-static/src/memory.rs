//! Where floats are: weights as bytes of a file, and an arena of which a part is written while the rest is read.
//!
//! Invariant: what a kernel reads and what it writes do not overlap.

use core::ops::Range;

/// Bytes at an address that a float may have: `include_bytes!` promises none.
///
/// ```
/// use fx_static::{Aligned, floats};
///
/// static BYTES: &Aligned<[u8; 8]> = &Aligned([0, 0, 128, 63, 0, 0, 0, 64]);
/// assert_eq!(floats(BYTES), [1.0, 2.0]);
/// ```
#[derive(Debug)]
#[repr(C, align(16))]
pub struct Aligned<B>(pub B);

/// The floats that bytes are, on a machine of little-endian floats; of a rest of fewer than 4 bytes, none.
pub fn floats<const N: usize>(bytes: &Aligned<[u8; N]>) -> &[f32] {
    let whole = &bytes.0[..N / 4 * 4];
    bytemuck::try_cast_slice(whole).expect("whole floats, at an address that is aligned for them")
}

/// A part of an arena to be written, between what lies before and behind it, which is read.
///
/// # Panics
/// If the part does not lie in the arena.
///
/// ```
/// let mut arena = [1.0, 2.0, 3.0];
/// let (before, part, behind) = fx_static::split(&mut arena, 1..2);
/// part[0] = before[0] + behind[0];
/// assert_eq!(arena, [1.0, 4.0, 3.0]);
/// ```
pub fn split(arena: &mut [f32], part: Range<usize>) -> (&[f32], &mut [f32], &[f32]) {
    let (before, rest) = arena.split_at_mut(part.start);
    let (part, behind) = rest.split_at_mut(part.end - part.start);
    (before, part, behind)
}
