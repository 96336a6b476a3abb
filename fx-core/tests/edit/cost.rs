//! An edit costs what it changes. Times are compared coarsely: a cost that grows with the graph
//! grows a hundred times.

use std::time::{Duration, Instant};

use fx_core::ir::{Graph, Op};
use fx_core::operator;
use fx_core::passes::pass_fn;
use fx_core::prelude::*;
use fx_core::value::NodeId;

const FEW: usize = 1_000;
const MANY: usize = 100_000;

/// A chain, with an output of many values.
fn chain(n: usize) -> Result<(GraphModule, Vec<NodeId>)> {
    let mut graph = Graph::new();
    let mut at = graph.placeholder("x")?;
    let mut nodes = Vec::new();
    for _ in 0..n {
        at = graph.call_function(operator::neg, (at,), ())?;
        nodes.push(at);
    }
    graph.output(nodes.clone())?;
    let mut gm = symbolic_trace(traced!(|x: Value| Ok(x)))?;
    *gm.graph_mut() = graph;
    Ok((gm, nodes))
}

/// How many times longer `run` takes for many nodes than for few; the shortest of several times
/// each, taken in turn.
fn growth(
    times: usize,
    mut run: impl FnMut(&mut GraphModule, &[NodeId], usize) -> Result<Duration>,
) -> Result<f64> {
    let (mut few, mut many) = (chain(FEW)?, chain(MANY)?);
    let mut best = [Duration::MAX; 2];
    for time in 0..times {
        for ((gm, nodes), best) in [&mut few, &mut many].into_iter().zip(&mut best) {
            *best = run(gm, nodes, time)?.min(*best);
        }
    }
    Ok(best[1].as_secs_f64() / best[0].as_secs_f64())
}

#[test]
fn single_edits_do_not_look_at_the_whole_graph() -> Result<()> {
    let grown = growth(5, |gm, nodes, time| {
        let op = [operator::abs, operator::neg][time % 2];
        let start = Instant::now();
        for node in &nodes[..500] {
            gm.graph_mut()
                .node_mut(*node)?
                .set_op(Op::CallFunction(op))?;
        }
        Ok(start.elapsed())
    })?;
    assert!(grown < 10.0, "{grown}");
    Ok(())
}

#[test]
fn an_edit_that_fails_costs_what_it_changed() -> Result<()> {
    let grown = growth(20, |gm, nodes, time| {
        let nodes = &nodes[time * 20..time * 20 + 10];
        let start = Instant::now();
        let failed = gm.edit(|gm| {
            let mut graph = gm.graph_mut();
            for node in nodes {
                let new =
                    graph
                        .inserting_after(*node)?
                        .call_function(operator::abs, (*node,), ())?;
                graph
                    .node_mut(*node)?
                    .replace_uses_with_filter(new, |user| user.id() != new)?;
            }
            Err::<(), Error>(Error::msg("no"))
        });
        assert!(failed.is_err());
        Ok(start.elapsed())
    })?;
    assert!(grown < 15.0, "{grown}");
    Ok(())
}

#[test]
fn a_pass_that_changes_nothing_does_not_look_at_the_whole_graph() -> Result<()> {
    let nothing = pass_fn("nothing", |_| Ok(false));
    let grown = growth(20, |gm, _, _| {
        gm.apply(&nothing)?;
        let start = Instant::now();
        gm.apply(&nothing)?;
        Ok(start.elapsed())
    })?;
    assert!(grown < 15.0, "{grown}");
    Ok(())
}

#[test]
fn edits_inside_of_an_edit_cost_nothing_more() -> Result<()> {
    let grown = growth(5, |gm, nodes, _| {
        let start = Instant::now();
        gm.edit(|gm| {
            for node in &nodes[..200] {
                let failed = gm.edit(|gm| {
                    gm.graph_mut().node_mut(*node)?.rename("inner");
                    Err::<(), Error>(Error::msg("no"))
                });
                assert!(failed.is_err());
            }
            Ok(())
        })?;
        Ok(start.elapsed())
    })?;
    assert!(grown < 15.0, "{grown}");
    Ok(())
}
