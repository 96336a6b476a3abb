//! Where the operands of a product come from: packed weights or matrices with strides, a block at a
//! time.

use pulp::Simd;

use super::tile::{Columns, DEPTH, PANEL, Row};
use crate::transpose::turn;

/// The right operand of a product, `[k, n]`, as blocks of panels.
pub(crate) trait Panels: Sync {
    /// The rows from `k` on of a panel of columns, as many as `space` has: from `space` or from own
    /// memory.
    fn block<'a, S: Simd>(
        &'a self,
        simd: S,
        panel: usize,
        k: usize,
        space: &'a mut [Columns],
    ) -> &'a [Columns];
}

/// A matrix inside of a slice: the float at row r and column c is `data[start + r * row + c * column]`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Strided<'a> {
    pub data: &'a [f32],
    pub start: usize,
    pub row: usize,
    pub column: usize,
    pub columns: usize,
}

impl Strided<'_> {
    /// Copies the columns from `from` on of a row.
    #[inline(always)]
    fn read(&self, row: usize, from: usize, out: &mut [f32]) {
        let start = self.start + row * self.row + from * self.column;
        if out.is_empty() {
            return;
        }
        if self.column == 1 {
            out.copy_from_slice(&self.data[start..start + out.len()]);
            return;
        }
        for (i, out) in out.iter_mut().enumerate() {
            *out = self.data[start + i * self.column];
        }
    }

    /// Packs the columns `k..k + depth` of rows as rows of a block of the left operand.
    #[inline(always)]
    pub(crate) fn rows(&self, first: usize, k: usize, depth: usize, out: &mut [Row]) {
        let depth = depth.min(DEPTH);
        if self.row == 1 && self.column != 1 {
            // Neighbours are in one column: walk along them.
            for (part, out) in out.chunks_mut(16).enumerate() {
                for i in 0..depth {
                    let start = self.start + first + part * 16 + (k + i) * self.column;
                    let from = &self.data[start..start + out.len()];
                    for (out, x) in out.iter_mut().zip(from) {
                        out[i] = *x;
                    }
                }
            }
            return;
        }
        for (r, out) in out.iter_mut().enumerate() {
            self.read(first + r, k, &mut out[..depth]);
        }
    }
}

impl Panels for Strided<'_> {
    #[inline(always)]
    fn block<'a, S: Simd>(
        &'a self,
        _: S,
        panel: usize,
        k: usize,
        space: &'a mut [Columns],
    ) -> &'a [Columns] {
        let first = panel * PANEL;
        let wide = PANEL.min(self.columns - first);
        if self.row == 1 && self.column != 1 {
            // Columns lie one after another: turn squares.
            for half in 0..wide.div_ceil(16) {
                let wide = (wide - half * 16).min(16);
                for (part, space) in space.chunks_mut(16).enumerate() {
                    let mut square = [[0.0; 16]; 16];
                    for (c, square) in square.iter_mut().enumerate().take(wide) {
                        let start =
                            self.start + (first + half * 16 + c) * self.column + k + part * 16;
                        match self.data[start..].first_chunk::<16>() {
                            Some(from) if space.len() == 16 => *square = *from,
                            _ => square[..space.len()]
                                .copy_from_slice(&self.data[start..start + space.len()]),
                        }
                    }
                    for (space, row) in space.iter_mut().zip(turn(&square)) {
                        space[half * 16..half * 16 + 16].copy_from_slice(&row);
                    }
                }
            }
            if wide <= 16 {
                space.iter_mut().for_each(|space| space[16..].fill(0.0));
            }
            return space;
        }
        for (i, space) in space.iter_mut().enumerate() {
            self.read(k + i, first, &mut space[..wide]);
            space[wide..].fill(0.0);
        }
        space
    }
}
