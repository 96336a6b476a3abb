//! A product of two matrices, cut into tasks that own rectangles of the result. How it is cut
//! depends on sizes alone, and each float of the result is summed in one order.

use pulp::Simd;
use rayon::prelude::*;

use super::finish::Ending;
use super::panels::{Packed, Panels, Strided};
use super::tile::{Columns, DEPTH, PANEL, Row, even, most_rows, multiply_at};
use crate::Level;
use crate::scratch::{lend, lend_parts};
use crate::terms::{Kernel, MulAdd, Terms};

/// The floats of a [`Row`].
pub(crate) const ROW: usize = size_of::<Row>() / 4;

/// The most rows that are packed at once.
const ROWS: usize = 448;

/// The most steps of K whose rows are packed at once: what is packed stays in memory that threads keep.
const DEEP: usize = 10 * DEPTH;

/// The rows that one thread packs at once.
const PACKED: usize = 64;

/// The most floats of the left operand that a task goes through, where that leaves it 56 rows: a part of the right operand
/// is packed for all rows of a task.
const TASK_FLOATS: usize = 1 << 20;

/// The most rows of a task.
const MOST: usize = 224;

/// The most panels that are packed at once, where their rows go on from one to the next and the operand is not large.
const GROUP: usize = 4;

/// The floats of a large right operand: 16 MiB.
const LARGE: usize = 4 << 20;

/// The most floats of a right operand that is packed for all tasks.
const SHARED: usize = 1 << 20;

/// Products of fewer multiply-adds run on the calling thread: about 50 us.
pub(crate) const SERIAL: usize = 4 << 20;

/// A product `[rows, depth] * [depth, columns]` of terms.
#[derive(Clone, Copy)]
pub(crate) struct Product<'a, B, T> {
    pub terms: T,
    pub rows: usize,
    pub columns: usize,
    pub depth: usize,
    pub left: Strided<'a>,
    pub right: &'a B,
    pub ending: Ending<'a>,
}

/// A rectangle of the result: rows of one strip of columns.
struct Task<'t, 'o> {
    /// The first row in the packed rows, and in the result.
    packed: usize,
    row: usize,
    column: usize,
    out: &'t mut [&'o mut [f32]],
}

impl<B: Panels, T: Terms> Product<'_, B, T> {
    /// Computes the result, `[rows, columns]`.
    pub(crate) fn run(&self, level: Level, out: &mut [f32]) {
        if self.columns == 0 || self.rows == 0 {
            return;
        }
        let panels = self.columns.div_ceil(PANEL);
        let floats = panels * PANEL * self.depth;
        // Else each band of rows would pack the right operand for itself.
        if !self.right.is_ready() && self.rows > MOST && (1..=SHARED).contains(&floats) {
            lend(floats, |floats| {
                let floats: &mut [Columns] = floats.as_chunks_mut().0;
                let pack = |(panel, floats): (usize, &mut [Columns])| {
                    let right = self.right;
                    self.terms.run(
                        level,
                        Pack {
                            right,
                            panel,
                            floats,
                        },
                    );
                };
                let chunks = floats.par_chunks_mut(self.depth).enumerate();
                match panels * self.depth < 4 * ROWS {
                    true => floats.chunks_mut(self.depth).enumerate().for_each(pack),
                    false => chunks.for_each(pack),
                }
                let right = &Packed {
                    floats,
                    depth: self.depth,
                };
                self.with(right).run(level, out);
            });
            return;
        }
        for (first, rows) in even(self.rows, ROWS) {
            let out = &mut out[first * self.columns..][..rows * self.columns];
            for start in (0..self.depth.max(1)).step_by(DEEP) {
                let depth = (self.depth - start).min(DEEP);
                self.part(level, (first, rows), (start, depth), out);
            }
        }
    }

    /// The same product with another form of the right operand.
    fn with<'b, C>(&'b self, right: &'b C) -> Product<'b, C, T> {
        let Product {
            terms,
            rows,
            columns,
            depth,
            left,
            ending,
            ..
        } = *self;
        Product {
            terms,
            rows,
            columns,
            depth,
            left,
            right,
            ending,
        }
    }

    /// Computes some rows of the result, as far as some steps of K go, or adds that to what is there: packs the rows,
    /// then gives out rectangles.
    fn part(
        &self,
        level: Level,
        (first, rows): (usize, usize),
        (start, depth): (usize, usize),
        out: &mut [f32],
    ) {
        let blocks = depth.div_ceil(DEPTH).max(1);
        let work = rows * self.columns * depth;
        lend(blocks * rows * ROW, |packed| {
            let packed: &mut [Row] = packed.as_chunks_mut().0;
            let pack = |(i, out): (usize, &mut [Row])| {
                // A chunk is inside of one block: `rows` is cut again for each.
                let (block, row) = (
                    i / rows.div_ceil(PACKED),
                    i % rows.div_ceil(PACKED) * PACKED,
                );
                let k = block * DEPTH;
                crate::vector::plain(level, || {
                    self.left.rows(first + row, start + k, depth - k, out);
                });
            };
            let chunks = packed_chunks(packed, rows);
            match work < SERIAL {
                true => chunks.into_iter().enumerate().for_each(pack),
                false => chunks.into_par_iter().enumerate().for_each(pack),
            }
            let packed: &[Row] = packed;
            // Rectangles, 32 or more where each has work for 50 us: bands of rows, in strips.
            let most = (TASK_FLOATS / depth.max(1)).clamp(56, MOST);
            let bands = even(rows, most);
            let panels = self.columns.div_ceil(PANEL);
            let wanted = (work / SERIAL).clamp(1, 32);
            let mut strip = (panels * bands.len()).div_ceil(wanted).clamp(1, panels);
            // Rows of the right operand are read in long pieces, as far as there is work for all threads: of a large one,
            // each row is in a page of memory of its own.
            let longest = match (self.right.has_long_rows(), self.columns * self.depth) {
                (false, _) => 1,
                (true, ..LARGE) => GROUP,
                (true, _) => 4 * GROUP,
            };
            strip = strip.max((panels / rayon::current_num_threads()).min(longest));
            let group = strip.min(longest);
            let strip = strip * PANEL;
            let run = |task: Task<'_, '_>| {
                lend(group * (DEPTH + MOST) * PANEL, |space| {
                    let space = space.as_chunks_mut().0;
                    let job = Job {
                        product: self,
                        start,
                        depth,
                        packed,
                        rows,
                        task,
                        group,
                        space,
                    };
                    self.terms.run(level, job);
                });
            };
            let strips = self.columns.div_ceil(strip);
            lend_parts(rows * strips, |parts| {
                let mut lines = out.chunks_mut(self.columns);
                let mut rest = parts;
                let mut tasks = Vec::with_capacity(bands.len() * strips);
                for (start, rows) in bands {
                    let (band, later) = rest.split_at_mut(rows * strips);
                    rest = later;
                    for (i, line) in lines.by_ref().take(rows).enumerate() {
                        for (s, part) in line.chunks_mut(strip).enumerate() {
                            band[s * rows + i] = part;
                        }
                    }
                    let strips = band.chunks_mut(rows).enumerate();
                    tasks.extend(strips.map(|(s, out)| Task {
                        packed: start,
                        row: first + start,
                        column: s * strip,
                        out,
                    }));
                }
                match work < SERIAL {
                    true => tasks.into_iter().for_each(run),
                    false => tasks.into_par_iter().for_each(run),
                }
            });
        });
    }
}

/// The packed rows, block by block, in chunks.
fn packed_chunks(packed: &mut [Row], rows: usize) -> Vec<&mut [Row]> {
    packed
        .chunks_mut(rows)
        .flat_map(|block| block.chunks_mut(PACKED))
        .collect()
}

/// A task with what it needs, to be run at a level.
struct Job<'a, 't, 'o, B, T> {
    product: &'a Product<'a, B, T>,
    /// The first step of K, and how many there are.
    start: usize,
    depth: usize,
    packed: &'a [Row],
    /// The rows of a block of `packed`.
    rows: usize,
    task: Task<'t, 'o>,
    /// How many panels are packed at once.
    group: usize,
    /// Room for a block of so many panels and their sums.
    space: &'a mut [Columns],
}

impl<B: Panels, T: Terms> Kernel<T> for Job<'_, '_, '_, B, T> {
    #[inline(always)]
    fn run<S: Simd>(self, simd: S, terms: T)
    where
        T: MulAdd<S>,
    {
        let Job {
            product,
            start,
            depth: steps,
            packed,
            rows,
            task,
            group,
            space,
        } = self;
        let wide = task.out.first().map_or(0, |row| row.len());
        let blocks = steps.div_ceil(DEPTH).max(1);
        let (space, sums) = space.split_at_mut(group * DEPTH);
        let rows_of = task.out.len();
        let step = match product.right.is_ready() {
            true => PANEL,
            false => group * PANEL,
        };
        for column in (0..wide).step_by(step) {
            let end = wide.min(column + step);
            let panels = (end - column).div_ceil(PANEL);
            let first_panel = (task.column + column) / PANEL;
            for block in 0..blocks {
                let depth = (steps - block * DEPTH).min(DEPTH);
                let k = start + block * DEPTH;
                let a = &packed[block * rows + task.packed..][..rows_of];
                if depth > 0 && !product.right.is_ready() {
                    let panels = first_panel..first_panel + panels;
                    product.right.blocks(simd, panels, k, depth, space);
                }
                for panel in 0..panels {
                    let b = match product.right.is_ready() {
                        true => product
                            .right
                            .block(simd, first_panel, k, &mut space[..depth]),
                        false => &space[panel * depth..][..depth],
                    };
                    // The columns of a tile stay in the first level of the cache while the rows go by.
                    for at in (0..PANEL).step_by(2 * S::F32_LANES) {
                        for (first, count) in even(rows_of, most_rows::<S>()) {
                            let a = &a[first..first + count];
                            if blocks == 1 {
                                let out = &mut task.out[first..first + count];
                                multiply_at(
                                    (simd, terms),
                                    a,
                                    b,
                                    at,
                                    start > 0,
                                    out,
                                    column + panel * PANEL + at,
                                );
                            } else {
                                let sums = &mut sums[panel * rows_of..][first..first + count];
                                multiply_at((simd, terms), a, b, at, block > 0, sums, at);
                            }
                        }
                    }
                }
            }
            for (i, out) in task.out.iter_mut().enumerate() {
                let out = &mut out[column..end];
                if blocks > 1 {
                    let parts = out.chunks_mut(PANEL).zip(sums[i..].iter().step_by(rows_of));
                    for (out, sums) in parts {
                        if start > 0 {
                            out.iter_mut().zip(sums).for_each(|(out, sum)| *out += sum);
                            continue;
                        }
                        match out.as_chunks_mut::<PANEL>().0 {
                            [out] => *out = *sums,
                            _ => out.copy_from_slice(&sums[..out.len()]),
                        }
                    }
                }
                if start + steps < product.depth {
                    continue;
                }
                let from = task.column + column;
                product
                    .ending
                    .apply(simd, out, task.row + i, from, product.columns);
            }
        }
    }
}

/// Packs a panel of the right operand.
struct Pack<'a, B> {
    right: &'a B,
    panel: usize,
    floats: &'a mut [Columns],
}

impl<B: Panels, T: Terms> Kernel<T> for Pack<'_, B> {
    #[inline(always)]
    fn run<S: Simd>(self, simd: S, _: T)
    where
        T: MulAdd<S>,
    {
        let depth = self.floats.len();
        let panels = self.panel..self.panel + 1;
        self.right.blocks(simd, panels, 0, depth, self.floats);
    }
}
