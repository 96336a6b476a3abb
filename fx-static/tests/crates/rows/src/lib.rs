//! `closure` without `std` and without an allocator, as fx wrote it.

#![no_std]
#![forbid(unsafe_code)]

use fx_static::{Activation, Aligned, Attention, Contiguous, Kernel, Linear, MaskKind, Matmul, Normed, Reduce, Reduction, RowNorm, floats, point, split};

/// The floats of an [`Arena`].
pub const ARENA: usize = 410;

/// The floats of the weights.
pub const WEIGHTS: usize = 232;

static BYTES: &Aligned<[u8; 4 * WEIGHTS]> = &Aligned(*include_bytes!("weights.bin"));

#[cfg(target_endian = "big")]
compile_error!("the weights are little-endian floats");

/// What a run takes; the last dim lies in order.
#[derive(Debug, Clone, Copy)]
pub struct Inputs<'a> {
    /// `[2, 5, 8]`.
    pub x: &'a [f32; 80],
    /// `[5, 5]`.
    pub mask: &'a [f32; 25],
}

/// What a run gives: it lies in the arena.
#[derive(Debug, Clone, Copy)]
pub struct Outputs<'a> {
    /// `[2, 5, 5]`.
    pub output_0: &'a [f32; 50],
    /// `[2, 8]`.
    pub output_1: &'a [f32; 16],
    /// `[1, 5, 1]`.
    pub output_2: &'a [f32; 5],
}

/// The memory of a run.
#[derive(Debug, Clone)]
pub struct Arena {
    floats: [f32; ARENA],
}

impl Arena {
    /// Zeros: a `static` of it is no part of the program's file.
    pub const fn new() -> Self {
        Arena { floats: [0.0; ARENA] }
    }
}

impl Default for Arena {
    fn default() -> Self {
        Arena::new()
    }
}

/// Runs the model.
pub fn run<'a>(inputs: &Inputs<'_>, arena: &'a mut Arena) -> Outputs<'a> {
    let weights = floats(BYTES);
    let arena = &mut arena.floats[..];
    // linear
    let (_, out, _) = split(arena, 170..250);
    Linear { inputs: 8, outputs: 8, has_bias: true, has_residual: false, is_residual_first: false, activation: Activation::None }
        .run(&[&inputs.x[0..80], &weights[0..64], &weights[64..72]], out);
    // linear_1
    let (_, out, _) = split(arena, 250..330);
    Linear { inputs: 8, outputs: 8, has_bias: true, has_residual: false, is_residual_first: false, activation: Activation::None }
        .run(&[&inputs.x[0..80], &weights[72..136], &weights[136..144]], out);
    // linear_2
    let (_, out, _) = split(arena, 330..410);
    Linear { inputs: 8, outputs: 8, has_bias: true, has_residual: false, is_residual_first: false, activation: Activation::None }
        .run(&[&inputs.x[0..80], &weights[144..208], &weights[208..216]], out);
    // scaled_dot_product_attention
    let (_, out, high) = split(arena, 0..85);
    Attention { sizes: [2, 2, 5, 5], kv_heads: 2, size: 4, value_size: 4, scale: 0.5_f32, is_causal: true, is_safe: true, mask: None, q: [40, 4, 8, 1], k: [40, 4, 8, 1], v: [40, 4, 8, 1], mask_strides: [0, 0, 0, 0] }
        .run(&[&high[85..165], &high[165..245], &high[245..325]], out);
    // scaled_dot_product_attention_1
    let (_, out, high) = split(arena, 85..170);
    Attention { sizes: [2, 2, 5, 5], kv_heads: 2, size: 4, value_size: 4, scale: 0.5_f32, is_causal: false, is_safe: true, mask: Some(MaskKind::Added), q: [40, 4, 8, 1], k: [40, 4, 8, 1], v: [40, 4, 8, 1], mask_strides: [0, 0, 5, 1] }
        .run(&[&high[0..80], &high[80..160], &high[160..240], &inputs.mask[0..25]], out);
    // add
    let (low, out, _) = split(arena, 170..250);
    point::each([1, 1, 2, 2, 5, 4], [(&low[0..80], [0, 0, 40, 4, 8, 1]), (&low[85..165], [0, 0, 40, 4, 8, 1])], out, |_, [x0, x1]| {
        x0 + x1
    });
    // reshape_3, in order
    let (_, out, high) = split(arena, 0..80);
    Contiguous { dims: [1, 1, 2, 5, 2, 4], strides: [0, 0, 40, 4, 20, 1] }
        .run(&[&high[90..170]], out);
    // add_1
    let (_, out, _) = split(arena, 0..80);
    point::each([1, 1, 1, 1, 1, 80], [(&inputs.x[0..80], [0, 0, 0, 0, 0, 1])], out, |old, [x0]| {
        old + x0
    });
    // layer_norm
    let (low, out, _) = split(arena, 80..160);
    RowNorm { how: Normed::Layer, size: 8, eps: 1e-5_f32, has_weight: true, has_bias: true }
        .run(&[&low[0..80], &weights[216..224], &weights[224..232]], out);
    // gelu
    let (_, out, _) = split(arena, 80..160);
    point::each([1, 1, 1, 1, 1, 80], [], out, |old, []| {
        point::activated(Activation::Gelu, old)
    });
    // rms_norm
    let (_, out, high) = split(arena, 0..80);
    RowNorm { how: Normed::Rms, size: 8, eps: 1e-6_f32, has_weight: true, has_bias: false }
        .run(&[&high[0..80], &weights[216..224]], out);
    // sigmoid, mul
    let (_, out, _) = split(arena, 0..80);
    point::each([1, 1, 1, 1, 1, 80], [(&inputs.x[0..80], [0, 0, 0, 0, 0, 1])], out, |old, [x0]| {
        let v1 = point::activated(Activation::Sigmoid, x0);
        old * v1
    });
    // matmul
    let (low, out, _) = split(arena, 160..210);
    Matmul { batch: [1, 1, 1, 2], a_batch: [0, 0, 0, 40], b_batch: [0, 0, 0, 40], size: [5, 8, 5], a: [8, 1], b: [1, 8] }
        .run(&[&low[0..80], &low[80..160]], out);
    // softmax
    let (low, out, _) = split(arena, 210..260);
    RowNorm { how: Normed::Softmax, size: 5, eps: 0.0_f32, has_weight: false, has_bias: false }
        .run(&[&low[160..210]], out);
    // abs, sqrt, exp, truediv, sub, tanh, clamp, neg, mul_1, gt, where_1
    let (_, out, _) = split(arena, 0..80);
    point::each([1, 1, 1, 1, 1, 80], [], out, |old, []| {
        let v1 = point::abs(old);
        let v2 = point::sqrt(v1);
        let v4 = point::exp(old);
        let v6 = v4 / 3.0_f32;
        let v7 = v6 - v2;
        let v8 = point::activated(Activation::Tanh, v7);
        let v9 = point::clamp(v8, -0.5_f32, 0.75_f32);
        let v10 = point::neg(v9);
        let v12 = v10 * 2.0_f32;
        let v14 = point::less(0.0_f32, v9);
        point::select(v14, v9, v12)
    });
    // mean
    let (low, out, _) = split(arena, 160..176);
    Reduce { how: Reduction::Mean, sizes: [2, 5, 8] }
        .run(&[&low[0..80]], out);
    // sum, in order
    let (low, out, _) = split(arena, 80..160);
    Contiguous { dims: [1, 1, 1, 5, 2, 8], strides: [0, 0, 0, 8, 40, 1] }
        .run(&[&low[0..80]], out);
    // sum
    let (_, out, high) = split(arena, 0..5);
    Reduce { how: Reduction::Sum, sizes: [5, 16, 1] }
        .run(&[&high[75..155]], out);
    Outputs {
        output_0: arena[210..260].first_chunk().expect("the arena has it"),
        output_1: arena[160..176].first_chunk().expect("the arena has it"),
        output_2: arena[0..5].first_chunk().expect("the arena has it"),
    }
}
