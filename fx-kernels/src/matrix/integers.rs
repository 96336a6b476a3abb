//! Rows times weights in blocks, by dot products of bytes: each chunk of a row is rounded to bytes with a scale of its own, sums
//! of a group are exact integers, and these are added as floats, group by group.
//!
//! Invariant: a row has the same bits whatever rows are beside it.

use std::marker::PhantomData;

use fx_simd::{Kernel, Vnni, prefetch};
use half::f16;
use pulp::bytemuck::{cast, cast_slice_mut};
use pulp::{f32x16, u32x16};
use rayon::prelude::*;

use super::block_kind::{CHUNK, Scaling};
use super::blocks::{
    Blocks, Bytes, CHUNKS, Codes, Nibbles, PIECE, Piece, SCALES, STEPS, Scales, TOGETHER, scales_of,
};
use super::finish::Ending;
use super::gemv::FEW;
use super::packed::PackedMatrix;
use super::strips::strip;
use super::tile::{PANEL, even};
use super::words::Words;
use crate::scratch::lend;
use crate::vector::{load, store};

/// The most rows that are summed at once: two vectors of integers and two of floats for each.
const MOST: usize = 6;

/// The words of a chunk of a row.
const FOURS: usize = CHUNK / STEPS;

/// The bytes of a band of rows: they stay in the second level of the cache while panels go by.
const BAND: usize = 384 << 10;

/// Fewer chunks are rounded on the calling thread.
const SERIAL: usize = 4096;

/// The multiply-adds of a task of many rows.
const TASK: usize = 1 << 20;

/// The bytes of weights of a task of few rows: about 10 us from memory.
const FEW_TASK: usize = 128 << 10;

/// Chunks of rows in bytes: all of them, or a piece of a row.
#[derive(Clone, Copy)]
struct Rounded<'a> {
    /// Four bytes each.
    words: &'a [[i32; FOURS]],
    /// What the bytes are times.
    scales: &'a [f32],
    /// The sums of chunks as floats.
    sums: &'a [f32],
    /// What the integer sums of the halves of chunks start from, so that codes count from zero.
    starts: &'a [[i32; 2]],
}

impl Rounded<'_> {
    /// Some of the chunks.
    #[inline(always)]
    fn part(self, at: usize, chunks: usize) -> Self {
        Rounded {
            words: &self.words[at..][..chunks],
            scales: &self.scales[at..][..chunks],
            sums: &self.sums[at..][..chunks],
            starts: &self.starts[at..][..chunks],
        }
    }
}

/// Rounds a chunk to bytes, as llama.cpp does: the scale is kept in 16 bits, and halves go away from zero. One that is not
/// finite has a scale that is not finite, or is no number.
#[inline(always)]
fn rounded(
    x: &[f32; CHUNK],
    zero: i32,
    words: &mut [i32; FOURS],
    start: &mut [i32; 2],
) -> [f32; 2] {
    let mut largest = 0.0f32;
    let mut is_number = true;
    for x in x {
        largest = largest.max(x.abs());
        is_number &= !x.is_nan();
    }
    let scale = if is_number { largest / 127.0 } else { f32::NAN };
    let inverse = if scale != 0.0 { 1.0 / scale } else { 0.0 };
    let scale = f16::from_f32(scale).to_f32();
    let mut bytes = [0i8; CHUNK];
    for (byte, x) in bytes.iter_mut().zip(x) {
        *byte = (x * inverse).round() as i8;
    }
    *words = cast(bytes);
    let mut sums = [0i32; 2];
    for (at, byte) in bytes.iter().enumerate() {
        sums[at / (CHUNK / 2)] += i32::from(*byte);
    }
    *start = [-zero * sums[0], -zero * sums[1]];
    [scale, scale * (sums[0] + sums[1]) as f32]
}

/// Rounds chunks to bytes.
struct Round<'a> {
    zero: i32,
    chunks: &'a [[f32; CHUNK]],
    words: &'a mut [[i32; FOURS]],
    scales: &'a mut [f32],
    sums: &'a mut [f32],
    starts: &'a mut [[i32; 2]],
}

impl Kernel<Vnni> for Round<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self, _: Vnni) {
        let places = self.scales.iter_mut().zip(self.sums).zip(self.starts);
        let chunks = self.chunks.iter().zip(self.words);
        for ((x, words), ((scale, sum), start)) in chunks.zip(places) {
            [*scale, *sum] = rounded(x, self.zero, words, start);
        }
    }
}

/// Lends rows in bytes.
fn lend_rows(simd: Vnni, zero: u8, x: &[f32], f: impl FnOnce(Rounded<'_>)) {
    let (chunks, rest) = x.as_chunks::<CHUNK>();
    debug_assert!(rest.is_empty(), "inputs are whole chunks");
    let count = chunks.len();
    lend(x.len() / STEPS + 4 * count, |space| {
        let (words, space) = space.split_at_mut(x.len() / STEPS);
        let (scales, space) = space.split_at_mut(count);
        let (sums, starts) = space.split_at_mut(count);
        let words: &mut [[i32; FOURS]] = cast_slice_mut::<f32, i32>(words).as_chunks_mut().0;
        let starts: &mut [[i32; 2]] = cast_slice_mut::<f32, i32>(&mut starts[..2 * count])
            .as_chunks_mut()
            .0;
        let zero = i32::from(zero);
        let round = |chunks, words, scales, sums, starts| {
            simd.run(Round {
                zero,
                chunks,
                words,
                scales,
                sums,
                starts,
            });
        };
        if count < SERIAL {
            round(chunks, &mut *words, &mut *scales, &mut *sums, &mut *starts);
        } else {
            let parts = (chunks.par_chunks(SERIAL / 4))
                .zip(words.par_chunks_mut(SERIAL / 4))
                .zip(scales.par_chunks_mut(SERIAL / 4))
                .zip(sums.par_chunks_mut(SERIAL / 4))
                .zip(starts.par_chunks_mut(SERIAL / 4));
            parts.for_each(|((((chunks, words), scales), sums), starts)| {
                round(chunks, words, scales, sums, starts);
            });
        }
        f(Rounded {
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

/// What the sums of a chunk are times, and what is added to them.
trait Scaled {
    /// Whether both halves of a chunk have scales of their own.
    const HAS_HALVES: bool = false;
    /// Whether something is added.
    const HAS_MIN: bool = false;
    /// Whether a scale is a number of the block, which is read from its line where it is needed.
    const IS_NUMBER: bool = false;
}

/// [`Scaling::Scale`].
struct Number;

/// [`Scaling::Halves`].
struct Halves;

/// Scales that something is added to.
struct WithMin;

impl Scaled for Number {
    const IS_NUMBER: bool = true;
}

impl Scaled for Halves {
    const HAS_HALVES: bool = true;
}

impl Scaled for WithMin {
    const HAS_MIN: bool = true;
}

/// Some rows by some panels of a piece. A kernel of its own has a frame of its own: its sums stay in registers.
struct Walk<'a, C, K, const ROWS: usize, const PANELS: usize, const SUMS: usize> {
    rows: [Rounded<'a>; ROWS],
    panels: [Piece<'a>; PANELS],
    /// Unless a scale [is a number](Scaled::IS_NUMBER).
    scales: [&'a [Scales]; PANELS],
    /// What comes next from memory of each panel, which is asked for meanwhile.
    next: [&'a [Words]; PANELS],
    totals: &'a mut [[f32x16; 2]; SUMS],
    kind: PhantomData<(C, K)>,
}

/// A walk of rows by panels: an accumulator pair for each, by a constant index.
macro_rules! walks {
    ($([$($r:literal)*] [$($q:literal)*] $rows:literal $panels:literal $sums:literal [$(($i:literal $of:literal $p:literal))*])*) => {
        $(
            impl<C: Integers, K: Scaled> Kernel<Vnni> for Walk<'_, C, K, $rows, $panels, $sums> {
                type Output = ();

                #[inline(always)]
                fn run(self, simd: Vnni) {
                    let v4 = simd.v4();
                    let chunks = self.rows[0].scales.len();
                    let halves = if K::HAS_HALVES { 2 } else { 1 };
                    let rows = [$(self.rows[$r].part(0, chunks),)*];
                    let panels = [$(&self.panels[$q].codes[..chunks * C::LINES],)*];
                    let numbers = [$(&self.panels[$q].scales[..chunks],)*];
                    let scales = [$(&self.scales[$q][..if K::IS_NUMBER { 0 } else { chunks }],)*];
                    let ahead = [$(self.next[$q].len().div_ceil(chunks),)*];
                    let mut totals = *self.totals;
                    for chunk in 0..chunks {
                        $(
                            let next = self.next[$q];
                            let start = (chunk * ahead[$q]).min(next.len());
                            let end = (start + ahead[$q]).min(next.len());
                            next[start..end].iter().for_each(prefetch);
                        )*
                        let words = [$(&rows[$r].words[chunk],)*];
                        let lines = [$(&panels[$q][chunk * C::LINES..][..C::LINES],)*];
                        for half in 0..halves {
                            let starts = [$({
                                let [first, second] = rows[$r].starts[chunk];
                                v4.splat_i32x16(match K::HAS_HALVES {
                                    true if half == 0 => first,
                                    true => second,
                                    false => first + second,
                                })
                            },)*];
                            let mut sums = [$({ let _ = $i; [starts[$of]; 2] },)*];
                            for four in 0..FOURS / halves {
                                let four = half * (FOURS / 2) + four;
                                let codes = [$(C::codes(simd, lines[$q], four),)*];
                                let x = [$(words[$r][four],)*];
                                $(
                                    sums[$i][0] = simd.dot(sums[$i][0], codes[$p][0], x[$of]);
                                    sums[$i][1] = simd.dot(sums[$i][1], codes[$p][1], x[$of]);
                                )*
                            }
                            let x = [$(v4.splat_f32x16(rows[$r].scales[chunk]),)*];
                            let at = half * PANEL;
                            let scale = [$(match K::IS_NUMBER {
                                true => floats(simd, &numbers[$q][chunk]),
                                false => two(simd, &scales[$q][chunk][at..]),
                            },)*];
                            $(
                                let sum = v4.convert_i32x16_to_f32x16(sums[$i][0]);
                                let scaled = v4.mul_f32x16(scale[$p][0], x[$of]);
                                totals[$i][0] = v4.mul_add_f32x16(sum, scaled, totals[$i][0]);
                                let sum = v4.convert_i32x16_to_f32x16(sums[$i][1]);
                                let scaled = v4.mul_f32x16(scale[$p][1], x[$of]);
                                totals[$i][1] = v4.mul_add_f32x16(sum, scaled, totals[$i][1]);
                            )*
                        }
                        if K::HAS_MIN {
                            $(
                                let x = v4.splat_f32x16(rows[$of].sums[chunk]);
                                let shift = load(v4, &scales[$p][chunk], 2 * PANEL);
                                totals[$i][0] = v4.mul_add_f32x16(x, shift, totals[$i][0]);
                                let shift = load(v4, &scales[$p][chunk], 2 * PANEL + 16);
                                totals[$i][1] = v4.mul_add_f32x16(x, shift, totals[$i][1]);
                            )*
                        }
                    }
                    *self.totals = totals;
                }
            }
        )*
    };
}

walks! {
    [0] [0 1 2 3] 1 4 4 [(0 0 0) (1 0 1) (2 0 2) (3 0 3)]
    [0] [0 1] 1 2 2 [(0 0 0) (1 0 1)]
    [0] [0] 1 1 1 [(0 0 0)]
    [0 1] [0 1] 2 2 4 [(0 0 0) (1 1 0) (2 0 1) (3 1 1)]
    [0 1] [0] 2 1 2 [(0 0 0) (1 1 0)]
    [0 1 2] [0] 3 1 3 [(0 0 0) (1 1 0) (2 2 0)]
    [0 1 2 3] [0] 4 1 4 [(0 0 0) (1 1 0) (2 2 0) (3 3 0)]
    [0 1 2 3 4] [0] 5 1 5 [(0 0 0) (1 1 0) (2 2 0) (3 3 0) (4 4 0)]
    [0 1 2 3 4 5] [0] 6 1 6 [(0 0 0) (1 1 0) (2 2 0) (3 3 0) (4 4 0) (5 5 0)]
}

/// A strip of columns of a band of rows.
struct Job<'a, 'o, 's> {
    rows: Rounded<'a>,
    blocks: &'a Blocks,
    inputs: usize,
    outputs: usize,
    first_row: usize,
    first_panel: usize,
    out: &'s mut [&'o mut [f32]],
    ending: Ending<'a>,
    /// Room for [`SCALES`] floats.
    scales: &'s mut [Scales],
}

impl Kernel<Vnni> for Job<'_, '_, '_> {
    type Output = ();

    #[inline(always)]
    fn run(mut self, simd: Vnni) {
        let kind = self.blocks.kind;
        match (kind.has_nibbles(), kind.scaling()) {
            (true, Scaling::Scale) => self.strip::<Nibbles, Number>(simd),
            (true, Scaling::Halves) => self.strip::<Nibbles, Halves>(simd),
            (true, _) => self.strip::<Nibbles, WithMin>(simd),
            (false, Scaling::Scale) => self.strip::<Bytes, Number>(simd),
            (false, Scaling::Halves) => self.strip::<Bytes, Halves>(simd),
            (false, _) => self.strip::<Bytes, WithMin>(simd),
        }
        for (row, out) in self.out.iter_mut().enumerate() {
            let (row, column) = (self.first_row + row, self.first_panel * PANEL);
            self.ending.apply(simd.v4(), out, row, column, self.outputs);
        }
    }
}

impl Job<'_, '_, '_> {
    #[inline(always)]
    fn strip<C: Integers, K: Scaled>(&mut self, simd: Vnni) {
        let wide = self.out.first().map_or(0, |row| row.len());
        let count = wide.div_ceil(PANEL);
        let most = match self.out.len() {
            1 => TOGETHER,
            2 => 2,
            _ => 1,
        };
        let mut panel = 0;
        while panel < count {
            let together = match count - panel {
                left if left >= most => most,
                2.. if most == TOGETHER => 2,
                _ => 1,
            };
            for k in (0..self.inputs).step_by(PIECE) {
                self.piece::<C, K>(simd, panel, together, k);
            }
            panel += together;
        }
    }

    /// Writes what the piece from input `k` on of some panels gives, or adds it.
    #[inline(always)]
    fn piece<C: Integers, K: Scaled>(
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
            first_row,
            first_panel,
            ref mut out,
            ref mut scales,
            ..
        } = *self;
        let chunks = PIECE.min(inputs - k) / CHUNK;
        let piece = |p: usize| blocks.piece(first_panel + panel + p, k);
        if !K::IS_NUMBER {
            for p in 0..together {
                let lines = piece(p).scales;
                for chunk in 0..chunks {
                    let out = &mut scales[p * CHUNKS + chunk];
                    scales_of(simd.v4(), blocks.kind, lines, chunk, 1.0, out);
                }
            }
        }
        let scales = &**scales;
        let wide = out.first().map_or(0, |row| row.len());
        let next = |p: usize| match panel + together + p {
            _ if k + PIECE < inputs => blocks.lines_of(first_panel + panel + p, k + PIECE).0,
            later if later * PANEL < wide => blocks.lines_of(first_panel + later, 0).0,
            _ => &[],
        };
        let row = |r: usize| rows.part(((first_row + r) * inputs + k) / CHUNK, chunks);
        for (r, n) in even(out.len(), MOST) {
            macro_rules! walk {
                ($rows:literal $panels:literal $sums:literal) => {{
                    let count: usize = $rows;
                    let mut totals = [[simd.v4().splat_f32x16(0.0); 2]; $sums];
                    if k > 0 {
                        for (i, total) in totals.iter_mut().enumerate() {
                            let from = &out[r + i % count][(panel + i / count) * PANEL..];
                            *total = two(simd, from);
                        }
                    }
                    simd.run(Walk::<C, K, $rows, $panels, $sums> {
                        rows: std::array::from_fn(|i| row(r + i)),
                        panels: std::array::from_fn(piece),
                        scales: std::array::from_fn(|i| &scales[i * CHUNKS..][..chunks]),
                        // The first rows ask for all.
                        next: std::array::from_fn(|i| if r == 0 { next(i) } else { &[] }),
                        totals: &mut totals,
                        kind: PhantomData,
                    });
                    for (i, total) in totals.into_iter().enumerate() {
                        let to = &mut out[r + i % count][(panel + i / count) * PANEL..];
                        put_two(simd, to, total);
                    }
                }};
            }
            match (n, together) {
                (1, 4) => walk!(1 4 4),
                (1, 2) => walk!(1 2 2),
                (1, _) => walk!(1 1 1),
                (2, 2) => walk!(2 2 4),
                (2, _) => walk!(2 1 2),
                (3, _) => walk!(3 1 3),
                (4, _) => walk!(4 1 4),
                (5, _) => walk!(5 1 5),
                _ => walk!(6 1 6),
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

/// A line of floats of 16 bits.
#[inline(always)]
fn floats(simd: Vnni, line: &Words) -> [f32x16; 2] {
    let v4 = simd.v4();
    let words: u32x16 = cast(*line);
    let high = v4.shr_const_u32x16::<16>(words);
    [
        simd.floats_of_halves(v4.convert_u32x16_to_u16x16(words)),
        simd.floats_of_halves(v4.convert_u32x16_to_u16x16(high)),
    ]
}

/// `x * weight` for rows of any number; `blocks` are those of the weight.
pub(super) fn product(
    simd: Vnni,
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
    let band = (BAND / inputs.max(1)).clamp(MOST, count.max(MOST));
    let bands = count.div_ceil(band);
    let strip = PANEL
        * match count <= FEW {
            true => strip(panels, weight.bytes() / FEW_TASK),
            false => {
                let tasks = (count * inputs * outputs / TASK).clamp(1, 64);
                panels.div_ceil(tasks.div_ceil(bands))
            }
        };
    lend_rows(simd, blocks.kind.zero(), x, |rows| {
        let strips = outputs.div_ceil(strip);
        let mut parts: Vec<Vec<&mut [f32]>> = Vec::new();
        parts.resize_with(bands * strips, || Vec::with_capacity(band.min(count)));
        for (r, row) in out.chunks_mut(outputs).enumerate() {
            let parts = &mut parts[r / band * strips..];
            for (part, row) in parts.iter_mut().zip(row.chunks_mut(strip)) {
                part.push(row);
            }
        }
        let run = |(at, mut out): (usize, Vec<&mut [f32]>)| {
            if inputs == 0 {
                out.iter_mut().for_each(|row| row.fill(0.0));
            }
            lend(SCALES, |space| {
                simd.run(Job {
                    rows,
                    blocks,
                    inputs,
                    outputs,
                    first_row: at / strips * band,
                    first_panel: at % strips * strip / PANEL,
                    out: &mut out,
                    ending,
                    scales: space.as_chunks_mut().0,
                });
            });
        };
        match parts.len() {
            1 => parts.into_iter().enumerate().for_each(run),
            _ => parts.into_par_iter().enumerate().for_each(run),
        }
    });
}
