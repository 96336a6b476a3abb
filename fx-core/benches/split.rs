//! Graphs in parts: a hundred parts as modules in one pass, and the parts of the supported calls.
#![allow(clippy::print_stdout, reason = "a benchmark prints its figures")]

mod support;

use std::sync::Arc;
use std::time::Instant;

use fx_core::ir::{Graph, Op};
use fx_core::module::Call;
use fx_core::operator;
use fx_core::passes::SplitOptions;
use fx_core::passes::backend::{Metas, Partitioner, Support};
use fx_core::prelude::*;
use support::{growth, module, once};

/// How many parts a graph is split into.
const PARTS: usize = 100;

/// A chain with residuals, every tenth node of which is a quotient.
fn chain(nodes: usize) -> Result<GraphModule> {
    let mut graph = Graph::new();
    let x = graph.placeholder("x")?;
    let (mut at, mut before) = (x, x);
    for step in 1..nodes {
        let (function, operand) = match step % 10 {
            0 => (operator::truediv, before),
            4 => (operator::add, before),
            _ => (operator::mul, x),
        };
        at = graph.call_function(function, (at, operand), ())?;
        if step % 7 == 0 {
            before = at;
        }
    }
    graph.output(at)?;
    module(graph)
}

fn main() -> Result<()> {
    let sizes = [10_000, 100_000];
    growth("split", sizes, "module", chain, |nodes, gm| {
        let names: Vec<Arc<str>> = (0..PARTS)
            .map(|part| format!("part_{part}").into())
            .collect();
        let mut at = 0;
        let start = Instant::now();
        let split = gm.split(&SplitOptions::new(), |_| {
            at += 1;
            names.get((at - 1) * PARTS / nodes).cloned()
        })?;
        let seconds = start.elapsed().as_secs_f64();
        match split.parts.len() {
            PARTS => Ok(seconds),
            other => Err(Error::msg(format_args!("there are {other} parts"))),
        }
    })?;
    let support = |call: &Call<'_>, _: &Metas<'_>| match call.node().op() {
        Op::CallFunction(function) if *function == operator::truediv => Support::no("a quotient"),
        _ => Support::Yes,
    };
    // The size at which `tests/partition/beside_torch.py` compares it with torch.fx.
    once("split", "partition", 2_000, chain, |gm| {
        Partitioner::new().partition(gm, &support).map(drop)
    })?;
    growth("split", sizes, "partition", chain, |nodes, gm| {
        let start = Instant::now();
        let parts = Partitioner::new().partition(gm, &support)?;
        let seconds = start.elapsed().as_secs_f64();
        match parts.len() {
            found if found == nodes.div_ceil(10) => Ok(seconds),
            other => Err(Error::msg(format_args!("there are {other} parts"))),
        }
    })
}
