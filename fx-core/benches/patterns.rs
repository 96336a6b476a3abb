//! How finding and replacing patterns grows: seconds at 10^4, 10^5 and 3·10^5 nodes, and the exponent between.
#![allow(clippy::print_stdout, reason = "a benchmark prints its figures")]

mod support;

use fx_core::prelude::*;
use fx_core::{Function, Rule, SubgraphMatcher, operator};
use support::{growth, module, seconds};

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

/// As [`support::growth`], where all of `run` counts.
fn measure<S>(
    what: &str,
    setup: impl Fn(usize) -> Result<S>,
    run: impl Fn(usize, &mut S) -> Result<()>,
) -> Result<()> {
    growth("patterns", SIZES, what, setup, |n, state| {
        seconds(|| run(n, state))
    })
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
