//! Memory for kernels: floats that start at a multiple of 64 bytes, so that no vector crosses a
//! cache line.

use std::fmt;
use std::ops::{Deref, DerefMut};

/// The number of channels in a [`Block`]: one AVX-512 register, two of AVX2, four of NEON.
pub const BLOCK: usize = 16;

/// The values of 16 neighbouring channels at one place.
pub type Block = [f32; BLOCK];

/// The floats in 64 bytes.
const LINE: usize = 16;

/// Floats that start at a multiple of 64 bytes.
#[derive(Default)]
pub struct Buffer {
    floats: Vec<f32>,
    start: usize,
    len: usize,
}

impl Buffer {
    /// A buffer of `len` zeros.
    pub fn zeros(len: usize) -> Buffer {
        let floats = vec![0.0f32; len + LINE];
        let start = floats.as_ptr().align_offset(64).min(LINE);
        Buffer { floats, start, len }
    }

    /// A buffer with a copy of these floats.
    pub fn from_slice(floats: &[f32]) -> Buffer {
        let mut buffer = Buffer::zeros(floats.len());
        buffer.copy_from_slice(floats);
        buffer
    }

    /// The floats in blocks of 16. The rest behind the last whole block is left out.
    pub fn blocks(&self) -> &[Block] {
        self.as_chunks::<BLOCK>().0
    }

    /// The floats in blocks of 16, to be written. The rest behind the last whole block is left out.
    pub fn blocks_mut(&mut self) -> &mut [Block] {
        self.as_chunks_mut::<BLOCK>().0
    }
}

impl Deref for Buffer {
    type Target = [f32];

    fn deref(&self) -> &[f32] {
        &self.floats[self.start..self.start + self.len]
    }
}

impl DerefMut for Buffer {
    fn deref_mut(&mut self) -> &mut [f32] {
        &mut self.floats[self.start..self.start + self.len]
    }
}

/// A copy is aligned by itself: its floats can start elsewhere in its memory.
impl Clone for Buffer {
    fn clone(&self) -> Buffer {
        Buffer::from_slice(self)
    }
}

impl fmt::Debug for Buffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Buffer").field("len", &self.len).finish()
    }
}
