//! Convolutions in `bf16`: images and weights rounded to pairs of channels, then the direct convolution on them.
//!
//! Invariant: the image of pairs has the halo of its source, and zero where a pair has no second channel.

use pulp::Simd;

use crate::conv::direct::Direct;
use crate::conv::epilogue::Epilogue;
use crate::conv::share::{self, Task};
use crate::conv::{Blocked, ConvSpec, reads_plain};
use crate::matrix::to_bf16;
use crate::scratch::lend_buffer;
use crate::terms::{Kernel, MulAdd, Pairs, Terms};
use crate::{BLOCK, Block, Level};

/// What rounding two floats costs in operations: it is bound by memory.
const WORK: usize = 60;

/// Packed weights of a convolution in `bf16`.
#[derive(Debug, Clone)]
pub(crate) struct PairConv {
    terms: Pairs,
    direct: Direct<Pairs>,
}

impl PairConv {
    /// Packs a weight, if the machine has products of pairs, and each of them is of one group.
    pub(crate) fn new(
        spec: ConvSpec,
        weight: &[f32],
        bias: Option<&[f32]>,
        level: Level,
    ) -> Option<PairConv> {
        let group_in = spec.group_in();
        let fits = spec.groups == 1 || group_in.is_multiple_of(2);
        let terms = Pairs::of(level).filter(|_| fits && !reads_plain(&spec))?;
        let (pairs, taps) = (group_in.div_ceil(2), spec.taps());
        let mut words = vec![0.0f32; spec.out_channels * pairs * taps];
        let windows = weight.chunks_exact(group_in * taps);
        for (window, words) in windows.zip(words.chunks_exact_mut(pairs * taps)) {
            let both = window.chunks(2 * taps).zip(words.chunks_exact_mut(taps));
            for (both, words) in both {
                for (tap, word) in words.iter_mut().enumerate() {
                    let second = both.get(taps + tap).copied().unwrap_or_default();
                    let bits = u32::from(to_bf16(both[tap])) | u32::from(to_bf16(second)) << 16;
                    *word = f32::from_bits(bits);
                }
            }
        }
        let spec = ConvSpec {
            in_channels: pairs * spec.groups,
            ..spec
        };
        let direct = Direct::new(terms, spec, &words, bias, level);
        Some(PairConv { terms, direct })
    }

    /// Runs on sizes that the caller has checked; the input's halo holds the padding.
    pub(crate) fn run(&self, input: &Blocked, epilogue: Epilogue, out: &mut Blocked) {
        let (batch, channels) = (input.batch(), input.channels().div_ceil(2));
        let (height, width, halo) = (input.height(), input.width(), input.halo());
        let floats = Blocked::floats(batch, channels, height, width, halo);
        lend_buffer(floats, |memory| {
            let mut pairs = Blocked::in_memory(std::mem::take(memory));
            pairs.reset(batch, channels, height, width, halo);
            self.round(input, &mut pairs);
            self.direct.run(&pairs, epilogue, out);
            *memory = pairs.into_memory();
        });
    }

    /// Rounds an image to pairs of channels.
    fn round(&self, input: &Blocked, pairs: &mut Blocked) {
        let (row, halo, width) = (pairs.row(), pairs.halo(), pairs.width());
        let (blocks, channels) = (input.channel_blocks(), input.channels());
        let work = pairs.planes() * pairs.height() * width * BLOCK * WORK;
        let band = share::band(pairs.height(), pairs.planes(), work);
        share::run(share::cut(pairs, 1, band), work, |mut task: Task<'_>| {
            let first = 2 * task.plane;
            let planes = task.image * blocks + first;
            for (y, line) in (task.y0..).zip(task.planes[0].chunks_exact_mut(row)) {
                let from = |plane: usize| {
                    let at = plane * input.plane() + input.origin() + y * row;
                    &input.blocks()[at..at + width]
                };
                let round = Round {
                    first: from(planes),
                    second: (first + 1 < blocks).then(|| from(planes + 1)),
                    channels: (channels - first * BLOCK).min(2 * BLOCK),
                    out: &mut line[halo..halo + width],
                };
                self.terms.run(Level::Avx512, round);
            }
        });
    }
}

/// A row of two blocks of channels, of which the second may be missing.
struct Round<'a> {
    first: &'a [Block],
    second: Option<&'a [Block]>,
    /// The channels of both.
    channels: usize,
    out: &'a mut [Block],
}

impl Kernel<Pairs> for Round<'_> {
    #[inline(always)]
    fn run<S: Simd>(self, _: S, terms: Pairs)
    where
        Pairs: MulAdd<S>,
    {
        if let (Some(second), true) = (self.second, self.channels == 2 * BLOCK) {
            for ((out, low), high) in self.out.iter_mut().zip(self.first).zip(second) {
                *out = terms.of_block(low, high);
            }
            return;
        }
        let lanes = self.channels.min(BLOCK);
        let rest = self.channels - lanes;
        for (x, (out, low)) in self.out.iter_mut().zip(self.first).enumerate() {
            let high = self.second.map_or(&[][..], |second| &second[x][..rest]);
            *out = terms.of_block(&low[..lanes], high);
        }
    }
}
