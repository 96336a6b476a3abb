//! A few rows times weights in blocks: codes are summed by groups as they are, then the sums are times the scales.
//!
//! Invariant: a row is summed in one order, whatever other rows there are.

use pulp::Simd;

use super::block_kind::{CHUNK, Scaling};
use super::blocks::{
    Blocks, Bytes, CHUNKS, Codes, Nibbles, PIECE, STEPS, Scales, TOGETHER, scales_of,
};
use super::tile::{PANEL, even, put_some};
use super::words::Words;
use crate::vector::{framed, load, load_some, store_some};

/// The most rows that are summed at once.
const MOST: usize = 4;

/// The inputs of a group, and what their sum is times in [`starts`].
fn group_of(blocks: &Blocks) -> (usize, f32) {
    let (group, unit) = match blocks.kind.has_nibbles() {
        true => (Nibbles::GROUP, Nibbles::UNIT),
        false => (Bytes::GROUP, Bytes::UNIT),
    };
    (group, -1.0 - f32::from(blocks.kind.zero()) / unit)
}

/// What the sum of each group of each row starts from, so that codes count from zero: `x` is `[rows, inputs]`.
pub(super) fn starts(blocks: &Blocks, x: &[f32], out: &mut [f32]) {
    let (group, factor) = group_of(blocks);
    for (out, x) in out.iter_mut().zip(x.chunks(group)) {
        *out = factor * x.iter().sum::<f32>();
    }
}

/// How many floats [`starts`] gives for `x`.
pub(super) fn starts_len(blocks: &Blocks, x: &[f32]) -> usize {
    x.len() / group_of(blocks).0
}

/// `$rows` rows by `$panels` panels of a piece: an accumulator pair for each, by a constant index.
macro_rules! walks {
    ($($name:ident $rows:literal $panels:literal $sums:literal [$($q:literal)*] [$(($i:literal $r:literal $p:literal))*])*) => {
        $(
            #[inline(always)]
            fn $name<S: Simd, C: Codes>(
                simd: S,
                x: [&[f32]; $rows],
                starts: [&[f32]; $rows],
                panels: [&[Words]; $panels],
                scales: [&[Scales]; $panels],
                part: usize,
            ) -> [[S::f32s; 2]; $sums] {
                let zero = simd.splat_f32s(0.0);
                let at = part * S::F32_LANES;
                let mut low = [$({ let _ = $i; zero },)*];
                let mut high = low;
                for group in 0..x[0].len() / C::GROUP {
                    let x = x.map(|x| &x[group * C::GROUP..][..C::GROUP]);
                    let lines = C::GROUP / STEPS * C::WIDE;
                    let panels = panels.map(|panel| &panel[group * lines..][..lines]);
                    let mut sums = [$([simd.splat_f32s(starts[$r][group]); 2],)*];
                    for four in 0..C::GROUP / STEPS {
                        for step in 0..STEPS {
                            let codes = [$(C::pair(simd, &panels[$q][four * C::WIDE..][..C::WIDE], at, step),)*];
                            $(
                                let value = simd.splat_f32s(x[$r][four * STEPS + step]);
                                sums[$i][0] = simd.mul_add_e_f32s(value, codes[$p][0], sums[$i][0]);
                                sums[$i][1] = simd.mul_add_e_f32s(value, codes[$p][1], sums[$i][1]);
                            )*
                        }
                    }
                    let chunk = group * C::GROUP / CHUNK;
                    let half = group * C::GROUP % CHUNK / (CHUNK / 2) * PANEL;
                    $(
                        let scale = load(simd, &scales[$p][chunk], half + at);
                        low[$i] = simd.mul_add_e_f32s(sums[$i][0], scale, low[$i]);
                        let scale = load(simd, &scales[$p][chunk], half + 16 + at);
                        high[$i] = simd.mul_add_e_f32s(sums[$i][1], scale, high[$i]);
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
    walk_2_1 2 1 2 [0] [(0 0 0) (1 1 0)]
    walk_3_1 3 1 3 [0] [(0 0 0) (1 1 0) (2 2 0)]
    walk_4_1 4 1 4 [0] [(0 0 0) (1 1 0) (2 2 0) (3 3 0)]
}

/// A strip of columns of all rows, from a panel on.
pub(super) struct Strip<'a, 'o, 'r> {
    pub blocks: &'a Blocks,
    /// `[rows, inputs]`, and what [`starts`] gives for it.
    pub x: &'a [f32],
    pub starts: &'a [f32],
    pub inputs: usize,
    pub first_panel: usize,
    pub out: &'r mut [&'o mut [f32]],
    /// [`SCALES`](super::blocks::SCALES) floats.
    pub space: &'r mut [f32],
}

impl Strip<'_, '_, '_> {
    #[inline(always)]
    pub(super) fn run<S: Simd>(self, simd: S) {
        match self.blocks.kind.has_nibbles() {
            true => self.sums::<S, Nibbles>(simd),
            false => self.sums::<S, Bytes>(simd),
        }
    }

    #[inline(always)]
    fn sums<S: Simd, C: Codes>(mut self, simd: S) {
        let wide = self.out.first().map_or(0, |row| row.len());
        let count = wide.div_ceil(PANEL);
        if self.inputs == 0 {
            self.out.iter_mut().for_each(|row| row.fill(0.0));
            return;
        }
        let most = match self.out.len() {
            1 => TOGETHER,
            2 => 2,
            _ => 1,
        };
        let mut panel = 0;
        while panel < count {
            let together = if count - panel >= most { most } else { 1 };
            for k in (0..self.inputs).step_by(PIECE) {
                self.piece::<S, C>(simd, panel, together, k);
            }
            panel += together;
        }
    }

    /// Adds what the piece from input `k` on of some panels gives.
    #[inline(always)]
    fn piece<S: Simd, C: Codes>(&mut self, simd: S, panel: usize, together: usize, k: usize) {
        let Strip {
            blocks,
            x,
            starts,
            inputs,
            first_panel,
            ref mut out,
            ref mut space,
        } = *self;
        let steps = PIECE.min(inputs - k);
        let chunks = steps / CHUNK;
        let scales: &mut [Scales] = space.as_chunks_mut().0;
        let piece = |p: usize| blocks.piece(first_panel + panel + p, k);
        for p in 0..together {
            let lines = piece(p).scales;
            for chunk in 0..chunks {
                let scales = &mut scales[p * CHUNKS + chunk];
                scales_of(simd, blocks.kind, lines, chunk, C::UNIT, scales);
            }
        }
        let scales = &*scales;
        let scales_of = |p: usize| &scales[p * CHUNKS..][..chunks];
        let row = |r: usize| &x[r * inputs + k..][..steps];
        let groups = inputs / C::GROUP;
        let starts = |r: usize| &starts[r * groups + k / C::GROUP..][..steps / C::GROUP];
        for (r, n) in even(out.len(), MOST) {
            for part in 0..16 / S::F32_LANES {
                let at = [part * S::F32_LANES, 16 + part * S::F32_LANES];
                macro_rules! walk {
                    ($name:ident $rows:literal $panels:literal) => {
                        framed(
                            simd,
                            #[inline(always)]
                            || {
                                let sums = $name::<S, C>(
                                    simd,
                                    std::array::from_fn::<_, $rows, _>(|i| row(r + i)),
                                    std::array::from_fn::<_, $rows, _>(|i| starts(r + i)),
                                    std::array::from_fn::<_, $panels, _>(|i| piece(i).codes),
                                    std::array::from_fn::<_, $panels, _>(|i| scales_of(i)),
                                    part,
                                );
                                let rows: usize = $rows;
                                for (i, pair) in sums.into_iter().enumerate() {
                                    let out = &mut *out[r + i % rows];
                                    let start = (panel + i / rows) * PANEL;
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
                    (2, 2) => walk!(walk_2_2 2 2),
                    (2, _) => walk!(walk_2_1 2 1),
                    (3, _) => walk!(walk_3_1 3 1),
                    _ => walk!(walk_4_1 4 1),
                }
            }
        }
        if matches!(blocks.kind.scaling(), Scaling::Scale | Scaling::Halves) {
            return;
        }
        // Minima: the codes of these kinds count from zero, so that a start is the sum of its group, negative.
        let each = CHUNK / C::GROUP;
        for (r, out) in out.iter_mut().enumerate() {
            let starts = starts(r);
            for p in 0..together {
                for at in (0..PANEL).step_by(S::F32_LANES) {
                    let Some(out) = out.get_mut((panel + p) * PANEL + at..) else {
                        continue;
                    };
                    let mut sum = load_some(simd, out);
                    for (starts, scales) in starts.chunks(each).zip(scales_of(p)) {
                        let mut x = 0.0;
                        for start in starts {
                            x -= start;
                        }
                        let x = simd.splat_f32s(x);
                        let shift = load(simd, scales, 2 * PANEL + at);
                        sum = simd.mul_add_e_f32s(x, shift, sum);
                    }
                    store_some(simd, out, sum);
                }
            }
        }
    }
}
