//! A product of two matrices, cut into tasks that own rectangles of the result. How it is cut
//! depends on sizes alone, and each float of the result is summed in one order.

use pulp::{Simd, WithSimd};
use rayon::prelude::*;

use super::finish::Ending;
use super::panels::{Panels, Strided};
use super::tile::{Columns, DEPTH, PANEL, Row, even, most_rows, multiply};
use crate::Level;
use crate::scratch::{lend, lend_parts};

/// The floats of a [`Row`].
pub(crate) const ROW: usize = size_of::<Row>() / 4;

/// The most rows that are packed at once.
const ROWS: usize = 448;

/// The floats of the left operand that a task goes through for each panel: they stay in the second
/// level of the cache.
const TASK_FLOATS: usize = 256 << 10;

/// The most rows of a task.
const MOST: usize = 224;

/// Products of fewer multiply-adds run on the calling thread: about 50 us.
pub(crate) const SERIAL: usize = 4 << 20;

/// A product `[rows, depth] * [depth, columns]`.
#[derive(Clone, Copy)]
pub(crate) struct Product<'a, B> {
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

impl<B: Panels> Product<'_, B> {
    /// Computes the result, `[rows, columns]`.
    pub(crate) fn run(&self, level: Level, out: &mut [f32]) {
        if self.columns == 0 || self.rows == 0 {
            return;
        }
        for (first, rows) in even(self.rows, ROWS) {
            let out = &mut out[first * self.columns..][..rows * self.columns];
            self.part(level, first, rows, out);
        }
    }

    /// Computes some rows of the result: packs them, then gives out rectangles.
    fn part(&self, level: Level, first: usize, rows: usize, out: &mut [f32]) {
        let blocks = self.depth.div_ceil(DEPTH).max(1);
        let work = rows * self.columns * self.depth;
        lend(blocks * rows * ROW, |packed| {
            let packed: &mut [Row] = packed.as_chunks_mut().0;
            let pack = |(i, out): (usize, &mut [Row])| {
                // A chunk is inside of one block: `rows` is cut again for each.
                let (block, row) = (i / rows.div_ceil(32), i % rows.div_ceil(32) * 32);
                let k = block * DEPTH;
                crate::vector::plain(level, || {
                    self.left.rows(first + row, k, self.depth - k, out);
                });
            };
            let chunks = packed_chunks(packed, rows);
            match work < SERIAL {
                true => chunks.into_iter().enumerate().for_each(pack),
                false => chunks.into_par_iter().enumerate().for_each(pack),
            }
            let packed: &[Row] = packed;
            let run = |task: Task<'_, '_>| {
                lend((DEPTH + MOST) * PANEL, |space| {
                    let space = space.as_chunks_mut().0;
                    level.run(Job {
                        product: self,
                        packed,
                        rows,
                        task,
                        space,
                    });
                });
            };
            // Rectangles, 32 or more where each has work for 50 us: bands of rows, in strips.
            let most = (TASK_FLOATS / self.depth.max(1)).clamp(56, MOST);
            let bands = even(rows, most);
            let panels = self.columns.div_ceil(PANEL);
            let wanted = (work / SERIAL).clamp(1, 32);
            let strip = (panels * bands.len()).div_ceil(wanted).clamp(1, panels) * PANEL;
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

/// The packed rows, block by block, in chunks of 32 rows.
fn packed_chunks(packed: &mut [Row], rows: usize) -> Vec<&mut [Row]> {
    packed
        .chunks_mut(rows)
        .flat_map(|block| block.chunks_mut(32))
        .collect()
}

/// A task with what it needs, to be run at a level.
struct Job<'a, 't, 'o, B> {
    product: &'a Product<'a, B>,
    packed: &'a [Row],
    /// The rows of a block of `packed`.
    rows: usize,
    task: Task<'t, 'o>,
    /// Room for a block of a panel and the sums of a panel.
    space: &'a mut [Columns],
}

impl<B: Panels> WithSimd for Job<'_, '_, '_, B> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Job {
            product,
            packed,
            rows,
            task,
            space,
        } = self;
        let wide = task.out.first().map_or(0, |row| row.len());
        let blocks = product.depth.div_ceil(DEPTH).max(1);
        let (space, sums) = space.split_at_mut(DEPTH);
        let sums = &mut sums[..task.out.len()];
        for column in (0..wide).step_by(PANEL) {
            let end = wide.min(column + PANEL);
            let from = task.column + column;
            for block in 0..blocks {
                let k = block * DEPTH;
                let depth = (product.depth - k).min(DEPTH);
                let a = &packed[block * rows + task.packed..][..task.out.len()];
                let b = product
                    .right
                    .block(simd, from / PANEL, k, &mut space[..depth]);
                for (first, count) in even(task.out.len(), most_rows::<S>()) {
                    let (a, sums) = (&a[first..first + count], &mut sums[first..first + count]);
                    multiply(simd, a, b, block > 0, sums, 0);
                }
            }
            for (i, (out, sums)) in task.out.iter_mut().zip(sums.iter()).enumerate() {
                let out = &mut out[column..end];
                out.copy_from_slice(&sums[..out.len()]);
                product
                    .ending
                    .apply(simd, out, task.row + i, from, product.columns);
            }
        }
    }
}
