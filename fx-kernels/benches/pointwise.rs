//! Times of chains of pointwise operations: prints `name value` lines.
#![allow(clippy::print_stdout, reason = "it prints what it measures")]

use std::hint::black_box;
use std::time::Instant;

use fx_kernels::pointwise::{Binary, Chain, Operand, Tape, Unary};
use fx_kernels::{Activation, Level};

/// Ten cheap operations.
fn cheap() -> Tape {
    let mut chain = Chain::new();
    let x = chain.input();
    let [a, b, c, half] = [1.5, 0.5, 0.25, 0.5].map(|n| chain.constant(n));
    let x = chain.binary(Binary::Mul, x, a);
    let x = chain.binary(Binary::Add, x, b);
    let x = chain.unary(Unary::Activation(Activation::Relu), x);
    let y = chain.binary(Binary::Mul, x, x);
    let y = chain.binary(Binary::Sub, y, c);
    let y = chain.unary(Unary::Clamp(-1.0, 3.0), y);
    let y = chain.binary(Binary::Sub, y, x);
    let y = chain.unary(Unary::Abs, y);
    let y = chain.binary(Binary::Mul, y, half);
    let y = chain.binary(Binary::Add, y, x);
    chain.finish(&[y])
}

/// The least milliseconds of some runs.
fn least(mut run: impl FnMut()) -> f64 {
    (0..40).fold(f64::INFINITY, |least, _| {
        let start = Instant::now();
        run();
        least.min(start.elapsed().as_secs_f64() * 1e3)
    })
}

fn main() {
    let tape = cheap();
    println!("steps {}", tape.steps());
    for level in Level::available() {
        for len in [16 << 10, 4 << 20] {
            let x: Vec<f32> = (0..len).map(|i| (i % 1000) as f32 / 500.0 - 1.0).collect();
            let operand = [Operand::full(&x, &[1])];
            let mut out = vec![0.0; len];
            let run = least(|| {
                tape.run(level, &[len], &operand, &mut [&mut out])
                    .expect("the sizes fit");
            });
            let collect = least(|| {
                black_box(tape.collect(level, &[len], &operand)).expect("the sizes fit");
            });
            println!("cheap_{level:?}_{len} run {run:.3} ms, collect {collect:.3} ms");
        }
    }
}
