//! Edited graph modules: the next run uses the current graph.

use fx_core::function;
use fx_core::ir::Op;
use fx_core::module::Module;
use fx_core::prelude::*;
use fx_core::value::{IntoValue, NodeId};

use crate::run::equal;
use crate::support::*;

/// `x.relu()`, to be edited.
fn relu_module() -> Result<GraphModule> {
    symbolic_trace(traced!(|x: &Array| relu(x)))
}

fn relu_to_neg(gm: &mut GraphModule) -> Result<()> {
    let mut graph = gm.graph_mut();
    let found = graph.find_nodes(&Op::CallFunction(function!(relu)));
    let ids: Vec<NodeId> = found.iter().map(|node| node.id()).collect();
    for id in ids {
        let negated = Op::CallFunction(fx_core::operator::neg);
        graph.node_mut(id)?.set_op(negated)?;
    }
    Ok(())
}

#[test]
fn a_replaced_function_is_what_runs_next() -> Result<()> {
    let mut gm = relu_module()?;
    equal(&gm.forward(&x())?, &relu(&x())?)?;
    relu_to_neg(&mut gm)?;
    equal(&gm.forward(&x())?, &(-x())?)
}

#[test]
fn an_edit_needs_no_recompile() -> Result<()> {
    let mut gm = relu_module()?;
    relu_to_neg(&mut gm)?;
    // Without a call of recompile.
    equal(&gm.forward(&x())?, &(-x())?)?;
    let module: &dyn Module = &gm;
    let mut out = Value::None;
    module.run(&[&x().into_value()], &mut out)?;
    equal(&Array::from_value(out)?, &(-x())?)
}

#[test]
fn recompile_shows_errors_of_each_edit() -> Result<()> {
    let mut gm = relu_module()?;
    gm.recompile()?;
    relu_to_neg(&mut gm)?;
    gm.recompile()?;
    equal(&gm.forward(&x())?, &(-x())?)?;
    // Recompile reports an edit that cannot run, and the next edit fixes it.
    let output = gm.graph().output_node().map(|n| n.id());
    let output = output.ok_or_else(|| Error::msg("the graph has an output"))?;
    let lost = gm.graph_mut().inserting_before(output)?.get_attr("lost")?;
    assert!(
        gm.recompile()
            .is_err_and(|e| e.to_string().contains("lost"))
    );
    gm.graph_mut().erase_node(lost)?;
    gm.recompile()
}

#[test]
fn an_edited_graph_is_what_is_traced_again() -> Result<()> {
    let mut gm = relu_module()?;
    relu_to_neg(&mut gm)?;
    let again = symbolic_trace(&gm)?;
    let ops = |gm: &GraphModule| {
        gm.graph()
            .nodes()
            .map(|n| n.op().clone())
            .collect::<Vec<_>>()
    };
    assert_eq!(ops(&again), ops(&gm));
    equal(&again.forward(&x())?, &(-x())?)
}
