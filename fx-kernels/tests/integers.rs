//! Networks of bytes beside loops over integers, on every level: all bytes are equal.

use fx_kernels::Level;
use fx_kernels::integer::{
    Bytes, IntegerConv, IntegerSpec, OfRun, Rounding, Term, Windows, add, average_pool, clamp,
    dequantize, lookup, max_pool, multiply, quantize, rescale,
};
use proptest::prelude::*;

/// Bytes of a seed.
fn drawn(count: usize, seed: u64) -> Vec<u8> {
    let mut state = seed.wrapping_mul(2).wrapping_add(1);
    let next = |_| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (state >> 56) as u8
    };
    (0..count).map(next).collect()
}

/// Bytes `[batch, channels, height, width]` as an image.
fn image(bytes: &[u8], (batch, height, width, channels): (usize, usize, usize, usize)) -> Bytes {
    let mut out = Bytes::zeros(batch, height, width, channels);
    let floats: Vec<f32> = bytes.iter().map(|byte| f32::from(*byte)).collect();
    let all = Rounding {
        zero_point: 0,
        low: 0,
        high: 255,
    };
    quantize(Level::Scalar, &floats, 1.0, all, &mut out).expect("the sizes fit");
    out
}

/// The bytes of an image, `[batch, channels, height, width]`.
fn bytes_of(x: &Bytes) -> Vec<u8> {
    let mut floats = vec![0.0; x.pixels() * x.channels()];
    dequantize(Level::Scalar, x, 1.0, 0, &mut floats).expect("the sizes fit");
    floats.into_iter().map(|x| x as u8).collect()
}

fn byte(sum: i32, scale: f32, to: Rounding) -> u8 {
    let zero = f64::from(to.zero_point);
    let rounded = f64::from((sum as f32 * scale).round_ties_even());
    (rounded + zero).clamp(f64::from(to.low), f64::from(to.high)) as u8
}

#[derive(Debug, Clone)]
struct Case {
    spec: IntegerSpec,
    batch: usize,
    side: [usize; 2],
    zero_point: u8,
    rounding: Rounding,
    seed: u64,
}

fn cases() -> impl Strategy<Value = Case> {
    let channels = prop_oneof![
        (1..40usize, 1..70usize, Just(1usize)),
        (1..40usize).prop_map(|n| (n, n, n)),
        (1..4usize, 1..3usize, 1..4usize).prop_map(|(a, b, g)| (4 * a * g, 16 * b * g, g)),
    ];
    let windows = (
        1..4usize,
        1..4usize,
        1..3usize,
        1..3usize,
        0..3usize,
        0..3usize,
        1..3usize,
        1..3usize,
    );
    (
        channels,
        windows,
        1..3usize,
        (5..12usize, 5..12usize),
        any::<u8>(),
        any::<(u8, u8, u8)>(),
        any::<u64>(),
    )
        .prop_map(
            |(
                (inputs, outputs, groups),
                (kh, kw, sh, sw, ph, pw, dh, dw),
                batch,
                (h, w),
                zero,
                (z, a, b),
                seed,
            )| Case {
                spec: IntegerSpec {
                    in_channels: inputs,
                    out_channels: outputs,
                    kernel: [kh, kw],
                    stride: [sh, sw],
                    padding: [ph, pw],
                    dilation: [dh, dw],
                    groups,
                },
                batch,
                side: [h, w],
                zero_point: zero,
                rounding: Rounding {
                    zero_point: z,
                    low: a.min(b),
                    high: a.max(b),
                },
                seed,
            },
        )
}

/// The sums of a convolution with its biases, `[batch, channels, height, width]`.
fn sums(case: &Case, x: &[u8], weights: &[i16], bias: &[i32]) -> Vec<i32> {
    let IntegerSpec {
        in_channels,
        out_channels,
        kernel,
        stride,
        padding,
        dilation,
        groups,
    } = case.spec;
    let (own_in, own_out) = (in_channels / groups, out_channels / groups);
    let [height, width] = case.side;
    let (oh, ow) = case.spec.out_size(height, width).expect("a window fits");
    let mut all = Vec::new();
    for n in 0..case.batch {
        for o in 0..out_channels {
            for oy in 0..oh {
                for ox in 0..ow {
                    let mut sum = bias[o];
                    for i in 0..own_in {
                        for ky in 0..kernel[0] {
                            for kx in 0..kernel[1] {
                                let y = (oy * stride[0] + ky * dilation[0]).checked_sub(padding[0]);
                                let x_at =
                                    (ox * stride[1] + kx * dilation[1]).checked_sub(padding[1]);
                                let (Some(y), Some(x_at)) = (y, x_at) else {
                                    continue;
                                };
                                if y >= height || x_at >= width {
                                    continue;
                                }
                                let channel = o / own_out * own_in + i;
                                let q =
                                    x[((n * in_channels + channel) * height + y) * width + x_at];
                                let w =
                                    weights[((o * own_in + i) * kernel[0] + ky) * kernel[1] + kx];
                                sum += (i32::from(q) - i32::from(case.zero_point)) * i32::from(w);
                            }
                        }
                    }
                    all.push(sum);
                }
            }
        }
    }
    all
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    #[test]
    fn convolutions_are_exact(case in cases()) {
        let IntegerSpec { in_channels, out_channels, kernel, groups, .. } = case.spec;
        prop_assert!(case.spec.is_supported());
        let [height, width] = case.side;
        let x = drawn(case.batch * in_channels * height * width, case.seed);
        let weights = drawn(out_channels * in_channels / groups * kernel[0] * kernel[1], case.seed ^ 1);
        // Beside a zero point for each channel, or of 8 bits.
        let depth = in_channels / groups * kernel[0] * kernel[1];
        let zeros = drawn(out_channels, case.seed ^ 4).into_iter().map(|zero| if case.seed % 3 == 0 { zero } else { 128 });
        let zeros: Vec<u8> = zeros.collect();
        let beside = |(at, weight): (usize, u8)| i16::from(weight) - i16::from(zeros[at / depth]);
        let weights: Vec<i16> = weights.into_iter().enumerate().map(beside).collect();
        let bias: Vec<i32> = drawn(out_channels, case.seed ^ 2).into_iter().map(|b| i32::from(b) * 300 - 40_000).collect();
        let scale: Vec<f32> = drawn(out_channels, case.seed ^ 3).into_iter().map(|s| (f32::from(s) + 1.0) * 3e-6).collect();
        let (oh, ow) = case.spec.out_size(height, width).expect("a window fits");
        let expected: Vec<u8> = sums(&case, &x, &weights, &bias)
            .into_iter()
            .enumerate()
            .map(|(at, sum)| byte(sum, scale[at / (oh * ow) % out_channels], case.rounding))
            .collect();
        let x = image(&x, (case.batch, height, width, in_channels));
        let conv = IntegerConv::new(case.spec, &weights, &bias, &scale, case.zero_point, case.rounding).expect("the sizes fit");
        for level in Level::available() {
            let out = conv.run(level, &x, vec![7; 3], &mut vec![9; 5]).expect("the sizes fit");
            prop_assert_eq!(out.sizes(), (case.batch, oh, ow, out_channels));
            prop_assert_eq!(&bytes_of(&out), &expected, "{:?}", level);
        }
    }

    #[test]
    fn sums_and_scales_are_those_of_one_by_one(seed in any::<u64>(), channels in 1..70usize, side in 1..6usize, z in any::<(u8, u8, u8)>()) {
        let count = channels * side * side;
        let (a, b) = (drawn(count, seed), drawn(count, seed ^ 5));
        let rounding = Rounding { zero_point: z.2, low: 3, high: 250 };
        let (of_a, of_b) = (Term { scale: 0.37, zero_point: z.0 }, Term { scale: 1.21, zero_point: z.1 });
        let sizes = (1, side, side, channels);
        let (x, y) = (image(&a, sizes), image(&b, sizes));
        let term = |q: u8, of: Term| (f32::from(q) - f32::from(of.zero_point)) * of.scale;
        let of = |number: f32| (number.round_ties_even() + f32::from(z.2)).clamp(3.0, 250.0) as u8;
        for level in Level::available() {
            let sum = add(level, (&x, of_a), (&y, of_b), rounding, Vec::new()).expect("the sizes fit");
            let expected: Vec<u8> = a.iter().zip(&b).map(|(a, b)| of(term(*a, of_a) + term(*b, of_b))).collect();
            prop_assert_eq!(bytes_of(&sum), expected);
            let moved = rescale(level, (&x, of_a), rounding, Vec::new());
            let expected: Vec<u8> = a.iter().map(|a| of(term(*a, of_a))).collect();
            prop_assert_eq!(bytes_of(&moved), expected);
            let held = clamp(level, &x, 10, 99, Vec::new());
            let expected: Vec<u8> = a.iter().map(|a| (*a).clamp(10, 99)).collect();
            prop_assert_eq!(bytes_of(&held), expected);
            let product = multiply(level, (&x, z.0), (&y, z.1), 0.013, rounding, Vec::new()).expect("the sizes fit");
            let beside = |q: u8, zero: u8| f32::from(q) - f32::from(zero);
            let expected: Vec<u8> = a.iter().zip(&b).map(|(a, b)| of(beside(*a, z.0) * beside(*b, z.1) * 0.013)).collect();
            prop_assert_eq!(bytes_of(&product), expected);
            let table = std::array::from_fn(|byte| (byte * 7 % 256) as u8);
            let expected: Vec<u8> = a.iter().map(|a| table[usize::from(*a)]).collect();
            prop_assert_eq!(bytes_of(&lookup(level, &x, &table, Vec::new())), expected);
        }
    }

    #[test]
    fn pools_are_those_of_windows(seed in any::<u64>(), channels in 1..40usize, side in (4..9usize, 4..9usize), k in (1..4usize, 1..4usize), s in (1..3usize, 1..3usize), z in any::<(u8, u8)>(), (counts, ceil) in any::<(bool, bool)>()) {
        let (height, width) = side;
        let windows = Windows { kernel: [k.0, k.1], stride: [s.0, s.1], padding: [k.0 / 2, k.1 / 2], ceil };
        let bytes = drawn(2 * channels * height * width, seed);
        let x = image(&bytes, (2, height, width, channels));
        let (oh, ow) = windows.out_size(height, width).expect("a window fits");
        let rounding = Rounding { zero_point: z.1, low: 0, high: 255 };
        let (mut most, mut means) = (Vec::new(), Vec::new());
        for plane in bytes.chunks(height * width) {
            for oy in 0..oh {
                for ox in 0..ow {
                    let rows = (oy * s.0..oy * s.0 + k.0).filter_map(|y| y.checked_sub(k.0 / 2)).filter(|y| *y < height);
                    let pixels = rows.flat_map(|y| (ox * s.1..ox * s.1 + k.1).filter_map(|x| x.checked_sub(k.1 / 2)).filter(|x| *x < width).map(move |x| (y, x)));
                    let own: Vec<u8> = pixels.map(|(y, x)| plane[y * width + x]).collect();
                    most.push(own.iter().copied().max().unwrap_or(0));
                    let count = if counts { k.0 * k.1 } else { own.len() };
                    let sum: i32 = own.iter().map(|q| i32::from(*q) - i32::from(z.0)).sum();
                    means.push(byte(sum, 0.8 / count as f32, rounding));
                }
            }
        }
        for level in Level::available() {
            let found = max_pool(level, &x, windows, Vec::new()).expect("a window fits");
            prop_assert_eq!(bytes_of(&found), most.clone());
            let found = average_pool(level, &x, windows, (0.8, z.0, counts), rounding, Vec::new()).expect("a window fits");
            prop_assert_eq!(bytes_of(&found), means.clone());
        }
    }
}

#[test]
fn rows_become_floats() {
    let spec = IntegerSpec::matrix(70, 37);
    let (x, weights) = (drawn(9 * 70, 1), drawn(70 * 37, 2));
    let weights: Vec<i16> = weights.into_iter().map(|w| i16::from(w) - 100).collect();
    let (bias, scale) = (vec![5; 37], vec![0.25f32; 37]);
    let all = Rounding {
        zero_point: 0,
        low: 0,
        high: 255,
    };
    let conv = IntegerConv::new(spec, &weights, &bias, &scale, 3, all).expect("the sizes fit");
    let rows = image(&x, (9, 1, 1, 70));
    let expected: Vec<f32> = (0..9 * 37)
        .map(|at| {
            let (row, column) = (at / 37, at % 37);
            let sum: i32 = (0..70)
                .map(|i| (i32::from(x[row * 70 + i]) - 3) * i32::from(weights[column * 70 + i]))
                .sum();
            (sum + 5) as f32 * 0.25
        })
        .collect();
    for level in Level::available() {
        let mut out = vec![0.0; 9 * 37];
        conv.run_to_floats(level, &rows, &mut out)
            .expect("the sizes fit");
        assert_eq!(out, expected, "{level:?}");
        // With another zero point than the one that it was made with.
        let other = IntegerConv::new(spec, &weights, &bias, &scale, 200, all);
        let other = other.expect("the sizes fit");
        let more: Vec<f32> = (0..37).map(|column| column as f32 - 20.5).collect();
        for more in [&[][..], &more] {
            let of_run = OfRun {
                zero_point: 3,
                scale: 0.3,
                bias: more,
            };
            other
                .run_to_floats_of_run(level, &rows, of_run, &mut out)
                .expect("the sizes fit");
            let more = |at: usize| more.get(at % 37).copied().unwrap_or(0.0);
            let all = expected.iter().enumerate();
            let moved: Vec<f32> = all.map(|(at, x)| x * 0.3 + more(at)).collect();
            assert_eq!(out, moved, "{level:?}");
        }
        let of_run = OfRun {
            zero_point: 3,
            scale: 0.3,
            bias: &[1.0; 36],
        };
        assert!(
            other
                .run_to_floats_of_run(level, &rows, of_run, &mut out)
                .is_err()
        );
    }
    assert!(
        conv.run(
            Level::Scalar,
            &image(&x[..69], (1, 1, 1, 69)),
            Vec::new(),
            &mut Vec::new()
        )
        .is_err()
    );
}

#[test]
fn any_number_of_threads_gives_the_same() {
    let spec = IntegerSpec {
        kernel: [3, 3],
        padding: [1, 1],
        ..IntegerSpec::matrix(64, 80)
    };
    let weights: Vec<i16> = drawn(64 * 80 * 9, 4)
        .into_iter()
        .map(|w| i16::from(w) - 120)
        .collect();
    let rounding = Rounding {
        zero_point: 128,
        low: 0,
        high: 255,
    };
    let conv = IntegerConv::new(spec, &weights, &[0; 80], &[1e-4; 80], 128, rounding)
        .expect("the sizes fit");
    let x = image(&drawn(64 * 28 * 28, 5), (1, 28, 28, 64));
    let run = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(threads)
            .build()
            .expect("threads start");
        pool.install(|| {
            bytes_of(
                &conv
                    .run(Level::best(), &x, Vec::new(), &mut Vec::new())
                    .expect("the sizes fit"),
            )
        })
    };
    assert!(run(1) == run(2) && run(1) == run(5));
}
