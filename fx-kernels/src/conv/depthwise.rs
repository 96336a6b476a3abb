//! The depthwise convolution on blocked images: each channel with its own window. It owns the packing
//! `[channels / 16][tap][16]` of its weights.

use pulp::{Simd, WithSimd};

use crate::conv::epilogue::{Epilogue, clamp};
use crate::conv::share::{self, Task};
use crate::conv::{Blocked, ConvSpec, tile};
use crate::vector::by_block;
use crate::{BLOCK, Block, Buffer, Level};

/// What one result costs in operations: it is bound by memory, not by arithmetic.
const WORK: usize = 60;

/// Packed weights of a depthwise convolution.
#[derive(Debug, Clone)]
pub(crate) struct Depthwise {
    spec: ConvSpec,
    level: Level,
    weights: Buffer,
    bias: Buffer,
}

impl Depthwise {
    pub(crate) fn new(
        spec: ConvSpec,
        weight: &[f32],
        bias: Option<&[f32]>,
        level: Level,
    ) -> Depthwise {
        let taps = spec.taps();
        let blocks = spec.out_channels.div_ceil(BLOCK);
        let mut weights = Buffer::zeros(blocks * taps * BLOCK);
        for (channel, window) in weight.chunks_exact(taps).enumerate() {
            for (tap, w) in window.iter().enumerate() {
                weights[(channel / BLOCK * taps + tap) * BLOCK + channel % BLOCK] = *w;
            }
        }
        let mut padded = Buffer::zeros(blocks * BLOCK);
        if let Some(bias) = bias {
            padded[..bias.len()].copy_from_slice(bias);
        }
        Depthwise {
            spec,
            level,
            weights,
            bias: padded,
        }
    }

    /// Runs on sizes that the caller has checked; the input's halo holds the padding.
    pub(crate) fn run(&self, input: &Blocked, epilogue: Epilogue, out: &mut Blocked) {
        let spec = &self.spec;
        let row = input.row();
        let taps: Vec<usize> = (0..spec.taps())
            .map(|t| {
                (t / spec.kernel[1]) * spec.dilation[0] * row
                    + (t % spec.kernel[1]) * spec.dilation[1]
            })
            .collect();
        let work = out.planes() * out.height() * out.width() * BLOCK * WORK.max(2 * taps.len());
        let (out_row, halo, width) = (out.row(), out.halo(), out.width());
        let lanes = share::lanes(self.level);
        let tiles = tile::split_by(sizes(lanes), BLOCK / lanes, width);
        let band = share::band(out.height(), out.planes(), work);
        share::run(share::cut(out, 1, band), work, |task: Task<'_>| {
            let Task {
                image,
                plane,
                y0,
                rows,
                mut planes,
            } = task;
            let start = (image * input.channel_blocks() + plane) * input.plane();
            let corner = (y0 * spec.stride[0] + input.halo() - spec.padding[0]) * row
                + input.halo()
                - spec.padding[1];
            self.level.run(Kernel {
                input: &input.blocks()[start..start + input.plane()],
                corner,
                row: row * spec.stride[0],
                stride: spec.stride[1],
                taps: &taps,
                weights: &self.weights[plane * taps.len() * BLOCK..][..taps.len() * BLOCK],
                bias: &self.bias[plane * BLOCK..][..BLOCK],
                out: planes[0],
                halo,
                out_row,
                rows,
                width,
                tiles: &tiles,
                epilogue,
            });
        });
    }
}

/// The pixels of a tile, large to small.
fn sizes(lanes: usize) -> &'static [usize] {
    match lanes {
        16 => &[8, 7, 6, 5, 4, 3, 2, 1],
        1 => &[1],
        _ => &[4, 3, 2, 1],
    }
}

/// Rows of one plane of 16 channels.
struct Kernel<'a> {
    input: &'a [Block],
    corner: usize,
    row: usize,
    stride: usize,
    taps: &'a [usize],
    weights: &'a [f32],
    bias: &'a [f32],
    out: &'a mut [Block],
    halo: usize,
    out_row: usize,
    rows: usize,
    width: usize,
    tiles: &'a [u8],
    epilogue: Epilogue,
}

/// Makes a tile of `$count` pixels, each named by a constant so that its sums stay in registers.
macro_rules! tile {
    ($name:ident, $count:literal, [$($p:literal)*]) => {
        #[inline(always)]
        fn $name<S: Simd, const V: usize, const STRIDE: usize>(
            simd: S,
            kernel: &Kernel<'_>,
            at: usize,
            weights: &[[S::f32s; V]],
            mut sums: [[S::f32s; V]; $count],
        ) -> [[S::f32s; V]; $count] {
            let stride = if STRIDE == 0 { kernel.stride } else { STRIDE };
            for (w, tap) in weights.iter().zip(kernel.taps) {
                let pixels = &kernel.input[at + tap..at + tap + ($count - 1) * stride + 1];
                $(let (x, _) = S::as_simd_f32s(&pixels[$p * stride]);
                for v in 0..V {
                    sums[$p][v] = simd.mul_add_e_f32s(x[v], w[v], sums[$p][v]);
                })*
            }
            sums
        }
    };
}

tile!(tile1, 1, [0]);
tile!(tile2, 2, [0 1]);
tile!(tile3, 3, [0 1 2]);
tile!(tile4, 4, [0 1 2 3]);
tile!(tile5, 5, [0 1 2 3 4]);
tile!(tile6, 6, [0 1 2 3 4 5]);
tile!(tile7, 7, [0 1 2 3 4 5 6]);
tile!(tile8, 8, [0 1 2 3 4 5 6 7]);

impl WithSimd for Kernel<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        by_block!(self.strides::<S>(simd));
    }
}

impl Kernel<'_> {
    #[inline(always)]
    fn strides<S: Simd, const V: usize>(self, simd: S) {
        match self.stride {
            1 => self.run::<S, V, 1>(simd),
            2 => self.run::<S, V, 2>(simd),
            _ => self.run::<S, V, 0>(simd),
        }
    }

    #[inline(always)]
    fn run<S: Simd, const V: usize, const STRIDE: usize>(mut self, simd: S) {
        let weights = S::as_simd_f32s(self.weights).0.as_chunks::<V>().0;
        let Some(bias) = S::as_simd_f32s(self.bias).0.as_chunks::<V>().0.first() else {
            return;
        };
        for y in 0..self.rows {
            let mut x = 0;
            for &tile in self.tiles {
                macro_rules! call {
                    ($name:ident, $count:literal) => {{
                        let at = self.corner + y * self.row + x * self.stride;
                        let sums = $name::<S, V, STRIDE>(simd, &self, at, weights, [*bias; $count]);
                        self.store(simd, y, x, &sums);
                    }};
                }
                if const { S::F32_LANES == 16 } {
                    match tile {
                        8 => call!(tile8, 8),
                        7 => call!(tile7, 7),
                        6 => call!(tile6, 6),
                        5 => call!(tile5, 5),
                        4 => call!(tile4, 4),
                        3 => call!(tile3, 3),
                        2 => call!(tile2, 2),
                        _ => call!(tile1, 1),
                    }
                } else if const { S::F32_LANES > 1 } {
                    match tile {
                        4 => call!(tile4, 4),
                        3 => call!(tile3, 3),
                        2 => call!(tile2, 2),
                        _ => call!(tile1, 1),
                    }
                } else {
                    call!(tile1, 1);
                }
                x += usize::from(tile);
            }
            if self.epilogue.rest.is_some() {
                let start = y * self.out_row + self.halo;
                self.epilogue
                    .finish(simd, &mut self.out[start..start + self.width]);
            }
        }
    }

    /// Adds what is there to finished pixels if that is asked for, clamps and stores them.
    #[inline(always)]
    fn store<S: Simd, const V: usize>(
        &mut self,
        simd: S,
        y: usize,
        x: usize,
        sums: &[[S::f32s; V]],
    ) {
        let low = simd.splat_f32s(self.epilogue.clamp.low);
        let high = simd.splat_f32s(self.epilogue.clamp.high);
        let start = y * self.out_row + self.halo + x;
        let target = &mut self.out[start..start + sums.len()];
        for (p, sum) in sums.iter().enumerate() {
            let (target, _) = S::as_mut_simd_f32s(&mut target[p]);
            for v in 0..V {
                let mut sum = sum[v];
                if self.epilogue.adds {
                    sum = simd.add_f32s(sum, target[v]);
                }
                target[v] = clamp(simd, sum, low, high);
            }
        }
    }
}
