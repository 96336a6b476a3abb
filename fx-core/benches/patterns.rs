//! How finding and replacing patterns scales: seconds at 10^4, 10^5 and 3·10^5 nodes, and the
//! exponent between; and seconds of searches that would never end if every way were tried.
#![allow(clippy::print_stdout, reason = "a benchmark prints its figures")]

mod support;

use fx_core::ir::{Function, Graph, Op};
use fx_core::operator;
use fx_core::pattern::{Rule, SubgraphMatcher};
use fx_core::prelude::*;
use support::{growth, module, once, seconds};

const SIZES: [usize; 3] = [10_000, 100_000, 300_000];

/// A chain of alternating unary operations, as a module.
fn chain(n: usize, ops: &[Function]) -> Result<GraphModule> {
    let mut graph = Graph::with_capacity(n + 2);
    let mut at = graph.placeholder("x")?;
    for i in 0..n {
        at = graph.call_function(ops[i % ops.len()], (at,), ())?;
    }
    graph.output(at)?;
    module(graph)
}

/// Pairs of values with the same input, all summed up in a chain.
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

/// As [`support::growth`], with all of `run` measured.
fn measure<S>(
    what: &str,
    setup: impl Fn(usize) -> Result<S>,
    run: impl Fn(usize, &mut S) -> Result<()>,
) -> Result<()> {
    growth("patterns", SIZES, what, setup, |n, state| {
        seconds(|| run(n, state))
    })
}

/// A balanced tree of sums of `leaves` inputs, each through its operation from `op`.
fn sums(leaves: usize, op: impl Fn(usize) -> Function) -> Result<Graph> {
    let mut graph = Graph::with_capacity(3 * leaves);
    let inputs = (0..leaves).map(|_| graph.placeholder("x"));
    let mut level = inputs.collect::<Result<Vec<_>>>()?;
    for (i, node) in level.iter_mut().enumerate() {
        *node = graph.call_function(op(i), (*node,), ())?;
    }
    while level.len() > 1 {
        let pairs = level.chunks(2);
        level = pairs
            .map(|pair| graph.call_function(operator::add, (pair[0], pair[1]), ()))
            .collect::<Result<_>>()?;
    }
    graph.output(level[0])?;
    Ok(graph)
}

/// One value with `n` users, which alternate between these operations, in one list.
fn hub(n: usize, ops: &[Function]) -> Result<Graph> {
    let mut graph = Graph::with_capacity(n + 2);
    let x = graph.placeholder("x")?;
    let users = (0..n).map(|i| graph.call_function(ops[i % ops.len()], (x,), ()));
    let users = users.collect::<Result<Vec<_>>>()?;
    graph.output(users)?;
    Ok(graph)
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
    })?;
    // A pattern whose first leaf is odd, in a tree where every 32nd leaf is: all but that leaf fits
    // in every order.
    let odd = |leaves: usize, which: Function| {
        sums(leaves, move |i| match i % 32 {
            0 => which,
            _ => operator::neg,
        })
    };
    let mut pattern = odd(32, operator::neg)?;
    let last = pattern.find_name("neg_31").map(|node| node.id());
    let last = last.ok_or_else(|| Error::msg("the pattern has 32 leaves"))?;
    pattern
        .node_mut(last)?
        .set_op(Op::CallFunction(operator::abs))?;
    let tree = SubgraphMatcher::new(pattern)?;
    once(
        "patterns",
        "commutative_tree",
        4096,
        |n| module(odd(n, operator::invert)?),
        |gm| found(tree.find(gm)?.len(), 0),
    )?;
    let hub3 = SubgraphMatcher::new(hub(3, &[operator::neg, operator::abs, operator::invert])?)?;
    once(
        "patterns",
        "hub3",
        2000,
        |n| module(hub(n, &[operator::neg, operator::abs])?),
        |gm| found(hub3.find(gm)?.len(), 0),
    )?;
    let one = Rule::new(traced!(|x: Int| -x), traced!(|x: Int| x + 1))?;
    once(
        "patterns",
        "one_list",
        100_000,
        |n| module(hub(n, &[operator::neg])?),
        |gm| found(one.apply(gm)?.len(), 100_000),
    )
}
