//! Every kernel at every level of the machine against the same kernel in scalar code, on 1,000 random
//! shapes each.

use crate::common;

use common::{Random, random_spec};
use fx_kernels::attention::{Attention, HeadRows, attention};
use fx_kernels::conv::{
    Blocked, Conv2d, ConvFinish, ConvOptions, ConvSpec, PoolSpec, activate, adaptive_average_pool,
    add, affine, average_pool, global_average_pool, grouped_nchw, max_pool, scale,
};
use fx_kernels::matrix::{
    Finish, Matrices, PackedMatrix, Sizes, WeightKind, WeightOrder, linear, matmul,
};
use fx_kernels::norm::{Groups, group_norm, layer_norm, log_softmax, rms_norm, softmax};
use fx_kernels::pointwise::{Binary, Chain, Operand, Unary};
use fx_kernels::rotary::{Heads, Pairs, rotate};
use fx_kernels::transpose::contiguous;
use fx_kernels::{Activation, Level};

const SHAPES: usize = 1000;

/// Runs a kernel on random shapes. It makes its operands, and returns what runs it at a level.
fn each_shape<R: Fn(Level) -> Vec<f32>>(
    kernel: &str,
    make: impl FnMut(&mut Random) -> (String, R),
) {
    each_shape_within((1e-6, 1e-3), kernel, make);
}

/// As [`each_shape`], with the largest error over the largest result, or over what is given if that is
/// more.
fn each_shape_within<R: Fn(Level) -> Vec<f32>>(
    (tolerance, least): (f32, f32),
    kernel: &str,
    mut make: impl FnMut(&mut Random) -> (String, R),
) {
    let levels: Vec<Level> = Level::available();
    let mut random = Random::new(kernel.len() as u64);
    for _ in 0..SHAPES {
        let (shape, run) = make(&mut random);
        let expected = run(Level::Scalar);
        let largest = expected.iter().fold(least, |m, x| m.max(x.abs()));
        for level in levels.iter().filter(|level| **level != Level::Scalar) {
            let found = run(*level);
            assert_eq!(found.len(), expected.len(), "{kernel} {level:?} {shape}");
            for (i, (f, e)) in found.iter().zip(&expected).enumerate() {
                let error = (f - e).abs() / largest;
                assert!(
                    error <= tolerance,
                    "{kernel} {level:?} {shape}: {i} is {f}, not {e}"
                );
            }
        }
    }
}

const ACTIVATIONS: [Activation; 9] = [
    Activation::None,
    Activation::Relu,
    Activation::Relu6,
    Activation::Silu,
    Activation::Hardswish,
    Activation::Gelu,
    Activation::GeluTanh,
    Activation::Sigmoid,
    Activation::Tanh,
];

fn activation(random: &mut Random) -> Activation {
    ACTIVATIONS[random.below(ACTIVATIONS.len())]
}

/// A convolution from a plain image or from blocks.
///
/// Sums are of about 1, and errors are of their size, whatever the activation leaves of them.
fn convolution(
    tolerance: f32,
    kernel: &str,
    is_plain: bool,
    mut spec: impl FnMut(&mut Random) -> (ConvSpec, usize),
) {
    each_shape_within((tolerance, 1.0), kernel, |random| {
        let (spec, side) = spec(random);
        let (height, width) = (side + random.below(9), side + random.below(9));
        let batch = 1 + random.below(2);
        let depth = spec.in_channels / spec.groups * spec.kernel[0] * spec.kernel[1];
        let mut weight = random.floats(spec.out_channels * depth);
        weight.iter_mut().for_each(|w| *w /= (depth as f32).sqrt());
        let bias = random.floats(spec.out_channels);
        let plain = random.floats(batch * spec.in_channels * height * width);
        let (oh, ow) = spec.out_size(height, width);
        let before = random.floats(batch * spec.out_channels * oh * ow);
        let finish = ConvFinish {
            adds: random.below(2) == 0,
            activation: activation(random),
        };
        let halo = random.below(2);
        let run = move |level: Level| {
            let options = ConvOptions {
                level,
                winograd: true,
                bf16: false,
            };
            let conv = Conv2d::new(spec, &weight, Some(&bias), options).expect("sizes");
            let mut out =
                Blocked::from_nchw(&before, batch, spec.out_channels, oh, ow, halo).expect("sizes");
            if is_plain {
                conv.run_nchw(&plain, (batch, height, width), finish, &mut out)
                    .expect("sizes");
            } else {
                let x =
                    Blocked::from_nchw(&plain, batch, spec.in_channels, height, width, conv.halo())
                        .expect("sizes");
                conv.run(&x, finish, &mut out).expect("sizes");
            }
            let mut floats = vec![0.0; before.len()];
            out.to_nchw(&mut floats).expect("sizes");
            floats
        };
        (format!("{spec:?} {height}x{width} {finish:?}"), run)
    });
}

#[test]
fn direct_convolution() {
    convolution(1e-6, "direct", false, |random| {
        let (inputs, outs) = (1 + random.below(40), 1 + random.below(40));
        (random_spec(random, 1, inputs, outs), 8)
    });
}

#[test]
fn convolution_of_plain_images() {
    convolution(1e-6, "plain images", true, |random| {
        let (inputs, outs) = (1 + random.below(4), 1 + random.below(40));
        (random_spec(random, 1, inputs, outs), 8)
    });
}

#[test]
fn grouped_convolution() {
    convolution(1e-6, "grouped", false, |random| {
        let (groups, inputs, outs) = (
            2 + random.below(4),
            1 + random.below(9),
            1 + random.below(20),
        );
        (random_spec(random, groups, inputs, outs), 8)
    });
}

#[test]
fn depthwise_convolution() {
    convolution(1e-6, "depthwise", false, |random| {
        let channels = 2 + random.below(60);
        (random_spec(random, channels, 1, 1), 8)
    });
}

#[test]
fn winograd_convolution() {
    // Its transforms multiply rounding errors.
    convolution(1e-5, "winograd", false, |random| {
        let (inputs, outs) = (16 + random.below(8), 16 + random.below(24));
        let spec = ConvSpec {
            padding: [1, 1],
            ..ConvSpec::new(inputs, outs, 3)
        };
        (spec, 28)
    });
}

#[test]
fn grouped_convolution_of_plain_images() {
    each_shape("grouped_nchw", |random| {
        let (groups, inputs, outs) = (
            1 + random.below(6),
            1 + random.below(3),
            1 + random.below(3),
        );
        let spec = random_spec(random, groups, inputs, outs);
        let (height, width) = (8 + random.below(9), 8 + random.below(30));
        let x = random.floats(spec.in_channels * height * width);
        let weight = random.floats(spec.out_channels * inputs * spec.kernel[0] * spec.kernel[1]);
        let (oh, ow) = spec.out_size(height, width);
        let run = move |level: Level| {
            let mut out = vec![0.0; spec.out_channels * oh * ow];
            grouped_nchw(
                level,
                &spec,
                &x,
                &weight,
                None,
                (1, height, width),
                &mut out,
            )
            .expect("sizes");
            out
        };
        (format!("{spec:?} {height}x{width}"), run)
    });
}

/// A kernel from an image to another.
fn from_image(
    kernel: &str,
    out: impl Fn(&mut Random, usize, usize) -> (usize, usize, usize),
    run: impl Fn(Level, usize, &Blocked, &mut Blocked) + Copy,
) {
    each_shape(kernel, |random| {
        let (channels, height, width) = (
            1 + random.below(40),
            2 + random.below(12),
            2 + random.below(30),
        );
        let plain = random.floats(channels * height * width);
        let (what, oh, ow) = out(random, height, width);
        let run = move |level: Level| {
            let x = Blocked::from_nchw(&plain, 1, channels, height, width, 0).expect("sizes");
            let mut out = Blocked::zeros(1, channels, oh, ow, 1);
            run(level, what, &x, &mut out);
            let mut floats = vec![0.0; channels * oh * ow];
            out.to_nchw(&mut floats).expect("sizes");
            floats
        };
        (format!("{channels}x{height}x{width} {what}"), run)
    });
}

#[test]
fn pools() {
    let specs: Vec<PoolSpec> = (1..5)
        .flat_map(|kernel| (1..4).map(move |stride| (kernel, stride)))
        .flat_map(|(kernel, stride)| [false, true].map(|ceil_mode| (kernel, stride, ceil_mode)))
        .map(|(kernel, stride, ceil_mode)| PoolSpec {
            stride: [stride; 2],
            padding: [kernel / 2; 2],
            ceil_mode,
            count_include_pad: stride % 2 == 0,
            ..PoolSpec::new(kernel)
        })
        .collect();
    let specs = &specs;
    let out = |random: &mut Random, height, width| {
        let what = random.below(specs.len());
        let (oh, ow) = specs[what].out_size(height, width);
        (what, oh, ow)
    };
    from_image("max_pool", out, |level, what, x, out| {
        max_pool(level, x, &specs[what], out).expect("sizes");
    });
    from_image("average_pool", out, |level, what, x, out| {
        average_pool(level, x, &specs[what], out).expect("sizes");
    });
    let any = |random: &mut Random, _, _| (0, 1 + random.below(9), 1 + random.below(9));
    from_image("adaptive_average_pool", any, |level, _, x, out| {
        adaptive_average_pool(level, x, out).expect("sizes");
    });
    from_image(
        "global_average_pool",
        |_, _, _| (0, 1, 1),
        |level, _, x, out| {
            let mut means = vec![0.0; x.channels()];
            global_average_pool(level, x, &mut means).expect("sizes");
            out.copy_from_nchw(&means).expect("sizes");
        },
    );
}

#[test]
fn operations_on_images() {
    let same =
        |random: &mut Random, height, width| (random.below(ACTIVATIONS.len()), height, width);
    let numbers = |n: usize| -> Vec<f32> { (0..n).map(|i| i as f32 / 7.0 - 1.0).collect() };
    from_image("activate", same, |level, what, x, out| {
        activate(level, x, ACTIVATIONS[what], out).expect("sizes");
    });
    from_image("add", same, |level, what, x, out| {
        add(level, x, x, ACTIVATIONS[what], out).expect("sizes");
    });
    from_image("scale", same, |level, what, x, out| {
        scale(level, x, &numbers(x.channels()), ACTIVATIONS[what], out).expect("sizes");
    });
    from_image("affine", same, |level, what, x, out| {
        let (factors, shifts) = (numbers(x.channels()), numbers(x.channels()));
        affine(level, x, &factors, &shifts, ACTIVATIONS[what], out).expect("sizes");
    });
}

#[test]
fn linear_layers() {
    each_shape("linear", |random| {
        let (rows, inputs, outs) = (
            1 + random.below(20),
            1 + random.below(90),
            1 + random.below(90),
        );
        let kind = [
            WeightKind::F32,
            WeightKind::Bf16,
            WeightKind::F16,
            WeightKind::I8,
        ][random.below(4)];
        let (x, weight) = (random.floats(rows * inputs), random.floats(inputs * outs));
        let (bias, residual) = (random.floats(outs), random.floats(rows * outs));
        let weight = PackedMatrix::new(&weight, inputs, outs, WeightOrder::OutputsFirst, kind)
            .expect("sizes");
        let activation = activation(random);
        let run = move |level: Level| {
            let finish = Finish {
                bias: Some(&bias),
                residual: Some(&residual),
                activation,
                ..Finish::default()
            };
            let mut out = vec![0.0; rows * outs];
            linear(level, rows, &x, &weight, finish, &mut out).expect("sizes");
            out
        };
        (
            format!("{rows}x{inputs}x{outs} {kind:?} {activation:?}"),
            run,
        )
    });
}

#[test]
fn products_of_batches() {
    each_shape("matmul", |random| {
        let [batch, rows, depth, columns] = [3, 20, 60, 60].map(|n| 1 + random.below(n));
        let (a, b) = (
            random.floats(batch * rows * depth),
            random.floats(batch * depth * columns),
        );
        let is_turned = random.below(2) == 0;
        let run = move |level: Level| {
            let sizes = Sizes {
                batch: &[batch],
                rows,
                depth,
                columns,
            };
            let a = Matrices {
                data: &a,
                start: 0,
                batch: &[rows * depth],
                row: depth,
                column: 1,
            };
            let (row, column) = if is_turned { (1, depth) } else { (columns, 1) };
            let b = Matrices {
                data: &b,
                start: 0,
                batch: &[depth * columns],
                row,
                column,
            };
            let mut out = vec![0.0; batch * rows * columns];
            matmul(level, sizes, a, b, 0.5, Finish::default(), &mut out).expect("sizes");
            out
        };
        (
            format!("{batch}x{rows}x{depth}x{columns}, turned: {is_turned}"),
            run,
        )
    });
}

#[test]
fn attention_of_few_and_many_queries() {
    each_shape("attention", |random| {
        // A few queries of common sizes behind many keys, shared by up to nine heads, or anything.
        let is_token = random.below(4) == 0;
        let (kv_heads, group) = (
            1 + random.below(2),
            1 + random.below(if is_token { 9 } else { 2 }),
        );
        let (queries, more, size) = match is_token {
            true => {
                let size = [64, 128, 256][random.below(3)];
                (1 + random.below(3), random.below(150), size)
            }
            false => (1 + random.below(20), random.below(20), 1 + random.below(40)),
        };
        let (heads, keys) = (kv_heads * group, queries + more);
        let q = random.floats(heads * queries * size);
        let (k, v) = (
            random.floats(kv_heads * keys * size),
            random.floats(kv_heads * keys * size),
        );
        let causal = (random.below(2) == 0).then_some(more as isize);
        let run = move |level: Level| {
            let rows = |data, places: usize| HeadRows {
                data,
                start: 0,
                batch: 0,
                head: places * size,
                place: size,
                column: 1,
            };
            let sizes = Attention {
                kv_heads,
                keys,
                causal,
                ..Attention::new(1, heads, queries, size)
            };
            let mut out = vec![0.0; heads * queries * size];
            attention(
                level,
                sizes,
                rows(&q, queries),
                rows(&k, keys),
                rows(&v, keys),
                &mut out,
            )
            .expect("sizes");
            out
        };
        (
            format!("{heads}/{kv_heads} heads, {queries}x{keys}x{size} {causal:?}"),
            run,
        )
    });
}

#[test]
fn norms() {
    each_shape("norms", |random| {
        let (rows, size, kind) = (1 + random.below(9), 1 + random.below(200), random.below(5));
        let x = random.floats(rows * size);
        let (weight, bias) = (random.floats(size), random.floats(size));
        let run = move |level: Level| {
            let mut out = vec![0.0; rows * size];
            match kind {
                0 => softmax(level, size, &x, &mut out),
                1 => log_softmax(level, size, &x, &mut out),
                2 => layer_norm(level, size, &x, Some(&weight), Some(&bias), 1e-5, &mut out),
                3 => rms_norm(level, size, &x, Some(&weight), 1e-6, &mut out),
                _ => {
                    let sizes = Groups {
                        channels: size,
                        area: rows,
                        groups: 1,
                    };
                    group_norm(level, sizes, &x, Some(&weight), Some(&bias), 1e-5, &mut out)
                }
            }
            .expect("sizes");
            out
        };
        (format!("{rows}x{size}, {kind}"), run)
    });
}

#[test]
fn rotations() {
    each_shape("rotate", |random| {
        let [length, heads, half] = [5, 4, 30].map(|n| 1 + random.below(n));
        let size = 2 * half + random.below(9);
        let sizes = Heads {
            batch: 1,
            length,
            heads,
            size,
            turned: 2 * half,
            start: 0,
            batch_stride: length * heads * size,
            place_stride: heads * size,
            head_stride: size,
        };
        let pairs = [Pairs::Halves, Pairs::Neighbours][random.below(2)];
        let x = random.floats(length * heads * size);
        let (cos, sin) = (random.floats(length * half), random.floats(length * half));
        let run = move |level: Level| {
            let mut out = vec![0.0; x.len()];
            rotate(level, &x, sizes, pairs, &cos, &sin, &mut out).expect("sizes");
            out
        };
        (format!("{sizes:?} {pairs:?}"), run)
    });
}

#[test]
fn copies() {
    each_shape("contiguous", |random| {
        let [a, b, c] = [9, 30, 30].map(|n| 1 + random.below(n));
        let x = random.floats(a * b * c);
        let strides = [[b * c, 1, b], [1, a, a * b], [b, 1, a * b], [1, a * c, a]][random.below(4)];
        let run = move |level: Level| {
            let mut out = vec![0.0; a * b * c];
            contiguous(level, &x, 0, &[a, b, c], &strides, &mut out).expect("sizes");
            out
        };
        (format!("{a}x{b}x{c} {strides:?}"), run)
    });
}

#[test]
fn chains() {
    each_shape("chain", |random| {
        let (rows, columns) = (1 + random.below(20), 1 + random.below(300));
        let (x, y) = (random.floats(rows * columns), random.floats(columns));
        let mut chain = Chain::new();
        let (first, second) = (chain.input(), chain.input());
        let mut value = first;
        let mut names = Vec::new();
        for _ in 0..1 + random.below(6) {
            let unary = [
                Unary::Neg,
                Unary::Abs,
                Unary::Exp,
                Unary::Sin,
                Unary::Cos,
                Unary::Erf,
                Unary::Clamp(-0.5, 0.75),
                Unary::Activation(activation(random)),
            ][random.below(8)];
            let binary = [
                Binary::Add,
                Binary::Sub,
                Binary::Mul,
                Binary::Max,
                Binary::Min,
            ][random.below(5)];
            names.push(format!("{unary:?} {binary:?}"));
            // Bounded, so that errors do not grow from step to step.
            let bounded = chain.unary(Unary::Clamp(-1.0, 1.0), value);
            let one = chain.unary(unary, bounded);
            value = chain.binary(binary, one, second);
        }
        let tape = chain.finish(&[value]);
        let run = move |level: Level| {
            let (all, each_row) = ([columns, 1], [0, 1]);
            let operands = [Operand::full(&x, &all), Operand::full(&y, &each_row)];
            let mut out = vec![0.0; rows * columns];
            tape.run(level, &[rows, columns], &operands, &mut [&mut out])
                .expect("sizes");
            // Over an operand come the same bits.
            let mut over = x.clone();
            tape.run_over(level, &[rows, columns], &operands[1..], 0, &mut over)
                .expect("sizes");
            let bits = |floats: &[f32]| floats.iter().map(|x| x.to_bits()).collect::<Vec<_>>();
            assert_eq!(bits(&over), bits(&out));
            out
        };
        (format!("{rows}x{columns} {names:?}"), run)
    });
}
