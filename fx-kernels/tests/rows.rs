//! Norms, softmax, rotary embedding, gathering and copies against plain loops in f64.

use fx_kernels::Level;
use fx_kernels::embedding::gather;
use fx_kernels::norm::{
    Groups, group_norm, layer_norm, log_softmax, log_softmax_in_place, rms_norm, softmax,
    softmax_in_place,
};
use fx_kernels::rotary::{Heads, Pairs, rotate};
use fx_kernels::transpose::contiguous;

use crate::common;
use common::Random;

fn close(what: &str, got: &[f32], want: &[f64]) {
    let largest = want.iter().fold(1e-3f64, |m, x| m.max(x.abs()));
    for (i, (got, want)) in got.iter().zip(want).enumerate() {
        let error = (f64::from(*got) - want).abs();
        assert!(
            error <= 1e-6 * largest,
            "{what}: {got}, not {want} at {i} (largest {largest})"
        );
    }
}

fn wide(x: &[f32]) -> Vec<f64> {
    x.iter().map(|x| f64::from(*x)).collect()
}

fn normal(row: &[f64], eps: f64) -> Vec<f64> {
    let n = row.len() as f64;
    let mean = row.iter().sum::<f64>() / n;
    let variance = row.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / n;
    row.iter()
        .map(|x| (x - mean) / (variance + eps).sqrt())
        .collect()
}

#[test]
fn rows() {
    let mut random = Random(3);
    for i in 0..1000 {
        let size = if i % 100 == 0 {
            5000
        } else {
            1 + random.below(150)
        };
        let count = if i % 200 == 0 { 40 } else { random.below(6) };
        let x: Vec<f32> = random
            .floats(size * count)
            .iter()
            .map(|x| x * 4.0 + 1.0)
            .collect();
        let (weight, bias) = (random.floats(size), random.floats(size));
        let weight = (i % 2 == 0).then_some(&weight[..]);
        let bias = (i % 3 == 0).then_some(&bias[..]);
        let x64 = wide(&x);
        let rows = || x64.chunks(size);
        let times = |i: usize| weight.map_or(1.0, |w| f64::from(w[i % size]));
        let plus = |i: usize| bias.map_or(0.0, |b| f64::from(b[i % size]));
        for level in Level::available() {
            let mut out = vec![f32::NAN; x.len()];
            softmax(level, size, &x, &mut out).expect("sizes");
            let want: Vec<f64> = rows()
                .flat_map(|row| {
                    let total: f64 = row.iter().map(|x| x.exp()).sum();
                    row.iter().map(move |x| x.exp() / total)
                })
                .collect();
            close("softmax", &out, &want);
            log_softmax(level, size, &x, &mut out).expect("sizes");
            close(
                "log_softmax",
                &out,
                &want.iter().map(|x| x.ln()).collect::<Vec<_>>(),
            );
            layer_norm(level, size, &x, weight, bias, 1e-5, &mut out).expect("sizes");
            let want: Vec<f64> = rows().flat_map(|row| normal(row, 1e-5)).collect();
            let want: Vec<f64> = want
                .iter()
                .enumerate()
                .map(|(i, x)| x * times(i) + plus(i))
                .collect();
            if size > 1 {
                close("layer_norm", &out, &want);
            }
            rms_norm(level, size, &x, weight, 1e-5, &mut out).expect("sizes");
            let want: Vec<f64> = rows()
                .flat_map(|row| {
                    let mean = row.iter().map(|x| x * x).sum::<f64>() / size as f64;
                    row.iter().map(move |x| x / (mean + 1e-5).sqrt())
                })
                .enumerate()
                .map(|(i, x)| x * times(i))
                .collect();
            close("rms_norm", &out, &want);
        }
    }
}

#[test]
fn rows_in_place_are_the_same() {
    let mut random = Random(4);
    for (size, count) in [(1, 7), (5, 1), (37, 900), (9000, 9), (40_000, 3)] {
        let x = random.floats(size * count);
        for level in Level::available() {
            let mut expected = vec![0.0; x.len()];
            let mut found = x.clone();
            softmax(level, size, &x, &mut expected).expect("sizes");
            softmax_in_place(level, size, &mut found).expect("sizes");
            assert_eq!(found, expected, "{level:?} {size}");
            found.clone_from(&x);
            log_softmax(level, size, &x, &mut expected).expect("sizes");
            log_softmax_in_place(level, size, &mut found).expect("sizes");
            assert_eq!(found, expected, "{level:?} {size}");
        }
    }
    assert!(softmax_in_place(Level::best(), 2, &mut [0.0; 3]).is_err());
}

#[test]
fn groups() {
    let mut random = Random(4);
    for i in 0..300 {
        let (groups, each) = (1 + random.below(4), 1 + random.below(4));
        let area = if i % 50 == 0 {
            3000
        } else {
            2 + random.below(60)
        };
        let (channels, batch) = (groups * each, random.below(4));
        let x = random.floats(batch * channels * area);
        let (weight, bias) = (random.floats(channels), random.floats(channels));
        let want: Vec<f64> = wide(&x)
            .chunks(each * area)
            .flat_map(|row| normal(row, 1e-3))
            .enumerate()
            .map(|(i, x)| {
                let c = i / area % channels;
                x * f64::from(weight[c]) + f64::from(bias[c])
            })
            .collect();
        for level in Level::available() {
            let mut out = vec![f32::NAN; x.len()];
            let sizes = Groups {
                channels,
                area,
                groups,
            };
            group_norm(level, sizes, &x, Some(&weight), Some(&bias), 1e-3, &mut out)
                .expect("sizes");
            close("group_norm", &out, &want);
        }
    }
}

#[test]
fn special_rows() {
    let inf = f32::INFINITY;
    for level in Level::available() {
        let mut out = [0.0; 20];
        softmax(level, 20, &[-inf; 20], &mut out).expect("sizes");
        assert!(out.iter().all(|x| x.is_nan()));
        let mut x = [0.0; 20];
        x[17] = f32::NAN;
        softmax(level, 20, &x, &mut out).expect("sizes");
        assert!(out.iter().all(|x| x.is_nan()));
        layer_norm(level, 20, &x, None, None, 0.1, &mut out).expect("sizes");
        assert!(out.iter().all(|x| x.is_nan()));
        x[17] = -inf;
        softmax(level, 20, &x, &mut out).expect("sizes");
        assert_eq!(out[17], 0.0);
        assert!((out[0] - 1.0 / 19.0).abs() < 1e-8);
    }
    let level = Level::Scalar;
    assert!(softmax(level, 3, &[0.0; 4], &mut [0.0; 4]).is_err());
    assert!(softmax(level, 2, &[0.0; 4], &mut [0.0; 3]).is_err());
    assert!(softmax(level, 0, &[], &mut []).is_ok());
    assert!(layer_norm(level, 2, &[0.0; 4], Some(&[1.0]), None, 0.1, &mut [0.0; 4]).is_err());
    let sizes = Groups {
        channels: 3,
        area: 2,
        groups: 2,
    };
    assert!(group_norm(level, sizes, &[0.0; 6], None, None, 0.1, &mut [0.0; 6]).is_err());
}

#[test]
fn rotations() {
    let mut random = Random(5);
    for i in 0..500 {
        let [batch, length, heads] = [3, 5, 4].map(|n| 1 + random.below(n));
        let size = 1 + random.below(70);
        let turned = random.below(size + 1) / 2 * 2;
        let start = random.below(9);
        let head_stride = size + random.below(3);
        let place_stride = heads * head_stride + random.below(3);
        let batch_stride = length * place_stride + random.below(3);
        let sizes = Heads {
            batch,
            length,
            heads,
            size,
            turned,
            start,
            batch_stride,
            place_stride,
            head_stride,
        };
        let x = random.floats(start + batch * batch_stride + size);
        let half = turned / 2;
        let (cos, sin) = (random.floats(length * half), random.floats(length * half));
        let pairs = [Pairs::Halves, Pairs::Neighbours][i % 2];
        let mut want = Vec::new();
        for row in 0..batch * length * heads {
            let (b, p, h) = (row / heads / length, row / heads % length, row % heads);
            let at = start + b * batch_stride + p * place_stride + h * head_stride;
            let row = wide(&x[at..at + size]);
            let mut out = row.clone();
            for j in 0..half {
                let (a, b) = match pairs {
                    Pairs::Halves => (j, j + half),
                    Pairs::Neighbours => (2 * j, 2 * j + 1),
                };
                let (c, s) = (f64::from(cos[p * half + j]), f64::from(sin[p * half + j]));
                (out[a], out[b]) = (row[a] * c - row[b] * s, row[b] * c + row[a] * s);
            }
            want.extend(out);
        }
        for level in Level::available() {
            let mut out = vec![f32::NAN; want.len()];
            rotate(level, &x, sizes, pairs, &cos, &sin, &mut out).expect("sizes");
            close("rotate", &out, &want);
        }
        let mut out = vec![0.0; want.len()];
        let short = &x[..start + (batch - 1) * batch_stride];
        assert!(rotate(Level::Scalar, short, sizes, pairs, &cos, &sin, &mut out).is_err());
    }
}

#[test]
fn copies() {
    let mut random = Random(6);
    for i in 0..1000 {
        let rank = random.below(5);
        let big = if i % 100 == 0 { 40 } else { 8 };
        let sizes: Vec<usize> = (0..rank)
            .map(|_| {
                if random.below(4) == 0 {
                    1 + random.below(big * 3)
                } else {
                    random.below(big) + usize::from(i % 7 > 0)
                }
            })
            .collect();
        let mut order: Vec<usize> = (0..rank).collect();
        for j in (1..rank).rev() {
            order.swap(j, random.below(j + 1));
        }
        // The strides of a permuted contiguous tensor, some of them 0.
        let mut strides = vec![0; rank];
        let mut next = 1;
        for d in order {
            if random.below(8) > 0 {
                strides[d] = next;
                next *= sizes[d].max(1);
            }
        }
        let start = random.below(5);
        let len: usize = sizes.iter().product();
        let x = random.floats(start + next);
        let want: Vec<f64> = (0..len)
            .map(|mut i| {
                let mut at = start;
                for (size, stride) in sizes.iter().zip(&strides).rev() {
                    at += i % size * stride;
                    i /= size;
                }
                f64::from(x[at])
            })
            .collect();
        for level in Level::available() {
            let mut out = vec![f32::NAN; len];
            contiguous(level, &x, start, &sizes, &strides, &mut out).expect("sizes");
            assert!(wide(&out) == want, "{sizes:?} {strides:?}");
        }
    }
    let x = random.floats(700 * 900);
    let mut out = vec![0.0; 700 * 900];
    contiguous(Level::best(), &x, 0, &[900, 700], &[1, 900], &mut out).expect("sizes");
    assert!((0..out.len()).all(|i| out[i] == x[i % 700 * 900 + i / 700]));
    assert!(contiguous(Level::best(), &x, 1, &[900, 700], &[1, 900], &mut out).is_err());
    assert!(contiguous(Level::best(), &x, 0, &[900, 700], &[1], &mut out).is_err());
    assert!(contiguous(Level::best(), &x, 0, &[900, 70], &[1, 900], &mut out).is_err());
}

#[test]
fn gathers() {
    let mut random = Random(7);
    for (rows, size, picks) in [(5, 3, 7), (100, 800, 300), (4, 0, 3), (3, 5, 0)] {
        let table = random.floats(rows * size);
        let indices: Vec<usize> = (0..picks).map(|_| random.below(rows)).collect();
        let mut out = vec![0.0; picks * size];
        gather(size, &table, &indices, &mut out).expect("sizes");
        let want: Vec<f32> = indices
            .iter()
            .flat_map(|i| table[i * size..(i + 1) * size].to_vec())
            .collect();
        assert_eq!(out, want);
    }
    assert!(gather(2, &[0.0; 4], &[0, 2], &mut [0.0; 4]).is_err());
    assert!(gather(2, &[0.0; 4], &[usize::MAX], &mut [0.0; 2]).is_err());
}
