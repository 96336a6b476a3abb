//! Convolutions of each channel alone.
//!
//! Invariant: sums are exact; what stands behind the last channel has weights, biases and scales of 0.

#[cfg(target_arch = "x86_64")]
use fx_simd::{Kernel, Vnni};
use pulp::{Simd, WithSimd};
use rayon::prelude::*;

use super::block::Way;
#[cfg(target_arch = "x86_64")]
use super::block::{Ends, scaled};
use super::bytes::{Bytes, Rounding, put_line};
use super::spec::IntegerSpec;
use crate::buffer::Aligned;
use crate::level::Level;

/// The numbers of a vector.
const LANES: usize = 16;
/// The vectors of a block of channels.
const VECTORS: usize = 4;
/// The channels of a block.
const BLOCK: usize = LANES * VECTORS;
/// The words of a block of channels of a pixel.
const WORDS: usize = BLOCK / 4;
/// The rows that a word has a byte of.
const ROWS: usize = 4;

/// A number for each channel of a block, in the order in which bytes of four rows are interleaved: vector `v` has at
/// `4 * i + j` the channel `16 * i + 4 * v + j`.
type Block<T> = [[T; LANES]; VECTORS];

/// Where a channel of a block is: its vector, and where in it.
fn place(channel: usize) -> (usize, usize) {
    let (i, rest) = (channel / LANES, channel % LANES);
    (rest / 4, i * 4 + rest % 4)
}

/// Numbers of all channels in blocks.
fn in_blocks<T: Copy + Default>(all: &[T]) -> Aligned<T> {
    let mut made = Aligned::filled(all.len().next_multiple_of(BLOCK), T::default());
    for (channel, x) in all.iter().enumerate() {
        let (vector, lane) = place(channel % BLOCK);
        made[channel / BLOCK * BLOCK + vector * LANES + lane] = *x;
    }
    made
}

/// Numbers as those of blocks.
fn blocks<T>(all: &[T]) -> &[Block<T>] {
    all.as_chunks().0.as_chunks().0
}

/// A convolution of each channel alone, with what makes its sums bytes.
#[derive(Debug)]
pub(super) struct Depthwise {
    /// For each block, for each pixel of a row of the window, for each four rows: a word of four weights a channel.
    weights: Aligned<u32>,
    bias: Aligned<i32>,
    scale: Aligned<f32>,
    /// The rows of a window, counted from its first one; whole fours.
    rows: Vec<usize>,
}

/// A row of the result, of the channels of a block.
struct Line<'a> {
    /// The rows of the image that windows read, from the channels of the block on, with [`WORDS`] behind the last pixel's
    /// first; whole fours.
    rows: &'a [&'a [u32]],
    /// The pixels of these rows, and the words of one.
    width: usize,
    stride: usize,
    /// For each pixel, those of the sides included, for each four rows: a word of four bytes a channel.
    columns: &'a mut [Block<u32>],
    padding: usize,
    weights: &'a [Block<u32>],
    bias: &'a Block<i32>,
    scale: &'a Block<f32>,
    /// How far windows, and the pixels of one, are apart.
    steps: [usize; 2],
    rounding: Rounding,
    /// The words of a pixel of the result, and where those of the block are.
    out_stride: usize,
    own: std::ops::Range<usize>,
    out: &'a mut [u32],
}

impl Line<'_> {
    /// Makes the columns: `interleave` makes a word a channel of the bytes of four rows.
    #[inline(always)]
    fn interleave(&mut self, interleave: impl Fn([[u32; WORDS]; ROWS]) -> Block<u32>) {
        let (rows, _) = self.rows.as_chunks::<ROWS>();
        let first = self.padding * rows.len();
        let columns = self.columns.get_mut(first..).unwrap_or_default();
        let mut at = 0;
        for columns in columns.chunks_exact_mut(rows.len()).take(self.width) {
            for (column, rows) in columns.iter_mut().zip(rows) {
                *column = interleave([
                    words_of(rows[0], at),
                    words_of(rows[1], at),
                    words_of(rows[2], at),
                    words_of(rows[3], at),
                ]);
            }
            at += self.stride;
        }
    }

    /// Computes all pixels: `bytes` gives those of a window by the columns from its first one on.
    #[inline(always)]
    fn windows(&mut self, bytes: impl Fn(&[Block<u32>]) -> [u32; WORDS]) {
        let fours = self.rows.len() / ROWS;
        let [step, _] = self.steps;
        let mut columns = &*self.columns;
        for out in self.out.chunks_exact_mut(self.out_stride) {
            let bytes = bytes(columns);
            let out = out.get_mut(self.own.clone()).unwrap_or_default();
            if let Some(out) = out.first_chunk_mut::<WORDS>() {
                *out = bytes;
            } else {
                let (lines, _) = bytes.as_chunks::<4>();
                for (out, line) in out.chunks_mut(4).zip(lines) {
                    put_line(pulp::cast(*line), out);
                }
            }
            columns = columns.get(step * fours..).unwrap_or_default();
        }
    }
}

/// The words of a block from a word on.
#[inline(always)]
fn words_of(row: &[u32], at: usize) -> [u32; WORDS] {
    let words = row.get(at..).and_then(|row| row.first_chunk());
    words.copied().unwrap_or([0; WORDS])
}

struct Portable<'a>(Line<'a>);

impl WithSimd for Portable<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(mut self, _: S) {
        let (bias, scale, rounding) = (self.0.bias, self.0.scale, self.0.rounding);
        let (weights, [_, apart]) = (self.0.weights, self.0.steps);
        let fours = self.0.rows.len() / ROWS;
        self.0.interleave(|rows| {
            let rows: [[u8; BLOCK]; ROWS] = rows.map(pulp::cast);
            let mut block = Block::default();
            for channel in 0..BLOCK {
                let (vector, lane) = place(channel);
                block[vector][lane] = u32::from_ne_bytes(rows.map(|row| row[channel]));
            }
            block
        });
        self.0.windows(|columns| {
            let mut sums = *bias;
            for (pixel, weights) in weights.chunks_exact(fours).enumerate() {
                for (column, weights) in columns[pixel * apart * fours..].iter().zip(weights) {
                    let words = column.iter().flatten().zip(weights.iter().flatten());
                    for (sum, (word, weight)) in sums.iter_mut().flatten().zip(words) {
                        let word = word.to_ne_bytes().map(i32::from);
                        let weight = weight.to_ne_bytes().map(|w| i32::from(w.cast_signed()));
                        let products = word.iter().zip(weight).map(|(x, w)| x * w);
                        *sum = sum.wrapping_add(products.sum());
                    }
                }
            }
            let mut bytes = [0u8; BLOCK];
            for (channel, byte) in bytes.iter_mut().enumerate() {
                let (vector, lane) = place(channel);
                *byte = rounding.byte(sums[vector][lane] as f32 * scale[vector][lane]);
            }
            pulp::cast(bytes)
        });
    }
}

#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn sums_of(bias: &Block<i32>) -> [pulp::i32x16; VECTORS] {
    let [a, b, c, d] = *bias;
    [pulp::cast(a), pulp::cast(b), pulp::cast(c), pulp::cast(d)]
}

/// Adds the products of words to the sums of a block.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn dot(
    simd: Vnni,
    [a, b, c, d]: [pulp::i32x16; VECTORS],
    words: &Block<u32>,
    weights: &Block<u32>,
) -> [pulp::i32x16; VECTORS] {
    [
        simd.dot_words(a, pulp::cast(words[0]), pulp::cast(weights[0])),
        simd.dot_words(b, pulp::cast(words[1]), pulp::cast(weights[1])),
        simd.dot_words(c, pulp::cast(words[2]), pulp::cast(weights[2])),
        simd.dot_words(d, pulp::cast(words[3]), pulp::cast(weights[3])),
    ]
}

/// The bytes of the sums of a block, in the order of its channels.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn bytes_of(
    simd: Vnni,
    [a, b, c, d]: [pulp::i32x16; VECTORS],
    scale: &Block<f32>,
    ends: Ends,
) -> [u32; WORDS] {
    let v4 = simd.v4();
    let y = [
        scaled(v4, a, None, scale[0]),
        scaled(v4, b, None, scale[1]),
        scaled(v4, c, None, scale[2]),
        scaled(v4, d, None, scale[3]),
    ];
    ends.lanes(v4, y)
}

#[cfg(target_arch = "x86_64")]
struct Fast<'a>(Line<'a>);

#[cfg(target_arch = "x86_64")]
impl Kernel<Vnni> for Fast<'_> {
    type Output = ();

    #[inline(always)]
    fn run(mut self, simd: Vnni) {
        let v4 = simd.v4();
        let bw = v4.avx512bw;
        let (bias, scale) = (self.0.bias, self.0.scale);
        let (weights, [_, apart]) = (self.0.weights, self.0.steps);
        let fours = self.0.rows.len() / ROWS;
        let ends = Ends::of(v4, self.0.rounding);
        self.0.interleave(
            #[inline(always)]
            |rows| {
                let [a, b, c, d] = rows;
                let (a, b, c, d) = (pulp::cast(a), pulp::cast(b), pulp::cast(c), pulp::cast(d));
                let (low, high) = (bw._mm512_unpacklo_epi8(a, b), bw._mm512_unpackhi_epi8(a, b));
                let (below, above) = (bw._mm512_unpacklo_epi8(c, d), bw._mm512_unpackhi_epi8(c, d));
                [
                    pulp::cast(bw._mm512_unpacklo_epi16(low, below)),
                    pulp::cast(bw._mm512_unpackhi_epi16(low, below)),
                    pulp::cast(bw._mm512_unpacklo_epi16(high, above)),
                    pulp::cast(bw._mm512_unpackhi_epi16(high, above)),
                ]
            },
        );
        // Windows of three pixels a row, side by side, and up to four rows.
        if let ([a, b, c], 1, 1) = (weights, fours, apart) {
            return self.0.windows(
                #[inline(always)]
                |columns| {
                    let Some([x, y, z]) = columns.first_chunk::<3>() else {
                        return [0; WORDS];
                    };
                    let sums = dot(simd, sums_of(bias), x, a);
                    let sums = dot(simd, dot(simd, sums, y, b), z, c);
                    bytes_of(simd, sums, scale, ends)
                },
            );
        }
        self.0.windows(
            #[inline(always)]
            |columns| {
                let mut sums = sums_of(bias);
                for (pixel, weights) in weights.chunks_exact(fours).enumerate() {
                    for (column, weights) in columns[pixel * apart * fours..].iter().zip(weights) {
                        sums = dot(simd, sums, column, weights);
                    }
                }
                bytes_of(simd, sums, scale, ends)
            },
        );
    }
}

/// The multiplications below which one thread computes all.
const SERIAL: usize = 1 << 17;

impl Depthwise {
    pub fn new(spec: &IntegerSpec, weights: &[i16], bias: &[i32], scale: &[f32]) -> Self {
        let [rows, pixels] = spec.kernel;
        let own = rows * pixels;
        // Weights beyond `int8` are two: the rows of a window are read twice.
        let is_small = weights.iter().all(|w| i8::try_from(*w).is_ok());
        let times = if is_small { 1 } else { 2 };
        let fours = (times * rows).div_ceil(ROWS);
        let count = spec.out_channels.next_multiple_of(BLOCK);
        let mut all = Aligned::filled(count * pixels * fours, 0u32);
        for (at, weight) in weights.iter().enumerate() {
            let (channel, row, pixel) = (at / own, at % own / pixels, at % pixels);
            let (vector, lane) = place(channel % BLOCK);
            let first = (*weight).clamp(-128, 127);
            for (time, part) in [first, weight - first].into_iter().take(times).enumerate() {
                let row = time * rows + row;
                let block = (channel / BLOCK * pixels + pixel) * fours + row / ROWS;
                let word = &mut all[block * BLOCK + vector * LANES + lane];
                let mut bytes = word.to_ne_bytes();
                bytes[row % ROWS] = (part as i8).cast_unsigned();
                *word = u32::from_ne_bytes(bytes);
            }
        }
        // What fills the last four has weights of 0.
        let rows = (0..fours * ROWS).map(|row| match row < times * rows {
            true => row % rows * spec.dilation[0],
            false => 0,
        });
        Depthwise {
            weights: all,
            bias: in_blocks(bias),
            scale: in_blocks(scale),
            rows: rows.collect(),
        }
    }

    pub fn bytes(&self) -> usize {
        size_of_val(&*self.weights)
    }

    /// The result of an input.
    pub fn run(
        &self,
        level: Level,
        (x, zero_point): (&Bytes, u8),
        spec: &IntegerSpec,
        rounding: Rounding,
        out: &mut Bytes,
    ) {
        let way = Way::of(level);
        let (height, out_stride) = (out.height(), out.stride());
        let line = x.width() * x.stride();
        let size = out.width() * out_stride;
        let outside = u32::from_ne_bytes([zero_point; 4]);
        let pixels = x.width() + 2 * spec.padding[1];
        let fours = self.rows.len() / ROWS;
        let (bias, scale) = (blocks(&self.bias), blocks(&self.scale));
        let weights = blocks(&self.weights);
        let per_block = weights.len() / bias.len().max(1);
        let band = |first: usize, out: &mut [u32]| {
            let empty = vec![outside; line + WORDS];
            let mut columns = Aligned::filled(pixels * fours * BLOCK, outside);
            let columns = columns.as_chunks_mut().0.as_chunks_mut().0;
            let mut rows = Vec::with_capacity(self.rows.len());
            for (at, out) in out.chunks_exact_mut(size.max(1)).enumerate() {
                let (image, oy) = ((first + at) / height, (first + at) % height);
                let numbers = bias.iter().zip(scale);
                let weights = weights.chunks_exact(per_block);
                for (block, (weights, (bias, scale))) in weights.zip(numbers).enumerate() {
                    let own = block * WORDS..out_stride.min((block + 1) * WORDS);
                    rows.clear();
                    rows.extend(self.rows.iter().map(|row| {
                        let y = oy * spec.stride[0] + row;
                        match y.checked_sub(spec.padding[0]) {
                            Some(y) if y < x.height() => {
                                &x.words_and_more()[(image * x.height() + y) * line + own.start..]
                            }
                            _ => &empty[own.start..],
                        }
                    }));
                    let line = Line {
                        rows: &rows,
                        width: x.width(),
                        stride: x.stride(),
                        columns: &mut *columns,
                        padding: spec.padding[1],
                        weights,
                        bias,
                        scale,
                        steps: [spec.stride[1], spec.dilation[1]],
                        rounding,
                        out_stride,
                        own,
                        out,
                    };
                    match way {
                        #[cfg(target_arch = "x86_64")]
                        Way::Vnni(simd) => simd.run(Fast(line)),
                        Way::Portable(level) => level.run(Portable(line)),
                    }
                }
            }
        };
        let work = out.pixels() * out.channels() * spec.kernel[0] * spec.kernel[1];
        let lines = out.batch() * height;
        if work < SERIAL {
            return band(0, out.words_mut());
        }
        let per_band = lines.div_ceil(2 * rayon::current_num_threads()).max(1);
        let bands = out.words_mut().par_chunks_mut(per_band * size);
        bands
            .enumerate()
            .with_max_len(1)
            .for_each(|(at, out)| band(at * per_band, out));
    }
}
