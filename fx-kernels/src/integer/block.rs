//! Products of a few pixels with a few panels of weights, in sums of 32 bits, and what becomes of the sums.
//!
//! Invariant: sums are exact, so that all ways of computing them give the same.

#[cfg(target_arch = "x86_64")]
use fx_simd::{Kernel, Vnni};
use pulp::{Simd, WithSimd};

use super::bytes::{Rounding, WHOLE, put_line};
use crate::level::Level;

/// The columns of a panel of weights.
pub(super) const PANEL: usize = 16;
/// The pixels that a block has at most.
pub(super) const ROWS: usize = 6;
/// The panels that a block has at most.
pub(super) const PANELS: usize = 4;

/// A word of four weights for each column of a panel.
pub(super) type Words = [u32; PANEL];

/// Which words of pixels meet which words of weights.
#[derive(Clone, Copy)]
pub(super) struct Walk<'a> {
    /// The words of all pixels.
    pub x: &'a [u32],
    /// Where each run of words begins, counted from where a pixel begins.
    pub runs: &'a [usize],
    /// The words of a run.
    pub len: usize,
    /// The weights: for each word of each run, one of each panel.
    pub weights: &'a [Words],
}

/// The columns of a block, and where their results stand in a row.
#[derive(Clone, Copy)]
pub(super) struct Columns {
    pub first: usize,
    pub panels: usize,
    pub at: usize,
}

/// What makes sums results: a bias and a scale for each column.
#[derive(Clone, Copy)]
pub(super) struct Ending<'a> {
    pub bias: &'a [i32],
    pub scale: &'a [f32],
    pub offsets: Option<Offsets<'a>>,
}

/// What all weights of a column have in common beyond their bytes, and the sum of the pixels of each row that it is
/// multiplied with.
#[derive(Clone, Copy)]
pub(super) struct Offsets<'a> {
    pub columns: &'a [i32],
    pub rows: &'a [i32],
}

impl Offsets<'_> {
    /// What a row has in the columns of a panel.
    #[inline(always)]
    fn of(self, row: usize, column: usize) -> [i32; PANEL] {
        let columns = self.columns[column..].first_chunk::<PANEL>();
        let (row, columns) = (self.rows[row], columns.copied().unwrap_or([0; PANEL]));
        columns.map(|column| row.wrapping_mul(column))
    }
}

/// Where the results of a block go, and what they are.
pub(super) enum Results<'a, 'r> {
    Bytes(&'a mut [&'r mut [u32]], Rounding),
    Floats(&'a mut [&'r mut [f32]]),
}

/// A rounding in vectors.
#[cfg(target_arch = "x86_64")]
#[derive(Clone, Copy)]
pub(super) struct Ends {
    low: pulp::f32x16,
    high: pulp::f32x16,
    whole: pulp::f32x16,
    zero: pulp::u32x16,
}

#[cfg(target_arch = "x86_64")]
impl Ends {
    #[inline(always)]
    pub fn of(v4: pulp::x86::V4, rounding: Rounding) -> Self {
        let zero = f32::from(rounding.zero_point);
        Ends {
            low: v4.splat_f32x16(f32::from(rounding.low) - zero),
            high: v4.splat_f32x16(f32::from(rounding.high) - zero),
            whole: v4.splat_f32x16(WHOLE),
            zero: v4.splat_u32x16(u32::from(rounding.zero_point)),
        }
    }

    /// As [`Rounding::byte`] of each number.
    #[inline(always)]
    pub fn bytes(&self, v4: pulp::x86::V4, y: pulp::f32x16) -> [u8; PANEL] {
        let y = v4.min_f32x16(v4.max_f32x16(y, self.low), self.high);
        let y: pulp::u32x16 = pulp::cast(v4.add_f32x16(y, self.whole));
        pulp::cast(v4.convert_u32x16_to_u8x16(v4.wrapping_add_u32x16(y, self.zero)))
    }
}

#[cfg(target_arch = "x86_64")]
struct Fast<'a, 'r, const R: usize, const P: usize> {
    walk: Walk<'a>,
    starts: [usize; R],
    of: Columns,
    ending: Ending<'a>,
    results: Results<'a, 'r>,
}

#[cfg(target_arch = "x86_64")]
impl<const R: usize, const P: usize> Kernel for Fast<'_, '_, R, P> {
    type Output = ();

    #[inline(always)]
    fn run(self, simd: Vnni) {
        use pulp::{f32x16, i32x16, u32x16};
        let Walk {
            x,
            runs,
            len,
            weights,
        } = self.walk;
        let v4 = simd.v4();
        let Columns { first, at, .. } = self.of;
        let (bias, _) = self.ending.bias[first..first + P * PANEL].as_chunks::<PANEL>();
        let (scale, _) = self.ending.scale[first..first + P * PANEL].as_chunks::<PANEL>();
        let bias: [i32x16; P] = std::array::from_fn(|p| pulp::cast(bias[p]));
        let mut sums: [[i32x16; P]; R] = [bias; R];
        let (weights, _) = weights.as_chunks::<P>();
        for (run, weights) in runs.iter().zip(weights.chunks_exact(len)) {
            let weights = &weights[..len];
            let rows: [&[u32]; R] =
                std::array::from_fn(|r| &x[self.starts[r] + run..self.starts[r] + run + len]);
            for at in 0..len {
                let words: [u32x16; P] = std::array::from_fn(|p| pulp::cast(weights[at][p]));
                for r in 0..R {
                    let word = v4.splat_u32x16(rows[r][at]);
                    for p in 0..P {
                        sums[r][p] = simd.dot_words(sums[r][p], word, words[p]);
                    }
                }
            }
        }
        // The sums are read alone: written once more, they would not stay in registers.
        let float = |r: usize, p: usize, sum: i32x16| match self.ending.offsets {
            None => v4.convert_i32x16_to_f32x16(sum),
            Some(offsets) => {
                let more = pulp::cast(offsets.of(r, first + p * PANEL));
                v4.convert_i32x16_to_f32x16(v4.wrapping_add_i32x16(sum, more))
            }
        };
        let scale: [f32x16; P] = std::array::from_fn(|p| pulp::cast(scale[p]));
        match self.results {
            Results::Bytes(rows, rounding) => {
                let ends = Ends::of(v4, rounding);
                for r in 0..R {
                    let row = &mut rows[r][at..];
                    for p in 0..P {
                        let y = v4.mul_f32x16(float(r, p, sums[r][p]), scale[p]);
                        let from = (p * PANEL / 4).min(row.len());
                        put_line(ends.bytes(v4, y), &mut row[from..]);
                    }
                }
            }
            Results::Floats(rows) => {
                for r in 0..R {
                    for (p, to) in rows[r][at..].chunks_mut(PANEL).take(P).enumerate() {
                        let y = v4.mul_f32x16(float(r, p, sums[r][p]), scale[p]);
                        let y: [f32; PANEL] = pulp::cast(y);
                        for (to, y) in to.iter_mut().zip(y) {
                            *to = y;
                        }
                    }
                }
            }
        }
    }
}

struct Portable<'a, 'r> {
    walk: Walk<'a>,
    starts: &'a [usize],
    of: Columns,
    ending: Ending<'a>,
    results: Results<'a, 'r>,
}

impl WithSimd for Portable<'_, '_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        let Walk {
            x,
            runs,
            len,
            weights,
        } = self.walk;
        let Columns { first, panels, at } = self.of;
        let mut results = self.results;
        for (r, start) in self.starts.iter().enumerate() {
            for p in 0..panels {
                let column = first + p * PANEL;
                let bias = &self.ending.bias[column..column + PANEL];
                let scale = &self.ending.scale[column..column + PANEL];
                let mut sums = [0i32; PANEL];
                sums.copy_from_slice(bias);
                for (turn, run) in runs.iter().enumerate() {
                    for (w, word) in x[start + run..start + run + len].iter().enumerate() {
                        let word = word.to_ne_bytes().map(i32::from);
                        let weights = &weights[(turn * len + w) * panels + p];
                        for (sum, weights) in sums.iter_mut().zip(weights) {
                            let weights = weights.to_ne_bytes().map(|w| i32::from(w.cast_signed()));
                            let products = word.iter().zip(weights).map(|(x, w)| x * w);
                            *sum = sum.wrapping_add(products.sum());
                        }
                    }
                }
                if let Some(offsets) = self.ending.offsets {
                    for (sum, more) in sums.iter_mut().zip(offsets.of(r, column)) {
                        *sum = sum.wrapping_add(more);
                    }
                }
                match &mut results {
                    Results::Bytes(rows, rounding) => {
                        let mut bytes = [0u8; PANEL];
                        for i in 0..PANEL {
                            bytes[i] = rounding.byte(sums[i] as f32 * scale[i]);
                        }
                        let row = &mut rows[r][at..];
                        let from = (p * PANEL / 4).min(row.len());
                        put_line(bytes, &mut row[from..]);
                    }
                    Results::Floats(rows) => {
                        let to = rows[r][at..].iter_mut().skip(p * PANEL).take(PANEL);
                        for ((to, sum), scale) in to.zip(sums).zip(scale) {
                            *to = sum as f32 * scale;
                        }
                    }
                }
            }
        }
    }
}

/// How blocks are computed on a machine.
#[derive(Clone, Copy)]
pub(super) enum Way {
    #[cfg(target_arch = "x86_64")]
    Vnni(Vnni),
    Portable(Level),
}

impl Way {
    /// The fastest of a level.
    pub fn of(level: Level) -> Way {
        #[cfg(target_arch = "x86_64")]
        if level == Level::Avx512
            && let Some(simd) = Vnni::try_new()
        {
            return Way::Vnni(simd);
        }
        Way::Portable(level)
    }

    /// The results of up to [`ROWS`] pixels, which begin at these words, for 1, 2 or 4 panels.
    #[inline]
    pub fn run(
        self,
        walk: Walk<'_>,
        starts: &[usize],
        of: Columns,
        ending: Ending<'_>,
        results: Results<'_, '_>,
    ) {
        match self {
            #[cfg(target_arch = "x86_64")]
            Way::Vnni(simd) => {
                macro_rules! fast {
                    ($($rows:literal)*) => {
                        match starts.len() {
                            $($rows => {
                                let mut own = [0; $rows];
                                own.copy_from_slice(starts);
                                match of.panels {
                                    4 => simd.run(Fast::<$rows, 4> { walk, starts: own, of, ending, results }),
                                    2 => simd.run(Fast::<$rows, 2> { walk, starts: own, of, ending, results }),
                                    _ => simd.run(Fast::<$rows, 1> { walk, starts: own, of, ending, results }),
                                }
                            })*
                            _ => {}
                        }
                    };
                }
                fast!(1 2 3 4 5 6);
            }
            Way::Portable(level) => level.run(Portable {
                walk,
                starts,
                of,
                ending,
                results,
            }),
        }
    }
}
