//! Convolutions of each channel alone.
//!
//! Invariant: sums are exact; pixels are those of the input with its sides.

#[cfg(target_arch = "x86_64")]
use fx_simd::{Kernel, Vnni};
use pulp::{Simd, WithSimd};
use rayon::prelude::*;

use super::block::Way;
use super::bytes::{Bytes, Rounding, line, put_line};
use super::conv::IntegerSpec;
use crate::level::Level;

/// The channels that are computed at once.
const LANES: usize = 16;
/// The words of these channels.
const WORDS: usize = LANES / 4;
/// The pixels of a window that are computed at once.
const TAPS: usize = 4;

/// Weights: for each 16 channels, for each four pixels of a window, a word of four weights of each channel.
#[derive(Debug)]
pub(super) struct Depthwise {
    weights: Vec<[u32; LANES]>,
    /// Where the pixels of a window are, of an input of one pixel a row and one word a pixel: rows and pixels.
    taps: Vec<(usize, usize)>,
}

/// What makes sums bytes: biases, scales, and the rounding.
type Ending<'a> = (&'a [i32], &'a [f32], Rounding);

/// A row of the result.
struct Row<'a> {
    x: &'a [u32],
    /// The words of a pixel.
    stride: usize,
    /// Where the pixels of a window are, counted from its first one; whole fours.
    taps: &'a [usize],
    weights: &'a [[u32; LANES]],
    ending: Ending<'a>,
    /// Where the first window begins, and how far windows are apart.
    from: usize,
    step: usize,
    out: &'a mut [u32],
}

impl Row<'_> {
    /// Computes all pixels: `sums` gives the sums of a window of 16 channels, or of fewer.
    #[inline(always)]
    fn run(self, sums: impl Fn(&[u32], &[usize], &[[u32; LANES]], usize) -> [i32; LANES]) {
        let (bias, scale, rounding) = self.ending;
        let fours = self.taps.len() / TAPS;
        for (block, weights) in self.weights.chunks_exact(fours).enumerate() {
            let own = block * WORDS;
            let count = WORDS.min(self.stride - own);
            let (bias, scale) = (
                &bias[block * LANES..][..LANES],
                &scale[block * LANES..][..LANES],
            );
            for (ox, out) in self.out.chunks_exact_mut(self.stride).enumerate() {
                let x = &self.x[self.from + ox * self.step + own..];
                let sums = sums(x, self.taps, weights, count);
                let mut bytes = [0u8; LANES];
                for i in 0..LANES {
                    bytes[i] = rounding.byte(sums[i].wrapping_add(bias[i]) as f32 * scale[i]);
                }
                put_line(bytes, &mut out[own..own + count]);
            }
        }
    }
}

struct Portable<'a>(Row<'a>);

impl WithSimd for Portable<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        self.0.run(|x, taps, weights, count| {
            let mut sums = [0i32; LANES];
            for (taps, weights) in taps.chunks_exact(TAPS).zip(weights) {
                for (byte, tap) in taps.iter().enumerate() {
                    let bytes = line(&x[*tap..*tap + count]);
                    for i in 0..LANES {
                        let weight = weights[i].to_ne_bytes()[byte].cast_signed();
                        sums[i] += i32::from(bytes[i]) * i32::from(weight);
                    }
                }
            }
            sums
        });
    }
}

#[cfg(target_arch = "x86_64")]
struct Fast<'a>(Row<'a>);

#[cfg(target_arch = "x86_64")]
impl Kernel for Fast<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self, simd: Vnni) {
        let v4 = simd.v4();
        self.0.run(
            #[inline(always)]
            |x, taps, weights, count| {
                let mut sums = v4.splat_i32x16(0);
                let (fours, _) = taps.as_chunks::<TAPS>();
                for (taps, weights) in fours.iter().zip(weights) {
                    let word = |at: usize| {
                        let x = &x[taps[at]..];
                        let words = match x.first_chunk::<WORDS>() {
                            Some(words) if count == WORDS => *words,
                            _ => pulp::cast(line(&x[..count])),
                        };
                        v4.convert_u8x16_to_u32x16(pulp::cast(words))
                    };
                    let low = v4.or_u32x16(word(0), v4.shl_const_u32x16::<8>(word(1)));
                    let high = v4.or_u32x16(
                        v4.shl_const_u32x16::<16>(word(2)),
                        v4.shl_const_u32x16::<24>(word(3)),
                    );
                    sums = simd.dot_words(sums, v4.or_u32x16(low, high), pulp::cast(*weights));
                }
                pulp::cast(sums)
            },
        );
    }
}

impl Depthwise {
    pub fn new(spec: &IntegerSpec, weights: &[i8]) -> Self {
        let [rows, pixels] = spec.kernel;
        let count = rows * pixels;
        let fours = count.div_ceil(TAPS);
        let mut all = vec![[0u32; LANES]; spec.out_channels.div_ceil(LANES) * fours];
        for (at, weight) in weights.iter().enumerate() {
            let (channel, tap) = (at / count, at % count);
            let word = &mut all[channel / LANES * fours + tap / TAPS][channel % LANES];
            let mut bytes = word.to_ne_bytes();
            bytes[tap % TAPS] = weight.cast_unsigned();
            *word = u32::from_ne_bytes(bytes);
        }
        // What fills the last four has weights of 0.
        let taps = (0..fours * TAPS).map(|tap| match tap < count {
            true => (
                tap / pixels * spec.dilation[0],
                tap % pixels * spec.dilation[1],
            ),
            false => (0, 0),
        });
        Depthwise {
            weights: all,
            taps: taps.collect(),
        }
    }

    pub fn bytes(&self) -> usize {
        size_of_val(&*self.weights)
    }

    /// The result of an input with its sides.
    pub fn run(
        &self,
        level: Level,
        x: &Bytes,
        spec: &IntegerSpec,
        ending: Ending<'_>,
        out: &mut Bytes,
    ) {
        let (height, width, stride) = (out.height(), out.width(), out.stride());
        let line = x.width() * stride;
        let taps = self
            .taps
            .iter()
            .map(|(row, pixel)| row * line + pixel * stride);
        let taps: Vec<usize> = taps.collect();
        let work = out.pixels() * out.channels() * taps.len();
        let way = Way::of(level);
        let row = |(at, out): (usize, &mut [u32])| {
            let (image, oy) = (at / height, at % height);
            let row = Row {
                x: x.words(),
                stride,
                taps: &taps,
                weights: &self.weights,
                ending,
                from: (image * x.height() + oy * spec.stride[0]) * line,
                step: spec.stride[1] * stride,
                out,
            };
            match way {
                #[cfg(target_arch = "x86_64")]
                Way::Vnni(simd) => simd.run(Fast(row)),
                Way::Portable(level) => level.run(Portable(row)),
            }
        };
        let size = (width * stride).max(1);
        match work < 1 << 17 {
            true => out.words_mut().chunks_mut(size).enumerate().for_each(row),
            false => out
                .words_mut()
                .par_chunks_mut(size)
                .enumerate()
                .for_each(row),
        }
    }
}
