//! Products of pixels with a few panels of weights, in sums of 32 bits, and what becomes of the sums.
//!
//! Invariant: sums are exact, so that all ways of computing them give the same.

#[cfg(target_arch = "x86_64")]
use fx_simd::{Kernel, Vnni};
use pulp::{Simd, WithSimd};

use super::bytes::{Rounding, put_line};
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
    /// What the columns of a panel have.
    #[inline(always)]
    fn columns_of(self, column: usize) -> [i32; PANEL] {
        let columns = self.columns[column..].first_chunk::<PANEL>();
        columns.copied().unwrap_or([0; PANEL])
    }
}

/// The rows of a result, one for each pixel: whole ones of a length, or parts of each.
pub(super) enum Rows<'a, T> {
    Whole(&'a mut [T], usize),
    Parts(Vec<&'a mut [T]>),
}

impl<T> Rows<'_, T> {
    pub fn len(&self) -> usize {
        match self {
            Rows::Whole(all, stride) => all.len().checked_div(*stride).unwrap_or(0),
            Rows::Parts(rows) => rows.len(),
        }
    }

    /// A row from an element on; what is not there is empty.
    #[inline(always)]
    fn row(&mut self, row: usize, at: usize) -> &mut [T] {
        let row = match self {
            Rows::Whole(all, stride) => all.get_mut(row * *stride..(row + 1) * *stride),
            Rows::Parts(rows) => rows.get_mut(row).map(|row| &mut **row),
        };
        row.and_then(|row| row.get_mut(at..)).unwrap_or_default()
    }
}

/// Where results go, and what they are.
pub(super) enum Results<'a, 'r, 'o> {
    Bytes(&'a mut Rows<'r, u32>, Rounding),
    Floats(&'a mut Rows<'r, f32>, Option<OfRun<'o>>),
}

/// What a run knows of a product whose result is floats: `(sum + bias) * scale` of each column is multiplied with a number,
/// and a number of the column is added.
#[derive(Debug, Clone, Copy)]
pub struct OfRun<'a> {
    /// The byte of the input's 0.
    pub zero_point: u8,
    /// The factor.
    pub scale: f32,
    /// What is added to each column, or nothing.
    pub bias: &'a [f32],
}

impl OfRun<'_> {
    /// What is added to the columns of a panel.
    #[inline(always)]
    fn bias_of(&self, column: usize) -> [f32; PANEL] {
        let mut own = [0.0; PANEL];
        let bias = self.bias.get(column..).unwrap_or_default();
        for (to, bias) in own.iter_mut().zip(bias) {
            *to = *bias;
        }
        own
    }
}

#[cfg(target_arch = "x86_64")]
impl<'r, 'o> Results<'_, 'r, 'o> {
    fn lend(&mut self) -> Results<'_, 'r, 'o> {
        match self {
            Results::Bytes(rows, rounding) => Results::Bytes(rows, *rounding),
            Results::Floats(rows, of_run) => Results::Floats(rows, *of_run),
        }
    }
}

/// A rounding in vectors.
#[cfg(target_arch = "x86_64")]
#[derive(Clone, Copy)]
pub(super) struct Ends {
    low: pulp::f32x16,
    high: pulp::f32x16,
    zero: std::arch::x86_64::__m512i,
    /// Where the words of four vectors are in what [`Ends::lanes`] gives.
    order: pulp::u32x16,
}

#[cfg(target_arch = "x86_64")]
impl Ends {
    #[inline(always)]
    pub fn of(v4: pulp::x86::V4, rounding: Rounding) -> Self {
        let zero = f32::from(rounding.zero_point);
        Ends {
            low: v4.splat_f32x16(f32::from(rounding.low) - zero),
            high: v4.splat_f32x16(f32::from(rounding.high) - zero),
            zero: pulp::cast(v4.splat_u16x32(u16::from(rounding.zero_point))),
            order: pulp::cast([0u32, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15]),
        }
    }

    /// The integers between the ends, without the zero point: numbers are rounded half to even.
    #[inline(always)]
    fn whole(&self, v4: pulp::x86::V4, y: pulp::f32x16) -> std::arch::x86_64::__m512i {
        let y = v4.min_f32x16(v4.max_f32x16(y, self.low), self.high);
        v4.avx512f._mm512_cvtps_epi32(pulp::cast(y))
    }

    /// [`Rounding::byte`] of each number of four vectors: the first words of each, then the second ones, and so on.
    #[inline(always)]
    pub fn lanes(&self, v4: pulp::x86::V4, y: [pulp::f32x16; 4]) -> [u32; 16] {
        let [a, b, c, d] = y;
        let (a, b) = (self.whole(v4, a), self.whole(v4, b));
        let (c, d) = (self.whole(v4, c), self.whole(v4, d));
        let bw = v4.avx512bw;
        let low = bw._mm512_add_epi16(bw._mm512_packs_epi32(a, b), self.zero);
        let high = bw._mm512_add_epi16(bw._mm512_packs_epi32(c, d), self.zero);
        pulp::cast(bw._mm512_packus_epi16(low, high))
    }

    /// [`Rounding::byte`] of each number of four vectors, one vector after another.
    #[inline(always)]
    pub fn lines(&self, v4: pulp::x86::V4, y: [pulp::f32x16; 4]) -> [u32; 16] {
        let lanes = self.lanes(v4, y);
        pulp::cast(
            v4.avx512f
                ._mm512_permutexvar_epi32(pulp::cast(self.order), pulp::cast(lanes)),
        )
    }
}

/// Blocks of the same number of pixels.
#[cfg(target_arch = "x86_64")]
struct Fast<'a, 'r, const R: usize, const P: usize> {
    walk: Walk<'a>,
    starts: &'a [usize],
    /// The row of the first pixel.
    row: usize,
    of: Columns,
    ending: Ending<'a>,
    results: Results<'a, 'r, 'a>,
}

#[cfg(target_arch = "x86_64")]
impl<const R: usize, const P: usize> Kernel<Vnni> for Fast<'_, '_, R, P> {
    type Output = ();

    #[inline(always)]
    fn run(self, simd: Vnni) {
        use pulp::{i32x16, u32x16};
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
        let (weights, _) = weights.as_chunks::<P>();
        let mut results = self.results;
        let rows_of = self.ending.offsets.map(|own| own.rows);
        let columns: [[i32; PANEL]; P] = match self.ending.offsets {
            None => [[0; PANEL]; P],
            Some(own) => std::array::from_fn(|p| own.columns_of(first + p * PANEL)),
        };
        let bias_of_run: [[f32; PANEL]; P] = match &results {
            Results::Floats(_, Some(of_run)) => {
                std::array::from_fn(|p| of_run.bias_of(first + p * PANEL))
            }
            _ => [[0.0; PANEL]; P],
        };
        let (blocks, _) = self.starts.as_chunks::<R>();
        for (block, starts) in blocks.iter().enumerate() {
            let row = self.row + block * R;
            let bias: [i32x16; P] = std::array::from_fn(|p| pulp::cast(bias[p]));
            let mut sums: [[i32x16; P]; R] = [bias; R];
            for (run, weights) in runs.iter().zip(weights.chunks_exact(len)) {
                let weights = &weights[..len];
                let rows: [&[u32]; R] =
                    std::array::from_fn(|r| &x[starts[r] + run..starts[r] + run + len]);
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
            let more: Option<[i32; R]> = rows_of.map(|rows| {
                let own = rows.get(row..).and_then(|rows| rows.first_chunk());
                own.copied().unwrap_or([0; R])
            });
            // Each index of a sum is a number of the program's text: with another one in any place, they would not stay in
            // registers.
            macro_rules! y {
                ($r:expr, $p:expr) => {{
                    const { assert!($r < R && $p < P) };
                    let more = more.map(|more| (more[$r], columns[$p]));
                    scaled(v4, sums[$r][$p], more, scale[$p])
                }};
            }
            match &mut results {
                Results::Bytes(rows, rounding) => {
                    let ends = Ends::of(v4, *rounding);
                    // Four vectors at once: of one row, of two, or of four.
                    macro_rules! put {
                        ($($group:literal)*) => {
                            $(if const { $group * PANELS < R * P } {
                                let four = [
                                    y!(const { row_of($group, 0, R, P) }, 0),
                                    y!(const { row_of($group, 1, R, P) }, const { 1 % P }),
                                    y!(const { row_of($group, 2, R, P) }, const { 2 % P }),
                                    y!(const { row_of($group, 3, R, P) }, const { 3 % P }),
                                ];
                                let bytes: [[u32; PANEL / 4]; PANELS] =
                                    pulp::cast(ends.lines(v4, four));
                                for (k, bytes) in bytes.chunks_exact(P).enumerate() {
                                    let r = $group * PANELS / P + k;
                                    if r < R {
                                        put_lines(bytes, rows.row(row + r, at));
                                    }
                                }
                            })*
                        };
                    }
                    put!(0 1 2 3 4 5);
                }
                Results::Floats(rows, of_run) => {
                    macro_rules! put {
                        ($($r:literal)*) => {
                            $(if const { $r < R } {
                                let to = rows.row(row + $r, at);
                                put!(to, const { if $r < R { $r } else { 0 } }, 0 1 2 3);
                            })*
                        };
                        ($to:ident, $r:expr, $($p:literal)*) => {
                            $(if const { $p < P } {
                                let y = y!($r, const { if $p < P { $p } else { 0 } });
                                let y = match of_run {
                                    None => y,
                                    Some(of_run) => {
                                        let bias = bias_of_run[const { if $p < P { $p } else { 0 } }];
                                        let y = v4.mul_f32x16(y, v4.splat_f32x16(of_run.scale));
                                        v4.add_f32x16(y, pulp::cast(bias))
                                    }
                                };
                                let to = $to.get_mut($p * PANEL..).unwrap_or_default();
                                put_floats(pulp::cast(y), to);
                            })*
                        };
                    }
                    put!(0 1 2 3 4 5);
                }
            }
        }
    }
}

/// The row of a vector of a group of four; of those that there are not, the last one.
#[cfg(target_arch = "x86_64")]
const fn row_of(group: usize, k: usize, rows: usize, panels: usize) -> usize {
    let row = (group * PANELS + k) / panels;
    if row < rows { row } else { rows - 1 }
}

/// Sums, with what is to be added to them, times their scales.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
pub(super) fn scaled(
    v4: pulp::x86::V4,
    sums: pulp::i32x16,
    more: Option<(i32, [i32; PANEL])>,
    scale: [f32; PANEL],
) -> pulp::f32x16 {
    let sums = match more {
        None => sums,
        Some((row, columns)) => {
            let more = v4.wrapping_mul_i32x16(v4.splat_i32x16(row), pulp::cast(columns));
            v4.wrapping_add_i32x16(sums, more)
        }
    };
    v4.mul_f32x16(v4.convert_i32x16_to_f32x16(sums), pulp::cast(scale))
}

/// Writes the floats of a panel; what does not fit belongs to no channel.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn put_floats(y: [f32; PANEL], to: &mut [f32]) {
    match to.first_chunk_mut::<PANEL>() {
        Some(to) => *to = y,
        None => to.copy_from_slice(&y[..to.len()]),
    }
}

/// Writes the bytes of panels side by side; what does not fit belongs to no channel.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn put_lines(bytes: &[[u32; PANEL / 4]], to: &mut [u32]) {
    if let Some(to) = to.get_mut(..bytes.len() * PANEL / 4) {
        to.copy_from_slice(bytes.as_flattened());
        return;
    }
    for (to, word) in to.iter_mut().zip(bytes.as_flattened()) {
        *to = *word;
    }
}

struct Portable<'a, 'r> {
    walk: Walk<'a>,
    starts: &'a [usize],
    of: Columns,
    ending: Ending<'a>,
    results: Results<'a, 'r, 'a>,
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
                    for (sum, own) in sums.iter_mut().zip(offsets.columns_of(column)) {
                        *sum = sum.wrapping_add(offsets.rows[r].wrapping_mul(own));
                    }
                }
                match &mut results {
                    Results::Bytes(rows, rounding) => {
                        let mut bytes = [0u8; PANEL];
                        for i in 0..PANEL {
                            bytes[i] = rounding.byte(sums[i] as f32 * scale[i]);
                        }
                        let row = rows.row(r, at);
                        let from = (p * PANEL / 4).min(row.len());
                        put_line(bytes, &mut row[from..]);
                    }
                    Results::Floats(rows, of_run) => {
                        let mut floats = [0.0; PANEL];
                        for i in 0..PANEL {
                            floats[i] = sums[i] as f32 * scale[i];
                        }
                        if let Some(of_run) = of_run {
                            let bias = of_run.bias_of(column);
                            for i in 0..PANEL {
                                floats[i] = floats[i] * of_run.scale + bias[i];
                            }
                        }
                        let to = rows.row(r, at).iter_mut().skip(p * PANEL);
                        for (to, float) in to.zip(floats) {
                            *to = float;
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

    /// The results of pixels, which begin at these words, for 1, 2 or 4 panels: a row for each pixel.
    pub fn run(
        self,
        walk: Walk<'_>,
        starts: &[usize],
        of: Columns,
        ending: Ending<'_>,
        results: Results<'_, '_, '_>,
    ) {
        match self {
            #[cfg(target_arch = "x86_64")]
            Way::Vnni(simd) => {
                let mut results = results;
                for (size, pixels) in blocks(starts.len()) {
                    let (row, starts) = (pixels.start, &starts[pixels]);
                    macro_rules! fast {
                        ($($rows:literal)*) => {
                            match (size, of.panels) {
                                $(
                                    ($rows, 4) => fast!($rows, 4),
                                    ($rows, 2) => fast!($rows, 2),
                                    ($rows, _) => fast!($rows, 1),
                                )*
                                _ => {}
                            }
                        };
                        ($rows:literal, $panels:literal) => {
                            simd.run(Fast::<$rows, $panels> {
                                walk,
                                starts,
                                row,
                                of,
                                ending,
                                results: results.lend(),
                            })
                        };
                    }
                    fast!(1 2 3 4 5 6);
                }
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

/// So many pixels in blocks of about the same size, at most [`ROWS`]: sizes, each with the pixels that have it.
#[cfg(target_arch = "x86_64")]
fn blocks(count: usize) -> [(usize, std::ops::Range<usize>); 2] {
    let blocks = count.div_ceil(ROWS).max(1);
    let (size, more) = (count / blocks, count % blocks);
    let larger = more * (size + 1);
    [(size + 1, 0..larger), (size, larger..count)]
}
