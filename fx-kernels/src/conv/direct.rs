//! The direct convolution on blocked images: any window, stride, padding, dilation and groups, without im2col. It owns
//! the packing of weights, in the very order in which tiles read them.

use pulp::Simd;

use crate::conv::epilogue::Epilogue;
use crate::conv::share::{self, Task};
use crate::conv::spec;
use crate::conv::tile::{self, From, Slab, To};
use crate::conv::{Blocked, ConvSpec};
use crate::terms::{self, MulAdd, Terms};
use crate::vector::by_block;
use crate::{BLOCK, Block, Buffer, Level};

/// Weights above these bytes are read once for each task, so a task has few of them.
const CACHED: usize = 1 << 20;

/// What packing a weight costs, in operations.
const PACK: usize = 20;

/// One or two blocks of output channels that read the same input channels.
#[derive(Debug, Clone)]
struct Set {
    /// The first block of output channels.
    block: usize,
    /// One or two.
    blocks: usize,
    /// The place of its weights, in floats.
    weights: std::ops::Range<usize>,
    slabs: Vec<Slab>,
}

impl Set {
    /// Packs its weights into zeros: `[slab][tap][input channel][blocks of the set][16]`.
    fn pack(&self, spec: &ConvSpec, weight: &[f32], mut target: &mut [f32]) {
        let (group_in, taps) = (spec.group_in(), spec.taps());
        let (first_out, width) = (self.block * BLOCK, self.blocks * BLOCK);
        for slab in &self.slabs {
            let lanes = slab.high - slab.low;
            let (part, rest) = target.split_at_mut(lanes * taps * width);
            target = rest;
            let first = slab.block * BLOCK + slab.low;
            for out in first_out..(first_out + width).min(spec.out_channels) {
                // The channels of the slab that this output reads; with groups it may read some.
                let group = out / spec.group_out() * group_in;
                let inputs = first.max(group)..(first + lanes).min(group + group_in);
                for input in inputs {
                    let window = &weight[(out * group_in + input - group) * taps..][..taps];
                    for (tap, w) in window.iter().enumerate() {
                        part[(tap * lanes + input - first) * width + out - first_out] = *w;
                    }
                }
            }
        }
    }
}

/// Packed weights of a direct convolution.
#[derive(Debug, Clone)]
pub(crate) struct Direct<T> {
    terms: T,
    /// Its channels are terms.
    spec: ConvSpec,
    level: Level,
    /// Blocks of a set, but for the last.
    per_set: usize,
    sets: Vec<Set>,
    /// For each set: `[slab][tap][input channel][blocks of the set][16]`.
    weights: Buffer,
    bias: Buffer,
}

impl<T: Terms> Direct<T> {
    /// Packs a weight of terms.
    pub(crate) fn new(
        terms: T,
        spec: ConvSpec,
        weight: &[f32],
        bias: Option<&[f32]>,
        level: Level,
    ) -> Direct<T> {
        let blocks = spec.out_channels.div_ceil(BLOCK);
        let wide = level == Level::Avx512
            && (spec.groups == 1 || spec.group_out().is_multiple_of(2 * BLOCK));
        let per_set = if wide { 2 } else { 1 };
        let (group_in, group_out, taps) = (spec.group_in(), spec.group_out(), spec.taps());
        let mut sets = Vec::new();
        let mut end = 0;
        for block in (0..blocks).step_by(per_set) {
            let count = per_set.min(blocks - block);
            let outs = block * BLOCK..((block + count) * BLOCK).min(spec.out_channels);
            let first = outs.start / group_out * group_in;
            let last = (outs.end - 1) / group_out * group_in + group_in;
            let slabs: Vec<Slab> = (first / BLOCK..last.div_ceil(BLOCK))
                .map(|block| {
                    let lane = |channel: usize| channel.saturating_sub(block * BLOCK).min(BLOCK);
                    Slab {
                        block,
                        low: lane(first),
                        high: lane(last),
                    }
                })
                .collect();
            let start = end;
            end += (last - first) * taps * count * BLOCK;
            sets.push(Set {
                block,
                blocks: count,
                weights: start..end,
                slabs,
            });
        }
        let mut weights = Buffer::zeros(end);
        let mut rest = &mut weights[..];
        let targets = sets.iter().map(|set| {
            let (target, later) = std::mem::take(&mut rest).split_at_mut(set.weights.len());
            rest = later;
            (set, target)
        });
        share::run(targets, end * PACK, |(set, target)| {
            set.pack(&spec, weight, target);
        });
        let mut padded = Buffer::zeros(blocks * BLOCK);
        if let Some(bias) = bias {
            padded[..bias.len()].copy_from_slice(bias);
        }
        Direct {
            terms,
            spec,
            level,
            per_set,
            sets,
            weights,
            bias: padded,
        }
    }

    /// Runs on sizes that the caller has checked; the input's halo holds the padding.
    pub(crate) fn run(&self, input: &Blocked, epilogue: Epilogue, out: &mut Blocked) {
        let spec = &self.spec;
        let work = spec::work(spec, out.batch() * out.height() * out.width());
        let pointwise = spec.kernel == [1, 1] && spec.stride == [1, 1] && spec.padding == [0, 0];
        let flat = pointwise && input.halo() == 0 && out.halo() == 0;
        let width = out.width();
        // A single column is computed as a row: its pixels lie next to each other.
        let is_column = !flat && width == 1 && out.halo() == 0;
        // With few weights a task computes all channels of a band, which stays in the cache; otherwise few channels of
        // large bands.
        let weights = self.weights.len() * 4;
        let sets_of_task = if weights <= CACHED {
            self.sets.len()
        } else {
            1
        };
        let sets = out.batch() * self.sets.len().div_ceil(sets_of_task);
        let mut band = share::band(out.height(), sets, work);
        if !flat && (width == 7 || width == 4) {
            band = band.next_multiple_of(2);
        }
        let row = input.row();
        let taps: Vec<usize> = (0..spec.taps())
            .map(|t| {
                (t / spec.kernel[1]) * spec.dilation[0] * row
                    + (t % spec.kernel[1]) * spec.dilation[1]
            })
            .collect();
        let lanes = share::lanes(self.level);
        let image = input.channel_blocks() * input.plane();
        let (out_row, out_halo) = (out.row(), out.halo());
        share::run(
            share::cut(out, sets_of_task * self.per_set, band),
            work,
            |task: Task<'_>| {
                let Task {
                    image: n,
                    plane,
                    y0,
                    rows,
                    mut planes,
                } = task;
                let (rows, length, first) = if flat {
                    (1, rows * out_row, y0 * out_row)
                } else if is_column {
                    (1, rows, 0)
                } else {
                    (rows, width, 0)
                };
                let tiles = tile::split(lanes, length);
                for set in &self.sets[plane / self.per_set..] {
                    if set.block >= plane + planes.len() {
                        break;
                    }
                    let planes = &mut planes[set.block - plane..][..set.blocks];
                    let corner = (y0 * spec.stride[0] + input.halo() - spec.padding[0]) * row
                        + input.halo()
                        - spec.padding[1];
                    let kernel = Kernel {
                        input: &input.blocks()[n * image..(n + 1) * image],
                        corner: if flat { first } else { corner },
                        row: row * spec.stride[0],
                        plane: input.plane(),
                        stride: if is_column {
                            row * spec.stride[0]
                        } else {
                            spec.stride[1]
                        },
                        taps: &taps,
                        slabs: &set.slabs,
                        weights: &self.weights[set.weights.clone()],
                        bias: &self.bias[set.block * BLOCK..][..set.blocks * BLOCK],
                        planes,
                        halo: if flat { 0 } else { out_halo },
                        out_row,
                        rows,
                        length,
                        tiles: &tiles,
                        epilogue,
                    };
                    self.terms.run(self.level, kernel);
                }
            },
        );
    }
}

/// The rows of one set of channels.
pub(crate) struct Kernel<'a, 'b> {
    pub input: &'a [Block],
    pub corner: usize,
    pub row: usize,
    pub plane: usize,
    pub stride: usize,
    pub taps: &'a [usize],
    pub slabs: &'a [Slab],
    pub weights: &'a [f32],
    pub bias: &'a [f32],
    pub planes: &'a mut [&'b mut [Block]],
    pub halo: usize,
    pub out_row: usize,
    pub rows: usize,
    pub length: usize,
    pub tiles: &'a [u8],
    pub epilogue: Epilogue,
}

impl<T: Terms> terms::Kernel<T> for Kernel<'_, '_> {
    #[inline(always)]
    fn run<S: Simd>(self, simd: S, terms: T)
    where
        T: MulAdd<S>,
    {
        // Sums of two blocks fit into the registers.
        if const { S::F32_LANES == BLOCK } && self.planes.len() == 2 {
            return self.strides::<S, T, 2>((simd, terms));
        }
        by_block!(self.strides::<S, T>((simd, terms)));
    }
}

impl Kernel<'_, '_> {
    #[inline(always)]
    fn strides<S: Simd, T: MulAdd<S>, const V: usize>(self, with: (S, T)) {
        match self.stride {
            1 => self.rows::<S, T, V, 1>(with),
            2 => self.rows::<S, T, V, 2>(with),
            _ => self.rows::<S, T, V, 0>(with),
        }
    }

    #[inline(always)]
    fn rows<S: Simd, T: MulAdd<S>, const V: usize, const STRIDE: usize>(
        self,
        (simd, terms): (S, T),
    ) {
        let weights = S::as_simd_f32s(self.weights).0.as_chunks::<V>().0;
        let Some(bias) = S::as_simd_f32s(self.bias).0.as_chunks::<V>().0.first() else {
            return;
        };
        let mut y = 0;
        while y < self.rows {
            let paired =
                S::F32_LANES == 16 && (self.length == 7 || self.length == 4) && y + 1 < self.rows;
            let mut x = 0;
            for &tile in self.tiles {
                let from = From {
                    blocks: self.input,
                    at: self.corner + y * self.row + x * self.stride,
                    second: self.row,
                    plane: self.plane,
                    stride: self.stride,
                    taps: self.taps,
                    slabs: self.slabs,
                };
                let mut to = To {
                    planes: &mut *self.planes,
                    at: self.halo + y * self.out_row + x,
                    second: self.out_row,
                    epilogue: self.epilogue,
                };
                macro_rules! call {
                    ($name:ident) => {
                        terms.framed(
                            simd,
                            #[inline(always)]
                            || {
                                let with = (simd, terms);
                                tile::$name::<S, T, V, STRIDE>(with, &from, weights, bias, &mut to);
                            },
                        )
                    };
                }
                if const { S::F32_LANES == 16 } {
                    match (tile, paired) {
                        (14, _) => call!(tile14),
                        (12, _) => call!(tile12),
                        (10, _) => call!(tile10),
                        (8, _) => call!(tile8),
                        (7, true) => call!(tile7x2),
                        (7, false) => call!(tile7),
                        (6, _) => call!(split6),
                        (4, true) => call!(tile4x2),
                        (4, false) => call!(split4),
                        (3, _) => call!(split3),
                        (2, _) => call!(split2),
                        _ => call!(split1),
                    }
                } else if const { S::F32_LANES > 1 } {
                    match tile {
                        6 => call!(tile6),
                        5 => call!(tile5),
                        4 => call!(tile4),
                        3 => call!(tile3),
                        2 => call!(tile2),
                        _ => call!(tile1),
                    }
                } else if tile == 2 {
                    call!(tile2);
                } else {
                    call!(tile1);
                }
                x += usize::from(tile);
            }
            let rows = if paired { 2 } else { 1 };
            if self.epilogue.rest.is_some() {
                for plane in &mut *self.planes {
                    for row in y..y + rows {
                        let start = self.halo + row * self.out_row;
                        self.epilogue
                            .finish(simd, &mut plane[start..start + self.length]);
                    }
                }
            }
            y += rows;
        }
    }
}
