//! Times of convolutions: prints `name value` lines. Arguments choose what runs: `layers` (also
//! `winograd`, `bf16`), `depthwise`, `plain`, `level=avx2`.

#![allow(clippy::print_stdout, reason = "the times are what it prints")]

use std::hint::black_box;
use std::time::Instant;

use fx_kernels::conv::{Blocked, Conv2d, ConvFinish, ConvOptions, ConvSpec, grouped_nchw};
use fx_kernels::{Activation, Level, peak_flops};

fn floats(n: usize) -> Vec<f32> {
    (0..n)
        .map(|i| ((i.wrapping_mul(2_654_435_761) >> 7) % 2000) as f32 / 1000.0 - 1.0)
        .collect()
}

/// The least time of many runs, in milliseconds.
fn least(mut f: impl FnMut(), milliseconds: f64) -> f64 {
    f();
    let (start, mut best, mut runs) = (Instant::now(), f64::MAX, 0);
    while runs < 5 || start.elapsed().as_secs_f64() * 1e3 < milliseconds {
        let start = Instant::now();
        f();
        best = best.min(start.elapsed().as_secs_f64() * 1e3);
        runs += 1;
    }
    best
}

struct Layer {
    conv: Conv2d,
    input: Blocked,
    out: Blocked,
    finish: ConvFinish,
}

impl Layer {
    fn new(
        spec: ConvSpec,
        side: usize,
        out_halo: usize,
        residual: bool,
        options: ConvOptions,
    ) -> Layer {
        let weight = floats(spec.out_channels * spec.group_in() * spec.kernel[0] * spec.kernel[1]);
        let conv = Conv2d::new(spec, &weight, Some(&floats(spec.out_channels)), options)
            .expect("the sizes fit");
        let mut input = Blocked::zeros(1, spec.in_channels, side, side, conv.halo());
        input
            .copy_from_nchw(&floats(spec.in_channels * side * side))
            .expect("the sizes fit");
        let (oh, ow) = spec.out_size(side, side);
        let out = Blocked::zeros(1, spec.out_channels, oh, ow, out_halo);
        let activation = match residual {
            true => Activation::Relu,
            false => Activation::Relu6,
        };
        Layer {
            conv,
            input,
            out,
            finish: ConvFinish {
                adds: residual,
                activation,
            },
        }
    }

    fn run(&mut self) {
        self.conv
            .run(&self.input, self.finish, &mut self.out)
            .expect("the sizes fit");
    }

    fn operations(&self) -> f64 {
        let spec = self.conv.spec();
        let pixels = self.out.height() * self.out.width();
        2.0 * (pixels * spec.out_channels * spec.group_in() * spec.kernel[0] * spec.kernel[1])
            as f64
    }
}

/// `in, out, kernel, stride, side of the input`.
const LAYERS: &[(usize, usize, usize, usize, usize)] = &[
    (64, 64, 3, 1, 56),
    (128, 128, 3, 1, 28),
    (256, 256, 3, 1, 14),
    (512, 512, 3, 1, 7),
    (64, 128, 3, 2, 56),
    (256, 512, 3, 2, 14),
    (64, 64, 1, 1, 56),
    (64, 256, 1, 1, 56),
    (256, 64, 1, 1, 56),
    (512, 128, 1, 1, 28),
    (256, 1024, 1, 1, 14),
    (1024, 256, 1, 1, 14),
    (2048, 512, 1, 1, 7),
    (512, 2048, 1, 1, 7),
    (16, 96, 1, 1, 112),
    (96, 24, 1, 1, 56),
    (24, 144, 1, 1, 56),
    (144, 24, 1, 1, 56),
    (32, 192, 1, 1, 28),
    (96, 576, 1, 1, 14),
    (576, 96, 1, 1, 14),
    (160, 960, 1, 1, 7),
    (960, 160, 1, 1, 7),
    (320, 1280, 1, 1, 7),
    (3, 64, 7, 2, 224),
    (3, 32, 3, 2, 224),
    (64, 64, 3, 1, 32),
    (64, 64, 3, 1, 17),
];

fn layers(options: ConvOptions) {
    let level = options.level;
    for &(input, out, kernel, stride, side) in LAYERS {
        let spec = ConvSpec {
            stride: [stride; 2],
            ..ConvSpec::new(input, out, kernel)
        };
        let mut layer = Layer::new(spec, side, 0, false, options);
        let (mut time, mut top) = (f64::MAX, 0.0f64);
        for _ in 0..4 {
            top = top.max(peak_flops(level) / 1e9);
            time = time.min(least(|| layer.run(), 15.0));
        }
        let speed = layer.operations() / time / 1e6;
        println!(
            "conv_{input}_{out}_k{kernel}_s{stride}_{side} {time:.4} ms {speed:.0} GFLOP/s {:.2} of peak",
            speed / top
        );
    }
}

/// `channels, kernel, stride, side of the input`.
const DEPTHWISE: &[(usize, usize, usize, usize)] = &[
    (32, 3, 1, 112),
    (96, 3, 2, 112),
    (144, 3, 1, 56),
    (144, 3, 2, 56),
    (192, 3, 1, 28),
    (384, 3, 1, 14),
    (576, 3, 2, 14),
    (960, 3, 1, 7),
    (96, 7, 1, 56),
    (240, 5, 1, 28),
];

/// Depthwise layers, next to the time of copying their bytes.
fn depthwise(level: Level) {
    for &(channels, kernel, stride, side) in DEPTHWISE {
        let base = ConvSpec::new(channels, channels, kernel);
        let spec = ConvSpec {
            stride: [stride; 2],
            groups: channels,
            ..base
        };
        let mut layer = Layer::new(
            spec,
            side,
            0,
            false,
            ConvOptions {
                level,
                winograd: false,
                bf16: false,
            },
        );
        let bytes = (layer.input.blocks().len() + layer.out.blocks().len()) * 64;
        let source = vec![1.0f32; bytes / 8];
        let mut target = source.clone();
        let (mut time, mut copy) = (f64::MAX, f64::MAX);
        for _ in 0..4 {
            time = time.min(least(|| layer.run(), 10.0));
            copy = copy.min(least(
                || black_box(&mut target).copy_from_slice(black_box(&source)),
                5.0,
            ));
        }
        let speed = layer.operations() / time / 1e6;
        println!(
            "depthwise_{channels}_k{kernel}_s{stride}_{side} {time:.4} ms {speed:.0} GFLOP/s, a copy of its bytes {copy:.4} ms"
        );
    }
}

/// Depthwise convolutions on plain images, next to the time of copying their bytes.
fn plain(level: Level) {
    let more = [(96, 5, 1, 56), (96, 5, 2, 56), (96, 7, 2, 56)];
    for &(channels, kernel, stride, side) in DEPTHWISE.iter().chain(&more) {
        let base = ConvSpec::new(channels, channels, kernel);
        let spec = ConvSpec {
            stride: [stride; 2],
            groups: channels,
            ..base
        };
        let (oh, ow) = spec.out_size(side, side);
        let input = floats(channels * side * side);
        let weight = floats(channels * kernel * kernel);
        let mut out = vec![0.0; channels * oh * ow];
        let half = (input.len() + out.len()) / 2;
        let (source, mut target) = (floats(half), floats(half));
        let (mut time, mut copy) = (f64::MAX, f64::MAX);
        for _ in 0..4 {
            let run = || {
                grouped_nchw(
                    level,
                    &spec,
                    &input,
                    &weight,
                    None,
                    (1, side, side),
                    &mut out,
                )
                .expect("sizes")
            };
            time = time.min(least(run, 10.0));
            copy = copy.min(least(
                || black_box(&mut target).copy_from_slice(black_box(&source)),
                5.0,
            ));
        }
        let speed = 2.0 * (channels * kernel * kernel * oh * ow) as f64 / time / 1e6;
        println!(
            "plain_depthwise_{channels}_k{kernel}_s{stride}_{side} {time:.4} ms {speed:.0} GFLOP/s, a copy of its bytes {copy:.4} ms"
        );
    }
}

fn main() {
    let arguments: Vec<String> = std::env::args()
        .skip(1)
        .filter(|a| !a.starts_with("--"))
        .collect();
    let has = |name: &str| arguments.iter().any(|a| a == name);
    let level = if has("level=avx2") {
        Level::Avx2
    } else {
        Level::best()
    };
    let all = arguments.iter().all(|a| a.starts_with("level"));
    let pool = |n: usize| {
        rayon::ThreadPoolBuilder::new()
            .num_threads(n)
            .build()
            .expect("threads start")
    };
    if all || has("depthwise") {
        pool(1).install(|| depthwise(level));
    }
    if all || has("plain") {
        pool(1).install(|| plain(level));
    }
    if all || has("layers") {
        let options = ConvOptions {
            level,
            winograd: has("winograd"),
            bf16: has("bf16"),
        };
        pool(1).install(|| layers(options));
    }
}
