//! Attention of many queries: blocks of keys pass by a block of queries, and the largest score and the
//! sum of each row are carried along.

use pulp::{Simd, WithSimd};

use super::operands::{Attention, Operands, Task};
use crate::Level;
use crate::math::{exp_negative, map};
use crate::matrix::panels::{Panels, Strided};
use crate::matrix::product::ROW;
use crate::matrix::tile::{Columns, DEPTH, PANEL, Row, even, most_rows, multiply};
use crate::norm::{largest, sum};
use crate::scratch::lend;
use crate::vector::inlined;

/// The most rows of a tile at any level.
const TILE: usize = 14;

/// Does a task.
pub(super) fn run(level: Level, sizes: &Attention<'_>, operands: Operands<'_>, task: Task<'_, '_>) {
    let rows = task.out.len();
    let depths = sizes.size.div_ceil(DEPTH).max(1);
    let keys = sizes.keys.min(DEPTH).div_ceil(PANEL);
    let values = sizes.value_size.div_ceil(PANEL);
    let packed = depths * rows * ROW;
    let columns = (keys * sizes.size + values * DEPTH + values * rows) * PANEL;
    let len = packed + TILE * ROW + columns + 2 * rows;
    lend(len, |space| {
        let (queries, space) = space.split_at_mut(packed);
        let (scores, space) = space.split_at_mut(TILE * ROW);
        let (columns, space) = space.split_at_mut(columns);
        let columns: &mut [Columns] = columns.as_chunks_mut().0;
        let (key_panels, columns) = columns.split_at_mut(keys * sizes.size);
        let (value_panels, sums) = columns.split_at_mut(values * DEPTH);
        let (tops, totals) = space.split_at_mut(rows);
        level.run(Job {
            sizes,
            operands,
            task,
            queries: queries.as_chunks_mut().0,
            scores: scores.as_chunks_mut().0,
            key_panels,
            value_panels,
            sums,
            tops,
            totals,
        });
    });
}

struct Job<'a, 't, 'o> {
    sizes: &'a Attention<'a>,
    operands: Operands<'a>,
    task: Task<'t, 'o>,
    /// The queries times the scale, one block of `DEPTH` floats after another.
    queries: &'a mut [Row],
    /// The scores of a tile, then their exponentials.
    scores: &'a mut [Row],
    /// A block of keys, turned: `[panels][size]`.
    key_panels: &'a mut [Columns],
    /// A block of values: `[panels][DEPTH]`.
    value_panels: &'a mut [Columns],
    /// The weighted sums of values: `[panels][rows]`.
    sums: &'a mut [Columns],
    /// The largest score of each row so far.
    tops: &'a mut [f32],
    /// The sum of the exponentials of each row so far.
    totals: &'a mut [f32],
}

impl WithSimd for Job<'_, '_, '_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(mut self, simd: S) {
        let (size, rows) = (self.sizes.size, self.task.out.len());
        if rows == 0 {
            return;
        }
        for (block, out) in self.queries.chunks_mut(rows).enumerate() {
            let depth = (size - (block * DEPTH).min(size)).min(DEPTH);
            self.operands
                .q
                .rows(self.task.first, block * DEPTH, depth, out);
            for row in out {
                let scale = simd.splat_f32s(self.sizes.scale);
                inlined!(map(simd, &mut row[..depth]; |x| simd.mul_f32s(x, scale)));
            }
        }
        self.sums.fill([0.0; PANEL]);
        self.tops.fill(f32::NEG_INFINITY);
        self.totals.fill(0.0);
        let seen = self.sizes.seen(self.task.first + rows - 1);
        let k = self.operands.k;
        let turned = Strided {
            row: k.column,
            column: k.row,
            columns: self.sizes.keys,
            ..k
        };
        for key in (0..seen).step_by(DEPTH) {
            let count = (seen - key).min(DEPTH);
            if size > 0 {
                let panels = self.key_panels.chunks_mut(size).take(count.div_ceil(PANEL));
                for (i, panel) in panels.enumerate() {
                    turned.block(simd, key / PANEL + i, 0, panel);
                }
            }
            for (i, panel) in self.value_panels.chunks_mut(DEPTH).enumerate() {
                self.operands.v.block(simd, i, key, &mut panel[..count]);
            }
            for (first, tile) in even(rows, most_rows::<S>().min(TILE)) {
                self.tile(simd, first, tile, key, count);
            }
        }
        for (r, out) in self.task.out.iter_mut().enumerate() {
            let factor = simd.splat_f32s(self.sizes.factor(self.totals[r]));
            for (panel, out) in out.chunks_mut(PANEL).enumerate() {
                out.copy_from_slice(&self.sums[panel * rows + r][..out.len()]);
                inlined!(map(simd, out; |x| simd.mul_f32s(x, factor)));
            }
        }
    }
}

impl Job<'_, '_, '_> {
    /// Lets a block of keys pass by the rows of a tile.
    #[inline(always)]
    fn tile<S: Simd>(&mut self, simd: S, first: usize, tile: usize, key: usize, count: usize) {
        let (size, rows) = (self.sizes.size, self.task.out.len());
        let query = self.task.first + first;
        let count = self
            .sizes
            .seen(query + tile - 1)
            .saturating_sub(key)
            .min(count);
        if count == 0 {
            return;
        }
        let scores = &mut self.scores[..tile];
        for i in 0..count.div_ceil(PANEL) {
            let panel = &self.key_panels[i * size..(i + 1) * size];
            for (block, queries) in self.queries.chunks(rows).enumerate() {
                let from = (block * DEPTH).min(size);
                let panel = &panel[from..size.min(from + DEPTH)];
                let queries = &queries[first..first + tile];
                multiply(simd, queries, panel, block > 0, scores, i * PANEL);
            }
        }
        let (b, h) = (self.task.batch, self.task.head);
        for (i, scores) in scores.iter_mut().enumerate() {
            let row = first + i;
            let scores = &mut scores[..count];
            let seen = self.sizes.seen(query + i).saturating_sub(key).min(count);
            scores[seen..].fill(f32::NEG_INFINITY);
            if let Some(mask) = &self.sizes.mask {
                mask.apply([b, h, query + i, key], &mut scores[..seen]);
            }
            let before = self.tops[row];
            let top = before.max(largest(simd, scores));
            // Where all is minus infinity the exponentials are 0, whatever is taken off.
            let less = if top == f32::NEG_INFINITY { 0.0 } else { top };
            let shift = simd.splat_f32s(less);
            inlined!(map(simd, scores; |x| exp_negative(simd, simd.sub_f32s(x, shift))));
            let total = inlined!(sum(simd, scores; |x| x));
            if top != before {
                let change = (before - less).exp();
                self.totals[row] *= change;
                let change = simd.splat_f32s(change);
                for sums in self.sums.iter_mut().skip(row).step_by(rows) {
                    inlined!(map(simd, sums; |x| simd.mul_f32s(x, change)));
                }
                self.tops[row] = top;
            }
            self.totals[row] += total;
        }
        let panels = self
            .value_panels
            .chunks(DEPTH)
            .zip(self.sums.chunks_mut(rows));
        for (values, sums) in panels {
            let sums = &mut sums[first..first + tile];
            multiply(simd, scores, &values[..count], true, sums, 0);
        }
    }
}
