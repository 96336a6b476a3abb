//! Networks over sequences, reductions, chosen and padded places and tapes on images against plain loops in f64: odd and
//! empty sizes, every level, one thread and several.

use fx_kernels::conv::{self, Blocked};
use fx_kernels::pointwise::{Binary, Chain, Unary};
use fx_kernels::recurrent::{Network, Unit, Weights};
use fx_kernels::reduce::{Reduction, reduce};
use fx_kernels::{Activation, Level, convert, gather};

use crate::common;
use common::Random;

fn close(what: &str, got: &[f32], want: &[f64], tolerance: f64) {
    assert_eq!(got.len(), want.len(), "{what}");
    for (i, (got, want)) in got.iter().zip(want).enumerate() {
        let is_same = f64::from(*got) == *want || (got.is_nan() && want.is_nan());
        let error = (f64::from(*got) - want).abs();
        assert!(
            is_same || error <= tolerance * want.abs().max(1.0),
            "{what}: {got}, not {want} at {i}"
        );
    }
}

/// What a closure gives on one thread and on three, which is the same.
fn on_threads(run: impl Fn() -> Vec<f32> + Sync) -> Vec<f32> {
    let on = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads);
        pool.build().expect("threads").install(&run)
    };
    let (one, three) = (on(1), on(3));
    let bits = |floats: &[f32]| floats.iter().map(|x| x.to_bits()).collect::<Vec<_>>();
    assert_eq!(bits(&one), bits(&three));
    one
}

fn sigmoid(x: f64) -> f64 {
    1.0 / (1.0 + (-x).exp())
}

/// One layer in one direction: the states `[time, batch, hidden]`; `h` and `c` become the last ones.
fn layer(
    unit: Unit,
    [time, batch, inputs, hidden]: [usize; 4],
    x: &[f64],
    w: &Weights<'_>,
    h: &mut [f64],
    c: &mut [f64],
    is_reverse: bool,
) -> Vec<f64> {
    let mut out = vec![0.0; time * batch * hidden];
    for step in 0..time {
        let at = if is_reverse { time - 1 - step } else { step };
        for b in 0..batch {
            let before = h[b * hidden..][..hidden].to_vec();
            let x = &x[(at * batch + b) * inputs..][..inputs];
            let own = |row: usize| {
                let sum: f64 = x
                    .iter()
                    .zip(&w.of_input[row * inputs..])
                    .map(|(x, w)| x * f64::from(*w))
                    .sum();
                sum + w.bias.map_or(0.0, |[a, _]| f64::from(a[row]))
            };
            let old = |row: usize| {
                let sum: f64 = before
                    .iter()
                    .zip(&w.of_hidden[row * hidden..])
                    .map(|(x, w)| x * f64::from(*w))
                    .sum();
                sum + w.bias.map_or(0.0, |[_, b]| f64::from(b[row]))
            };
            for k in 0..hidden {
                let gate = |n: usize| own(n * hidden + k) + old(n * hidden + k);
                let next = match unit {
                    Unit::Lstm => {
                        let cell = &mut c[b * hidden + k];
                        *cell = sigmoid(gate(1)) * *cell + sigmoid(gate(0)) * gate(2).tanh();
                        sigmoid(gate(3)) * cell.tanh()
                    }
                    Unit::Gru => {
                        let (reset, update) = (sigmoid(gate(0)), sigmoid(gate(1)));
                        let new = (own(2 * hidden + k) + reset * old(2 * hidden + k)).tanh();
                        (1.0 - update) * new + update * before[k]
                    }
                    Unit::Tanh => gate(0).tanh(),
                    Unit::Relu => gate(0).max(0.0),
                };
                h[b * hidden + k] = next;
                out[(at * batch + b) * hidden + k] = next;
            }
        }
    }
    out
}

fn wide(x: &[f32]) -> Vec<f64> {
    x.iter().map(|x| f64::from(*x)).collect()
}

#[test]
fn networks_over_sequences() {
    let mut random = Random(11);
    let units = [Unit::Lstm, Unit::Gru, Unit::Tanh, Unit::Relu];
    let sizes = [
        [1, 1, 1, 1],
        [3, 1, 5, 7],
        [4, 2, 17, 33],
        [2, 9, 3, 16],
        [5, 3, 40, 130],
        [0, 2, 3, 4],
        [3, 0, 3, 4],
        [2, 2, 0, 5],
        [2, 1, 4, 0],
    ];
    for (at, [time, batch, inputs, hidden]) in sizes.into_iter().enumerate() {
        for unit in units {
            let (directions, layers) = (1 + at % 2, 1 + at % 3 / 2);
            let has_bias = at % 2 == 0 || unit == Unit::Gru;
            let rows = unit.gates() * hidden;
            let scale = 1.0 / (hidden.max(inputs).max(1) as f32).sqrt();
            let mut floats = |n: usize| {
                random
                    .floats(n)
                    .iter()
                    .map(|x| x * scale)
                    .collect::<Vec<_>>()
            };
            let kept: Vec<[Vec<f32>; 4]> = (0..layers * directions)
                .map(|at| {
                    let inputs = if at < directions {
                        inputs
                    } else {
                        directions * hidden
                    };
                    [
                        floats(rows * inputs),
                        floats(rows * hidden),
                        floats(rows),
                        floats(rows),
                    ]
                })
                .collect();
            let weights: Vec<Weights<'_>> = kept
                .iter()
                .map(|[a, b, c, d]| Weights {
                    of_input: a,
                    of_hidden: b,
                    bias: has_bias.then_some([&c[..], &d[..]]),
                })
                .collect();
            let network = Network::new(unit, inputs, hidden, directions, &weights).expect("sizes");
            let x = random.floats(time * batch * inputs);
            let states = layers * directions * batch * hidden;
            let (h, c) = (random.floats(states), random.floats(states));
            let cells = if unit == Unit::Lstm { states } else { 0 };
            let (mut want_h, mut want_c) = (wide(&h), wide(&c));
            let mut given = wide(&x);
            for (at, pair) in weights.chunks(directions).enumerate() {
                let inputs = if at == 0 { inputs } else { directions * hidden };
                let mut joined = vec![0.0; time * batch * directions * hidden];
                for (direction, w) in pair.iter().enumerate() {
                    let first = (at * directions + direction) * batch * hidden;
                    let range = first..first + batch * hidden;
                    let made = layer(
                        unit,
                        [time, batch, inputs, hidden],
                        &given,
                        w,
                        &mut want_h[range.clone()],
                        &mut want_c[range],
                        direction == 1,
                    );
                    for (i, y) in made.iter().enumerate() {
                        let (row, k) = (i / hidden, i % hidden);
                        joined[(row * directions + direction) * hidden + k] = *y;
                    }
                }
                given = joined;
            }
            want_c.truncate(cells);
            let want = [given, want_h, want_c].concat();
            for level in Level::available() {
                let found = on_threads(|| {
                    let (mut h, mut c) = (h.clone(), c[..cells].to_vec());
                    let mut out = vec![f32::NAN; time * batch * directions * hidden];
                    network
                        .run(level, (time, batch), &x, &mut h, &mut c, &mut out)
                        .expect("sizes");
                    [out, h, c].concat()
                });
                close(
                    &format!("{unit:?} {level:?} {time} {batch} {inputs} {hidden}"),
                    &found,
                    &want,
                    2e-6,
                );
            }
        }
    }
    let weights = Weights {
        of_input: &[1.0],
        of_hidden: &[1.0],
        bias: None,
    };
    assert!(Network::new(Unit::Tanh, 1, 1, 3, &[weights; 3]).is_err());
    assert!(Network::new(Unit::Tanh, 1, 1, 2, &[weights]).is_err());
    assert!(Network::new(Unit::Gru, 1, 1, 1, &[weights]).is_err());
    let network = Network::new(Unit::Tanh, 1, 1, 1, &[weights]).expect("sizes");
    let run = network.run(
        Level::best(),
        (2, 1),
        &[1.0],
        &mut [0.0],
        &mut [],
        &mut [0.0; 2],
    );
    assert!(run.is_err());
}

#[test]
fn reductions() {
    let mut random = Random(5);
    let shapes = [
        [1, 1, 1],
        [3, 17, 1],
        [2, 5, 3],
        [1, 700, 700],
        [300, 333, 1],
        [3, 100, 301],
        [2, 0, 3],
        [0, 4, 2],
        [4, 3, 0],
        [1, 1, 40],
    ];
    for [outer, count, inner] in shapes {
        let mut x = random.floats(outer * count * inner);
        if x.len() > 50 {
            (x[3], x[20]) = (f32::NAN, f32::NEG_INFINITY);
            let last = x.len() - 1;
            x[last] = f32::INFINITY;
        }
        for how in [
            Reduction::Sum,
            Reduction::Mean,
            Reduction::Max,
            Reduction::Min,
        ] {
            let mut want = Vec::new();
            for (o, i) in (0..outer).flat_map(|o| (0..inner).map(move |i| (o, i))) {
                let all = (0..count).map(|k| f64::from(x[(o * count + k) * inner + i]));
                let is_nan = all.clone().any(f64::is_nan);
                want.push(match how {
                    Reduction::Sum => all.sum(),
                    Reduction::Mean => all.sum::<f64>() / count as f64,
                    _ if is_nan => f64::NAN,
                    Reduction::Max => all.fold(f64::NEG_INFINITY, f64::max),
                    _ => all.fold(f64::INFINITY, f64::min),
                });
            }
            for level in Level::available() {
                let found = on_threads(|| {
                    let mut out = vec![0.0; outer * inner];
                    reduce(level, how, [outer, count, inner], &x, &mut out).expect("sizes");
                    out
                });
                close(
                    &format!("{how:?} {level:?} {outer} {count} {inner}"),
                    &found,
                    &want,
                    2e-5,
                );
            }
        }
    }
    assert!(reduce(Level::best(), Reduction::Sum, [1, 2, 1], &[1.0], &mut [0.0]).is_err());
}

#[test]
fn chosen_padded_and_joined_places() {
    let mut random = Random(7);
    for [outer, count, inner] in [
        [1, 3, 1],
        [4, 5, 3],
        [0, 2, 1],
        [300, 20, 31],
        [2, 40_000, 1],
        [2, 3, 0],
    ] {
        let x = random.floats(outer * count * inner);
        let places: Vec<usize> = (0..count + 3).map(|_| random.below(count)).collect();
        let found = on_threads(|| {
            let mut out = vec![0.0; outer * places.len() * inner];
            gather::places([outer, count, inner], &x, &places, &mut out).expect("sizes");
            out
        });
        for (i, y) in found.iter().enumerate() {
            let (row, k) = (i / inner, i % inner);
            let (o, at) = (row / places.len(), row % places.len());
            assert_eq!(*y, x[(o * count + places[at]) * inner + k]);
        }
        let (before, after) = ([1, 0, 2], [0, 3, 1]);
        let padded = [outer + 1, count + 3, inner + 3];
        let found = on_threads(|| {
            let mut out = vec![0.0; padded.iter().product()];
            gather::pad(&[outer, count, inner], &x, &before, &after, -7.0, &mut out)
                .expect("sizes");
            out
        });
        for (i, y) in found.iter().enumerate() {
            let place = [
                i / padded[2] / padded[1],
                i / padded[2] % padded[1],
                i % padded[2],
            ];
            let at: Vec<usize> = place
                .iter()
                .zip(before)
                .map(|(p, b)| p.wrapping_sub(b))
                .collect();
            let is_inside = at[0] < outer && at[1] < count && at[2] < inner;
            let want = if is_inside {
                x[(at[0] * count + at[1]) * inner + at[2]]
            } else {
                -7.0
            };
            assert_eq!(*y, want);
        }
        let other = random.floats(outer * 2 * inner);
        let mut out = vec![0.0; x.len() + other.len()];
        gather::join(outer, &[(&x, count * inner), (&other, 2 * inner)], &mut out).expect("sizes");
        for o in 0..outer {
            let (a, b) = (count * inner, 2 * inner);
            assert_eq!(out[o * (a + b)..][..a], x[o * a..][..a]);
            assert_eq!(out[o * (a + b) + a..][..b], other[o * b..][..b]);
        }
    }
    assert!(gather::places([1, 2, 1], &[1.0, 2.0], &[2], &mut [0.0]).is_err());
    assert!(gather::pad(&[1], &[1.0], &[1], &[0, 0], 0.0, &mut [0.0; 2]).is_err());
    assert!(gather::join(1, &[(&[1.0], 2)], &mut [0.0; 2]).is_err());
    let mut floats = [0.0; 3];
    convert::from_i64(&[-1, 0, 1 << 40], &mut floats).expect("sizes");
    assert_eq!(floats, [-1.0, 0.0, (1u64 << 40) as f32]);
    convert::from_u8(&[0, 1, 255], &mut floats).expect("sizes");
    assert_eq!(floats, [0.0, 1.0, 255.0]);
    assert!(convert::from_i32(&[1], &mut floats).is_err());
}

#[test]
fn images_by_tapes_and_places() {
    let mut random = Random(9);
    for [batch, channels, height, width] in [
        [1, 1, 1, 1],
        [2, 17, 5, 3],
        [1, 33, 40, 41],
        [1, 3, 0, 2],
        [0, 3, 2, 2],
    ] {
        let count = batch * channels * height * width;
        let (a, b) = (random.floats(count), random.floats(count));
        let factors = random.floats(channels);
        let mut chain = Chain::new();
        let inputs = [chain.input(), chain.input(), chain.input()];
        let y = chain.binary(Binary::Mul, inputs[0], inputs[2]);
        let y = chain.binary(Binary::Add, y, inputs[1]);
        let y = chain.unary(Unary::Activation(Activation::Relu), y);
        // Spare channels get the logarithm of zero, and are cleared.
        let log = chain.unary(Unary::Log, y);
        let tape = chain.finish(&[log]);
        let area = height * width;
        for (level, halo) in Level::available()
            .into_iter()
            .flat_map(|level| [(level, 0), (level, 2)])
        {
            let image = |x: &[f32], halo| {
                Blocked::from_nchw(x, batch, channels, height, width, halo).expect("sizes")
            };
            let plain = |image: &Blocked| {
                let mut plain =
                    vec![0.0; image.batch() * image.channels() * image.height() * image.width()];
                image.to_nchw(&mut plain).expect("sizes");
                let blocks = image.channel_blocks();
                let planes = image.blocks().len() / (image.batch() * blocks).max(1);
                for (at, plane) in image.blocks().chunks(planes.max(1)).enumerate() {
                    let is_last = at % blocks + 1 == blocks && channels % 16 > 0;
                    assert!(!is_last || plane.iter().all(|pixel| pixel[15].is_finite()));
                }
                plain
            };
            let (x, other) = (image(&a, 1), image(&b, halo));
            let found = on_threads(|| {
                let mut out = Blocked::zeros(batch, channels, height, width, halo);
                conv::pointwise(level, &tape, &[&x, &other], &[&factors], &mut out).expect("sizes");
                plain(&out)
            });
            for (i, y) in found.iter().enumerate() {
                let sum =
                    f64::from(a[i]) * f64::from(factors[i / area % channels]) + f64::from(b[i]);
                let want = sum.max(0.0).ln();
                let is_same = f64::from(*y) == want
                    || (f64::from(*y) - want).abs() < 1e-3
                    || sum.abs() < 1e-4;
                assert!(is_same, "{level:?}: {y}, not {want}");
            }
            if area == 0 {
                continue;
            }
            let rows = [height - 1, 0, height / 2, 0];
            let mut out = Blocked::zeros(batch, channels, 4, width, halo);
            conv::places(&x, true, &rows, &mut out).expect("sizes");
            for (i, y) in plain(&out).iter().enumerate() {
                let (plane, row, column) = (i / width / 4, i / width % 4, i % width);
                assert_eq!(*y, a[plane * area + rows[row] * width + column]);
            }
            let columns = [width - 1, width / 2, 0];
            let mut out = Blocked::zeros(batch, channels, height, 3, halo);
            conv::places(&x, false, &columns, &mut out).expect("sizes");
            for (i, y) in plain(&out).iter().enumerate() {
                assert_eq!(*y, a[i / 3 * width + columns[i % 3]]);
            }
            let (tall, broad) = (height + 3, width + 1);
            let mut out = Blocked::zeros(batch, channels, tall, broad, halo);
            conv::pad(&x, [1, 2], [0, 1], -3.0, &mut out).expect("sizes");
            for (i, y) in plain(&out).iter().enumerate() {
                let (plane, row, column) = (i / broad / tall, i / broad % tall, i % broad);
                let row = row.wrapping_sub(1);
                let is_inside = row < height && column < width;
                let want = if is_inside {
                    a[plane * area + row * width + column]
                } else {
                    -3.0
                };
                assert_eq!(*y, want);
            }
            assert!(
                conv::places(
                    &x,
                    true,
                    &[height],
                    &mut Blocked::zeros(batch, channels, 1, width, 0)
                )
                .is_err()
            );
        }
    }
}
