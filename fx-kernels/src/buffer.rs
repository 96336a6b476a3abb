//! Memory for kernels: numbers that start at a multiple of 64 bytes, so that no vector crosses a
//! cache line.

use std::fmt;
use std::ops::{Deref, DerefMut};

/// The number of channels in a [`Block`]: one AVX-512 register, two of AVX2, four of NEON.
pub const BLOCK: usize = 16;

/// The values of 16 neighbouring channels at one place.
pub type Block = [f32; BLOCK];

/// The numbers of 32 bits in 64 bytes.
const LINE: usize = 16;

/// Numbers of 32 bits that start at a multiple of 64 bytes.
#[derive(Default)]
pub(crate) struct Aligned<T> {
    numbers: Vec<T>,
    start: usize,
    len: usize,
}

/// Where the first multiple of 64 bytes is in memory of numbers of 32 bits.
pub(crate) fn line_start<T>(numbers: &[T]) -> usize {
    numbers.as_ptr().align_offset(64).min(LINE)
}

impl<T: Copy + Default> Aligned<T> {
    /// So many equal numbers.
    pub fn filled(len: usize, number: T) -> Self {
        let numbers = vec![number; len + LINE];
        let start = line_start(&numbers);
        Aligned {
            numbers,
            start,
            len,
        }
    }
}

impl<T> Deref for Aligned<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        &self.numbers[self.start..self.start + self.len]
    }
}

impl<T> DerefMut for Aligned<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        &mut self.numbers[self.start..self.start + self.len]
    }
}

impl<T> fmt::Debug for Aligned<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Aligned").field("len", &self.len).finish()
    }
}

/// Floats that start at a multiple of 64 bytes.
#[derive(Default)]
pub struct Buffer(Aligned<f32>);

impl Buffer {
    /// A buffer of `len` zeros.
    pub fn zeros(len: usize) -> Buffer {
        Buffer(Aligned::filled(len, 0.0))
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
        &self.0
    }
}

impl DerefMut for Buffer {
    fn deref_mut(&mut self) -> &mut [f32] {
        &mut self.0
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
        f.debug_struct("Buffer").field("len", &self.len()).finish()
    }
}
