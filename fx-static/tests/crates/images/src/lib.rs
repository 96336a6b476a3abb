//! `closure` without `std` and without an allocator, as fx wrote it.

#![no_std]
#![forbid(unsafe_code)]

use fx_static::{Activation, AdaptivePool, Aligned, Contiguous, Conv, ConvSpec, ConvTranspose, Join, Kernel, Normed, Pad, Places, Pool, PoolSpec, Pooled, Reduce, Reduction, RowNorm, floats, point, split};

/// The floats of an [`Arena`].
pub const ARENA: usize = 1368;

/// The floats of the weights.
pub const WEIGHTS: usize = 234;

static BYTES: &Aligned<[u8; 4 * WEIGHTS]> = &Aligned(*include_bytes!("weights.bin"));

#[cfg(target_endian = "big")]
compile_error!("the weights are little-endian floats");

/// What a run takes; the last dim lies in order.
#[derive(Debug, Clone, Copy)]
pub struct Inputs<'a> {
    /// `[2, 2, 9, 11]`.
    pub x: &'a [f32; 396],
}

/// What a run gives: it lies in the arena.
#[derive(Debug, Clone, Copy)]
pub struct Outputs<'a> {
    /// `[2, 3, 2, 3]`.
    pub output_0: &'a [f32; 36],
    /// `[2, 6, 3, 3]`.
    pub output_1: &'a [f32; 108],
    /// `[2, 3]`.
    pub output_2: &'a [f32; 6],
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
    // conv2d, relu
    let (_, out, _) = split(arena, 0..360);
    Conv { spec: ConvSpec { in_channels: 2, out_channels: 6, groups: 1, kernel: [3, 3], stride: [2, 2], padding: [1, 1], dilation: [1, 1] }, size: [9, 11], has_bias: true, has_residual: false, activation: Activation::Relu }
        .run(&[&inputs.x[0..396], &weights[0..108], &weights[108..114]], out);
    // conv2d_1
    let (low, out, _) = split(arena, 360..660);
    Conv { spec: ConvSpec { in_channels: 6, out_channels: 6, groups: 6, kernel: [3, 2], stride: [1, 1], padding: [1, 0], dilation: [1, 1] }, size: [5, 6], has_bias: true, has_residual: false, activation: Activation::None }
        .run(&[&low[0..360], &weights[114..150], &weights[150..156]], out);
    // pad
    let (low, out, _) = split(arena, 720..1080);
    Pad { dims: [1, 1, 2, 6, 5, 5], before: [0, 0, 0, 0, 0, 0], after: [0, 0, 0, 0, 0, 1], value: 0.5_f32 }
        .run(&[&low[360..660]], out);
    // add, hardswish
    let (low, out, _) = split(arena, 720..1080);
    point::each([1, 1, 1, 1, 1, 360], [(&low[0..360], [0, 0, 0, 0, 0, 1])], out, |old, [x0]| {
        let v2 = old + x0;
        point::activated(Activation::Hardswish, v2)
    });
    // conv_transpose2d
    let (_, out, high) = split(arena, 0..720);
    ConvTranspose { spec: ConvSpec { in_channels: 6, out_channels: 3, groups: 1, kernel: [2, 2], stride: [2, 2], padding: [0, 0], dilation: [1, 1] }, size: [5, 6], out_size: [10, 12] }
        .run(&[&high[0..360], &weights[156..228]], out);
    // conv_transpose2d
    let (_, out, _) = split(arena, 0..720);
    point::each([1, 1, 1, 2, 3, 120], [(&weights[228..231], [0, 0, 0, 0, 1, 0]), (&weights[231..234], [0, 0, 0, 0, 1, 0])], out, |old, [x0, x1]| {
        let v2 = old * x0;
        let v4 = v2 + x1;
        point::activated(Activation::None, v4)
    });
    // max_pool2d
    let (low, out, _) = split(arena, 720..972);
    Pool { how: Pooled::Largest, spec: PoolSpec { kernel: [3, 3], stride: [2, 2], padding: [1, 1], dilation: [1, 1], ceil_mode: true, count_include_pad: true }, size: [10, 12] }
        .run(&[&low[0..720]], out);
    // avg_pool2d
    let (low, out, _) = split(arena, 972..1152);
    Pool { how: Pooled::Mean, spec: PoolSpec { kernel: [2, 2], stride: [2, 2], padding: [0, 0], dilation: [1, 1], ceil_mode: false, count_include_pad: true }, size: [10, 12] }
        .run(&[&low[0..720]], out);
    // cat, in order
    let (low, out, _) = split(arena, 1152..1260);
    Contiguous { dims: [1, 1, 1, 6, 3, 6], strides: [0, 0, 0, 42, 7, 1] }
        .run(&[&low[720..950]], out);
    // cat, in order
    let (low, out, _) = split(arena, 1260..1368);
    Contiguous { dims: [1, 1, 1, 1, 6, 18], strides: [0, 0, 0, 0, 30, 1] }
        .run(&[&low[972..1140]], out);
    // cat
    let (_, out, high) = split(arena, 720..936);
    Join { outer: 2 }
        .run(&[&high[216..324], &high[324..432]], out);
    // index_select
    let (low, out, _) = split(arena, 936..1044);
    Places { sizes: [36, 6, 1], places: [3, 0, 0] }
        .run(&[&low[720..936]], out);
    // adaptive_avg_pool2d
    let (low, out, _) = split(arena, 1044..1080);
    AdaptivePool { size: [10, 12], out_size: [2, 3] }
        .run(&[&low[0..720]], out);
    // log_softmax, in order
    let (_, out, high) = split(arena, 720..828);
    Contiguous { dims: [1, 1, 2, 3, 3, 6], strides: [0, 0, 54, 1, 3, 9] }
        .run(&[&high[108..216]], out);
    // log_softmax
    let (low, out, _) = split(arena, 828..936);
    RowNorm { how: Normed::LogSoftmax, size: 6, eps: 0.0_f32, has_weight: false, has_bias: false }
        .run(&[&low[720..828]], out);
    // amax
    let (low, out, _) = split(arena, 720..726);
    Reduce { how: Reduction::Max, sizes: [6, 120, 1] }
        .run(&[&low[0..720]], out);
    // a result, in order
    let (_, out, high) = split(arena, 0..108);
    Contiguous { dims: [1, 1, 2, 6, 3, 3], strides: [0, 0, 54, 1, 6, 18] }
        .run(&[&high[720..828]], out);
    Outputs {
        output_0: arena[1044..1080].first_chunk().expect("the arena has it"),
        output_1: arena[0..108].first_chunk().expect("the arena has it"),
        output_2: arena[720..726].first_chunk().expect("the arena has it"),
    }
}
