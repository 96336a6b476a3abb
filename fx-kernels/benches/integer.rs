//! Times of networks of bytes: prints `name value` lines, milliseconds and billions of multiply-adds a second.

#![allow(clippy::print_stdout, reason = "the times are what it prints")]

use std::hint::black_box;
use std::time::Instant;

use fx_kernels::Level;
use fx_kernels::integer::{
    Bytes, IntegerConv, IntegerSpec, Rounding, Term, Windows, add, max_pool, quantize,
};

/// The least time of many runs, in milliseconds.
fn least(mut f: impl FnMut()) -> f64 {
    f();
    let (start, mut best, mut runs) = (Instant::now(), f64::MAX, 0);
    while runs < 5 || start.elapsed().as_secs_f64() < 0.2 {
        let start = Instant::now();
        f();
        best = best.min(start.elapsed().as_secs_f64() * 1e3);
        runs += 1;
    }
    best
}

fn main() {
    let level = Level::best();
    let all = Rounding {
        zero_point: 128,
        low: 0,
        high: 255,
    };
    let layers = [
        ("conv7x7_3_64_224", 3, 64, 7, 2, 1, 224),
        ("conv3x3_64_64_56", 64, 64, 3, 1, 1, 56),
        ("conv3x3_128_128_28", 128, 128, 3, 1, 1, 28),
        ("conv3x3_256_256_14", 256, 256, 3, 1, 1, 14),
        ("conv3x3_512_512_7", 512, 512, 3, 1, 1, 7),
        ("conv1x1_256_64_56", 256, 64, 1, 1, 1, 56),
        ("conv1x1_96_24_56", 96, 24, 1, 1, 1, 56),
        ("conv1x1_1024_256_14", 1024, 256, 1, 1, 1, 14),
        ("depthwise_144_56", 144, 144, 3, 1, 144, 56),
        ("depthwise_576_14", 576, 576, 3, 1, 576, 14),
    ];
    for (name, inputs, outputs, kernel, stride, groups, side) in layers {
        let spec = IntegerSpec {
            kernel: [kernel, kernel],
            stride: [stride, stride],
            padding: [kernel / 2, kernel / 2],
            groups,
            ..IntegerSpec::matrix(inputs, outputs)
        };
        let weights: Vec<i16> = (0..outputs * inputs / groups * kernel * kernel)
            .map(|i| ((i * 37 % 255) as i16) - 127)
            .collect();
        let conv = IntegerConv::new(
            spec,
            &weights,
            &vec![0; outputs],
            &vec![1e-5; outputs],
            128,
            all,
        )
        .expect("the sizes fit");
        let mut x = Bytes::zeros(1, side, side, inputs);
        x.words_mut()
            .iter_mut()
            .enumerate()
            .for_each(|(at, word)| *word = (at as u32).wrapping_mul(2_654_435_761));
        let (mut words, mut scratch) = (Vec::new(), Vec::new());
        let time = least(|| {
            let out = conv
                .run(
                    level,
                    black_box(&x),
                    std::mem::take(&mut words),
                    &mut scratch,
                )
                .expect("the sizes fit");
            words = black_box(out).into_words();
        });
        let (oh, ow) = spec.out_size(side, side).expect("a window fits");
        let work = oh * ow * outputs * inputs / groups * kernel * kernel;
        println!(
            "integer.{name} {time:.3} ms {:.0} G",
            work as f64 / time / 1e6
        );
    }
    for rows in [1, 16, 128] {
        let (inputs, outputs) = (1024, 4096);
        let weights: Vec<i16> = (0..inputs * outputs)
            .map(|i| ((i * 37 % 255) as i16) - 127)
            .collect();
        let spec = IntegerSpec::matrix(inputs, outputs);
        let conv = IntegerConv::new(
            spec,
            &weights,
            &vec![0; outputs],
            &vec![1e-5; outputs],
            128,
            all,
        )
        .expect("the sizes fit");
        let x = Bytes::zeros(rows, 1, 1, inputs);
        let (mut words, mut scratch) = (Vec::new(), Vec::new());
        let time = least(|| {
            let out = conv
                .run(
                    level,
                    black_box(&x),
                    std::mem::take(&mut words),
                    &mut scratch,
                )
                .expect("the sizes fit");
            words = black_box(out).into_words();
        });
        let work = rows * inputs * outputs;
        println!(
            "integer.linear_{rows}_1024_4096 {time:.3} ms {:.0} G",
            work as f64 / time / 1e6
        );
    }
    let x = Bytes::zeros(1, 112, 112, 64);
    let windows = Windows {
        kernel: [3, 3],
        stride: [2, 2],
        padding: [1, 1],
        ceil: false,
    };
    let time = least(|| {
        drop(black_box(max_pool(
            level,
            black_box(&x),
            windows,
            Vec::new(),
        )))
    });
    println!("integer.max_pool_64_112 {time:.3} ms");
    let term = Term {
        scale: 0.7,
        zero_point: 100,
    };
    let time = least(|| {
        drop(black_box(add(
            level,
            (black_box(&x), term),
            (&x, term),
            all,
            Vec::new(),
        )))
    });
    println!("integer.add_64_112 {time:.3} ms");
    let floats = vec![0.3; 3 * 224 * 224];
    let mut image = Bytes::zeros(1, 224, 224, 3);
    let time = least(|| {
        drop(black_box(quantize(
            level,
            black_box(&floats),
            9.0,
            all,
            &mut image,
        )))
    });
    println!("integer.quantize_3_224 {time:.3} ms");
}
