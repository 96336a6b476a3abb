//! How finding and replacing patterns grows: seconds at 10^4, 10^5 and 3·10^5 nodes, and the exponent between.
#![allow(clippy::print_stdout, reason = "a benchmark prints its figures")]

use std::hint::black_box;
use std::time::Instant;

use fx_core::prelude::*;
use fx_core::{Attributes, Function, Rule, SubgraphMatcher, operator};

const SIZES: [usize; 3] = [10_000, 100_000, 300_000];

/// A chain of unary operations in turns, as a module.
fn chain(n: usize, ops: &[Function]) -> Result<GraphModule> {
    let mut graph = Graph::with_capacity(n + 2);
    let mut at = graph.placeholder("x")?;
    for i in 0..n {
        at = graph.call_function(ops[i % ops.len()], (at,), ())?;
    }
    graph.output(at)?;
    module(graph)
}

/// A module of a graph, as a trace gives it: not compiled yet.
fn module(graph: Graph) -> Result<GraphModule> {
    let mut gm = GraphModule::new(Attributes::default(), graph, "Module")?;
    drop(gm.graph_mut());
    Ok(gm)
}

/// Pairs of values of one input each, all summed up in a chain.
fn pairs(n: usize) -> Result<GraphModule> {
    let mut graph = Graph::with_capacity(n + 2);
    let mut at = graph.placeholder("x")?;
    for _ in 0..n / 3 {
        let a = graph.call_function(operator::neg, (at,), ())?;
        let b = graph.call_function(operator::abs, (at,), ())?;
        at = graph.call_function(operator::add, (a, b), ())?;
    }
    graph.output(at)?;
    module(graph)
}

/// Prints what `run` takes at each size, the shortest of five times, and how it grows. A size is run on as many graphs as
/// make the largest one, built beforehand: all sizes work on the same amount of memory, so that the exponent tells how
/// the algorithm grows and not where the caches end.
fn measure<S>(
    what: &str,
    setup: impl Fn(usize) -> Result<S>,
    run: impl Fn(usize, &mut S) -> Result<()>,
) -> Result<()> {
    let mut named = std::env::args()
        .skip(1)
        .filter(|a| !a.starts_with('-'))
        .peekable();
    if named.peek().is_some() && !named.any(|name| name == what) {
        return Ok(());
    }
    let mut times = [f64::INFINITY; SIZES.len()];
    for (n, best) in SIZES.iter().zip(&mut times) {
        let copies = SIZES[SIZES.len() - 1] / n;
        for _ in 0..5 {
            let states = (0..copies).map(|_| setup(*n));
            let mut states = states.collect::<Result<Vec<S>>>()?;
            let start = Instant::now();
            for state in &mut states {
                run(*n, black_box(state))?;
            }
            *best = best.min(start.elapsed().as_secs_f64() / copies as f64);
        }
        println!("patterns.{what}/{n} {best:.4} s");
    }
    let [first, _, last] = times;
    println!(
        "patterns.{what}/exponent {:.2}",
        (last / first).ln() / 30f64.ln()
    );
    Ok(())
}

fn found(count: usize, expected: usize) -> Result<()> {
    match count == expected {
        true => Ok(()),
        false => Err(Error::msg(format_args!("{count} matches, not {expected}"))),
    }
}

fn main() -> Result<()> {
    let three = [operator::neg, operator::abs, operator::invert];
    let rule = Rule::new(
        traced!(|x: Int| {
            let y = (-x)?.abs()?;
            !y
        }),
        traced!(|x: Int| (x + 1)? * 2),
    )?;
    measure(
        "replace",
        |n| chain(n, &three),
        |n, gm| found(rule.apply(gm)?.len(), n / 3),
    )?;
    let absent = SubgraphMatcher::new(traced!(|x: Int| {
        let y = (-x)?.abs()?;
        (-y)?.abs()
    }))?;
    measure(
        "no_match",
        |n| chain(n, &three),
        |_, gm| found(absent.find(gm)?.len(), 0),
    )?;
    measure(
        "deep",
        |n| {
            let gm = chain(n, &[operator::neg])?;
            Ok((SubgraphMatcher::new(gm.graph())?, gm))
        },
        |_, (whole, gm)| found(whole.find(gm)?.len(), 1),
    )?;
    let two = Rule::new(
        traced!(|x: Int| Ok(((-x)?, x.abs()?))),
        traced!(|x: Int| Ok(((x * 2)?, (x * 3)?))),
    )?;
    measure("multi_output", pairs, |n, gm| {
        found(two.apply(gm)?.len(), n / 3)
    })
}
