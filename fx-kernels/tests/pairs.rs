//! Products and convolutions in `bf16` against plain loops in f64 over rounded numbers. On machines without the instructions
//! the kernels are those of floats, and the tests say so of them.

use fx_kernels::conv::{Blocked, Conv2d, ConvFinish, ConvOptions, ConvSpec};
use fx_kernels::matrix::{
    Finish, PackedMatrix, WeightKind, WeightOrder, from_bf16, linear, to_bf16,
};
use fx_kernels::{Activation, Level};

use crate::common::{Random, random_spec};
use crate::reference::{activate, close, conv, largest};

fn rounded(floats: &[f32]) -> Vec<f32> {
    floats.iter().map(|x| from_bf16(to_bf16(*x))).collect()
}

fn packed(weight: &[f32], k: usize, n: usize) -> PackedMatrix {
    let kind = WeightKind::Bf16;
    let packed = PackedMatrix::new(weight, k, n, WeightOrder::OutputsFirst, kind).expect("sizes");
    packed.round_rows()
}

fn check_linear(random: &mut Random, level: Level, m: usize, k: usize, n: usize) {
    let (x, weight, bias) = (random.floats(m * k), random.floats(n * k), random.floats(n));
    let packed = packed(&weight, k, n);
    let x_used = match packed.rounds_rows(level) {
        true => rounded(&x),
        false => x.clone(),
    };
    let w = rounded(&weight);
    let finish = Finish {
        bias: Some(&bias),
        activation: Activation::Relu,
        ..Finish::default()
    };
    let mut out = vec![f32::NAN; m * n];
    linear(level, m, &x, &packed, finish, &mut out).expect("sizes");
    let expected: Vec<f64> = (0..m * n)
        .map(|i| {
            let (r, c) = (i / n, i % n);
            let dot: f64 = (0..k)
                .map(|j| f64::from(x_used[r * k + j]) * f64::from(w[c * k + j]))
                .sum();
            (dot + f64::from(bias[c])).max(0.0)
        })
        .collect();
    let tolerance = (1e-6 + 1e-9 * k as f64) * largest(&expected);
    close(
        &out,
        &expected,
        tolerance,
        &format!("{level:?} {m}x{k}x{n}"),
    );
}

#[test]
fn linear_of_rounded_rows() {
    let mut random = Random::new(41);
    let sizes = [
        (1, 1001, 333),
        (2, 900, 300),
        (8, 769, 40),
        (129, 801, 131),
        (470, 4000, 20),
        (20, 7681, 64),
    ];
    let small = (0..400).map(|i| (i % 40, 7 * i % 71, 1 + 13 * i % 101));
    for (m, k, n) in small.chain(sizes) {
        for level in Level::available() {
            check_linear(&mut random, level, m, k, n);
        }
    }
}

/// A row has the same bits alone and beside others.
#[test]
fn rows_alone_and_together() {
    let mut random = Random::new(42);
    for (k, n) in [(33, 40), (768, 96), (1537, 70)] {
        let weight = packed(&random.floats(k * n), k, n);
        let x = random.floats(40 * k);
        for level in Level::available() {
            let run = |rows: usize, x: &[f32]| {
                let mut out = vec![0.0; rows * n];
                linear(level, rows, x, &weight, Finish::default(), &mut out).expect("sizes");
                out
            };
            let alone: Vec<f32> = x.chunks(k).flat_map(|x| run(1, x)).collect();
            for rows in [2, 3, 5, 8, 9, 14, 40] {
                let together = run(rows, &x[..rows * k]);
                let same = |(a, b): (&f32, &f32)| a.to_bits() == b.to_bits();
                assert!(
                    together.iter().zip(&alone).all(same),
                    "{level:?} {rows}x{k}x{n}"
                );
            }
        }
    }
}

fn check_conv(random: &mut Random, spec: ConvSpec, batch: usize, height: usize, width: usize) {
    let (oh, ow) = spec.out_size(height, width);
    let input = random.floats(batch * spec.in_channels * height * width);
    let taps = spec.kernel[0] * spec.kernel[1];
    let weight = random.floats(spec.out_channels * spec.group_in() * taps);
    let (bias, before) = (
        random.floats(spec.out_channels),
        random.floats(batch * spec.out_channels * oh * ow),
    );
    let adds = random.below(2) == 0;
    let activation = [Activation::None, Activation::Relu, Activation::Silu][random.below(3)];
    let finish = ConvFinish { adds, activation };
    let halo = random.below(2);
    for level in Level::available() {
        let options = ConvOptions {
            level,
            winograd: false,
            bf16: true,
        };
        let made = Conv2d::new(spec, &weight, Some(&bias), options).expect("sizes");
        let (x, w) = match made.is_bf16() {
            true => (rounded(&input), rounded(&weight)),
            false => (input.clone(), weight.clone()),
        };
        let mut expected = conv(&spec, &x, &w, Some(&bias), batch, height, width);
        let tolerance = largest(&expected) * 2e-6;
        for (y, before) in expected.iter_mut().zip(&before) {
            let sum = *y + if adds { f64::from(*before) } else { 0.0 };
            *y = activate(activation, sum);
        }
        let halo_in = made.halo() + halo;
        let image = Blocked::from_nchw(&input, batch, spec.in_channels, height, width, halo_in)
            .expect("sizes");
        let mut out =
            Blocked::from_nchw(&before, batch, spec.out_channels, oh, ow, halo).expect("sizes");
        made.run(&image, finish, &mut out).expect("sizes");
        let mut plain = vec![f32::NAN; expected.len()];
        out.to_nchw(&mut plain).expect("sizes");
        let context = format!("{level:?} {spec:?} batch {batch}, {height} x {width}, {finish:?}");
        close(&plain, &expected, tolerance, &context);
    }
}

#[test]
fn convolutions_of_rounded_images() {
    let mut random = Random::new(43);
    for i in 0..500 {
        let groups = [1, 1, 2, 3][i % 4];
        let (group_in, group_out) = (1 + random.below(70), 1 + random.below(70));
        let spec = random_spec(&mut random, groups, group_in, group_out);
        let (batch, height, width) = (
            1 + random.below(2),
            4 + random.below(8),
            4 + random.below(30),
        );
        check_conv(&mut random, spec, batch, height, width);
    }
}

/// Which convolutions are in `bf16`: where the machine has the instructions, those of pairs of channels.
#[test]
fn what_is_rounded() {
    let level = Level::best();
    let has_pairs = packed(&[1.0], 1, 1).rounds_rows(level);
    let is_bf16 = |spec: ConvSpec| {
        let weight = vec![0.0; spec.out_channels * spec.group_in() * 9];
        let options = ConvOptions {
            bf16: true,
            ..ConvOptions::default()
        };
        let made = Conv2d::new(spec, &weight, None, options).expect("sizes");
        made.is_bf16()
    };
    let groups = |n, channels| ConvSpec {
        groups: n,
        ..ConvSpec::new(channels, channels, 3)
    };
    assert_eq!(is_bf16(ConvSpec::new(64, 64, 3)), has_pairs);
    assert_eq!(is_bf16(ConvSpec::new(33, 64, 3)), has_pairs);
    assert_eq!(is_bf16(groups(4, 64)), has_pairs);
    assert!(!is_bf16(ConvSpec::new(3, 64, 3)), "images of few channels");
    assert!(!is_bf16(groups(64, 64)), "channels alone");
    assert!(!is_bf16(groups(3, 33)), "pairs of two groups");
}

/// Infinities and NaN pass through.
#[test]
fn numbers_that_are_not_finite() {
    let weight = packed(&[1.0; 64], 64, 1);
    for level in Level::available() {
        for special in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
            for rows in [1, 20] {
                let mut x = vec![1.0; rows * 64];
                x[5] = special;
                let mut out = vec![0.0; rows];
                linear(level, rows, &x, &weight, Finish::default(), &mut out).expect("sizes");
                assert_eq!(out[0].to_bits() << 1, special.to_bits() << 1, "{level:?}");
                assert!(out[1..].iter().all(|y| *y == 64.0));
            }
        }
    }
}
