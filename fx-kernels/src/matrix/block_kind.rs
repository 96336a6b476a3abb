//! The blocks of GGUF files: integers of a few bits, with scales for groups of 16 or 32 of them.
//!
//! Invariant: a [`Block`] has the numbers of its bytes, none of them rounded.

use half::f16;

/// The inputs of a chunk: every kind has at least one scale for each.
pub(crate) const CHUNK: usize = 32;

/// The most inputs of a block.
const LONGEST: usize = 256;

/// The kinds of blocks, by the names of GGUF. An element is `scale * q`, or `scale * q - min`; scales are `f16`, or products of
/// one with an integer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
#[allow(non_camel_case_types, reason = "the names of GGUF")]
pub enum BlockKind {
    /// 32 integers from -8 to 7 with a scale: 4.5 bits for each.
    Q4_0,
    /// 32 integers from 0 to 15 with a scale and a minimum: 5 bits.
    Q4_1,
    /// 32 integers from -16 to 15 with a scale: 5.5 bits, packed in 8.5.
    Q5_0,
    /// 32 integers from 0 to 31 with a scale and a minimum: 6 bits, packed in 9.
    Q5_1,
    /// 32 integers from -128 to 127 with a scale: 8.5 bits.
    Q8_0,
    /// 256 integers from 0 to 15; each 32 have a scale and a minimum of 6 bits: 4.5 bits, packed in 4.625.
    Q4K,
    /// 256 integers from 0 to 31; each 32 have a scale and a minimum of 6 bits: 5.5 bits, packed in 8.625.
    Q5K,
    /// 256 integers from -32 to 31; each 16 have a scale of 8 bits: 6.5625 bits, packed in 8.5625.
    Q6K,
}

/// How the scales of a block are made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scaling {
    /// A scale for the block.
    Scale,
    /// A scale and a minimum for the block.
    ScaleAndMin,
    /// A scale and a minimum for the block, each times an integer for each chunk.
    Chunks,
    /// A scale for the block, times an integer for each half of a chunk.
    Halves,
}

/// A block of a row.
pub(crate) struct Block {
    /// The scale and the minimum.
    pub scale: f16,
    pub min: f16,
    /// The integers that `scale` is times: for each chunk, or for each half of one plus 128.
    pub scales: [u8; LONGEST / 16],
    /// The integers that `min` is times, for each chunk.
    pub mins: [u8; LONGEST / CHUNK],
    /// The integers of the elements, from zero: less [`BlockKind::zero`] they are `q`.
    pub codes: [u8; LONGEST],
}

impl BlockKind {
    /// How many elements a block has.
    pub fn block_size(self) -> usize {
        match self.scaling() {
            Scaling::Scale | Scaling::ScaleAndMin => CHUNK,
            Scaling::Chunks | Scaling::Halves => LONGEST,
        }
    }

    /// How many bytes a block has in a file.
    pub fn block_bytes(self) -> usize {
        match self {
            BlockKind::Q4_0 => 18,
            BlockKind::Q4_1 => 20,
            BlockKind::Q5_0 => 22,
            BlockKind::Q5_1 => 24,
            BlockKind::Q8_0 => 34,
            BlockKind::Q4K => 144,
            BlockKind::Q5K => 176,
            BlockKind::Q6K => 210,
        }
    }

    pub(crate) fn scaling(self) -> Scaling {
        match self {
            BlockKind::Q4_0 | BlockKind::Q5_0 | BlockKind::Q8_0 => Scaling::Scale,
            BlockKind::Q4_1 | BlockKind::Q5_1 => Scaling::ScaleAndMin,
            BlockKind::Q4K | BlockKind::Q5K => Scaling::Chunks,
            BlockKind::Q6K => Scaling::Halves,
        }
    }

    /// The code of an element that is zero, but for a minimum.
    pub(crate) fn zero(self) -> u8 {
        match self {
            BlockKind::Q4_0 => 8,
            BlockKind::Q5_0 => 16,
            BlockKind::Q8_0 => 128,
            BlockKind::Q6K => 32,
            BlockKind::Q4_1 | BlockKind::Q5_1 | BlockKind::Q4K | BlockKind::Q5K => 0,
        }
    }

    /// The largest code.
    fn largest(self) -> u8 {
        match self {
            BlockKind::Q4_0 | BlockKind::Q4_1 | BlockKind::Q4K => 15,
            BlockKind::Q5_0 | BlockKind::Q5_1 | BlockKind::Q5K => 31,
            BlockKind::Q6K => 63,
            BlockKind::Q8_0 => 255,
        }
    }

    /// Whether codes have 4 bits.
    pub(crate) fn has_nibbles(self) -> bool {
        self.largest() == 15
    }
}

/// The nibbles of bytes: the low ones first.
fn nibbles(bytes: &[u8], codes: &mut [u8]) {
    let (low, high) = codes.split_at_mut(bytes.len());
    for ((low, high), byte) in low.iter_mut().zip(high).zip(bytes) {
        (*low, *high) = (byte & 15, byte >> 4);
    }
}

/// Adds the bits of `bits` from `bit` on, `width` of them, above the low four of each code.
fn above(codes: &mut [u8], bits: &[u8], bit: usize, width: usize) {
    for (code, bits) in codes.iter_mut().zip(bits) {
        *code |= (bits >> bit & ((1 << width) - 1)) << 4;
    }
}

impl Block {
    const EMPTY: Block = Block {
        scale: f16::ZERO,
        min: f16::ZERO,
        scales: [0; LONGEST / 16],
        mins: [0; LONGEST / CHUNK],
        codes: [0; LONGEST],
    };

    /// The block of its bytes, [`BlockKind::block_bytes`] of them.
    pub(crate) fn of_bytes(kind: BlockKind, bytes: &[u8]) -> Block {
        let mut block = Block::EMPTY;
        let number = |at: usize| f16::from_le_bytes([bytes[at], bytes[at + 1]]);
        let codes = &mut block.codes;
        match kind {
            BlockKind::Q4_0 => {
                block.scale = number(0);
                nibbles(&bytes[2..], &mut codes[..CHUNK]);
            }
            BlockKind::Q4_1 => {
                (block.scale, block.min) = (number(0), -number(2));
                nibbles(&bytes[4..], &mut codes[..CHUNK]);
            }
            BlockKind::Q5_0 => {
                block.scale = number(0);
                nibbles(&bytes[6..], &mut codes[..CHUNK]);
                fifth_bits(codes, &bytes[2..6]);
            }
            BlockKind::Q5_1 => {
                (block.scale, block.min) = (number(0), -number(2));
                nibbles(&bytes[8..], &mut codes[..CHUNK]);
                fifth_bits(codes, &bytes[4..8]);
            }
            BlockKind::Q8_0 => {
                block.scale = number(0);
                for (code, byte) in codes.iter_mut().zip(&bytes[2..]) {
                    *code = byte ^ 0x80;
                }
            }
            BlockKind::Q4K | BlockKind::Q5K => {
                (block.scale, block.min) = (number(0), number(2));
                let scales = &bytes[4..16];
                for chunk in 0..4 {
                    block.scales[chunk] = scales[chunk] & 63;
                    block.mins[chunk] = scales[chunk + 4] & 63;
                    block.scales[chunk + 4] = scales[chunk + 8] & 15 | scales[chunk] >> 6 << 4;
                    block.mins[chunk + 4] = scales[chunk + 8] >> 4 | scales[chunk + 4] >> 6 << 4;
                }
                let (bits, low) = bytes[16..].split_at(bytes.len() - 16 - LONGEST / 2);
                for (codes, low) in codes.chunks_mut(64).zip(low.chunks(32)) {
                    nibbles(low, codes);
                }
                for (chunk, codes) in codes.chunks_mut(CHUNK).enumerate() {
                    above(codes, bits, chunk, 1);
                }
            }
            BlockKind::Q6K => {
                block.scale = number(208);
                for (scale, byte) in block.scales.iter_mut().zip(&bytes[192..208]) {
                    *scale = byte ^ 0x80;
                }
                for (half, codes) in codes.chunks_mut(128).enumerate() {
                    nibbles(&bytes[64 * half..][..64], codes);
                    for (chunk, codes) in codes.chunks_mut(CHUNK).enumerate() {
                        above(codes, &bytes[128 + 32 * half..], 2 * chunk, 2);
                    }
                }
            }
        }
        block
    }

    /// The nearest block to some floats, [`BlockKind::block_size`] of them. If one is not finite, none of the block's is a
    /// number.
    pub(crate) fn of_floats(kind: BlockKind, floats: &[f32]) -> Block {
        let mut block = Block::EMPTY;
        if floats.iter().any(|x| !x.is_finite()) {
            (block.scale, block.min) = (f16::NAN, f16::NAN);
            return block;
        }
        let largest = f32::from(kind.largest());
        let zero = f32::from(kind.zero());
        match kind.scaling() {
            Scaling::Scale => {
                block.scale = f16::from_f32(match kind {
                    BlockKind::Q8_0 => extreme(floats).abs() / 127.0,
                    _ => extreme(floats) / -zero,
                });
                block.round(kind, floats, CHUNK, |block, _| [block.scale.to_f32(), 0.0]);
            }
            Scaling::ScaleAndMin => {
                let [least, most] = range(floats);
                block.scale = f16::from_f32((most - least) / largest);
                block.min = f16::from_f32(-least);
                let of = |block: &Block, _| [block.scale, block.min].map(f16::to_f32);
                block.round(kind, floats, CHUNK, of);
            }
            Scaling::Chunks => {
                let of = floats.chunks(CHUNK).map(|floats| {
                    let [least, most] = range(floats);
                    let least = least.min(0.0);
                    [(most - least) / largest, -least]
                });
                let of: Vec<[f32; 2]> = of.collect();
                let most = |at: usize| of.iter().map(|of| of[at]).fold(0.0, f32::max);
                (block.scale, block.min) =
                    (f16::from_f32(most(0) / 63.0), f16::from_f32(most(1) / 63.0));
                for (chunk, [scale, min]) in of.into_iter().enumerate() {
                    block.scales[chunk] = steps(scale, block.scale.to_f32()).clamp(0.0, 63.0) as u8;
                    block.mins[chunk] = steps(min, block.min.to_f32()).clamp(0.0, 63.0) as u8;
                }
                block.round(kind, floats, CHUNK, |block, chunk| {
                    [
                        block.scale.to_f32() * f32::from(block.scales[chunk]),
                        block.min.to_f32() * f32::from(block.mins[chunk]),
                    ]
                });
            }
            Scaling::Halves => {
                let of: Vec<f32> = floats
                    .chunks(16)
                    .map(|part| extreme(part) / -zero)
                    .collect();
                block.scale = f16::from_f32(extreme(&of) / -128.0);
                for (byte, scale) in block.scales.iter_mut().zip(of) {
                    let scale = steps(scale, block.scale.to_f32()).clamp(-128.0, 127.0);
                    *byte = (scale + 128.0) as u8;
                }
                block.round(kind, floats, 16, |block, half| {
                    let scale = f32::from(block.scales[half]) - 128.0;
                    [block.scale.to_f32() * scale, 0.0]
                });
            }
        }
        block
    }

    /// Rounds floats to codes; `of` says the scale and the minimum of a group of `size`.
    fn round(
        &mut self,
        kind: BlockKind,
        floats: &[f32],
        size: usize,
        of: impl Fn(&Block, usize) -> [f32; 2],
    ) {
        let (zero, largest) = (f32::from(kind.zero()), f32::from(kind.largest()));
        for (group, floats) in floats.chunks(size).enumerate() {
            let [scale, min] = of(self, group);
            for (code, x) in self.codes[group * size..].iter_mut().zip(floats) {
                *code = (steps(x + min, scale) + zero).clamp(0.0, largest) as u8;
            }
        }
    }
}

/// Adds the bits of four bytes as the fifth bits of 32 codes.
fn fifth_bits(codes: &mut [u8], bits: &[u8]) {
    for (at, code) in codes[..CHUNK].iter_mut().enumerate() {
        *code |= (bits[at / 8] >> (at % 8) & 1) << 4;
    }
}

/// The number of the largest absolute value.
fn extreme(floats: &[f32]) -> f32 {
    let larger = |a: f32, b: &f32| if b.abs() > a.abs() { *b } else { a };
    floats.iter().fold(0.0, larger)
}

fn range(floats: &[f32]) -> [f32; 2] {
    let start = floats.first().copied().unwrap_or(0.0);
    let wider = |[a, b]: [f32; 2], x: &f32| [a.min(*x), b.max(*x)];
    floats.iter().fold([start; 2], wider)
}

/// How many steps of a scale a number is, to the nearest; none where the scale is zero.
fn steps(x: f32, scale: f32) -> f32 {
    if scale == 0.0 {
        return 0.0;
    }
    (x / scale).round_ties_even()
}
