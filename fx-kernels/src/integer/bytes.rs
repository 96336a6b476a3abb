//! `Bytes`: images and rows of bytes, the channels of a pixel side by side.
//!
//! Invariant: a pixel begins at a word of four channels; what stands behind the last channel, or behind the last pixel, is read
//! by no result.

use rayon::prelude::*;

use crate::buffer::line_start;
use crate::error::{SizeError, check};

/// The words behind the last pixel, so that 64 channels of any pixel can be read at once.
const MORE: usize = 16;

/// Images of bytes: pixel by pixel, with the channels of each side by side, in words of four. Rows of a matrix are images
/// of one pixel.
///
/// ```
/// use fx_kernels::integer::Bytes;
/// let x = Bytes::zeros(2, 4, 4, 3);
/// assert_eq!((x.batch(), x.height(), x.width(), x.channels(), x.stride()), (2, 4, 4, 3, 1));
/// ```
#[derive(Debug, Default)]
pub struct Bytes {
    batch: usize,
    height: usize,
    width: usize,
    channels: usize,
    /// The words of a pixel.
    stride: usize,
    /// Where the words of the images are in the memory, a multiple of 64 bytes, and how many; the memory has more.
    start: usize,
    count: usize,
    words: Vec<u32>,
}

/// A copy begins at a multiple of 64 bytes by itself.
impl Clone for Bytes {
    fn clone(&self) -> Self {
        let mut copy = Bytes::reusing(Vec::new(), self.sizes());
        copy.words_mut().copy_from_slice(self.words());
        copy
    }
}

impl Bytes {
    /// Images of zeros. Channels take whole words of four, and from 16 on whole lines of 16.
    pub fn zeros(batch: usize, height: usize, width: usize, channels: usize) -> Self {
        Bytes::reusing(Vec::new(), (batch, height, width, channels))
    }

    /// Images of any bytes, in the memory of others.
    pub fn reusing(
        mut words: Vec<u32>,
        (batch, height, width, channels): (usize, usize, usize, usize),
    ) -> Self {
        let stride = match channels {
            ..=12 => channels.div_ceil(4),
            _ => channels.div_ceil(16) * 4,
        };
        let count = batch * height * width * stride;
        if words.len() < count + 2 * MORE {
            words.resize(count + 2 * MORE, 0);
        }
        let start = line_start(&words);
        Bytes {
            batch,
            height,
            width,
            channels,
            stride,
            start,
            count,
            words,
        }
    }

    /// How many images there are.
    pub fn batch(&self) -> usize {
        self.batch
    }

    /// The rows of an image.
    pub fn height(&self) -> usize {
        self.height
    }

    /// The pixels of a row.
    pub fn width(&self) -> usize {
        self.width
    }

    /// The channels of a pixel.
    pub fn channels(&self) -> usize {
        self.channels
    }

    /// The words of a pixel.
    pub fn stride(&self) -> usize {
        self.stride
    }

    /// The sizes: images, rows, pixels of a row, channels.
    pub fn sizes(&self) -> (usize, usize, usize, usize) {
        (self.batch, self.height, self.width, self.channels)
    }

    /// How many pixels all images have.
    pub fn pixels(&self) -> usize {
        self.batch * self.height * self.width
    }

    /// All words.
    pub fn words(&self) -> &[u32] {
        &self.words[self.start..self.start + self.count]
    }

    /// All words, and [`MORE`] that belong to no pixel.
    pub(super) fn words_and_more(&self) -> &[u32] {
        &self.words[self.start..]
    }

    /// All words, to be written.
    pub fn words_mut(&mut self) -> &mut [u32] {
        &mut self.words[self.start..self.start + self.count]
    }

    /// Runs a function of the index and the words of each row of all images, on rayon's threads if that is worth it.
    pub(super) fn each_row(
        &mut self,
        is_worth: bool,
        run: impl Fn((usize, &mut [u32])) + Sync + Send,
    ) {
        let size = (self.width * self.stride).max(1);
        match is_worth {
            false => self.words_mut().chunks_mut(size).enumerate().for_each(run),
            true => (self.words_mut().par_chunks_mut(size).enumerate()).for_each(run),
        }
    }

    /// The memory, to be used again.
    pub fn into_words(self) -> Vec<u32> {
        self.words
    }

    /// The same bytes as images of other sizes, where pixels stay as they are.
    ///
    /// # Errors
    /// Returns an error if there are not as many pixels.
    pub fn with_sizes(
        mut self,
        batch: usize,
        height: usize,
        width: usize,
    ) -> Result<Self, SizeError> {
        check("an image", self.pixels(), batch * height * width)?;
        (self.batch, self.height, self.width) = (batch, height, width);
        Ok(self)
    }

    /// The images with more rows above and below, and more pixels left and right, whose channels are all `byte`, in the
    /// memory of others.
    pub fn padded(
        &self,
        [above, below]: [usize; 2],
        [before, after]: [usize; 2],
        byte: u8,
        words: Vec<u32>,
    ) -> Bytes {
        let (height, width) = (self.height + above + below, self.width + before + after);
        let mut out = Bytes::reusing(words, (self.batch, height, width, self.channels));
        let (stride, fill) = (self.stride, u32::from_ne_bytes([byte; 4]));
        let (line, own) = (width * stride, self.width * stride);
        for (image, to) in out
            .words_mut()
            .chunks_exact_mut((height * line).max(1))
            .enumerate()
        {
            for (y, to) in to.chunks_exact_mut(line.max(1)).enumerate() {
                if y < above || y >= above + self.height {
                    to.fill(fill);
                    continue;
                }
                let from = (image * self.height + y - above) * own;
                let (left, rest) = to.split_at_mut(before * stride);
                let (middle, right) = rest.split_at_mut(own);
                left.fill(fill);
                middle.copy_from_slice(&self.words()[from..from + own]);
                right.fill(fill);
            }
        }
        out
    }
}

/// Beside this number neighbours are 1 apart, so that a sum with it is rounded half to even, and the last byte of the sum is
/// the integer's.
pub(super) const WHOLE: f32 = 12_582_912.0;

/// How a number becomes a byte: rounded half to even, moved by the zero point, and held between two bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rounding {
    /// The byte of 0.
    pub zero_point: u8,
    /// The least byte.
    pub low: u8,
    /// The largest byte.
    pub high: u8,
}

impl Rounding {
    /// The byte of a number in units of the scale.
    #[inline(always)]
    pub fn byte(self, x: f32) -> u8 {
        let zero = f32::from(self.zero_point);
        let (low, high) = (f32::from(self.low) - zero, f32::from(self.high) - zero);
        let rounded = x.max(low).min(high) + WHOLE;
        (rounded.to_bits() as u8).wrapping_add(self.zero_point)
    }
}

/// The bytes of up to four words: of four at once, or one after another.
#[inline(always)]
pub(super) fn line(words: &[u32]) -> [u8; 16] {
    if let Some(whole) = words.first_chunk::<4>() {
        return pulp::cast(*whole);
    }
    let mut all = [0u32; 4];
    for (to, word) in all.iter_mut().zip(words) {
        *to = *word;
    }
    pulp::cast(all)
}

/// Writes bytes as up to four words.
#[inline(always)]
pub(super) fn put_line(bytes: [u8; 16], to: &mut [u32]) {
    let words: [u32; 4] = pulp::cast(bytes);
    if let Some(whole) = to.first_chunk_mut::<4>() {
        *whole = words;
        return;
    }
    for (to, word) in to.iter_mut().zip(words) {
        *to = word;
    }
}
