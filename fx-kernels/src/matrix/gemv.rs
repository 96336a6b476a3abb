//! A linear layer of a few rows: each weight is read from memory once, several panels at a time.

use pulp::Simd;
use rayon::prelude::*;

use super::blocks::SCALES;
use super::few_blocks::{self, Strip};
use super::finish::Ending;
use super::packed::{PackedMatrix, Store};
use super::strips::strip;
use super::tile::{Columns, DEPTH, PANEL, even, put_some};
use super::words::{PairWords, Words, pair_words, widen_bf16, widen_f16, widen_i8, words};
use crate::Level;
use crate::scratch::lend;
use crate::terms::{Floats, Kernel, MulAdd, Terms};
use crate::vector::load;

/// The most rows that are done so.
pub(crate) const FEW: usize = 8;

/// The bytes of weights of a task: about 25 us from memory.
const TASK: usize = 256 << 10;

/// Lines of a panel, and how to read them.
trait Lines: Copy {
    /// What lies together in memory.
    type Item;
    /// The steps of K in an item.
    const STEPS: usize;

    /// The two vectors of a part of a panel for each step of K inside of an item.
    fn pair<S: Simd>(simd: S, item: &Self::Item, at: usize) -> [[S::f32s; 2]; 2];
    /// The first columns of both vectors of a part of a panel.
    fn columns<S: Simd>(part: usize) -> [usize; 2];
}

#[derive(Clone, Copy)]
struct F32;
#[derive(Clone, Copy)]
struct Bf16;
#[derive(Clone, Copy)]
struct F16;
#[derive(Clone, Copy)]
struct I8;

impl Lines for F32 {
    type Item = Columns;
    const STEPS: usize = 1;

    #[inline(always)]
    fn pair<S: Simd>(simd: S, item: &Columns, part: usize) -> [[S::f32s; 2]; 2] {
        let [a, b] = Self::columns::<S>(part);
        let pair = [load(simd, item, a), load(simd, item, b)];
        [pair; 2]
    }

    #[inline(always)]
    fn columns<S: Simd>(part: usize) -> [usize; 2] {
        [2 * part * S::F32_LANES, (2 * part + 1) * S::F32_LANES]
    }
}

/// Lines of two steps each, with a word for each column.
macro_rules! halves {
    ($($type:ty, $widen:path;)*) => {
        $(impl Lines for $type {
            type Item = PairWords;
            const STEPS: usize = 2;

            #[inline(always)]
            fn pair<S: Simd>(simd: S, item: &PairWords, part: usize) -> [[S::f32s; 2]; 2] {
                let [a, b] = Self::columns::<S>(part);
                let ([a, later_a], [b, later_b]) = ($widen(simd, item, a), $widen(simd, item, b));
                [[a, b], [later_a, later_b]]
            }

            #[inline(always)]
            fn columns<S: Simd>(part: usize) -> [usize; 2] {
                F32::columns::<S>(part)
            }
        })*
    };
}

halves! {
    Bf16, widen_bf16;
    F16, widen_f16;
}

impl Lines for I8 {
    type Item = Words;
    const STEPS: usize = 2;

    #[inline(always)]
    fn pair<S: Simd>(simd: S, item: &Words, part: usize) -> [[S::f32s; 2]; 2] {
        widen_i8(simd, item, part * S::F32_LANES)
    }

    #[inline(always)]
    fn columns<S: Simd>(part: usize) -> [usize; 2] {
        [part * S::F32_LANES, 16 + part * S::F32_LANES]
    }
}

/// `$rows` rows by `$panels` panels: an accumulator pair for each, by a constant index.
macro_rules! walks {
    ($($name:ident $rows:literal $panels:literal $sums:literal [$($q:literal)*] [$(($i:literal $r:literal $p:literal))*])*) => {
        $(
            #[inline(always)]
            fn $name<S: Simd, L: Lines, T: MulAdd<S>>(
                simd: S,
                terms: T,
                x: [&[f32]; $rows],
                panels: [&[L::Item]; $panels],
                part: usize,
            ) -> [[S::f32s; 2]; $sums] {
                let zero = simd.splat_f32s(0.0);
                let mut low = [$({ let _ = $i; zero },)*];
                let mut high = low;
                let depth = x[0].len();
                let whole = depth / L::STEPS;
                let x = x.map(|x| &x[..depth]);
                let panels = panels.map(|panel| &panel[..depth.div_ceil(L::STEPS)]);
                for at in 0..whole {
                    let items = [$(L::pair(simd, &panels[$q][at], part),)*];
                    for step in 0..L::STEPS {
                        let k = at * L::STEPS + step;
                        $(
                            let value = simd.splat_f32s(x[$r][k]);
                            low[$i] = terms.mul_add(simd, value, items[$p][step][0], low[$i]);
                            high[$i] = terms.mul_add(simd, value, items[$p][step][1], high[$i]);
                        )*
                    }
                }
                if whole * L::STEPS < depth {
                    let items = [$(L::pair(simd, &panels[$q][whole], part),)*];
                    $(
                        let value = simd.splat_f32s(x[$r][depth - 1]);
                        low[$i] = terms.mul_add(simd, value, items[$p][0][0], low[$i]);
                        high[$i] = terms.mul_add(simd, value, items[$p][0][1], high[$i]);
                    )*
                }
                [$([low[$i], high[$i]],)*]
            }
        )*
    };
}

walks! {
    walk_1_4 1 4 4 [0 1 2 3] [(0 0 0) (1 0 1) (2 0 2) (3 0 3)]
    walk_1_1 1 1 1 [0] [(0 0 0)]
    walk_2_2 2 2 4 [0 1] [(0 0 0) (1 1 0) (2 0 1) (3 1 1)]
    walk_2_4 2 4 8 [0 1 2 3] [(0 0 0) (1 1 0) (2 0 1) (3 1 1) (4 0 2) (5 1 2) (6 0 3) (7 1 3)]
    walk_2_1 2 1 2 [0] [(0 0 0) (1 1 0)]
    walk_3_2 3 2 6 [0 1] [(0 0 0) (1 1 0) (2 2 0) (3 0 1) (4 1 1) (5 2 1)]
    walk_3_1 3 1 3 [0] [(0 0 0) (1 1 0) (2 2 0)]
    walk_4_1 4 1 4 [0] [(0 0 0) (1 1 0) (2 2 0) (3 3 0)]
    walk_5_1 5 1 5 [0] [(0 0 0) (1 1 0) (2 2 0) (3 3 0) (4 4 0)]
    walk_6_1 6 1 6 [0] [(0 0 0) (1 1 0) (2 2 0) (3 3 0) (4 4 0) (5 5 0)]
    walk_7_1 7 1 7 [0] [(0 0 0) (1 1 0) (2 2 0) (3 3 0) (4 4 0) (5 5 0) (6 6 0)]
    walk_8_1 8 1 8 [0] [(0 0 0) (1 1 0) (2 2 0) (3 3 0) (4 4 0) (5 5 0) (6 6 0) (7 7 0)]
}

/// A strip of columns of all rows.
struct Job<'a, 'o> {
    x: &'a [f32],
    /// The terms of a row.
    depth: usize,
    weight: &'a PackedMatrix,
    ending: Ending<'a>,
    first_panel: usize,
    out: Vec<&'o mut [f32]>,
    /// Of weights in blocks: what the sums of groups start from.
    starts: &'a [f32],
}

/// A job with room for what it keeps meanwhile.
struct Running<'a, 'o, 's> {
    job: Job<'a, 'o>,
    space: &'s mut [f32],
}

impl<T: Terms> Kernel<T> for Running<'_, '_, '_> {
    #[inline(always)]
    fn run<S: Simd>(self, simd: S, terms: T)
    where
        T: MulAdd<S>,
    {
        let Running { mut job, space } = self;
        // What other terms need is not compiled: `if const` is decided for each.
        if const { T::ARE_PAIRS } {
            if let Store::Bf16(lines) = &job.weight.store {
                job.strip::<S, F32, T>(simd, terms, lines.as_chunks().0);
            }
        } else {
            job.sums(simd, space);
        }
        let outputs = job.weight.outputs();
        for (row, out) in job.out.iter_mut().enumerate() {
            job.ending
                .apply(simd, out, row, job.first_panel * PANEL, outputs);
        }
    }
}

impl Job<'_, '_> {
    #[inline(always)]
    fn sums<S: Simd>(&mut self, simd: S, space: &mut [f32]) {
        match &self.weight.store {
            Store::F32(floats) => self.strip::<S, F32, _>(simd, Floats, floats.as_chunks().0),
            Store::Bf16(lines) => self.strip::<S, Bf16, _>(simd, Floats, pair_words(lines)),
            Store::F16(lines) => self.strip::<S, F16, _>(simd, Floats, pair_words(lines)),
            Store::I8 { lines, .. } => self.strip::<S, I8, _>(simd, Floats, words(lines)),
            Store::Blocks(blocks) => Strip {
                blocks,
                x: self.x,
                starts: self.starts,
                inputs: self.weight.inputs(),
                first_panel: self.first_panel,
                out: &mut self.out,
                space,
            }
            .run(simd),
        }
    }

    #[inline(always)]
    fn strip<S: Simd, L: Lines, T: MulAdd<S>>(&mut self, simd: S, terms: T, items: &[L::Item]) {
        let depth = self.depth;
        let pitch = depth.div_ceil(L::STEPS);
        let wide = self.out.first().map_or(0, |row| row.len());
        let count = wide.div_ceil(PANEL);
        let most = if S::REGISTER_COUNT >= 32 { FEW } else { 6 };
        let rows = self.out.len();
        let mut p = 0;
        while p < count {
            // Several panels come from memory faster than one.
            let together = match rows {
                1 => 4,
                2 if S::REGISTER_COUNT >= 32 && count - p >= 4 => 4,
                2 | 3 => 2,
                _ => 1,
            };
            let together = if count - p >= together { together } else { 1 };
            for (k, (r, n)) in (0..depth.max(1))
                .step_by(DEPTH)
                .flat_map(|k| even(rows, most).map(move |rows| (k, rows)))
            {
                let steps = DEPTH.min(depth - k);
                let panel = |p: usize| {
                    let panel = &items[(self.first_panel + p) * pitch..][..pitch];
                    &panel[k / L::STEPS..][..steps.div_ceil(L::STEPS)]
                };
                let x = |r: usize| &self.x[r * depth + k..][..steps];
                for part in 0..16 / S::F32_LANES {
                    let at = L::columns::<S>(part);
                    macro_rules! walk {
                        ($name:ident $rows:literal $panels:literal) => {
                            terms.framed(
                                simd,
                                #[inline(always)]
                                || {
                                    let sums = $name::<S, L, T>(
                                        simd,
                                        terms,
                                        std::array::from_fn::<_, $rows, _>(|i| x(r + i)),
                                        std::array::from_fn::<_, $panels, _>(|i| panel(p + i)),
                                        part,
                                    );
                                    let rows: usize = $rows;
                                    for (i, pair) in sums.into_iter().enumerate() {
                                        let out = &mut *self.out[r + i % rows];
                                        let start = (p + i / rows) * PANEL;
                                        for (at, sum) in at.into_iter().zip(pair) {
                                            put_some(simd, out, start + at, sum, k > 0);
                                        }
                                    }
                                },
                            )
                        };
                    }
                    match (n, together) {
                        (1, 4) => walk!(walk_1_4 1 4),
                        (1, _) => walk!(walk_1_1 1 1),
                        (2, 4) => walk!(walk_2_4 2 4),
                        (2, 2) => walk!(walk_2_2 2 2),
                        (2, _) => walk!(walk_2_1 2 1),
                        (3, 2) => walk!(walk_3_2 3 2),
                        (3, _) => walk!(walk_3_1 3 1),
                        (4, _) => walk!(walk_4_1 4 1),
                        (5, _) => walk!(walk_5_1 5 1),
                        (6, _) => walk!(walk_6_1 6 1),
                        (7, _) => walk!(walk_7_1 7 1),
                        _ => walk!(walk_8_1 8 1),
                    }
                }
            }
            p += together;
        }
    }
}

/// `x * weight` for at most [`FEW`] rows. Of terms that are pairs, each row of `x` is of pairs, and the weight of bf16.
pub(crate) fn few_rows<T: Terms>(
    terms: T,
    level: Level,
    (rows, x): (usize, &[f32]),
    weight: &PackedMatrix,
    ending: Ending<'_>,
    out: &mut [f32],
) {
    let outputs = weight.outputs();
    if rows == 0 || outputs == 0 {
        return;
    }
    let Store::Blocks(blocks) = &weight.store else {
        return strips(terms, level, (rows, x), weight, ending, out, &[]);
    };
    lend(few_blocks::starts_len(blocks, x), |starts| {
        few_blocks::starts(blocks, x, starts);
        strips(terms, level, (rows, x), weight, ending, out, starts);
    });
}

/// Cuts the product into strips of columns.
fn strips<T: Terms>(
    terms: T,
    level: Level,
    (rows, x): (usize, &[f32]),
    weight: &PackedMatrix,
    ending: Ending<'_>,
    out: &mut [f32],
    starts: &[f32],
) {
    let outputs = weight.outputs();
    let panels = outputs.div_ceil(PANEL);
    let strip = strip(panels, weight.bytes() / TASK) * PANEL;
    let mut jobs: Vec<Job<'_, '_>> = (0..outputs)
        .step_by(strip)
        .map(|column| Job {
            x,
            depth: x.len() / rows,
            weight,
            ending,
            first_panel: column / PANEL,
            out: Vec::new(),
            starts,
        })
        .collect();
    for row in out.chunks_mut(outputs) {
        for (job, part) in jobs.iter_mut().zip(row.chunks_mut(strip)) {
            job.out.push(part);
        }
    }
    let space = match weight.store {
        Store::Blocks(_) => SCALES,
        _ => 0,
    };
    let run = |job| lend(space, |space| terms.run(level, Running { job, space }));
    match jobs.len() < 2 {
        true => jobs.into_iter().for_each(run),
        false => jobs.into_par_iter().for_each(run),
    }
}
