//! Pools and element-wise operations on blocked images against plain loops in f64, at every level of the machine.

use crate::common;
use crate::reference;

use common::Random;
use fx_kernels::conv::{self, Blocked, PoolSpec};
use fx_kernels::{Activation, Level};
use reference::{activate, close};

type Sizes = (usize, usize, usize, usize);

fn sizes(random: &mut Random) -> Sizes {
    (
        random.below(3),
        1 + random.below(40),
        1 + random.below(12),
        1 + random.below(20),
    )
}

fn count((n, c, h, w): Sizes) -> usize {
    n * c * h * w
}

fn image(plain: &[f32], (n, c, h, w): Sizes, random: &mut Random) -> Blocked {
    Blocked::from_nchw(plain, n, c, h, w, random.below(3)).expect("the sizes fit")
}

/// Runs `f` on an image of these sizes and gives the result in the plain layout.
fn run((n, c, h, w): Sizes, random: &mut Random, f: impl FnOnce(&mut Blocked)) -> Vec<f32> {
    let mut out = Blocked::from_nchw(&vec![f32::NAN; n * c * h * w], n, c, h, w, random.below(2))
        .expect("the sizes fit");
    f(&mut out);
    let mut plain = vec![f32::NAN; n * c * h * w];
    out.to_nchw(&mut plain).expect("the sizes fit");
    plain
}

/// `f(n, c, y, x)` for each place.
fn each((n, c, h, w): Sizes, mut f: impl FnMut(usize, usize, usize, usize) -> f64) -> Vec<f64> {
    (0..n * c * h * w)
        .map(|i| f(i / w / h / c, i / w / h % c, i / w % h, i % w))
        .collect()
}

/// PyTorch's definition, pixel by pixel.
fn pool(
    spec: &PoolSpec,
    plain: &[f32],
    (_, c, h, w): Sizes,
    out: Sizes,
    largest: bool,
) -> Vec<f64> {
    each(out, |n, channel, y, x| {
        let start = |i: usize, o: usize| (o * spec.stride[i]) as isize - spec.padding[i] as isize;
        let (mut most, mut sum, mut inside) = (f64::NEG_INFINITY, 0.0, 0);
        let mut counted = 0;
        for (ky, kx) in
            (0..spec.kernel[0]).flat_map(|ky| (0..spec.kernel[1]).map(move |kx| (ky, kx)))
        {
            let row = start(0, y) + (ky * spec.dilation[0]) as isize;
            let column = start(1, x) + (kx * spec.dilation[1]) as isize;
            if row < (h + spec.padding[0]) as isize && column < (w + spec.padding[1]) as isize {
                counted += 1;
            }
            if row >= 0 && column >= 0 && row < h as isize && column < w as isize {
                let value =
                    f64::from(plain[((n * c + channel) * h + row as usize) * w + column as usize]);
                most = most.max(value);
                sum += value;
                inside += 1;
            }
        }
        if largest {
            most
        } else {
            sum / f64::from(
                if spec.count_include_pad {
                    counted
                } else {
                    inside
                }
                .max(1),
            )
        }
    })
}

#[test]
fn pools() {
    let mut random = Random::new(11);
    for _ in 0..600 {
        let all = sizes(&mut random);
        let kernel = [1 + random.below(4), 1 + random.below(4)];
        let largest = random.below(2) == 0;
        let dilation = if largest {
            [1 + random.below(2), 1 + random.below(2)]
        } else {
            [1, 1]
        };
        let spec = PoolSpec {
            kernel,
            stride: [1 + random.below(3), 1 + random.below(3)],
            padding: kernel.map(|k| random.below(k / 2 + 1)),
            dilation,
            ceil_mode: random.below(2) == 0,
            count_include_pad: random.below(2) == 0,
        };
        let (oh, ow) = spec.out_size(all.2, all.3);
        let out = (all.0, all.1, oh, ow);
        let plain = random.floats(count(all));
        let expected = pool(&spec, &plain, all, out, largest);
        for level in Level::available() {
            let input = image(&plain, all, &mut random);
            let found = run(out, &mut random, |out| {
                let f = if largest {
                    conv::max_pool
                } else {
                    conv::average_pool
                };
                f(level, &input, &spec, out).expect("the sizes fit");
            });
            close(
                &found,
                &expected,
                2e-6,
                &format!("{level:?} {spec:?} {all:?} largest {largest}"),
            );
        }
    }
}

#[test]
fn adaptive_and_global_pools() {
    let mut random = Random::new(12);
    for _ in 0..300 {
        let all = sizes(&mut random);
        let (n, c, h, w) = all;
        let out = (n, c, 1 + random.below(9), 1 + random.below(9));
        let plain = random.floats(count(all));
        let mean = |rows: std::ops::Range<usize>, columns: std::ops::Range<usize>, plane: usize| {
            let places = rows
                .clone()
                .flat_map(|y| columns.clone().map(move |x| (y, x)));
            let sum: f64 = places
                .map(|(y, x)| f64::from(plain[(plane * h + y) * w + x]))
                .sum();
            sum / (rows.len() * columns.len()) as f64
        };
        let side = |o: usize, size: usize, count: usize| {
            o * size / count..((o + 1) * size).div_ceil(count)
        };
        let expected = each(out, |n, ch, y, x| {
            mean(side(y, h, out.2), side(x, w, out.3), n * c + ch)
        });
        let means = each((n, c, 1, 1), |n, ch, _, _| mean(0..h, 0..w, n * c + ch));
        for level in Level::available() {
            let input = image(&plain, all, &mut random);
            let found = run(out, &mut random, |out| {
                conv::adaptive_average_pool(level, &input, out).expect("the sizes fit");
            });
            close(
                &found,
                &expected,
                2e-6,
                &format!("{level:?} {all:?} to {out:?}"),
            );
            let mut rows = vec![f32::NAN; n * c];
            conv::global_average_pool(level, &input, &mut rows).expect("the sizes fit");
            close(&rows, &means, 2e-6, &format!("{level:?} {all:?} global"));
        }
    }
}

#[test]
fn one_by_one() {
    let mut random = Random::new(13);
    let activations = [
        Activation::None,
        Activation::Relu,
        Activation::Hardswish,
        Activation::Sigmoid,
        Activation::Tanh,
    ];
    for i in 0..400 {
        let all = sizes(&mut random);
        let activation = activations[i % activations.len()];
        let (a, b) = (random.floats(count(all)), random.floats(count(all)));
        let factors = random.floats((all.0 * all.1).max(all.1));
        let area = all.2 * all.3;
        let sum: Vec<f64> = a
            .iter()
            .zip(&b)
            .map(|(a, b)| activate(activation, f64::from(*a) + f64::from(*b)))
            .collect();
        let product: Vec<f64> = (0..a.len())
            .map(|i| activate(activation, f64::from(a[i]) * f64::from(factors[i / area])))
            .collect();
        let plain: Vec<f64> = a
            .iter()
            .map(|a| activate(activation, f64::from(*a)))
            .collect();
        let shifts = random.floats(all.1);
        let affine: Vec<f64> = (0..a.len())
            .map(|i| {
                let channel = i / area % all.1;
                let y = f64::from(a[i]) * f64::from(factors[channel]) + f64::from(shifts[channel]);
                activate(activation, y)
            })
            .collect();
        for level in Level::available() {
            let context = format!("{level:?} {all:?} {activation:?}");
            let (left, right) = (image(&a, all, &mut random), image(&b, all, &mut random));
            let found = run(all, &mut random, |out| {
                conv::add(level, &left, &right, activation, out).expect("sizes")
            });
            close(&found, &sum, 1e-6, &context);
            let found = run(all, &mut random, |out| {
                let factors = &factors[..all.0 * all.1];
                conv::scale(level, &left, factors, activation, out).expect("the sizes fit");
            });
            close(&found, &product, 1e-6, &context);
            let found = run(all, &mut random, |out| {
                conv::activate(level, &left, activation, out).expect("sizes")
            });
            close(&found, &plain, 1e-6, &context);
            let factors = &factors[..all.1];
            let found = run(all, &mut random, |out| {
                conv::affine(level, &left, factors, &shifts, activation, out).expect("sizes");
            });
            close(&found, &affine, 1e-6, &context);
        }
    }
}

#[test]
fn joined_channels() {
    let mut random = Random::new(14);
    for _ in 0..300 {
        let (n, _, h, w) = sizes(&mut random);
        let channels: Vec<usize> = (0..1 + random.below(4)).map(|_| random.below(40)).collect();
        let plain: Vec<Vec<f32>> = channels
            .iter()
            .map(|c| random.floats(n * c * h * w))
            .collect();
        let parts: Vec<Blocked> = plain
            .iter()
            .zip(&channels)
            .map(|(p, c)| image(p, (n, *c, h, w), &mut random))
            .collect();
        let all = (n, channels.iter().sum(), h, w);
        let found = run(all, &mut random, |out| {
            conv::concat_channels(&parts.iter().collect::<Vec<_>>(), out).expect("the sizes fit");
        });
        let expected = each(all, |n, channel, y, x| {
            let (mut part, mut c) = (0, channel);
            while c >= channels[part] {
                c -= channels[part];
                part += 1;
            }
            f64::from(plain[part][((n * channels[part] + c) * h + y) * w + x])
        });
        close(&found, &expected, 0.0, &format!("{channels:?} {h} {w}"));
    }
}

#[test]
fn nearest() {
    let mut random = Random::new(15);
    for _ in 0..200 {
        let all = sizes(&mut random);
        let (n, c, h, w) = all;
        let out = (n, c, 1 + random.below(20), 1 + random.below(20));
        let plain = random.floats(count(all));
        let input = image(&plain, all, &mut random);
        let found = run(out, &mut random, |out| {
            conv::resize_nearest(&input, out).expect("the sizes fit")
        });
        let expected = each(out, |n, ch, y, x| {
            f64::from(plain[((n * c + ch) * h + y * h / out.2) * w + x * w / out.3])
        });
        close(&found, &expected, 0.0, &format!("{all:?} to {out:?}"));
    }
}

#[test]
fn nan_passes_max_pool() {
    let spec = PoolSpec::new(3);
    for level in Level::available() {
        for place in 0..9 {
            let mut plain = [1.0; 9];
            plain[place] = f32::NAN;
            let input = Blocked::from_nchw(&plain, 1, 1, 3, 3, 0).expect("the sizes fit");
            let mut out = Blocked::zeros(1, 1, 1, 1, 0);
            conv::max_pool(level, &input, &spec, &mut out).expect("the sizes fit");
            assert!(out.blocks()[0][0].is_nan(), "{level:?} {place}");
        }
    }
}

#[test]
fn wrong_sizes_are_errors() {
    let level = Level::best();
    let input = Blocked::zeros(1, 4, 6, 6, 0);
    let mut out = Blocked::zeros(1, 4, 3, 3, 0);
    assert!(conv::max_pool(level, &input, &PoolSpec::new(3), &mut out).is_err());
    assert!(
        conv::max_pool(
            level,
            &input,
            &PoolSpec {
                padding: [2, 0],
                ..PoolSpec::new(2)
            },
            &mut out
        )
        .is_err()
    );
    assert!(
        conv::average_pool(
            level,
            &input,
            &PoolSpec {
                stride: [0, 1],
                ..PoolSpec::new(2)
            },
            &mut out
        )
        .is_err()
    );
    assert!(conv::global_average_pool(level, &input, &mut [0.0; 5]).is_err());
    assert!(conv::add(level, &input, &out.clone(), Activation::None, &mut out).is_err());
    assert!(
        conv::scale(
            level,
            &input,
            &[0.0; 3],
            Activation::None,
            &mut input.clone()
        )
        .is_err()
    );
    assert!(conv::concat_channels(&[&input], &mut out).is_err());
    assert!(conv::resize_nearest(&Blocked::zeros(1, 4, 0, 3, 0), &mut out).is_err());
    conv::max_pool(level, &input, &PoolSpec::new(2), &mut out).expect("the sizes fit");
}
