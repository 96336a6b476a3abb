//! Convolutions of each channel alone.
//!
//! Invariant: sums are exact; a plane has 16 channels of an image with its sides.

#[cfg(target_arch = "x86_64")]
use fx_simd::{Kernel, Vnni};
use pulp::{Simd, WithSimd};

#[cfg(target_arch = "x86_64")]
use super::block::Ends;
use super::block::Way;
use super::bytes::{Bytes, Rounding, put_line};
use super::spec::IntegerSpec;
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

/// Sixteen channels of a pixel.
type Pixel = [u32; WORDS];

/// A row of the result.
struct Row<'a> {
    /// For each 16 channels, the pixels of the image with its sides.
    planes: &'a [Pixel],
    /// The pixels of a plane.
    plane: usize,
    /// Where the pixels of a window are, counted from its first one; whole fours.
    taps: &'a [[usize; TAPS]],
    /// The pixels of a row of the plane, where windows are three rows of three pixels side by side.
    three: Option<usize>,
    weights: &'a [[u32; LANES]],
    ending: Ending<'a>,
    /// Where the first window begins, and how far windows are apart.
    from: usize,
    step: usize,
    /// The words of a pixel of the result.
    stride: usize,
    out: &'a mut [u32],
}

impl Row<'_> {
    /// Computes all pixels: `bytes` gives those of a window that begins at a pixel, by weights, biases and scales.
    #[inline(always)]
    fn run(
        self,
        bytes: impl Fn(&[Pixel], usize, &[[u32; LANES]], &[i32; LANES], &[f32; LANES]) -> [u8; LANES],
    ) {
        let (bias, scale, _) = self.ending;
        let ((bias, _), (scale, _)) = (bias.as_chunks::<LANES>(), scale.as_chunks::<LANES>());
        let weights = self.weights.chunks_exact(self.taps.len());
        for (block, (weights, plane)) in weights
            .zip(self.planes.chunks_exact(self.plane))
            .enumerate()
        {
            let own = block * WORDS;
            let count = WORDS.min(self.stride - own);
            let (bias, scale) = (&bias[block], &scale[block]);
            for (ox, out) in self.out.chunks_exact_mut(self.stride).enumerate() {
                let bytes = bytes(plane, self.from + ox * self.step, weights, bias, scale);
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
        let (taps, rounding) = (self.0.taps, self.0.ending.2);
        self.0.run(|plane, from, weights, bias, scale| {
            let mut sums = *bias;
            for (taps, weights) in taps.iter().zip(weights) {
                for (byte, tap) in taps.iter().enumerate() {
                    let bytes: [u8; LANES] = pulp::cast(plane[from + tap]);
                    for i in 0..LANES {
                        let weight = weights[i].to_ne_bytes()[byte].cast_signed();
                        let product = i32::from(bytes[i]) * i32::from(weight);
                        sums[i] = sums[i].wrapping_add(product);
                    }
                }
            }
            let mut bytes = [0u8; LANES];
            for i in 0..LANES {
                bytes[i] = rounding.byte(sums[i] as f32 * scale[i]);
            }
            bytes
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
        let (v4, taps) = (simd.v4(), self.0.taps);
        let ends = Ends::of(v4, self.0.ending.2);
        let one = |pixel: Pixel| v4.convert_u8x16_to_u32x16(pulp::cast(pixel));
        let four = |pixels: [Pixel; TAPS]| {
            let [a, b, c, d] = pixels.map(one);
            let low = v4.or_u32x16(a, v4.shl_const_u32x16::<8>(b));
            let high = v4.or_u32x16(v4.shl_const_u32x16::<16>(c), v4.shl_const_u32x16::<24>(d));
            v4.or_u32x16(low, high)
        };
        let bytes = |sums: pulp::i32x16, scale: &[f32; LANES]| {
            let y = v4.mul_f32x16(v4.convert_i32x16_to_f32x16(sums), pulp::cast(*scale));
            ends.bytes(v4, y)
        };
        // Windows of three rows of three pixels side by side.
        if let Some(line) = self.0.three {
            return self.0.run(
                #[inline(always)]
                |plane, from, weights, bias, scale| {
                    let row = |at: usize| plane[from + at * line..].first_chunk::<3>();
                    let (Some(a), Some(b), Some(c), [w0, w1, w2]) =
                        (row(0), row(1), row(2), weights)
                    else {
                        return [0; LANES];
                    };
                    let sums = pulp::cast(*bias);
                    let sums =
                        simd.dot_words(sums, four([a[0], a[1], a[2], b[0]]), pulp::cast(*w0));
                    let sums =
                        simd.dot_words(sums, four([b[1], b[2], c[0], c[1]]), pulp::cast(*w1));
                    let sums = simd.dot_words(sums, one(c[2]), pulp::cast(*w2));
                    bytes(sums, scale)
                },
            );
        }
        self.0.run(
            #[inline(always)]
            |plane, from, weights, bias, scale| {
                let mut sums = pulp::cast(*bias);
                for (taps, weights) in taps.iter().zip(weights) {
                    let pixels = four(taps.map(|tap| plane[from + tap]));
                    sums = simd.dot_words(sums, pixels, pulp::cast(*weights));
                }
                bytes(sums, scale)
            },
        );
    }
}

/// For each image and each 16 channels of it, its pixels with those of its sides, whose channels are all `byte`.
fn planes(x: &Bytes, [rows, pixels]: [usize; 2], byte: u8, words: &mut Vec<u32>) {
    let (height, width) = (x.height() + 2 * rows, x.width() + 2 * pixels);
    let blocks = x.stride().div_ceil(WORDS);
    words.clear();
    words.resize(
        x.batch() * blocks * height * width * WORDS,
        u32::from_ne_bytes([byte; 4]),
    );
    let (all, _) = words.as_chunks_mut::<WORDS>();
    let line = x.width() * x.stride();
    for (at, plane) in all.chunks_exact_mut((height * width).max(1)).enumerate() {
        let (image, block) = (at / blocks, at % blocks);
        let own = block * WORDS;
        for y in 0..x.height() {
            let from = &x.words()[(image * x.height() + y) * line..][..line];
            let to = &mut plane[(y + rows) * width + pixels..][..x.width()];
            for (to, from) in to.iter_mut().zip(from.chunks_exact(x.stride())) {
                let from = &from[own..];
                match from.first_chunk::<WORDS>() {
                    Some(whole) => *to = *whole,
                    None => to[..from.len()].copy_from_slice(from),
                }
            }
        }
    }
}

impl Depthwise {
    pub fn new(spec: &IntegerSpec, weights: &[i16]) -> Self {
        let [rows, pixels] = spec.kernel;
        let own = rows * pixels;
        // Weights beyond `int8` are two: the pixels of a window are read twice.
        let is_small = weights.iter().all(|w| i8::try_from(*w).is_ok());
        let times = if is_small { 1 } else { 2 };
        let count = times * own;
        let fours = count.div_ceil(TAPS);
        let mut all = vec![[0u32; LANES]; spec.out_channels.div_ceil(LANES) * fours];
        for (at, weight) in weights.iter().enumerate() {
            let channel = at / own;
            let first = (*weight).clamp(-128, 127);
            for (time, part) in [first, weight - first].into_iter().take(times).enumerate() {
                let tap = time * own + at % own;
                let word = &mut all[channel / LANES * fours + tap / TAPS][channel % LANES];
                let mut bytes = word.to_ne_bytes();
                bytes[tap % TAPS] = (part as i8).cast_unsigned();
                *word = u32::from_ne_bytes(bytes);
            }
        }
        // What fills the last four has weights of 0.
        let taps = (0..fours * TAPS).map(|tap| match tap < count {
            true => (
                tap % own / pixels * spec.dilation[0],
                tap % own % pixels * spec.dilation[1],
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

    /// The result of an input; `scratch` keeps memory for its planes.
    pub fn run(
        &self,
        level: Level,
        (x, zero_point): (&Bytes, u8),
        spec: &IntegerSpec,
        ending: Ending<'_>,
        scratch: &mut Vec<u32>,
        out: &mut Bytes,
    ) {
        planes(x, spec.padding, zero_point, scratch);
        let (all, _) = scratch.as_chunks::<WORDS>();
        let (height, stride) = (out.height(), out.stride());
        let line = x.width() + 2 * spec.padding[1];
        let plane = (x.height() + 2 * spec.padding[0]) * line;
        let blocks = stride.div_ceil(WORDS);
        let taps = self.taps.iter().map(|(row, pixel)| row * line + pixel);
        let taps: Vec<usize> = taps.collect();
        let (taps, _) = taps.as_chunks::<TAPS>();
        let is_once = taps.len() == (spec.kernel[0] * spec.kernel[1]).div_ceil(TAPS);
        let three = spec.kernel == [3, 3] && spec.dilation == [1, 1] && is_once;
        let work = out.pixels() * out.channels() * taps.len();
        let way = Way::of(level);
        let row = |(at, out): (usize, &mut [u32])| {
            let (image, oy) = (at / height, at % height);
            let row = Row {
                planes: &all[image * blocks * plane..][..blocks * plane],
                plane,
                taps,
                three: three.then_some(line),
                weights: &self.weights,
                ending,
                from: oy * spec.stride[0] * line,
                step: spec.stride[1],
                stride,
                out,
            };
            match way {
                #[cfg(target_arch = "x86_64")]
                Way::Vnni(simd) => simd.run(Fast(row)),
                Way::Portable(level) => level.run(Portable(row)),
            }
        };
        out.each_row(work >= 1 << 15, row);
    }
}
