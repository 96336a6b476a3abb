//! `IntegerConv`: a convolution, or a product with a matrix, of bytes.
//!
//! Invariant: a weight is packed once, in the order in which blocks read it; the zero points of inputs are in the bias.

use std::borrow::Cow;
use std::ops::Range;

use rayon::prelude::*;

use super::block::{
    Columns, Ending, OfRun, Offsets, PANEL, PANELS, ROWS, Results, Rows, Walk, Way,
};
use super::bytes::{Bytes, Rounding};
use super::depthwise::Depthwise;
use super::spec::IntegerSpec;
use crate::buffer::Aligned;
use crate::error::{SizeError, check};
use crate::level::Level;

/// A convolution of bytes with its weights, biases, and what makes its sums bytes.
///
/// A weight is an integer beside its zero point, from -255 to 255; those of a channel span at most 255.
///
/// ```
/// use fx_kernels::Level;
/// use fx_kernels::integer::{Bytes, IntegerConv, IntegerSpec, Rounding};
/// // Two results of three inputs: 2 * 1 + 3 * 2 + 4 * 3, and its negative.
/// let spec = IntegerSpec::matrix(3, 2);
/// let rounding = Rounding { zero_point: 10, low: 0, high: 255 };
/// let conv = IntegerConv::new(spec, &[1, 2, 3, -1, -2, -3], &[0, 5], &[0.5, 0.5], 0, rounding)?;
/// let mut x = Bytes::zeros(1, 1, 1, 3);
/// x.words_mut()[0] = u32::from_ne_bytes([2, 3, 4, 0]);
/// let out = conv.run(Level::best(), &x, Vec::new(), &mut Vec::new())?;
/// assert_eq!(out.words()[0].to_ne_bytes()[..2], [20, 2]); // 20 / 2 + 10, round(-15 / 2) + 10
/// # Ok::<(), fx_kernels::SizeError>(())
/// ```
#[derive(Debug)]
pub struct IntegerConv {
    spec: IntegerSpec,
    zero_point: u8,
    rounding: Rounding,
    weights: Weights,
    bias: Vec<i32>,
    /// The sum of the weights of each channel, of which the bias has as many as the zero point says.
    sums: Vec<i32>,
    scale: Vec<f32>,
    /// What the weights of each channel have in common, if they are no `int8` without it.
    offsets: Option<Vec<i32>>,
}

#[derive(Debug)]
enum Weights {
    /// For each group of channels, for each set of panels.
    Panels(Vec<Aligned<u32>>),
    Depthwise(Depthwise),
}

/// The panels of sets of 4, 2 and 1 that so many channels have: first panel and count.
fn sets(channels: usize) -> impl Iterator<Item = (usize, usize)> {
    let panels = channels.div_ceil(PANEL);
    let mut first = 0;
    std::iter::from_fn(move || {
        let count = match panels - first {
            0 => return None,
            PANELS.. => PANELS,
            2.. => 2,
            _ => 1,
        };
        first += count;
        Some((first - count, count))
    })
}

impl IntegerConv {
    /// Packs weights `[out_channels, in_channels / groups, kernel..]`, with a bias and a scale for each channel of the
    /// result: a byte is `round((sum + bias) * scale)`, where the sum is over `(x - zero_point) * weight`.
    ///
    /// # Errors
    /// Returns an error if a slice has another length than the sizes say, or the weights of a channel span more than 255.
    pub fn new(
        spec: IntegerSpec,
        weights: &[i16],
        bias: &[i32],
        scale: &[f32],
        zero_point: u8,
        rounding: Rounding,
    ) -> Result<Self, SizeError> {
        let depth = spec.depth();
        check("a weight", spec.out_channels * depth, weights.len())?;
        check("a bias", spec.out_channels, bias.len())?;
        check("the scales", spec.out_channels, scale.len())?;
        let channels = || weights.chunks(depth.max(1));
        let sums = channels().map(|own| own.iter().map(|w| i32::from(*w)).sum());
        let sums: Vec<i32> = sums.collect();
        let moved = |(bias, sum): (&i32, &i32)| bias.wrapping_sub(i32::from(zero_point) * sum);
        let room = spec.out_channels.next_multiple_of(PANEL);
        let mut bias: Vec<i32> = bias.iter().zip(&sums).map(moved).collect();
        let mut scale = scale.to_vec();
        bias.resize(room, 0);
        scale.resize(room, 0.0);
        let mut offsets = channels()
            .map(offset_of)
            .collect::<Result<Vec<i32>, SizeError>>()?;
        offsets.resize(room, 0);
        let offsets = offsets.iter().any(|own| *own != 0).then_some(offsets);
        let (weights, offsets) = match (spec.is_depthwise(), &offsets) {
            (true, _) => {
                let own = Depthwise::new(&spec, weights, &bias, &scale);
                (Weights::Depthwise(own), None)
            }
            (false, own) => {
                let small = |at: usize| {
                    let offset = own.as_ref().map_or(0, |own| own[at / depth.max(1)]);
                    (i32::from(weights[at]) - offset) as i8
                };
                (Weights::Panels(packed(&spec, small)), offsets)
            }
        };
        Ok(IntegerConv {
            spec,
            zero_point,
            rounding,
            weights,
            bias,
            sums,
            scale,
            offsets,
        })
    }

    /// The sizes and steps.
    pub fn spec(&self) -> &IntegerSpec {
        &self.spec
    }

    /// The bytes of the packed weights.
    pub fn bytes(&self) -> usize {
        match &self.weights {
            Weights::Panels(all) => all.iter().map(|set| size_of_val(&**set)).sum(),
            Weights::Depthwise(own) => own.bytes(),
        }
    }

    /// The result, in the memory of `words`; `scratch` keeps memory for the images with their sides.
    ///
    /// # Errors
    /// Returns an error if the input has other channels, or no window fits into it.
    pub fn run(
        &self,
        level: Level,
        x: &Bytes,
        words: Vec<u32>,
        scratch: &mut Vec<u32>,
    ) -> Result<Bytes, SizeError> {
        let (height, width) = self.out_size(x)?;
        let mut out = Bytes::reusing(words, (x.batch(), height, width, self.spec.out_channels));
        let stride = out.stride();
        let rounding = self.rounding;
        match &self.weights {
            Weights::Depthwise(own) => {
                own.run(level, (x, self.zero_point), &self.spec, rounding, &mut out);
            }
            Weights::Panels(all) => self.with_sides(x, self.zero_point, scratch, |x| {
                let to = (out.words_mut(), stride, 4);
                let size = (height, width);
                self.blocks(level, x, size, (all, &self.bias), to, |rows| {
                    Results::Bytes(rows, rounding)
                });
            }),
        }
        Ok(out)
    }

    /// The result as floats, `(sum + bias) * scale`: for each pixel, its `out_channels`.
    ///
    /// # Errors
    /// Returns an error if each channel is convolved alone, or the input or the result has other sizes.
    pub fn run_to_floats(&self, level: Level, x: &Bytes, out: &mut [f32]) -> Result<(), SizeError> {
        self.floats(level, x, None, out)
    }

    /// [`run_to_floats`](IntegerConv::run_to_floats) of an input whose scale and zero point a run knows.
    ///
    /// # Errors
    /// As there, or if the bias has another length than the channels.
    pub fn run_to_floats_of_run(
        &self,
        level: Level,
        x: &Bytes,
        of_run: OfRun<'_>,
        out: &mut [f32],
    ) -> Result<(), SizeError> {
        if !of_run.bias.is_empty() {
            check("a bias", self.spec.out_channels, of_run.bias.len())?;
        }
        self.floats(level, x, Some(of_run), out)
    }

    fn floats(
        &self,
        level: Level,
        x: &Bytes,
        of_run: Option<OfRun<'_>>,
        out: &mut [f32],
    ) -> Result<(), SizeError> {
        let zero_point = of_run.map_or(self.zero_point, |own| own.zero_point);
        let mut bias = Cow::Borrowed(&*self.bias);
        if zero_point != self.zero_point {
            let moved = i32::from(self.zero_point) - i32::from(zero_point);
            for (bias, sum) in bias.to_mut().iter_mut().zip(&self.sums) {
                *bias = bias.wrapping_add(moved * sum);
            }
        }
        let channels = self.spec.out_channels;
        let (height, width) = self.out_size(x)?;
        check(
            "the result",
            x.batch() * height * width * channels,
            out.len(),
        )?;
        let Weights::Panels(all) = &self.weights else {
            return check("a matrix", 1, self.spec.groups);
        };
        self.with_sides(x, zero_point, &mut Vec::new(), |x| {
            let to = (out, channels, 1);
            self.blocks(level, x, (height, width), (all, &bias), to, |rows| {
                Results::Floats(rows, of_run)
            });
        });
        Ok(())
    }

    fn out_size(&self, x: &Bytes) -> Result<(usize, usize), SizeError> {
        check("a pixel", self.spec.in_channels, x.channels())?;
        if let Some(size) = self.spec.out_size(x.height(), x.width()) {
            return Ok(size);
        }
        let reach = |at: usize| self.spec.dilation[at] * (self.spec.kernel[at] - 1) + 1;
        check("an image", reach(0), x.height())?;
        check("a row", reach(1), x.width())?;
        check("the windows", 1, 0).map(|()| (0, 0))
    }

    /// Lends the input with its sides.
    fn with_sides(
        &self,
        x: &Bytes,
        zero_point: u8,
        scratch: &mut Vec<u32>,
        run: impl FnOnce(&Bytes),
    ) {
        if self.spec.padding == [0, 0] {
            return run(x);
        }
        let [rows, pixels] = self.spec.padding.map(|size| [size; 2]);
        let padded = x.padded(rows, pixels, zero_point, std::mem::take(scratch));
        run(&padded);
        *scratch = padded.into_words();
    }

    /// Where the windows of so many pixels begin, from one on, if a pixel takes `size`.
    fn starts(
        &self,
        x: &Bytes,
        (height, width): (usize, usize),
        first: usize,
        count: usize,
        size: usize,
    ) -> Vec<usize> {
        let IntegerSpec { kernel, stride, .. } = self.spec;
        if kernel == [1, 1] && stride == [1, 1] {
            return (first..first + count).map(|at| at * size).collect();
        }
        let (line, step) = (x.width() * size, stride[1] * size);
        let mut starts = Vec::with_capacity(count);
        let (mut row, mut from) = (first / width.max(1), first % width.max(1));
        while starts.len() < count {
            let to = width.min(from + count - starts.len());
            let (image, y) = (row / height, row % height);
            let start = (image * x.height() + y * stride[0]) * line;
            starts.extend((from..to).map(|at| start + at * step));
            (row, from) = (row + 1, 0);
        }
        starts
    }

    /// For each group, the sum of the bytes of each window.
    fn window_sums(&self, x: &Bytes, size: (usize, usize), count: usize) -> Vec<i32> {
        let IntegerSpec {
            kernel,
            dilation,
            groups,
            ..
        } = self.spec;
        let own = self.spec.in_channels / groups;
        let starts = self.starts(x, size, 0, count, 1);
        let taps = (0..kernel[0]).flat_map(|ky| (0..kernel[1]).map(move |kx| (ky, kx)));
        let taps = taps.map(|(ky, kx)| ky * dilation[0] * x.width() + kx * dilation[1]);
        let taps: Vec<usize> = taps.collect();
        let mut sums = Vec::with_capacity(groups * count);
        for group in 0..groups {
            // Of each pixel, the bytes of the group.
            let pixels = x.words().chunks_exact(x.stride().max(1));
            let pixels: Vec<i32> = pixels
                .map(|words| {
                    let words = &words[group * own / 4..];
                    let whole = words[..own / 4].iter();
                    let whole: u32 = whole.map(|word| sum_of_bytes(*word)).sum();
                    let rest = words.get(own / 4).map_or(0, |word| {
                        let bytes = word.to_ne_bytes();
                        bytes[..own % 4].iter().map(|byte| u32::from(*byte)).sum()
                    });
                    (whole + rest) as i32
                })
                .collect();
            let sum = |start: &usize| taps.iter().map(|tap| pixels[start + tap]).sum::<i32>();
            sums.extend(starts.iter().map(sum));
        }
        sums
    }

    /// Computes all blocks: `out` has rows of `stride` elements, of which one holds `per` channels.
    fn blocks<'o, T: Send>(
        &self,
        level: Level,
        x: &Bytes,
        (height, width): (usize, usize),
        (all, bias): (&[Aligned<u32>], &[i32]),
        (out, stride, per): (&mut [T], usize, usize),
        results: impl for<'a, 'r> Fn(&'a mut Rows<'r, T>) -> Results<'a, 'r, 'o> + Sync,
    ) {
        let IntegerSpec {
            kernel,
            dilation,
            groups,
            ..
        } = self.spec;
        let (own_in, own_out) = (
            self.spec.in_channels / groups,
            self.spec.out_channels / groups,
        );
        let is_whole = groups == 1 && dilation[1] == 1;
        // The words of a row of the window stand side by side if all channels of its pixels are read.
        let len = match (groups, is_whole) {
            (1, true) => kernel[1] * x.stride(),
            (1, false) => x.stride(),
            _ => own_in / 4,
        };
        let line = x.width() * x.stride();
        let mut runs = Vec::new();
        for ky in 0..kernel[0] {
            let row = ky * dilation[0] * line;
            match is_whole {
                true => runs.push(row),
                false => runs.extend((0..kernel[1]).map(|kx| row + kx * dilation[1] * x.stride())),
            }
        }
        let count = out.len().checked_div(stride).unwrap_or(0);
        let sums = match self.offsets {
            Some(_) => self.window_sums(x, (height, width), count),
            None => Vec::new(),
        };
        let per_group: Vec<(usize, usize)> = sets(own_out).collect();
        let work = count * self.spec.depth() * self.spec.out_channels;
        let tasks = match work < SERIAL {
            true => 1,
            false => (work / TASK).clamp(2, 4 * rayon::current_num_threads().max(2)),
        };
        // A task is a strip of sets for a band of pixels. Each band reads all weights, and each strip the whole input.
        let all_sets = groups * per_group.len();
        let sizes = (x.words().len(), all.iter().map(|set| set.len()).sum());
        let (bands, strips) = cuts(tasks, (count.div_ceil(4 * ROWS), all_sets), sizes);
        let band = count.div_ceil(bands).max(1);
        let strip = all_sets.div_ceil(strips);
        let mut parts: Vec<Part<'_, T>> = Vec::new();
        for (first, rows) in out.chunks_mut(band * stride).enumerate() {
            let first = first * band;
            if strips == 1 {
                parts.push(Part {
                    first,
                    sets: 0..all_sets,
                    rows: Rows::Whole(rows, stride),
                });
                continue;
            }
            let ranges =
                (0..all_sets.div_ceil(strip)).map(|s| s * strip..(s * strip + strip).min(all_sets));
            let mut made: Vec<(Range<usize>, Vec<&mut [T]>)> = ranges
                .map(|sets| (sets, Vec::with_capacity(band)))
                .collect();
            for mut row in rows.chunks_mut(stride) {
                let mut from = 0;
                for (sets, rows) in &mut made {
                    // The last strip has what stands behind the last channel too.
                    let to = match sets.end == all_sets {
                        true => stride,
                        false => {
                            let (group, set) =
                                (sets.end / per_group.len(), sets.end % per_group.len());
                            (group * own_out + per_group[set].0 * PANEL) / per
                        }
                    };
                    let (own, rest) = row.split_at_mut(to - from);
                    rows.push(own);
                    (row, from) = (rest, to);
                }
            }
            parts.extend(made.into_iter().map(|(sets, rows)| Part {
                first,
                sets,
                rows: Rows::Parts(rows),
            }));
        }
        let way = Way::of(level);
        let run = |mut part: Part<'_, T>| {
            let origin = {
                let (group, set) = (
                    part.sets.start / per_group.len(),
                    part.sets.start % per_group.len(),
                );
                group * own_out + per_group[set].0 * PANEL
            };
            let count_of_part = part.rows.len();
            let starts = self.starts(x, (height, width), part.first, count_of_part, x.stride());
            for set in part.sets.clone() {
                let (group, at) = (set / per_group.len(), set % per_group.len());
                let (panel, panels) = per_group[at];
                let column = group * own_out + panel * PANEL;
                let walk = Walk {
                    x: &x.words()[if groups == 1 { 0 } else { group * own_in / 4 }..],
                    runs: &runs,
                    len,
                    weights: all[set].as_chunks().0,
                };
                let of = Columns {
                    first: column,
                    panels,
                    at: (column - origin) / per,
                };
                let offsets = self.offsets.as_ref().map(|columns| Offsets {
                    columns,
                    rows: &sums[group * count + part.first..],
                });
                let ending = Ending {
                    bias,
                    scale: &self.scale,
                    offsets,
                };
                way.run(walk, &starts, of, ending, results(&mut part.rows));
            }
        };
        match parts.len() {
            0 | 1 => parts.into_iter().for_each(run),
            _ => parts.into_par_iter().with_max_len(1).for_each(run),
        }
    }
}

/// What a task computes.
struct Part<'a, T> {
    first: usize,
    sets: Range<usize>,
    rows: Rows<'a, T>,
}

/// How many bands of pixels and strips of sets make so many tasks, so that the least words are read: those of the input by
/// each strip, and those of the weights by each band.
fn cuts(
    tasks: usize,
    (most_bands, most_strips): (usize, usize),
    (input, weights): (usize, usize),
) -> (usize, usize) {
    let of = |strips: usize| {
        let bands = tasks.div_ceil(strips).clamp(1, most_bands.max(1));
        (bands, strips)
    };
    let words = |(bands, strips): &(usize, usize)| {
        let missing = tasks.saturating_sub(bands * strips);
        (missing, bands * weights + strips * input)
    };
    (1..=most_strips.clamp(1, tasks))
        .map(of)
        .min_by_key(words)
        .unwrap_or((1, 1))
}

/// The multiplications below which one thread computes all.
const SERIAL: usize = 1 << 18;
/// The multiplications of a task.
const TASK: usize = 1 << 20;

fn sum_of_bytes(word: u32) -> u32 {
    word.to_ne_bytes().map(u32::from).iter().sum()
}

/// What the weights of a channel have in common, so that the rest is `int8`: 0 if they are so.
fn offset_of(weights: &[i16]) -> Result<i32, SizeError> {
    let most = i32::from(weights.iter().copied().max().unwrap_or(0));
    let least = i32::from(weights.iter().copied().min().unwrap_or(0));
    if most - least > 255 {
        check(
            "the span of a channel's weights",
            255,
            (most - least) as usize,
        )?;
    }
    Ok(match most <= 127 && least >= -128 {
        true => 0,
        false => most - 127,
    })
}

/// The weights in the order in which blocks read them; `weight` gives each by its index.
fn packed(spec: &IntegerSpec, weight: impl Fn(usize) -> i8) -> Vec<Aligned<u32>> {
    let (own_in, own_out) = (
        spec.in_channels / spec.groups,
        spec.out_channels / spec.groups,
    );
    let [rows, pixels] = spec.kernel;
    // A pixel has as many words as it has in images.
    let words = match spec.groups {
        1 => Bytes::zeros(0, 0, 0, own_in).stride(),
        _ => own_in.div_ceil(4),
    };
    let mut all = Vec::new();
    for group in 0..spec.groups {
        for (panel, panels) in sets(own_out) {
            let mut set = Aligned::filled(rows * pixels * words * panels * PANEL, 0);
            for (at, to) in set.chunks_exact_mut(PANEL).enumerate() {
                let (p, at) = (at % panels, at / panels);
                let (word, tap) = (at % words, at / words);
                for (column, to) in to.iter_mut().enumerate() {
                    let out = (panel + p) * PANEL + column;
                    if out >= own_out {
                        continue;
                    }
                    let of = |byte: usize| {
                        let channel = word * 4 + byte;
                        let at = ((group * own_out + out) * own_in + channel) * rows * pixels + tap;
                        match channel < own_in {
                            true => weight(at).cast_unsigned(),
                            false => 0,
                        }
                    };
                    *to = u32::from_ne_bytes([of(0), of(1), of(2), of(3)]);
                }
            }
            all.push(set);
        }
    }
    all
}
