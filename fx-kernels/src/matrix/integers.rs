//! Rows times weights in blocks, by dot products of bytes: each chunk of a row is rounded to bytes with a scale of its own, sums
//! of a group are exact integers, and these are added as floats, group by group.
//!
//! Invariant: a row has the same bits whatever rows are beside it.

use fx_simd::{Kernel, Vnni};
use pulp::bytemuck::{cast, cast_slice_mut};
use pulp::{f32x16, u32x16};
use rayon::prelude::*;

use super::block_kind::{CHUNK, Scaling};
use super::blocks::{Blocks, Bytes, CHUNKS, Codes, Nibbles, PIECE, STEPS, Scales, scales_of};
use super::finish::Ending;
use super::packed::PackedMatrix;
use super::tile::{PANEL, even};
use super::words::Words;
use crate::Level;
use crate::scratch::lend;
use crate::vector::{load, plain, store};

/// The most rows that are summed at once: two vectors of integers and two of floats for each.
const MOST: usize = 6;

/// The most panels that are summed at once, of one row: several come from memory faster than one.
const TOGETHER: usize = 4;

/// The words of a chunk of a row.
const FOURS: usize = CHUNK / STEPS;

/// Products of fewer multiply-adds run on the calling thread, and a task has at least so many.
const TASK: usize = 1 << 20;

/// Rows in bytes.
#[derive(Clone, Copy)]
struct Rows<'a> {
    /// Four bytes each: `[rows, inputs / 4]`.
    words: &'a [i32],
    /// What the bytes are times: `[rows, chunks]`.
    scales: &'a [f32],
    /// The sums of chunks as floats: `[rows, chunks]`.
    sums: &'a [f32],
    /// What the integer sums of the halves of chunks start from, so that codes count from zero: `[rows, chunks]`.
    starts: &'a [[i32; 2]],
}

/// Rounds a chunk to bytes. One that is not finite has a scale that is not finite, or is no number.
#[inline(always)]
fn rounded(x: &[f32; CHUNK], zero: i32, words: &mut [i32], start: &mut [i32; 2]) -> [f32; 2] {
    let mut largest = 0.0f32;
    let mut is_number = true;
    for x in x {
        largest = largest.max(x.abs());
        is_number &= !x.is_nan();
    }
    let scale = if is_number { largest / 127.0 } else { f32::NAN };
    let inverse = if largest > 0.0 { 127.0 / largest } else { 0.0 };
    let mut bytes = [0i8; CHUNK];
    for (byte, x) in bytes.iter_mut().zip(x) {
        *byte = (x * inverse).round_ties_even() as i8;
    }
    for (word, bytes) in words.iter_mut().zip(bytes.as_chunks::<STEPS>().0) {
        *word = i32::from_le_bytes(bytes.map(|byte| byte as u8));
    }
    let (first, second) = bytes.split_at(CHUNK / 2);
    let sums = [first, second].map(|half| half.iter().map(|byte| i32::from(*byte)).sum::<i32>());
    *start = sums.map(|sum| -zero * sum);
    [scale, scale * (sums[0] + sums[1]) as f32]
}

/// Lends rows in bytes.
fn lend_rows(level: Level, zero: u8, inputs: usize, x: &[f32], f: impl FnOnce(Rows<'_>)) {
    let (chunks, rest) = x.as_chunks::<CHUNK>();
    debug_assert!(rest.is_empty(), "inputs are whole chunks");
    let count = chunks.len();
    lend(x.len() / STEPS + 4 * count, |space| {
        let (words, space) = space.split_at_mut(x.len() / STEPS);
        let (scales, space) = space.split_at_mut(count);
        let (sums, starts) = space.split_at_mut(count);
        let words: &mut [i32] = cast_slice_mut(words);
        let starts: &mut [[i32; 2]] = cast_slice_mut::<f32, i32>(&mut starts[..2 * count])
            .as_chunks_mut()
            .0;
        // A row, or what is left of it.
        let wide = (inputs / CHUNK).max(1);
        let parts = (chunks.par_chunks(wide))
            .zip(words.par_chunks_mut(wide * FOURS))
            .zip(scales.par_chunks_mut(wide))
            .zip(sums.par_chunks_mut(wide))
            .zip(starts.par_chunks_mut(wide));
        let round = |((((chunks, words), scales), sums), starts): (
            (((&[[f32; CHUNK]], &mut [i32]), &mut [f32]), &mut [f32]),
            &mut [[i32; 2]],
        )| {
            plain(level, || {
                let places = scales.iter_mut().zip(sums).zip(starts);
                let words = words.chunks_mut(FOURS);
                for ((x, words), ((scale, sum), start)) in chunks.iter().zip(words).zip(places) {
                    [*scale, *sum] = rounded(x, i32::from(zero), words, start);
                }
            });
        };
        match count < 64 * wide.min(64) {
            true => {
                let words = words.chunks_mut(wide * FOURS);
                let parts = chunks.chunks(wide).zip(words);
                let parts = parts
                    .zip(scales.chunks_mut(wide))
                    .zip(sums.chunks_mut(wide));
                parts.zip(starts.chunks_mut(wide)).for_each(round);
            }
            false => parts.for_each(round),
        }
        f(Rows {
            words,
            scales,
            sums,
            starts,
        });
    });
}

/// Codes as the bytes of words, a vector for columns i and one for 16 + i.
trait Integers: Codes {
    /// Of four steps of a panel, by number.
    fn codes(simd: Vnni, panel: &[Words], four: usize) -> [u32x16; 2];
}

impl Integers for Nibbles {
    #[inline(always)]
    fn codes(simd: Vnni, panel: &[Words], four: usize) -> [u32x16; 2] {
        let v4 = simd.v4();
        let words: u32x16 = cast(panel[four]);
        let mask = v4.splat_u32x16(0x0f0f_0f0f);
        let high = v4.shr_const_u32x16::<4>(words);
        [v4.and_u32x16(words, mask), v4.and_u32x16(high, mask)]
    }
}

impl Integers for Bytes {
    #[inline(always)]
    fn codes(_: Vnni, panel: &[Words], four: usize) -> [u32x16; 2] {
        [cast(panel[2 * four]), cast(panel[2 * four + 1])]
    }
}

/// A piece of a row: words, then scales, sums and starts of its chunks.
type Row<'a> = (&'a [i32], &'a [f32], &'a [f32], &'a [[i32; 2]]);

/// `$rows` rows by `$panels` panels of a piece: an accumulator pair for each, by a constant index.
macro_rules! walks {
    ($($name:ident $rows:literal $panels:literal $sums:literal [$($q:literal)*] [$(($i:literal $r:literal $p:literal))*])*) => {
        $(
            #[inline(always)]
            fn $name<C: Integers, const HAS_MIN: bool, const HAS_HALVES: bool>(
                simd: Vnni,
                rows: [Row<'_>; $rows],
                panels: [&[Words]; $panels],
                scales: [&[Scales]; $panels],
                totals: [[f32x16; 2]; $sums],
            ) -> [[f32x16; 2]; $sums] {
                let v4 = simd.v4();
                let mut totals = totals;
                let chunks = rows[0].1.len();
                let halves = if HAS_HALVES { 2 } else { 1 };
                let rows = rows.map(|(words, scale, sums, starts)| (&words[..chunks * FOURS], &scale[..chunks], &sums[..chunks], &starts[..chunks]));
                let panels = panels.map(|panel| &panel[..chunks * C::LINES]);
                let scales = scales.map(|scales| &scales[..chunks]);
                for chunk in 0..chunks {
                    for half in 0..halves {
                        let mut sums = [$({
                            let [first, second] = rows[$r].3[chunk];
                            let start = match HAS_HALVES {
                                true if half == 0 => first,
                                true => second,
                                false => first + second,
                            };
                            let _ = $i;
                            [v4.splat_i32x16(start); 2]
                        },)*];
                        for four in 0..FOURS / halves {
                            let four = chunk * FOURS + half * (FOURS / 2) + four;
                            let codes = [$(C::codes(simd, panels[$q], four),)*];
                            $(
                                let x = rows[$r].0[four];
                                sums[$i][0] = simd.dot(sums[$i][0], codes[$p][0], x);
                                sums[$i][1] = simd.dot(sums[$i][1], codes[$p][1], x);
                            )*
                        }
                        $(
                            let x = v4.splat_f32x16(rows[$r].1[chunk]);
                            let at = half * PANEL;
                            let low = v4.mul_f32x16(load(v4, &scales[$p][chunk], at), x);
                            let high = v4.mul_f32x16(load(v4, &scales[$p][chunk], at + 16), x);
                            let sum = v4.convert_i32x16_to_f32x16(sums[$i][0]);
                            totals[$i][0] = v4.mul_add_f32x16(sum, low, totals[$i][0]);
                            let sum = v4.convert_i32x16_to_f32x16(sums[$i][1]);
                            totals[$i][1] = v4.mul_add_f32x16(sum, high, totals[$i][1]);
                        )*
                    }
                    if HAS_MIN {
                        $(
                            let x = v4.splat_f32x16(rows[$r].2[chunk]);
                            let shift = load(v4, &scales[$p][chunk], 2 * PANEL);
                            totals[$i][0] = v4.mul_add_f32x16(x, shift, totals[$i][0]);
                            let shift = load(v4, &scales[$p][chunk], 2 * PANEL + 16);
                            totals[$i][1] = v4.mul_add_f32x16(x, shift, totals[$i][1]);
                        )*
                    }
                }
                totals
            }
        )*
    };
}

walks! {
    walk_1_4 1 4 4 [0 1 2 3] [(0 0 0) (1 0 1) (2 0 2) (3 0 3)]
    walk_1_1 1 1 1 [0] [(0 0 0)]
    walk_2_2 2 2 4 [0 1] [(0 0 0) (1 1 0) (2 0 1) (3 1 1)]
    walk_2_1 2 1 2 [0] [(0 0 0) (1 1 0)]
    walk_3_1 3 1 3 [0] [(0 0 0) (1 1 0) (2 2 0)]
    walk_4_1 4 1 4 [0] [(0 0 0) (1 1 0) (2 2 0) (3 3 0)]
    walk_5_1 5 1 5 [0] [(0 0 0) (1 1 0) (2 2 0) (3 3 0) (4 4 0)]
    walk_6_1 6 1 6 [0] [(0 0 0) (1 1 0) (2 2 0) (3 3 0) (4 4 0) (5 5 0)]
}

/// A strip of columns of all rows.
struct Job<'a, 'o, 's> {
    rows: Rows<'a>,
    blocks: &'a Blocks,
    inputs: usize,
    outputs: usize,
    first_panel: usize,
    out: &'s mut [&'o mut [f32]],
    ending: Ending<'a>,
    /// Room for the scales of a piece of [`TOGETHER`] panels.
    scales: &'s mut [Scales],
}

impl Kernel for Job<'_, '_, '_> {
    type Output = ();

    #[inline(always)]
    fn run(mut self, simd: Vnni) {
        let kind = self.blocks.kind;
        match (kind.has_nibbles(), kind.scaling()) {
            (true, Scaling::Scale | Scaling::Halves) => self.strip::<Nibbles, false, false>(simd),
            (true, _) => self.strip::<Nibbles, true, false>(simd),
            (false, Scaling::Scale) => self.strip::<Bytes, false, false>(simd),
            (false, Scaling::Halves) => self.strip::<Bytes, false, true>(simd),
            (false, _) => self.strip::<Bytes, true, false>(simd),
        }
        for (row, out) in self.out.iter_mut().enumerate() {
            let column = self.first_panel * PANEL;
            self.ending.apply(simd.v4(), out, row, column, self.outputs);
        }
    }
}

impl Job<'_, '_, '_> {
    #[inline(always)]
    fn strip<C: Integers, const HAS_MIN: bool, const HAS_HALVES: bool>(&mut self, simd: Vnni) {
        let wide = self.out.first().map_or(0, |row| row.len());
        let count = wide.div_ceil(PANEL);
        let most = match self.out.len() {
            1 => TOGETHER,
            2 => 2,
            _ => 1,
        };
        let mut panel = 0;
        while panel < count {
            let together = if count - panel >= most { most } else { 1 };
            for k in (0..self.inputs).step_by(PIECE) {
                self.piece::<C, HAS_MIN, HAS_HALVES>(simd, panel, together, k);
            }
            panel += together;
        }
    }

    /// Writes what the piece from input `k` on of some panels gives, or adds it.
    #[inline(always)]
    fn piece<C: Integers, const HAS_MIN: bool, const HAS_HALVES: bool>(
        &mut self,
        simd: Vnni,
        panel: usize,
        together: usize,
        k: usize,
    ) {
        let Job {
            rows,
            blocks,
            inputs,
            first_panel,
            ref mut out,
            ref mut scales,
            ..
        } = *self;
        let chunks = PIECE.min(inputs - k) / CHUNK;
        let piece = |p: usize| blocks.piece(first_panel + panel + p, k);
        for p in 0..together {
            let lines = piece(p).scales;
            for chunk in 0..chunks {
                scales_of_chunk(simd, blocks, lines, chunk, &mut scales[p * CHUNKS + chunk]);
            }
        }
        let scales = &**scales;
        let row = |r: usize| -> Row<'_> {
            let at = (r * inputs + k) / CHUNK;
            (
                &rows.words[at * FOURS..][..chunks * FOURS],
                &rows.scales[at..][..chunks],
                &rows.sums[at..][..chunks],
                &rows.starts[at..][..chunks],
            )
        };
        for (r, n) in even(out.len(), MOST) {
            macro_rules! walk {
                ($name:ident $rows:literal $panels:literal $sums:literal) => {{
                    let mut totals = [[simd.v4().splat_f32x16(0.0); 2]; $sums];
                    if k > 0 {
                        for (i, total) in totals.iter_mut().enumerate() {
                            let from = &out[r + i % $rows][(panel + i / $rows) * PANEL..];
                            *total = two(simd, from);
                        }
                    }
                    let totals = $name::<C, HAS_MIN, HAS_HALVES>(
                        simd,
                        std::array::from_fn::<_, $rows, _>(|i| row(r + i)),
                        std::array::from_fn::<_, $panels, _>(|i| piece(i).codes),
                        std::array::from_fn::<_, $panels, _>(|i| &scales[i * CHUNKS..][..chunks]),
                        totals,
                    );
                    for (i, total) in totals.into_iter().enumerate() {
                        let to = &mut out[r + i % $rows][(panel + i / $rows) * PANEL..];
                        put_two(simd, to, total);
                    }
                }};
            }
            match (n, together) {
                (1, 4) => walk!(walk_1_4 1 4 4),
                (1, _) => walk!(walk_1_1 1 1 1),
                (2, 2) => walk!(walk_2_2 2 2 4),
                (2, _) => walk!(walk_2_1 2 1 2),
                (3, _) => walk!(walk_3_1 3 1 3),
                (4, _) => walk!(walk_4_1 4 1 4),
                (5, _) => walk!(walk_5_1 5 1 5),
                _ => walk!(walk_6_1 6 1 6),
            }
        }
    }
}

/// The floats of a panel, as far as a row goes.
#[inline(always)]
fn two(simd: Vnni, row: &[f32]) -> [f32x16; 2] {
    if row.len() >= PANEL {
        return [load(simd.v4(), row, 0), load(simd.v4(), row, 16)];
    }
    let mut floats = [0.0; PANEL];
    floats[..row.len()].copy_from_slice(row);
    [load(simd.v4(), &floats, 0), load(simd.v4(), &floats, 16)]
}

/// Writes the floats of a panel, as far as a row goes.
#[inline(always)]
fn put_two(simd: Vnni, row: &mut [f32], [low, high]: [f32x16; 2]) {
    let mut floats = [0.0; PANEL];
    let to = match row.len() >= PANEL {
        true => &mut *row,
        false => &mut floats[..],
    };
    store(simd.v4(), to, 0, low);
    store(simd.v4(), to, 16, high);
    if row.len() < PANEL {
        let len = row.len();
        row.copy_from_slice(&floats[..len]);
    }
}

/// The scales of a chunk, as [`scales_of`] gives them; a scale for the chunk stands in its first half alone.
#[inline(always)]
fn scales_of_chunk(simd: Vnni, blocks: &Blocks, lines: &[Words], chunk: usize, out: &mut Scales) {
    let v4 = simd.v4();
    if blocks.kind.scaling() != Scaling::Scale {
        scales_of(v4, blocks.kind, lines, chunk, 1.0, out);
        return;
    }
    let words: u32x16 = cast(lines[chunk]);
    let high = v4.shr_const_u32x16::<16>(words);
    let low = v4.convert_u32x16_to_u16x16(words);
    let high = v4.convert_u32x16_to_u16x16(high);
    store(v4, out, 0, simd.floats_of_halves(low));
    store(v4, out, 16, simd.floats_of_halves(high));
}

/// `x * weight` for rows of any number; `blocks` are those of the weight.
pub(super) fn product(
    simd: Vnni,
    level: Level,
    x: &[f32],
    (weight, blocks): (&PackedMatrix, &Blocks),
    ending: Ending<'_>,
    out: &mut [f32],
) {
    let (inputs, outputs) = (weight.inputs(), weight.outputs());
    if out.is_empty() {
        return;
    }
    let count = out.len() / outputs;
    let panels = outputs.div_ceil(PANEL);
    let tasks = (count * inputs * outputs / TASK).clamp(1, 64);
    let mut strip = panels.div_ceil(tasks);
    if count == 1 {
        strip = strip.next_multiple_of(TOGETHER);
    }
    let strip = strip * PANEL;
    lend_rows(level, blocks.kind.zero(), inputs, x, |rows| {
        let mut strips: Vec<Vec<&mut [f32]>> = Vec::new();
        strips.resize_with(outputs.div_ceil(strip), || Vec::with_capacity(count));
        for row in out.chunks_mut(outputs) {
            for (strip, part) in strips.iter_mut().zip(row.chunks_mut(strip)) {
                strip.push(part);
            }
        }
        let run = |(at, mut out): (usize, Vec<&mut [f32]>)| {
            if inputs == 0 {
                out.iter_mut().for_each(|row| row.fill(0.0));
            }
            lend(TOGETHER * CHUNKS * 3 * PANEL, |space| {
                simd.run(Job {
                    rows,
                    blocks,
                    inputs,
                    outputs,
                    first_panel: at * strip / PANEL,
                    out: &mut out,
                    ending,
                    scales: space.as_chunks_mut().0,
                });
            });
        };
        match strips.len() {
            1 => strips.into_iter().enumerate().for_each(run),
            _ => strips.into_par_iter().enumerate().for_each(run),
        }
    });
}
