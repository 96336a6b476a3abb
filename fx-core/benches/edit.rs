//! The cost of edits of a graph module: single ones, one that fails, and passes that change
//! nothing; and the cost of a call that no mode sees.
#![allow(clippy::print_stdout, reason = "a benchmark prints its figures")]

mod support;

use std::hint::black_box;
use std::time::Instant;

use fx_core::ir::{Graph, Op};
use fx_core::module::{Component, Walk, WalkMut};
use fx_core::operator;
use fx_core::passes::pass_fn;
use fx_core::prelude::*;
use fx_core::tensor::Object;
use fx_core::value::NodeId;
use support::{module, wanted};

const SIZES: [usize; 2] = [10_000, 100_000];

#[derive(Module)]
struct Scale {
    by: Weight,
}

#[trace(leaf)]
impl Scale {
    fn forward(&self, x: Float) -> Result<Float> {
        x * self.by.value
    }
}

/// A tensor of one number.
#[derive(Debug, Clone)]
struct Weight {
    value: f64,
}

impl Object for Weight {
    fn to_value(&self) -> Value {
        Value::object(self.clone())
    }
}

impl Component for Weight {
    fn visit(&self, walk: &mut Walk<'_, '_>) {
        walk.tensor(self);
    }

    fn visit_mut(&mut self, walk: &mut WalkMut<'_, '_>) {
        walk.tensor(self);
    }

    fn duplicate(&self) -> Self {
        self.clone()
    }
}

fn chain(n: usize) -> Result<(GraphModule, Vec<NodeId>)> {
    let mut graph = Graph::with_capacity(n + 2);
    let mut nodes = Vec::with_capacity(n);
    let mut at = graph.placeholder("x")?;
    for _ in 0..n {
        at = graph.call_function(operator::neg, (at,), ())?;
        nodes.push(at);
    }
    graph.output(at)?;
    Ok((module(graph)?, nodes))
}

/// The shortest of five times, in nanoseconds.
fn shortest(mut run: impl FnMut() -> Result<f64>) -> Result<f64> {
    let mut best = f64::INFINITY;
    for _ in 0..5 {
        best = best.min(run()?);
    }
    Ok(best * 1e9)
}

/// Seconds per single edit, which changes the target of one node. The edits are made on as many
/// graphs of a size as make the largest one, built beforehand, so that the exponent does not show
/// the sizes of the caches.
fn single(n: usize) -> Result<f64> {
    let total = SIZES[SIZES.len() - 1];
    let modules = (0..total / n).map(|_| chain(n));
    let mut modules = modules.collect::<Result<Vec<_>>>()?;
    let start = Instant::now();
    for (gm, nodes) in &mut modules {
        for node in nodes {
            let abs = Op::CallFunction(operator::abs);
            gm.graph_mut().node_mut(*node)?.set_op(abs)?;
        }
    }
    Ok(start.elapsed().as_secs_f64() / total as f64)
}

/// Seconds per edit that erases, makes, renames and rewires ten nodes and then fails.
fn rollback(gm: &mut GraphModule, nodes: &[NodeId], at: usize) -> Result<f64> {
    let nodes = &nodes[at..at + 10];
    let before = gm.graph().len();
    let start = Instant::now();
    let failed = gm.edit(|gm| {
        let mut graph = gm.graph_mut();
        for node in nodes {
            let input = graph.node(*node)?.all_input_nodes().next();
            let input = input.map(|input| input.id());
            let input = input.ok_or_else(|| Error::msg("a chain's node has an input"))?;
            let mut place = graph.inserting_before(*node)?;
            let new = place.call_function(operator::abs, (input,), ())?;
            place.node_mut(*node)?.replace_all_uses_with(new)?;
            place.node_mut(new)?.rename("renamed");
            place.erase_node(*node)?;
        }
        Err::<(), Error>(Error::msg("no"))
    });
    let time = start.elapsed().as_secs_f64();
    match failed.is_err() && gm.graph().len() == before {
        true => Ok(time),
        false => Err(Error::msg("the edit was to fail")),
    }
}

/// Seconds per pass that changes nothing, over ten in a row, on a graph that calls `modules`
/// modules.
fn idle(modules: usize, nodes: usize) -> Result<f64> {
    let mut gm = symbolic_trace(traced!(|x: Float| Ok(x)))?;
    let mut graph = Graph::new();
    let mut at = graph.placeholder("x")?;
    for i in 0..modules {
        let path = format!("layers.{i}");
        let by = Weight { value: 1.0 };
        gm.add_submodule(&path, Scale { by })?;
        at = graph.call_module(&path, (at,), ())?;
    }
    while graph.len() + 1 < nodes {
        at = graph.call_function(operator::neg, (at,), ())?;
    }
    graph.output(at)?;
    *gm.graph_mut() = graph;
    let nothing = pass_fn("nothing", |_| Ok(false));
    gm.apply(&nothing)?;
    let start = Instant::now();
    for _ in 0..10 {
        gm.apply(&nothing)?;
    }
    Ok(start.elapsed().as_secs_f64() / 10.0)
}

#[inline(never)]
fn plain(n: Int) -> Result<Int> {
    match n.concrete() {
        Some(n) => Ok(Int::from(n ^ 5)),
        None => Err(Error::msg("it is known")),
    }
}

#[wrap]
#[inline(never)]
fn wrapped(n: Int) -> Result<Int> {
    plain(n)
}

#[inline(never)]
fn direct(n: Int) -> Result<Int> {
    plain(n)
}

/// Seconds per call, over a million calls.
fn calls(call: impl Fn(Int) -> Result<Int>) -> Result<f64> {
    const CALLS: u32 = 1_000_000;
    let mut n = Int::from(1i64);
    let start = Instant::now();
    for _ in 0..CALLS {
        n = call(black_box(n))?;
    }
    black_box(n);
    Ok(start.elapsed().as_secs_f64() / f64::from(CALLS))
}

fn main() -> Result<()> {
    if wanted("none") {
        let (plain, seen) = (shortest(|| calls(direct))?, shortest(|| calls(wrapped))?);
        println!("mode.none {:.2} ns", seen - plain);
    }
    if wanted("single") {
        // In turns, so that both sizes meet the same noise.
        let mut times = [f64::INFINITY; 2];
        for _ in 0..15 {
            for (n, time) in SIZES.into_iter().zip(&mut times) {
                *time = time.min(single(n)? * 1e9);
            }
        }
        for (n, time) in SIZES.iter().zip(&times) {
            println!("edit.single/{n} {time:.1} ns");
        }
        let grown = (times[1] / times[0]).ln() / (SIZES[1] as f64 / SIZES[0] as f64).ln();
        println!("edit.exponent {:.2}", 1.0 + grown);
    }
    if wanted("rollback") {
        for n in SIZES {
            let (mut gm, nodes) = chain(n)?;
            let mut at = 0;
            let time = shortest(|| {
                at += n / 7;
                rollback(&mut gm, &nodes, at)
            })?;
            println!("edit.rollback/{n} {time:.0} ns");
        }
    }
    if wanted("idle_pass") {
        let time = shortest(|| idle(160, 177))? / 1e3;
        println!("edit.idle_pass {time:.2} us");
    }
    Ok(())
}
