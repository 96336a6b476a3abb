//! The innermost loops of the direct convolution: a few pixels by a few vectors of output channels, whose sums stay in
//! registers from the first input channel to the store.

use pulp::Simd;

use crate::conv::epilogue::{Epilogue, clamp};
use crate::terms::MulAdd;
use crate::{BLOCK, Block};

/// Input channels that a tile reads: lanes `low..high` of one block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Slab {
    pub block: usize,
    pub low: usize,
    pub high: usize,
}

/// Where a tile reads.
pub(crate) struct From<'a> {
    /// One image.
    pub blocks: &'a [Block],
    /// The place of the first pixel's first tap in the first plane.
    pub at: usize,
    /// From the first to the second row of a tile of two.
    pub second: usize,
    /// The blocks of a plane.
    pub plane: usize,
    /// Pixels from window to window; read where the tile's constant is 0.
    pub stride: usize,
    /// The place of each tap after the first.
    pub taps: &'a [usize],
    pub slabs: &'a [Slab],
}

/// Where a tile writes.
pub(crate) struct To<'a, 'b> {
    pub planes: &'a mut [&'b mut [Block]],
    pub at: usize,
    pub second: usize,
    pub epilogue: Epilogue,
}

/// Adds what is there to pixels of a row if that is asked for, clamps and stores them. The sums come by value and the
/// indices are constants, so they need no memory. What is there is read through a slice of its own: the one that is
/// written would move the sums to memory.
macro_rules! store {
    ($simd:ident, $S:ident, $V:ident, $acc:ident, $to:ident, $at:expr, $first:literal, $count:literal, []) => {};
    ($simd:ident, $S:ident, $V:ident, $acc:ident, $to:ident, $at:expr, $first:literal, $count:literal, [$($p:literal)+]) => {{
        let parts = BLOCK / $S::F32_LANES;
        let clamps = $to.epilogue.clamp;
        let (low, high) = ($simd.splat_f32s(clamps.low), $simd.splat_f32s(clamps.high));
        for j in 0..$V / parts {
            if $to.epilogue.adds {
                let (there, _) = $S::as_simd_f32s($to.planes[j][$at..$at + $count].as_flattened());
                $(for part in 0..parts {
                    let v = j * parts + part;
                    $acc[$p][v] = $simd.add_f32s($acc[$p][v], there[($p - $first) * parts + part]);
                })+
            }
            let target = &mut $to.planes[j][$at..$at + $count];
            let (target, _) = $S::as_mut_simd_f32s(target.as_flattened_mut());
            $(for part in 0..parts {
                target[($p - $first) * parts + part] = clamp($simd, $acc[$p][j * parts + part], low, high);
            })+
        }
    }};
}

/// Makes a tile of `$one` pixels of a row, and `$two` of the row below. Each pixel is named by a constant: an array that a
/// loop walks would be kept in memory.
macro_rules! tile {
    ($name:ident, $one:literal, $two:literal, [$($p:literal)*], [$($q:literal)*]) => {
        #[inline(always)]
        pub(crate) fn $name<S: Simd, T: MulAdd<S>, const V: usize, const STRIDE: usize>(
            (simd, terms): (S, T),
            from: &From<'_>,
            weights: &[[S::f32s; V]],
            bias: &[S::f32s; V],
            to: &mut To<'_, '_>,
        ) {
            let stride = if STRIDE == 0 { from.stride } else { STRIDE };
            let mut sums = [*bias; $one + $two];
            let mut rest = weights;
            for slab in from.slabs {
                let base = from.at + slab.block * from.plane;
                let (low, high) = (slab.low, slab.high.min(BLOCK));
                for &tap in from.taps {
                    let at = base + tap;
                    let pixels = &from.blocks[at..at + ($one - 1) * stride + 1];
                    let below = if $two > 0 {
                        &from.blocks[at + from.second..at + from.second + ($one - 1) * stride + 1]
                    } else {
                        pixels
                    };
                    let _ = below;
                    let (now, later) = rest.split_at(high - low);
                    rest = later;
                    for (i, w) in (low..high).zip(now) {
                        $(let x = simd.splat_f32s(pixels[$p * stride][i]);
                        for v in 0..V {
                            sums[$p][v] = terms.mul_add(simd, w[v], x, sums[$p][v]);
                        })*
                        $(let x = simd.splat_f32s(below[($q - $one) * stride][i]);
                        for v in 0..V {
                            sums[$q][v] = terms.mul_add(simd, w[v], x, sums[$q][v]);
                        })*
                    }
                }
            }
            store!(simd, S, V, sums, to, to.at, 0, $one, [$($p)*]);
            if $two > 0 {
                let at = to.at + to.second;
                let _ = at;
                store!(simd, S, V, sums, to, at, $one, $two, [$($q)*]);
            }
        }
    };
}

tile!(tile1, 1, 0, [0], []);
tile!(tile2, 2, 0, [0 1], []);
tile!(tile3, 3, 0, [0 1 2], []);
tile!(tile4, 4, 0, [0 1 2 3], []);
tile!(tile5, 5, 0, [0 1 2 3 4], []);
tile!(tile6, 6, 0, [0 1 2 3 4 5], []);
tile!(tile7, 7, 0, [0 1 2 3 4 5 6], []);
tile!(tile8, 8, 0, [0 1 2 3 4 5 6 7], []);
tile!(tile10, 10, 0, [0 1 2 3 4 5 6 7 8 9], []);
tile!(tile12, 12, 0, [0 1 2 3 4 5 6 7 8 9 10 11], []);
tile!(tile14, 14, 0, [0 1 2 3 4 5 6 7 8 9 10 11 12 13], []);
tile!(tile4x2, 4, 4, [0 1 2 3], [4 5 6 7]);
tile!(tile7x2, 7, 7, [0 1 2 3 4 5 6], [7 8 9 10 11 12 13]);

/// Makes a tile of a few pixels that walks along several parts of the input channels at once: their weights come from memory
/// faster than those of one part, and no sum waits for the one before.
macro_rules! split_tile {
    (
        $name:ident, $count:literal, $ways:literal, $sums:literal, [$($p:literal)*], [$($way:literal)*],
        [$(($k:literal $w:literal $q:literal))*], [$(($from:literal $to:literal))*]
    ) => {
        #[inline(always)]
        pub(crate) fn $name<S: Simd, T: MulAdd<S>, const V: usize, const STRIDE: usize>(
            (simd, terms): (S, T),
            from: &From<'_>,
            weights: &[[S::f32s; V]],
            bias: &[S::f32s; V],
            to: &mut To<'_, '_>,
        ) {
            let stride = if STRIDE == 0 { from.stride } else { STRIDE };
            let reach = ($count - 1) * stride + 1;
            let mut sums = [[simd.splat_f32s(0.0); V]; $sums];
            $(sums[$p] = *bias;)*
            let is_full = |slab: &Slab| (slab.low, slab.high) == (0, BLOCK);
            let full = from.slabs.iter().take_while(|slab| is_full(slab)).count();
            // The slabs of a part, and their weights.
            let part = full / $ways;
            let step = part * from.taps.len() * BLOCK;
            let lines = [$(weights[$way * step..][..step].as_chunks::<BLOCK>().0),*];
            for s in 0..part {
                for (t, &tap) in from.taps.iter().enumerate() {
                    let pixels = [$({
                        let at = from.at + from.slabs[$way * part + s].block * from.plane + tap;
                        &from.blocks[at..at + reach]
                    }),*];
                    let now = [$(&lines[$way][s * from.taps.len() + t]),*];
                    for i in 0..BLOCK {
                        $(let x = simd.splat_f32s(pixels[$w][$q * stride][i]);
                        for v in 0..V {
                            sums[$k][v] = terms.mul_add(simd, now[$w][i][v], x, sums[$k][v]);
                        })*
                    }
                }
            }
            $(for v in 0..V {
                sums[$to][v] = simd.add_f32s(sums[$to][v], sums[$from][v]);
            })*
            let mut rest = &weights[$ways * step..];
            for slab in &from.slabs[$ways * part..] {
                let base = from.at + slab.block * from.plane;
                let (low, high) = (slab.low, slab.high.min(BLOCK));
                for &tap in from.taps {
                    let at = base + tap;
                    let pixels = &from.blocks[at..at + reach];
                    let (now, later) = rest.split_at(high - low);
                    rest = later;
                    for (i, w) in (low..high).zip(now) {
                        $(let x = simd.splat_f32s(pixels[$p * stride][i]);
                        for v in 0..V {
                            sums[$p][v] = terms.mul_add(simd, w[v], x, sums[$p][v]);
                        })*
                    }
                }
            }
            store!(simd, S, V, sums, to, to.at, 0, $count, [$($p)*]);
        }
    };
}

split_tile!(split1, 1, 4, 4, [0], [0 1 2 3], [(0 0 0) (1 1 0) (2 2 0) (3 3 0)], [(1 0) (2 0) (3 0)]);
split_tile!(split2, 2, 4, 8, [0 1], [0 1 2 3], [(0 0 0) (1 0 1) (2 1 0) (3 1 1) (4 2 0) (5 2 1) (6 3 0) (7 3 1)], [(2 0) (3 1) (4 0) (5 1) (6 0) (7 1)]);
split_tile!(split3, 3, 4, 12, [0 1 2], [0 1 2 3], [(0 0 0) (1 0 1) (2 0 2) (3 1 0) (4 1 1) (5 1 2) (6 2 0) (7 2 1) (8 2 2) (9 3 0) (10 3 1) (11 3 2)], [(3 0) (4 1) (5 2) (6 0) (7 1) (8 2) (9 0) (10 1) (11 2)]);
split_tile!(split4, 4, 2, 8, [0 1 2 3], [0 1], [(0 0 0) (1 0 1) (2 0 2) (3 0 3) (4 1 0) (5 1 1) (6 1 2) (7 1 3)], [(4 0) (5 1) (6 2) (7 3)]);
split_tile!(split6, 6, 2, 12, [0 1 2 3 4 5], [0 1], [(0 0 0) (1 0 1) (2 0 2) (3 0 3) (4 0 4) (5 0 5) (6 1 0) (7 1 1) (8 1 2) (9 1 3) (10 1 4) (11 1 5)], [(6 0) (7 1) (8 2) (9 3) (10 4) (11 5)]);

/// Where a tile of a plain image reads: one channel at a pixel.
pub(crate) struct Plain<'a> {
    pub floats: &'a [f32],
    pub at: usize,
    /// The place of each tap of each channel after the first.
    pub taps: &'a [usize],
}

/// Makes a tile of `$count` neighbouring floats.
macro_rules! plain_tile {
    ($name:ident, $count:literal, [$($p:literal)*]) => {
        #[inline(always)]
        pub(crate) fn $name<S: Simd, const V: usize>(
            simd: S,
            from: &Plain<'_>,
            weights: &[[S::f32s; V]],
            bias: &[S::f32s; V],
            to: &mut To<'_, '_>,
        ) {
            let mut sums = [*bias; $count];
            for (tap, w) in from.taps.iter().zip(weights) {
                let pixels = &from.floats[from.at + tap..from.at + tap + $count];
                $(let x = simd.splat_f32s(pixels[$p]);
                for v in 0..V {
                    sums[$p][v] = simd.mul_add_e_f32s(w[v], x, sums[$p][v]);
                })*
            }
            store!(simd, S, V, sums, to, to.at, 0, $count, [$($p)*]);
        }
    };
}

plain_tile!(plain1, 1, [0]);
plain_tile!(plain2, 2, [0 1]);
plain_tile!(plain3, 3, [0 1 2]);
plain_tile!(plain4, 4, [0 1 2 3]);
plain_tile!(plain5, 5, [0 1 2 3 4]);
plain_tile!(plain6, 6, [0 1 2 3 4 5]);
plain_tile!(plain7, 7, [0 1 2 3 4 5 6]);
plain_tile!(plain8, 8, [0 1 2 3 4 5 6 7]);
plain_tile!(plain10, 10, [0 1 2 3 4 5 6 7 8 9]);
plain_tile!(plain12, 12, [0 1 2 3 4 5 6 7 8 9 10 11]);
plain_tile!(plain14, 14, [0 1 2 3 4 5 6 7 8 9 10 11 12 13]);

/// The tiles of a level by its lanes, large to small: pixels, and the sums of one pixel.
fn sizes(lanes: usize) -> (&'static [usize], usize) {
    match lanes {
        16 => (&[14, 12, 10, 8, 7, 6, 4, 3, 2, 1], 2),
        8 => (&[6, 5, 4, 3, 2, 1], 2),
        4 => (&[6, 5, 4, 3, 2, 1], 4),
        _ => (&[2, 1], 16),
    }
}

/// Cuts a run of pixels into tiles of the direct convolution, so that the sum of their times is least.
pub(crate) fn split(lanes: usize, length: usize) -> Vec<u8> {
    let (sizes, vectors) = sizes(lanes);
    split_by(sizes, vectors, length)
}

/// Cuts a run into tiles of these sizes, large to small down to 1, with `vectors` sums for a pixel.
///
/// A tile with fewer than ten sums takes as long as one with ten: each sum waits for the one before.
pub(crate) fn split_by(sizes: &[usize], vectors: usize, length: usize) -> Vec<u8> {
    let largest = sizes[0];
    let whole = (length / largest).saturating_sub(1);
    let rest = length - whole * largest;
    let cost = |size: usize| (size * vectors).max(10) + 3;
    let mut best = vec![(0, 0); rest + 1];
    for n in 1..=rest {
        let options = sizes.iter().filter(|size| **size <= n);
        let choice = options
            .map(|size| (best[n - size].0 + cost(*size), *size))
            .min_by_key(|(cost, _)| *cost);
        best[n] = choice.unwrap_or((usize::MAX, 1));
    }
    let mut tiles = vec![largest as u8; whole];
    let mut left = rest;
    while left > 0 {
        tiles.push(best[left].1 as u8);
        left -= best[left].1;
    }
    tiles
}
