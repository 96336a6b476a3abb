//! Times of the matrix family: `cargo bench --bench matrix [-- name ..]` prints `name value` lines.
//! Each time is the least of many; the peak is measured in turns with the kernels.
#![allow(clippy::print_stdout, reason = "it prints what it measures")]

use std::time::Instant;

use fx_kernels::matrix::{BlockKind, Finish, PackedMatrix, WeightKind, WeightOrder, linear};
use fx_kernels::{Level, peak_flops};

fn floats(n: usize) -> Vec<f32> {
    (0..n)
        .map(|i| ((i * 7919) % 2003) as f32 / 1001.5 - 1.0)
        .collect()
}

/// The least milliseconds of a run, for at least `seconds`.
fn least(seconds: f64, mut run: impl FnMut()) -> f64 {
    run();
    let (begin, mut best) = (Instant::now(), f64::MAX);
    while begin.elapsed().as_secs_f64() < seconds {
        let start = Instant::now();
        run();
        best = best.min(start.elapsed().as_secs_f64() * 1e3);
    }
    best
}

/// Runs `run` on one and on two threads.
fn both(seconds: f64, mut run: impl FnMut() + Send) -> [f64; 2] {
    [1, 2].map(|threads| {
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(threads)
            .build()
            .expect("a pool");
        pool.install(|| least(seconds, &mut run))
    })
}

fn linears(level: Level) {
    let mut top = 0.0f64;
    for (m, k, n) in [
        (197, 3072, 768),
        (197, 768, 3072),
        (197, 768, 768),
        (512, 896, 4864),
        (512, 4864, 896),
        (128, 768, 2304),
        (128, 768, 50257),
        (1024, 1024, 1024),
    ] {
        for kind in [
            WeightKind::F32,
            WeightKind::Bf16,
            WeightKind::I8,
            WeightKind::Blocks(BlockKind::Q8_0),
            WeightKind::Blocks(BlockKind::Q4_0),
        ] {
            if kind != WeightKind::F32 && ![197, 512].contains(&m) {
                continue;
            }
            let (x, weight) = (floats(m * k), floats(n * k));
            let weight =
                PackedMatrix::new(&weight, k, n, WeightOrder::OutputsFirst, kind).expect("sizes");
            let bias = floats(n);
            let mut out = vec![0.0; m * n];
            for _ in 0..50 {
                top = top.max(peak_flops(level) / 1e9);
            }
            let [one, two] = both(0.5, || {
                let finish = Finish {
                    bias: Some(&bias),
                    ..Finish::default()
                };
                linear(level, m, &x, &weight, finish, &mut out).expect("sizes");
            });
            for _ in 0..50 {
                top = top.max(peak_flops(level) / 1e9);
            }
            let speed = (2 * m * k * n) as f64 / one / 1e6;
            println!(
                "linear_{level:?}_{kind:?}_{m}x{k}x{n} {one:.3} ms, {speed:.0} GFLOP/s, {:.3} of the peak {top:.0}; two threads {two:.3} ms",
                speed / top
            );
        }
    }
}

/// The bytes of weights that are read in turns: from memory.
const COLD: usize = 200 << 20;

fn few(level: Level, is_cold: bool) {
    for (m, k, n) in [
        (1, 768, 3072),
        (1, 4096, 11008),
        (1, 4864, 1024),
        (1, 1024, 4864),
        (4, 4096, 11008),
        (8, 768, 3072),
    ] {
        let x = floats(m * k);
        let weight = floats(n * k);
        let packed = [
            WeightKind::F32,
            WeightKind::Bf16,
            WeightKind::I8,
            WeightKind::Blocks(BlockKind::Q8_0),
            WeightKind::Blocks(BlockKind::Q4_0),
            WeightKind::Blocks(BlockKind::Q4K),
            WeightKind::Blocks(BlockKind::Q6K),
        ]
        .map(|kind| {
            PackedMatrix::new(&weight, k, n, WeightOrder::OutputsFirst, kind).expect("sizes")
        });
        drop(weight);
        // More than the caches of the processor hold, as the layers of a model are.
        let packed = packed.map(|packed| {
            let copies = if is_cold {
                COLD.div_ceil(packed.bytes())
            } else {
                1
            };
            vec![packed; copies]
        });
        let mut turn = 0;
        let mut out = vec![0.0; m * n];
        // In turns: what else runs here hits all of them.
        let mut best = [[f64::MAX; 2]; 7];
        for _ in 0..4 {
            for (best, packed) in best.iter_mut().zip(&packed) {
                let times = both(0.2, || {
                    turn += 1;
                    let packed = &packed[turn % packed.len()];
                    linear(level, m, &x, packed, Finish::default(), &mut out).expect("sizes");
                });
                *best = [best[0].min(times[0]), best[1].min(times[1])];
            }
        }
        for (best, packed) in best.iter().zip(&packed) {
            let [one, two] = best;
            let (packed, name) = (&packed[0], if is_cold { "cold" } else { "few" });
            println!(
                "{name}_{level:?}_{:?}_{m}x{k}x{n} {one:.3} ms, {:.1} GB/s; two threads {two:.3} ms",
                packed.kind(),
                packed.bytes() as f64 / one / 1e6
            );
        }
    }
}

fn main() {
    let names: Vec<String> = std::env::args()
        .skip(1)
        .filter(|name| !name.starts_with('-'))
        .collect();
    let wanted = |name: &str| names.is_empty() || names.iter().any(|n| n == name);
    for level in Level::available()
        .into_iter()
        .rev()
        .filter(|level| *level != Level::Scalar)
    {
        if wanted("linear") {
            linears(level);
        }
        if wanted("cold") {
            few(level, true);
        }
        if wanted("few") {
            few(level, false);
        }
    }
}
