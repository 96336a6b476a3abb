//! Control flow from plain Rust: what a plain condition costs, a turn of a recorded loop, and
//! recording nested regions.
#![allow(clippy::print_stdout, reason = "a benchmark prints its figures")]

mod support;

use std::hint::black_box;
use std::time::Instant;

use fx_core::prelude::*;
use support::{growth, seconds, wanted};

/// How often each side of a comparison is measured, in turns.
const ROUNDS: usize = 31;

macro_rules! plain {
    ($(#[$attribute:meta])* $name:ident) => {
        $(#[$attribute])*
        fn $name(x: Int, flags: Vec<bool>) -> Result<Int> {
            let mut up = 0i64;
            let mut down = 1i64;
            for flag in &flags {
                if *flag {
                    up += down & 7;
                } else {
                    down += 3;
                }
            }
            x + (up + down)
        }
    };
}

plain!(
    #[trace]
    plain_if
);
plain!(
    #[trace(control_flow)]
    plain_if_under_the_option
);

#[trace(control_flow)]
fn collatz(n: Int) -> Result<Int> {
    let mut n = n;
    let mut steps = Int::from(0);
    while n > 1 {
        n = if (n % 2)? == 0 {
            n.floordiv(2)
        } else {
            (n * 3)? + 1
        }?;
        steps = (steps + 1)?;
    }
    Ok(steps)
}

/// As many branches as it has turns, each in the other side of the one before.
#[trace(control_flow)]
fn nested(x: Float, depth: usize) -> Result<Float> {
    let mut h = x;
    for i in 0..depth {
        if h > 1.0 {
            h = (h * 0.5)?;
            break;
        }
        h = (h + i as f64)?;
    }
    Ok(h)
}

/// The median of the second over the first, measured in turns.
fn in_turns(
    mut first: impl FnMut() -> Result<f64>,
    mut second: impl FnMut() -> Result<f64>,
) -> Result<(f64, f64)> {
    let (mut a, mut b) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        a.push(first()?);
        b.push(second()?);
    }
    a.sort_by(f64::total_cmp);
    b.sort_by(f64::total_cmp);
    Ok((a[ROUNDS / 2], b[ROUNDS / 2]))
}

fn main() -> Result<()> {
    if wanted("plain_if") {
        let flags: Vec<bool> = (0..100_000)
            .map(|i: u32| i.wrapping_mul(2_654_435_761) >> 31 == 0)
            .collect();
        let time = |run: fn(Int, Vec<bool>) -> Result<Int>| {
            let flags = flags.clone();
            let start = Instant::now();
            black_box(run(black_box(Int::from(1)), flags)?);
            Ok(start.elapsed().as_secs_f64())
        };
        let (without, with) = in_turns(|| time(plain_if), || time(plain_if_under_the_option))?;
        let each = 1e9 / flags.len() as f64;
        println!("control.plain_if_without: {:.2}", without * each);
        println!("control.plain_if: {:.2}", (with - without) * each);
    }
    if wanted("loop_ratio") {
        let gm = symbolic_trace(traced!(collatz))?;
        let number = 837_799_i64;
        let steps = gm.forward::<i64>(number)?;
        let (eager, graph) = in_turns(
            || {
                seconds(|| {
                    (0..20).try_for_each(|_| collatz(black_box(Int::from(number))).map(drop))
                })
            },
            || seconds(|| (0..20).try_for_each(|_| gm.forward::<i64>(black_box(number)).map(drop))),
        )?;
        let turns = 20.0 * steps as f64;
        println!(
            "control.loop_turn_ns: {:.0} eager {:.0}",
            graph / turns * 1e9,
            eager / turns * 1e9
        );
        println!("control.loop_ratio: {:.2}", graph / eager);
    }
    growth("control", [1_000, 10_000], "nested", Ok, |n, _| {
        seconds(|| {
            Trace::new(traced!(nested))
                .concrete("depth", n)
                .graph_module()
                .map(drop)
        })
    })
}
