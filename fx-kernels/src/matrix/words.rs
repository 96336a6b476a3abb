//! Lines of words: how numbers of few bits lie in panels, and how they become floats.
//!
//! Invariant: a line of bytes is 16 words, one for each pair of columns i and 16 + i; a line of numbers of 16 bits is a word
//! for each column.

use pulp::Simd;
use pulp::bytemuck::{cast_slice, cast_slice_mut};
use rayon::prelude::*;

use super::tile::PANEL;
use crate::Buffer;

/// The words of one line of a panel of bytes.
pub(crate) type Words = [u32; 16];

/// The words of one line of a panel of numbers of 16 bits: each has two steps of K, the first in its low half.
pub(crate) type PairWords = [u32; PANEL];

/// A buffer of panels of `width` floats, each filled by its number, in parallel.
pub(crate) fn panels(
    outputs: usize,
    width: usize,
    fill: impl Fn(usize, &mut [f32]) + Sync,
) -> Buffer {
    let mut buffer = Buffer::zeros(outputs.div_ceil(PANEL) * width);
    let fill = |(panel, out): (usize, &mut [f32])| fill(panel, out);
    match width {
        0 => {}
        // A thread of a pool that waits takes up other work, which may wait for what this one holds.
        _ if rayon::current_thread_index().is_some() => {
            buffer.chunks_mut(width).enumerate().for_each(fill);
        }
        _ => buffer.par_chunks_mut(width).enumerate().for_each(fill),
    }
    buffer
}

/// The lines of a buffer of words of bytes.
pub(crate) fn words(buffer: &Buffer) -> &[Words] {
    cast_slice::<f32, u32>(buffer).as_chunks().0
}

pub(crate) fn words_mut(buffer: &mut Buffer) -> &mut [Words] {
    cast_slice_mut::<f32, u32>(buffer).as_chunks_mut().0
}

/// The lines of a buffer of words of numbers of 16 bits.
pub(crate) fn pair_words(buffer: &Buffer) -> &[PairWords] {
    cast_slice::<f32, u32>(buffer).as_chunks().0
}

/// The bf16 in the low and in the high halves of the words of a line from `at` on.
#[inline(always)]
pub(crate) fn widen_bf16<S: Simd>(simd: S, line: &[u32], at: usize) -> [S::f32s; 2] {
    let words = S::as_simd_u32s(&line[at..at + S::U32_LANES]).0[0];
    let low = simd.wrapping_dyn_shl_u32s(words, simd.splat_u32s(16));
    let high = simd.and_u32s(words, simd.splat_u32s(0xffff_0000));
    [
        simd.transmute_f32s_u32s(low),
        simd.transmute_f32s_u32s(high),
    ]
}

/// The same of f16.
#[inline(always)]
pub(crate) fn widen_f16<S: Simd>(simd: S, line: &[u32], at: usize) -> [S::f32s; 2] {
    let words = S::as_simd_u32s(&line[at..at + S::U32_LANES]).0[0];
    let high = simd.wrapping_dyn_shr_u32s(words, simd.splat_u32s(16));
    [float_of_f16(simd, words), float_of_f16(simd, high)]
}

/// The low 16 bits of each word, an f16.
#[inline(always)]
fn float_of_f16<S: Simd>(simd: S, words: S::u32s) -> S::f32s {
    let shl = |x, by| simd.wrapping_dyn_shl_u32s(x, simd.splat_u32s(by));
    let sign = shl(simd.and_u32s(words, simd.splat_u32s(0x8000)), 16);
    let size = shl(simd.and_u32s(words, simd.splat_u32s(0x7fff)), 13);
    // The exponent counts from 15, and from 127 in an f32; infinities and NaN have the largest one.
    let is_finite = simd.less_than_u32s(size, simd.splat_u32s(0x0f80_0000));
    let offset = simd.select_u32s(
        is_finite,
        simd.splat_u32s(0x3800_0000),
        simd.splat_u32s(0x7000_0000),
    );
    let normal = simd.add_u32s(size, offset);
    // Below the smallest normal number: the fraction of a float that is at least that, less it.
    let least = simd.splat_f32s(f32::from_bits(0x3880_0000));
    let fraction = simd.or_u32s(size, simd.splat_u32s(0x3880_0000));
    let small = simd.sub_f32s(simd.transmute_f32s_u32s(fraction), least);
    let is_small = simd.less_than_u32s(size, simd.splat_u32s(0x0080_0000));
    let size = simd.select_u32s(is_small, simd.transmute_u32s_f32s(small), normal);
    simd.transmute_f32s_u32s(simd.or_u32s(size, sign))
}

/// The two vectors of columns `at..` and `16 + at..` of a line of integers: for the first step of K, then for the second.
#[inline(always)]
pub(crate) fn widen_i8<S: Simd>(simd: S, line: &Words, at: usize) -> [[S::f32s; 2]; 2] {
    let words = S::as_simd_u32s(&line[at..at + S::U32_LANES]).0[0];
    macro_rules! float {
        ($shift:literal) => {
            byte(
                simd,
                simd.wrapping_dyn_shr_u32s(words, simd.splat_u32s($shift)),
            )
        };
    }
    [[byte(simd, words), float!(8)], [float!(16), float!(24)]]
}

/// The low byte of each word, less 128, as a float.
#[inline(always)]
pub(crate) fn byte<S: Simd>(simd: S, words: S::u32s) -> S::f32s {
    // A byte in the low bits of 2^23 is a float, exactly.
    let byte = simd.and_u32s(words, simd.splat_u32s(0xff));
    let bits = simd.or_u32s(byte, simd.splat_u32s(0x4b00_0000));
    simd.sub_f32s(simd.transmute_f32s_u32s(bits), simd.splat_f32s(8_388_736.0))
}
