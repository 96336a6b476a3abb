//! Where the operands of a product come from: packed weights or matrices with strides, a block at a
//! time.

use std::ops::Range;

use pulp::Simd;

use super::tile::{Columns, DEPTH, PANEL, Row};
use crate::transpose::turn;

/// The right operand of a product, `[k, n]`, as blocks of panels.
pub(crate) trait Panels: Sync {
    /// Whether blocks are in own memory.
    fn is_ready(&self) -> bool {
        false
    }

    /// Whether the rows of a panel go on in the next, in memory that is not its own.
    fn has_long_rows(&self) -> bool {
        false
    }

    /// Writes the rows from `k` on of some panels, each of them `depth` rows of `space`.
    #[inline(always)]
    fn blocks<S: Simd>(
        &self,
        simd: S,
        panels: Range<usize>,
        k: usize,
        depth: usize,
        space: &mut [Columns],
    ) {
        for (panel, space) in panels.zip(space.chunks_mut(depth.max(1))) {
            let _ = self.block(simd, panel, k, space);
        }
    }

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

    /// Writes some columns of a row as a row of a panel.
    #[inline(always)]
    fn piece(&self, row: usize, from: usize, wide: usize, out: &mut Columns) {
        let start = self.start + row * self.row + from * self.column;
        if self.column == 1 && wide == PANEL {
            if let Some(floats) = self.data[start..].first_chunk::<PANEL>() {
                *out = *floats;
            }
            return;
        }
        self.read(row, from, &mut out[..wide]);
        out[wide..].fill(0.0);
    }

    /// Packs the columns `k..k + depth` of rows as rows of a block of the left operand.
    #[inline(always)]
    pub(crate) fn rows(&self, first: usize, k: usize, depth: usize, out: &mut [Row]) {
        let depth = depth.min(DEPTH);
        if self.row == 1 && self.column != 1 {
            // Neighbours are in one column: walk along them, and turn squares. Columns are far from each other: 16 of them
            // are read for all rows before the next.
            for i in (0..depth).step_by(16) {
                let count = (depth - i).min(16);
                for (part, out) in out.chunks_mut(16).enumerate() {
                    let mut square = [[0.0; 16]; 16];
                    for (j, square) in square.iter_mut().enumerate().take(count) {
                        let start = self.start + first + part * 16 + (k + i + j) * self.column;
                        match self.data[start..].first_chunk::<16>() {
                            Some(from) if out.len() == 16 => *square = *from,
                            _ => square[..out.len()]
                                .copy_from_slice(&self.data[start..start + out.len()]),
                        }
                    }
                    // Behind the depth is room up to a whole square.
                    for (out, row) in out.iter_mut().zip(turn(&square)) {
                        out[i..i + 16].copy_from_slice(&row);
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
    fn has_long_rows(&self) -> bool {
        self.column == 1
    }

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
            self.piece(k + i, first, wide, space);
        }
        space
    }

    #[inline(always)]
    fn blocks<S: Simd>(
        &self,
        simd: S,
        panels: Range<usize>,
        k: usize,
        depth: usize,
        space: &mut [Columns],
    ) {
        if self.row == 1 && self.column != 1 {
            for (panel, space) in panels.zip(space.chunks_mut(depth.max(1))) {
                let _ = self.block(simd, panel, k, space);
            }
            return;
        }
        // A row goes on in the next panel: what is read is near what was read before.
        for i in 0..depth {
            for (at, panel) in panels.clone().enumerate() {
                let first = panel * PANEL;
                let wide = PANEL.min(self.columns - first);
                self.piece(k + i, first, wide, &mut space[at * depth + i]);
            }
        }
    }
}

/// Panels of floats or of pairs that are packed: one after the other.
pub(crate) struct Packed<'a> {
    pub floats: &'a [Columns],
    pub depth: usize,
}

impl Panels for Packed<'_> {
    fn is_ready(&self) -> bool {
        true
    }

    #[inline(always)]
    fn block<'a, S: Simd>(
        &'a self,
        _: S,
        panel: usize,
        k: usize,
        space: &'a mut [Columns],
    ) -> &'a [Columns] {
        &self.floats[panel * self.depth + k..][..space.len()]
    }
}
