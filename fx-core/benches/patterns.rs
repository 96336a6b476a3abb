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

/// The shortest of some runs, each on what `setup` gives.
fn shortest<S, T>(
    mut setup: impl FnMut() -> Result<S>,
    mut run: impl FnMut(&mut S) -> Result<T>,
) -> Result<f64> {
    let mut best = f64::INFINITY;
    for _ in 0..5 {
        let mut state = setup()?;
        let start = Instant::now();
        black_box(run(&mut state)?);
        best = best.min(start.elapsed().as_secs_f64());
    }
    Ok(best)
}

fn measure(what: &str, run: impl Fn(usize) -> Result<f64>) -> Result<()> {
    let mut named = std::env::args()
        .skip(1)
        .filter(|a| !a.starts_with('-'))
        .peekable();
    if named.peek().is_some() && !named.any(|name| name == what) {
        return Ok(());
    }
    let times = SIZES.map(&run);
    for (n, time) in SIZES.iter().zip(&times) {
        if let Ok(time) = time {
            println!("patterns.{what}/{n} {time:.4} s");
        }
    }
    let [first, _, last] = times;
    let grown = last? / first?;
    println!("patterns.{what}/exponent {:.2}", grown.ln() / 30f64.ln());
    Ok(())
}

fn main() -> Result<()> {
    let three = [operator::neg, operator::abs, operator::invert];
    measure("replace", |n| {
        let pattern = traced!(|x: Int| {
            let y = (-x)?.abs()?;
            !y
        });
        let rule = Rule::new(pattern, traced!(|x: Int| (x + 1)? * 2))?;
        shortest(
            || chain(n, &three),
            |gm| {
                let found = rule.apply(gm)?.len();
                assert_eq!(found, n / 3);
                Ok(())
            },
        )
    })?;
    measure("no_match", |n| {
        let matcher = SubgraphMatcher::new(traced!(|x: Int| {
            let y = (-x)?.abs()?;
            (-y)?.abs()
        }))?;
        let gm = chain(n, &three)?;
        shortest(
            || Ok(()),
            |()| {
                assert!(matcher.find(&gm)?.is_empty());
                Ok(())
            },
        )
    })?;
    measure("deep", |n| {
        let gm = chain(n, &[operator::neg])?;
        let matcher = SubgraphMatcher::new(gm.graph())?;
        shortest(
            || Ok(()),
            |()| {
                assert_eq!(matcher.find(&gm)?.len(), 1);
                Ok(())
            },
        )
    })?;
    measure("multi_output", |n| {
        let rule = Rule::new(
            traced!(|x: Int| Ok(((-x)?, x.abs()?))),
            traced!(|x: Int| Ok(((x * 2)?, (x * 3)?))),
        )?;
        shortest(
            || pairs(n),
            |gm| {
                assert_eq!(rule.apply(gm)?.len(), n / 3);
                Ok(())
            },
        )
    })
}
