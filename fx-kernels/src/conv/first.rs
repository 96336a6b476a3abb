//! The first convolution of a network: few input channels, read from the plain image, so that no multiplication and no
//! memory goes to the empty rest of a block.

use pulp::{Simd, WithSimd};

use crate::conv::epilogue::Epilogue;
use crate::conv::phases::Plan;
use crate::conv::share::{self, Task};
use crate::conv::spec;
use crate::conv::tile::{self, Plain, To};
use crate::conv::{Blocked, ConvSpec};
use crate::scratch::lend;
use crate::vector::{by_block, framed};
use crate::{BLOCK, Block, Buffer, Level};

/// Packed weights of a convolution with few input channels.
#[derive(Debug, Clone)]
pub(crate) struct First {
    spec: ConvSpec,
    level: Level,
    /// Blocks of output channels that are computed at once.
    per_set: usize,
    /// For each set: `[input channel][tap][blocks of the set][16]`.
    weights: Buffer,
    bias: Buffer,
}

impl First {
    pub(crate) fn new(spec: ConvSpec, weight: &[f32], bias: Option<&[f32]>, level: Level) -> First {
        let blocks = spec.out_channels.div_ceil(BLOCK);
        let per_set = if level == Level::Avx512 { 2 } else { 1 };
        let depth = spec.in_channels * spec.taps();
        let mut packed = Vec::with_capacity(blocks * BLOCK * depth);
        for block in (0..blocks).step_by(per_set) {
            let outs = block * BLOCK..(block + per_set).min(blocks) * BLOCK;
            for k in 0..depth {
                packed.extend(outs.clone().map(|out| {
                    if out < spec.out_channels {
                        weight[out * depth + k]
                    } else {
                        0.0
                    }
                }));
            }
        }
        let mut padded = Buffer::zeros(blocks * BLOCK);
        if let Some(bias) = bias {
            padded[..bias.len()].copy_from_slice(bias);
        }
        First {
            spec,
            level,
            per_set,
            weights: Buffer::from_slice(&packed),
            bias: padded,
        }
    }

    /// Runs on sizes that the caller has checked.
    pub(crate) fn run(
        &self,
        input: &[f32],
        (height, width): (usize, usize),
        epilogue: Epilogue,
        out: &mut Blocked,
    ) {
        let spec = &self.spec;
        let (channels, depth) = (spec.in_channels, spec.in_channels * spec.taps());
        let batch = out.batch();
        let work = spec::work(spec, batch * out.height() * out.width());
        if work == 0 {
            return;
        }
        let plan = Plan::new(spec, height, width);
        let (channel, plane) = (plan.channel(), plan.rows * plan.pitch);
        let taps: Vec<usize> = (0..channels)
            .flat_map(|c| {
                plan.taps
                    .iter()
                    .map(move |tap| c * channel + tap.phase * plane + tap.offset)
            })
            .collect();
        let (row, halo, blocks, out_width) =
            (out.row(), out.halo(), out.channel_blocks(), out.width());
        let band = share::band(out.height(), batch, work);
        let tiles = tile::split(share::lanes(self.level), out_width);
        lend(batch * channels * channel, |copy| {
            let copies: Vec<(usize, &mut [f32])> =
                copy.chunks_exact_mut(channel).enumerate().collect();
            share::run(
                copies,
                batch * channels * channel * 40,
                |(index, target)| {
                    plan.copy(
                        &input[index * height * width..(index + 1) * height * width],
                        target,
                    );
                },
            );
            let copy = &copy[..];
            share::run(share::cut(out, blocks, band), work, |task: Task<'_>| {
                let Task {
                    image,
                    y0,
                    rows,
                    mut planes,
                    ..
                } = task;
                let image_floats =
                    &copy[image * channels * channel..(image + 1) * channels * channel];
                for (set, planes) in planes.chunks_mut(self.per_set).enumerate() {
                    let block = set * self.per_set;
                    self.level.run(Kernel {
                        input: &image_floats[y0 * plan.pitch..],
                        row: plan.pitch,
                        taps: &taps,
                        weights: &self.weights[block * BLOCK * depth..]
                            [..planes.len() * BLOCK * depth],
                        bias: &self.bias[block * BLOCK..][..planes.len() * BLOCK],
                        planes,
                        halo,
                        out_row: row,
                        rows,
                        width: out_width,
                        tiles: &tiles,
                        epilogue,
                    });
                }
            });
        });
    }
}

/// Rows of one set of output channels.
struct Kernel<'a, 'b> {
    input: &'a [f32],
    row: usize,
    taps: &'a [usize],
    weights: &'a [f32],
    bias: &'a [f32],
    planes: &'a mut [&'b mut [Block]],
    halo: usize,
    out_row: usize,
    rows: usize,
    width: usize,
    tiles: &'a [u8],
    epilogue: Epilogue,
}

impl WithSimd for Kernel<'_, '_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        // Sums of two blocks fit into the registers.
        if const { S::F32_LANES == BLOCK } && self.planes.len() == 2 {
            return self.run::<S, 2>(simd);
        }
        by_block!(self.run::<S>(simd));
    }
}

impl Kernel<'_, '_> {
    #[inline(always)]
    fn run<S: Simd, const V: usize>(self, simd: S) {
        let weights = S::as_simd_f32s(self.weights).0.as_chunks::<V>().0;
        let Some(bias) = S::as_simd_f32s(self.bias).0.as_chunks::<V>().0.first() else {
            return;
        };
        for y in 0..self.rows {
            let mut x = 0;
            for &tile in self.tiles {
                let from = Plain {
                    floats: self.input,
                    at: y * self.row + x,
                    taps: self.taps,
                };
                let mut to = To {
                    planes: &mut *self.planes,
                    at: self.halo + y * self.out_row + x,
                    second: self.out_row,
                    epilogue: self.epilogue,
                };
                macro_rules! call {
                    ($name:ident) => {
                        framed(
                            simd,
                            #[inline(always)]
                            || tile::$name::<S, V>(simd, &from, weights, bias, &mut to),
                        )
                    };
                }
                if const { S::F32_LANES == 16 } {
                    match tile {
                        14 => call!(plain14),
                        12 => call!(plain12),
                        10 => call!(plain10),
                        8 => call!(plain8),
                        7 => call!(plain7),
                        6 => call!(plain6),
                        4 => call!(plain4),
                        3 => call!(plain3),
                        2 => call!(plain2),
                        _ => call!(plain1),
                    }
                } else if const { S::F32_LANES > 1 } {
                    match tile {
                        6 => call!(plain6),
                        5 => call!(plain5),
                        4 => call!(plain4),
                        3 => call!(plain3),
                        2 => call!(plain2),
                        _ => call!(plain1),
                    }
                } else if tile == 2 {
                    call!(plain2);
                } else {
                    call!(plain1);
                }
                x += usize::from(tile);
            }
            if self.epilogue.rest.is_some() {
                let start = self.halo + y * self.out_row;
                for plane in &mut *self.planes {
                    self.epilogue
                        .finish(simd, &mut plane[start..start + self.width]);
                }
            }
        }
    }
}
