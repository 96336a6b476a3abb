//! Shapes without data: inference over a long chain with residuals, whose batch has a name.
#![allow(clippy::print_stdout, reason = "a benchmark prints its figures")]

mod support;

use std::time::Instant;

use fx_core::ir::{Graph, ValueMeta};
use fx_core::operator;
use fx_core::prelude::*;
use fx_core::shapes::spec;
use support::{growth, module};

/// An elementwise chain in which every eighth node adds what was eight nodes before.
fn chain(nodes: usize) -> Result<GraphModule> {
    let mut graph = Graph::new();
    let x = graph.placeholder("x")?;
    let (mut at, mut before) = (x, x);
    for step in 1..nodes {
        at = match step % 8 {
            0 => {
                let sum = graph.call_function(operator::add, (at, before), ())?;
                before = sum;
                sum
            }
            1 => graph.call_function(operator::neg, (at,), ())?,
            _ => graph.call_function(operator::mul, (at, 2.0), ())?,
        };
    }
    graph.output(at)?;
    module(graph)
}

fn main() -> Result<()> {
    let spec = [spec!["batch", 256; F32]];
    growth("shapes", [10_000, 100_000], "infer", chain, |_, gm| {
        let start = Instant::now();
        gm.infer_shapes(&spec)?;
        let seconds = start.elapsed().as_secs_f64();
        let output = gm.graph().output_node();
        let meta = output.and_then(|node| node.meta::<ValueMeta>());
        match meta.map(ValueMeta::to_string).as_deref() {
            Some("float32[batch, 256]") => Ok(seconds),
            other => Err(Error::msg(format_args!(
                "the result has the shape {other:?}"
            ))),
        }
    })
}
