//! Winograd's F(4x4, 3x3): a 3x3 convolution of stride 1 in 36 products for 16 results instead of 144. It owns the
//! transformed weights and the scratch memory, which threads keep between runs.

#![allow(
    clippy::needless_range_loop,
    reason = "vectors are named by constants; iterators with closures would leave the level's instructions"
)]

use pulp::{Simd, WithSimd};
use smallvec::SmallVec;

use crate::conv::direct::Kernel;
use crate::conv::epilogue::{ConvFinish, Epilogue, clamp};
use crate::conv::share::{self, Task};
use crate::conv::spec;
use crate::conv::tile::{self, Slab};
use crate::conv::{Blocked, ConvSpec};
use crate::scratch::{KEPT, lend};
use crate::terms::{Floats, Terms};
use crate::{BLOCK, Block, Buffer, Level};

/// The values of a transformed tile.
const PLACES: usize = 36;

/// Weights up to these bytes stay in the cache of one core, so each task goes through all of them.
const CACHED: usize = 1 << 20;

/// Transformed weights of a 3x3 convolution.
#[derive(Debug, Clone)]
pub(crate) struct Winograd {
    spec: ConvSpec,
    level: Level,
    /// Blocks of output channels that are computed at once.
    per_set: usize,
    slabs: Vec<Slab>,
    /// `[set][place][input channel][blocks of the set][16]`; the last set is filled up with zeros.
    weights: Buffer,
    bias: Buffer,
}

impl Winograd {
    /// The least height and width of a result that is worth it.
    pub(crate) const SIDE: usize = 28;

    /// Whether there can be images of this convolution that it makes faster.
    pub(crate) fn suits(spec: &ConvSpec) -> bool {
        let channels = BLOCK..=128;
        spec.kernel == [3, 3]
            && spec.stride == [1, 1]
            && spec.dilation == [1, 1]
            && spec.groups == 1
            && channels.contains(&spec.in_channels)
            && channels.contains(&spec.out_channels)
    }

    pub(crate) fn new(
        spec: ConvSpec,
        weight: &[f32],
        bias: Option<&[f32]>,
        level: Level,
    ) -> Winograd {
        let per_set = if level == Level::Avx512 && spec.out_channels > BLOCK {
            2
        } else {
            1
        };
        let width = per_set * BLOCK;
        let sets = spec.out_channels.div_ceil(width);
        let mut weights = Buffer::zeros(sets * PLACES * spec.in_channels * width);
        for (index, window) in weight.chunks_exact(9).enumerate() {
            let (out, input) = (index / spec.in_channels, index % spec.in_channels);
            for (place, w) in transform_weight(window).into_iter().enumerate() {
                let row = (out / width * PLACES + place) * spec.in_channels + input;
                weights[row * width + out % width] = w as f32;
            }
        }
        let slabs = (0..spec.in_channels.div_ceil(BLOCK))
            .map(|block| Slab {
                block,
                low: 0,
                high: (spec.in_channels - block * BLOCK).min(BLOCK),
            })
            .collect();
        let mut padded = Buffer::zeros(spec.out_channels.next_multiple_of(BLOCK));
        if let Some(bias) = bias {
            padded[..bias.len()].copy_from_slice(bias);
        }
        Winograd {
            spec,
            level,
            per_set,
            slabs,
            weights,
            bias: padded,
        }
    }

    /// Runs on sizes that the caller has checked; the input's halo holds the padding.
    pub(crate) fn run(&self, input: &Blocked, epilogue: Epilogue, out: &mut Blocked) {
        let work = spec::work(&self.spec, out.batch() * out.height() * out.width()) / 3;
        let across = out.width().div_ceil(4).max(1);
        let (row, halo, width) = (out.row(), out.halo(), out.width());
        let blocks = out.channel_blocks();
        let small = self.weights.len() * 4 <= CACHED;
        // Bands of at least 14 tiles where the weights stay in the cache; where they do not, of as many as fit
        // into memory that the thread keeps.
        let tile =
            (input.channel_blocks() + blocks.next_multiple_of(self.per_set)) * PLACES * BLOCK;
        let band = 4 * match small {
            true => 14usize.div_ceil(across),
            false => (KEPT / tile / across).max(1),
        };
        let tasks = share::cut(out, blocks, band);
        let inner = if small { 0 } else { work };
        share::run(tasks, if small { work } else { 0 }, |task: Task<'_>| {
            let Task {
                image,
                y0,
                rows,
                mut planes,
                ..
            } = task;
            let tiles = across * rows.div_ceil(4);
            let in_blocks = input.channel_blocks();
            let sets = blocks.div_ceil(self.per_set);
            let (inputs, products) = (
                in_blocks * PLACES * tiles,
                sets * self.per_set * PLACES * tiles,
            );
            lend((inputs + products) * BLOCK, |scratch| {
                let (first, second) = scratch.as_chunks_mut().0.split_at_mut(inputs);
                let source = first.chunks_exact_mut(PLACES * tiles).enumerate();
                share::run(source, inner, |(block, target)| {
                    let start = (image * in_blocks + block) * input.plane();
                    let corner = y0 + input.halo() - self.spec.padding[0];
                    self.level.run(Forward {
                        plane: &input.blocks()[start..start + input.plane()],
                        row: input.row(),
                        top: corner,
                        left: input.halo() - self.spec.padding[1],
                        across,
                        tiles,
                        target,
                    });
                });
                let transformed = &*first;
                let parts = tile::split(share::lanes(self.level), tiles);
                let chunk = self.spec.in_channels * self.per_set * BLOCK;
                let zeros = [0.0; 2 * BLOCK];
                let targets = second[..products]
                    .chunks_exact_mut(self.per_set * tiles)
                    .enumerate();
                share::run(targets, inner, |(index, target)| {
                    let mut planes: SmallVec<[&mut [Block]; 4]> =
                        target.chunks_exact_mut(tiles).collect();
                    let kernel = Kernel {
                        input: transformed,
                        corner: index % PLACES * tiles,
                        row: 0,
                        plane: PLACES * tiles,
                        stride: 1,
                        taps: &[0],
                        slabs: &self.slabs,
                        weights: &self.weights[index * chunk..(index + 1) * chunk],
                        bias: &zeros[..self.per_set * BLOCK],
                        planes: &mut planes,
                        halo: 0,
                        out_row: tiles,
                        rows: 1,
                        length: tiles,
                        tiles: &parts,
                        epilogue: Epilogue::new(ConvFinish::default()),
                    };
                    Floats.run(self.level, kernel);
                });
                let products = &second[..products];
                share::run(planes.iter_mut().enumerate(), inner, |(block, out)| {
                    let set = block / self.per_set * PLACES * self.per_set + block % self.per_set;
                    self.level.run(Backward {
                        products: &products[set * tiles..],
                        step: self.per_set * tiles,
                        tiles,
                        across,
                        bias: &self.bias[block * BLOCK..][..BLOCK],
                        out,
                        out_row: row,
                        halo,
                        rows,
                        width,
                        epilogue,
                    });
                });
            });
        });
    }
}

/// The 36 values of a 3x3 window.
fn transform_weight(window: &[f32]) -> [f64; PLACES] {
    const G: [[f64; 3]; 6] = [
        [0.25, 0.0, 0.0],
        [-1.0 / 6.0, -1.0 / 6.0, -1.0 / 6.0],
        [-1.0 / 6.0, 1.0 / 6.0, -1.0 / 6.0],
        [1.0 / 24.0, 1.0 / 12.0, 1.0 / 6.0],
        [1.0 / 24.0, -1.0 / 12.0, 1.0 / 6.0],
        [0.0, 0.0, 1.0],
    ];
    std::array::from_fn(|place| {
        let (left, right) = (G[place / 6], G[place % 6]);
        let terms = (0..9).map(|t| left[t / 3] * right[t % 3] * f64::from(window[t]));
        terms.sum()
    })
}

/// Transforms the 6x6 tiles of one plane into `[place][tile]`.
struct Forward<'a> {
    plane: &'a [Block],
    row: usize,
    top: usize,
    left: usize,
    across: usize,
    tiles: usize,
    target: &'a mut [Block],
}

/// One vector of a block.
///
/// Here and below no value in a register goes through a closure: one that is not inlined would be compiled without the
/// level's instructions.
#[inline(always)]
fn load<S: Simd>(block: &Block, part: usize) -> S::f32s {
    S::as_simd_f32s(block).0[part]
}

/// Loads six blocks of a line.
#[inline(always)]
fn load6<S: Simd>(line: &[Block; 6], part: usize) -> [S::f32s; 6] {
    let [a, b, c, d, e, f] = line;
    [
        load::<S>(a, part),
        load::<S>(b, part),
        load::<S>(c, part),
        load::<S>(d, part),
        load::<S>(e, part),
        load::<S>(f, part),
    ]
}

impl WithSimd for Forward<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let parts = BLOCK / S::F32_LANES;
        let height = self.plane.len() / self.row.max(1);
        let mut edge = [[[0.0; BLOCK]; 6]; 6];
        for index in 0..self.tiles {
            let (y, x) = (
                self.top + index / self.across * 4,
                self.left + index % self.across * 4,
            );
            let whole = y + 6 <= height && x + 6 <= self.row;
            if !whole {
                // Behind the halo is nothing: a last tile that sticks out reads zeros there.
                edge = [[[0.0; BLOCK]; 6]; 6];
                for (line, y) in edge.iter_mut().zip(y..height) {
                    let source = &self.plane[y * self.row + x.min(self.row)..(y + 1) * self.row];
                    for (to, from) in line.iter_mut().zip(source) {
                        *to = *from;
                    }
                }
            }
            for part in 0..parts {
                let mut rows = [[simd.splat_f32s(0.0); 6]; 6];
                for r in 0..6 {
                    let line = if whole {
                        let start = (y + r) * self.row + x;
                        self.plane[start..start + 6]
                            .first_chunk()
                            .unwrap_or(&edge[r])
                    } else {
                        &edge[r]
                    };
                    rows[r] = forward(simd, load6::<S>(line, part));
                }
                for c in 0..6 {
                    let [d0, d1, d2, d3, d4, d5] = &rows;
                    let column = forward(simd, [d0[c], d1[c], d2[c], d3[c], d4[c], d5[c]]);
                    for r in 0..6 {
                        let target = &mut self.target[(r * 6 + c) * self.tiles + index];
                        S::as_mut_simd_f32s(target).0[part] = column[r];
                    }
                }
            }
        }
    }
}

/// `a * b + c`.
#[inline(always)]
fn fma<S: Simd>(simd: S, a: S::f32s, b: f32, c: S::f32s) -> S::f32s {
    simd.mul_add_e_f32s(a, simd.splat_f32s(b), c)
}

/// One side of the input's transform.
#[inline(always)]
fn forward<S: Simd>(simd: S, d: [S::f32s; 6]) -> [S::f32s; 6] {
    let (p, q) = (fma(simd, d[2], -4.0, d[4]), fma(simd, d[1], -4.0, d[3]));
    let s = simd.sub_f32s(d[4], d[2]);
    let t = simd.sub_f32s(d[3], d[1]);
    let t = simd.add_f32s(t, t);
    [
        fma(simd, d[0], 4.0, fma(simd, d[2], -5.0, d[4])),
        simd.add_f32s(p, q),
        simd.sub_f32s(p, q),
        simd.add_f32s(s, t),
        simd.sub_f32s(s, t),
        fma(simd, d[1], 4.0, fma(simd, d[3], -5.0, d[5])),
    ]
}

/// Transforms products back into rows of one plane, and finishes them.
struct Backward<'a, 'b> {
    products: &'a [Block],
    /// From place to place.
    step: usize,
    tiles: usize,
    across: usize,
    bias: &'a [f32],
    out: &'a mut &'b mut [Block],
    out_row: usize,
    halo: usize,
    rows: usize,
    width: usize,
    epilogue: Epilogue,
}

impl WithSimd for Backward<'_, '_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let parts = BLOCK / S::F32_LANES;
        let low = simd.splat_f32s(self.epilogue.clamp.low);
        let high = simd.splat_f32s(self.epilogue.clamp.high);
        let (bias, _) = S::as_simd_f32s(self.bias);
        for index in 0..self.tiles {
            let (y, x) = (index / self.across * 4, index % self.across * 4);
            let (rows, columns) = (4.min(self.rows - y), 4.min(self.width - x));
            for part in 0..parts {
                let mut half = [[simd.splat_f32s(0.0); 4]; 6];
                for r in 0..6 {
                    let mut line = [simd.splat_f32s(0.0); 6];
                    for c in 0..6 {
                        line[c] = load::<S>(&self.products[(r * 6 + c) * self.step + index], part);
                    }
                    half[r] = backward(simd, line);
                }
                let mut sums = [[simd.splat_f32s(0.0); 4]; 4];
                for c in 0..4 {
                    let [m0, m1, m2, m3, m4, m5] = &half;
                    sums[c] = backward(simd, [m0[c], m1[c], m2[c], m3[c], m4[c], m5[c]]);
                }
                for r in 0..rows {
                    let start = (y + r) * self.out_row + self.halo + x;
                    let line = &mut self.out[start..start + columns];
                    for (c, target) in line.iter_mut().enumerate() {
                        let mut sum = simd.add_f32s(sums[c][r], bias[part]);
                        let target = &mut S::as_mut_simd_f32s(target).0[part];
                        if self.epilogue.adds {
                            sum = simd.add_f32s(sum, *target);
                        }
                        *target = clamp(simd, sum, low, high);
                    }
                }
            }
        }
        if self.epilogue.rest.is_some() {
            for y in 0..self.rows {
                let start = y * self.out_row + self.halo;
                self.epilogue
                    .finish(simd, &mut self.out[start..start + self.width]);
            }
        }
    }
}

/// One side of the result's transform.
#[inline(always)]
fn backward<S: Simd>(simd: S, m: [S::f32s; 6]) -> [S::f32s; 4] {
    let (a, b) = (simd.add_f32s(m[1], m[2]), simd.sub_f32s(m[1], m[2]));
    let (c, d) = (simd.add_f32s(m[3], m[4]), simd.sub_f32s(m[3], m[4]));
    [
        simd.add_f32s(simd.add_f32s(m[0], a), c),
        fma(simd, d, 2.0, b),
        fma(simd, c, 4.0, a),
        simd.add_f32s(fma(simd, d, 8.0, b), m[5]),
    ]
}
