//! Linear layers against plain loops in f64.

use fx_kernels::matrix::{
    Finish, Order, PackedMatrix, WeightKind, WeightOrder, from_bf16, linear, to_bf16,
};
use fx_kernels::{Activation, Level};

use crate::common;
use common::Random;

/// The weight `[outputs, inputs]` as a kind stores it.
fn stored(weight: &[f32], inputs: usize, kind: WeightKind) -> Vec<f32> {
    match kind {
        WeightKind::Bf16 => weight.iter().map(|x| from_bf16(to_bf16(*x))).collect(),
        WeightKind::F16 => weight
            .iter()
            .map(|x| half::f16::from_f32(*x).to_f32())
            .collect(),
        WeightKind::I8 => weight
            .chunks(inputs.max(1))
            .flat_map(|row| {
                let scale = row.iter().fold(0.0f32, |m, x| m.max(x.abs())) / 127.0;
                let inverse = if scale > 0.0 { 1.0 / scale } else { 0.0 };
                row.iter()
                    .map(move |x| (x * inverse).round_ties_even() * scale)
            })
            .collect(),
        _ => weight.to_vec(),
    }
}

fn transposed(x: &[f32], rows: usize, columns: usize) -> Vec<f32> {
    (0..rows * columns)
        .map(|i| x[i % rows * columns + i / rows])
        .collect()
}

fn check(random: &mut Random, level: Level, m: usize, k: usize, n: usize, kind: WeightKind) {
    let (x, weight) = (random.floats(m * k), random.floats(n * k));
    let (bias, residual) = (random.floats(n), random.floats(m * n));
    let first = random.below(2) == 0;
    let (order, given) = match first {
        true => (WeightOrder::OutputsFirst, weight.clone()),
        false => (WeightOrder::InputsFirst, transposed(&weight, n, k)),
    };
    let packed = PackedMatrix::new(&given, k, n, order, kind).expect("sizes");
    let finish = Finish {
        bias: (random.below(2) == 0).then_some(&bias[..]),
        residual: (random.below(2) == 0).then_some(&residual[..]),
        activation: [Activation::None, Activation::Relu][random.below(2)],
        order: [Order::ActivationFirst, Order::ResidualFirst][random.below(2)],
    };
    let mut out = vec![f32::NAN; m * n];
    linear(level, m, &x, &packed, finish, &mut out).expect("sizes");
    let w = stored(&weight, k, kind);
    let mut worst = (0.0f64, 0);
    let mut largest = 1.0f64;
    for i in 0..m * n {
        let (r, c) = (i / n, i % n);
        let dot: f64 = (0..k)
            .map(|j| f64::from(x[r * k + j]) * f64::from(w[c * k + j]))
            .sum();
        let mut y = dot + finish.bias.map_or(0.0, |b| f64::from(b[c]));
        let add = finish.residual.map_or(0.0, |b| f64::from(b[i]));
        let relu = |y: f64| {
            if finish.activation == Activation::Relu {
                y.max(0.0)
            } else {
                y
            }
        };
        y = match finish.order {
            Order::ActivationFirst => relu(y) + add,
            _ => relu(y + add),
        };
        largest = largest.max(y.abs());
        let error = (f64::from(out[i]) - y).abs();
        if error > worst.0 || error.is_nan() {
            worst = (error, i);
        }
    }
    assert!(
        worst.0 <= (1e-6 + 1e-9 * k as f64) * largest,
        "{level:?} {kind:?} {m}x{k}x{n} {finish:?}: off by {} at {} of {largest}",
        worst.0,
        worst.1
    );
}

#[test]
fn small_shapes() {
    let mut random = Random(7);
    let kinds = [
        WeightKind::F32,
        WeightKind::Bf16,
        WeightKind::F16,
        WeightKind::I8,
    ];
    for i in 0..1000 {
        let [m, k, n] = [40, 70, 100].map(|n| random.below(n));
        for level in Level::available() {
            check(&mut random, level, m, k, n, kinds[i % 4]);
        }
    }
}

#[test]
fn deep_and_wide_shapes() {
    let mut random = Random(8);
    for kind in [
        WeightKind::F32,
        WeightKind::Bf16,
        WeightKind::F16,
        WeightKind::I8,
    ] {
        for (m, k, n) in [
            (1, 1001, 333),
            (3, 900, 70),
            (8, 769, 40),
            (129, 801, 131),
            (500, 400, 65),
            (17, 384, 64),
        ] {
            for level in Level::available() {
                check(&mut random, level, m, k, n, kind);
            }
        }
    }
}

/// What is packed at once ends, and the rest is added.
#[test]
fn very_deep_shapes() {
    let mut random = Random(10);
    for (m, k, n) in [
        (20, 3840, 33),
        (20, 3841, 64),
        (470, 4000, 20),
        (9, 9001, 31),
    ] {
        for kind in [WeightKind::F32, WeightKind::I8] {
            check(&mut random, Level::best(), m, k, n, kind);
        }
    }
}

/// How many threads there are changes no bit, and neither does a repetition.
#[test]
fn threads_change_nothing() {
    let mut random = Random(9);
    let level = Level::best();
    for (m, kind) in [
        (197, WeightKind::F32),
        (500, WeightKind::I8),
        (4, WeightKind::Bf16),
    ] {
        let (k, n) = (700, 900);
        let (x, weight) = (random.floats(m * k), random.floats(n * k));
        let packed =
            PackedMatrix::new(&weight, k, n, WeightOrder::OutputsFirst, kind).expect("sizes");
        let run = |threads| {
            let pool = rayon::ThreadPoolBuilder::new()
                .num_threads(threads)
                .build()
                .expect("pool");
            let mut out = vec![0.0; m * n];
            pool.install(|| linear(level, m, &x, &packed, Finish::default(), &mut out))
                .expect("sizes");
            out.iter().map(|x| x.to_bits()).collect::<Vec<_>>()
        };
        let one = run(1);
        assert!(one == run(2) && one == run(5) && one == run(1));
    }
}

#[test]
fn not_a_number_passes() {
    for level in Level::available() {
        for m in [1, 20] {
            let packed = PackedMatrix::new(
                &[1.0; 70],
                2,
                35,
                WeightOrder::OutputsFirst,
                WeightKind::F32,
            )
            .expect("sizes");
            let mut x = vec![1.0; m * 2];
            x[1] = f32::NAN;
            let mut out = vec![0.0; m * 35];
            let finish = Finish {
                activation: Activation::Relu,
                ..Finish::default()
            };
            linear(level, m, &x, &packed, finish, &mut out).expect("sizes");
            assert!(out[..35].iter().all(|x| x.is_nan()));
            assert!(out[35..].iter().all(|x| *x == 2.0));
        }
    }
}

#[test]
fn wrong_lengths_are_errors() {
    let new = |len, kind| PackedMatrix::new(&vec![0.0; len], 3, 2, WeightOrder::OutputsFirst, kind);
    assert!(new(5, WeightKind::F32).is_err());
    let weight = new(6, WeightKind::Bf16).expect("sizes");
    let level = Level::Scalar;
    let error = linear(
        level,
        2,
        &[0.0; 5],
        &weight,
        Finish::default(),
        &mut [0.0; 4],
    );
    assert_eq!(
        error.expect_err("five of six").to_string(),
        "the left operand has 5 floats where 6 are needed"
    );
    assert!(
        linear(
            level,
            2,
            &[0.0; 6],
            &weight,
            Finish::default(),
            &mut [0.0; 5]
        )
        .is_err()
    );
    let bias = Finish {
        bias: Some(&[0.0]),
        ..Finish::default()
    };
    assert!(linear(level, 2, &[0.0; 6], &weight, bias, &mut [0.0; 4]).is_err());
    let residual = Finish {
        residual: Some(&[0.0]),
        ..Finish::default()
    };
    assert!(linear(level, 2, &[0.0; 6], &weight, residual, &mut [0.0; 4]).is_err());
}

#[test]
fn bf16_rounds_to_nearest_even() {
    let round = |bits: u32| u32::from(to_bf16(f32::from_bits(bits)));
    assert_eq!(round(0x3f80_8000), 0x3f80);
    assert_eq!(round(0x3f81_8000), 0x3f82);
    assert_eq!(round(0x3f80_8001), 0x3f81);
    assert_eq!(round(0x7f7f_ffff), 0x7f80);
    assert_eq!(round(0xff80_0000), 0xff80);
    assert!(from_bf16(to_bf16(f32::from_bits(0x7f80_0001))).is_nan());
}
