//! How passes scale: seconds at 10^4 and 10^5 nodes, and the exponent between.
#![allow(clippy::print_stdout, reason = "a benchmark prints its figures")]

mod support;

use fx_core::ir::Graph;
use fx_core::operator;
use fx_core::passes::{Canonicalize, Cse, Decompositions, FoldConstants, NormalizeArguments, Pass};
use fx_core::prelude::*;
use fx_core::run::PlainInterpreter;
use fx_core::value::{IntoValue, NodeId};
use support::{growth, module, seconds};

const SIZES: [usize; 2] = [10_000, 100_000];

#[wrap]
fn square(x: Int) -> Result<Int> {
    x * x
}

/// Repeats a step that adds `nodes` nodes to a chain, until there are `n`.
fn chain(
    n: usize,
    nodes: usize,
    step: impl Fn(&mut Graph, NodeId) -> Result<NodeId>,
) -> Result<GraphModule> {
    let mut graph = Graph::with_capacity(n + 2);
    let mut at = graph.placeholder("x")?;
    for _ in 0..n / nodes {
        at = step(&mut graph, at)?;
    }
    graph.output(at)?;
    module(graph)
}

/// A pass's run alone, without the checks around it.
fn measure(
    what: &str,
    pass: &impl Pass,
    setup: impl Fn(usize) -> Result<GraphModule>,
) -> Result<()> {
    growth("passes", SIZES, what, setup, |_, gm| {
        seconds(|| match pass.run(gm)? {
            true => Ok(()),
            false => Err(Error::msg("the pass has something to do here")),
        })
    })
}

fn main() -> Result<()> {
    measure("cse", &Cse::new(), |n| {
        chain(n, 3, |graph, at| {
            let a = graph.call_function(operator::add, (at, 1), ())?;
            let b = graph.call_function(operator::add, (at, 1), ())?;
            graph.call_function(operator::mul, (a, b), ())
        })
    })?;
    measure("fold", &FoldConstants::new(), |n| {
        chain(n, 3, |graph, at| {
            let one = graph.call_function(operator::sub, (3, 2), ())?;
            let two = graph.call_function(operator::add, (one, 1), ())?;
            graph.call_function(operator::mul, (at, two), ())
        })
    })?;
    measure("normalize", &NormalizeArguments::canonical(), |n| {
        chain(n, 1, |graph, at| {
            graph.call_function(operator::add, (at,), [("b", 1)])
        })
    })?;
    measure("canonicalize", &Canonicalize, |n| {
        chain(n, 3, |graph, at| {
            let b = graph.call_function(operator::neg, (at,), ())?;
            let a = graph.call_function(operator::abs, (at,), ())?;
            graph.call_function(operator::sub, (a, b), ())
        })
    })?;
    let table = Decompositions::new().rule(function!(square), |call| {
        let x: Int = call.arg("x")?;
        x * x
    });
    measure("decompose", &table, |n| {
        chain(n, 2, |graph, at| {
            let a = graph.call_function(function!(square), (at,), ())?;
            graph.call_function(operator::sub, (a, 1), ())
        })
    })?;
    growth(
        "passes",
        SIZES,
        "shape_prop",
        |n| {
            chain(n, 1, |graph, at| {
                graph.call_function(operator::neg, (at,), ())
            })
        },
        |_, gm| {
            let run = seconds(|| {
                let inputs = vec![1.into_value()];
                let mut run = gm.interpretation();
                run.run(&mut PlainInterpreter, inputs).map(drop)
            })?;
            let shapes = seconds(|| gm.propagate_shapes(1).map(drop))?;
            Ok(shapes - run)
        },
    )?;
    Ok(())
}
