//! Passes that fail: the module's file is unchanged, and so are the names of new nodes.

use std::panic::{AssertUnwindSafe, catch_unwind};

use fx_core::ir::Op;
use fx_core::operator;
use fx_core::passes::{Canonicalize, DeadCode, PassManager, pass_fn};
use fx_core::prelude::*;
use fx_core::value::NodeId;

/// A module without tensors, which can be saved.
fn sample() -> Result<GraphModule> {
    symbolic_trace(traced!(|x: Float, y: Float| {
        let a = (-(x + y)?)?;
        let _unused = (a - y)?;
        a.abs()
    }))
}

/// Renames, retypes, erases, makes and rewires.
fn wreck(gm: &mut GraphModule) -> Result<()> {
    let mut graph = gm.graph_mut();
    let nodes: Vec<NodeId> = graph.nodes().map(|node| node.id()).collect();
    for node in &nodes {
        graph.node_mut(*node)?.set_type_expr(Some("Int"));
        graph.node_mut(*node)?.rename("wrecked");
    }
    let new = graph
        .inserting_after(nodes[1])?
        .call_function(operator::neg, (nodes[0],), ())?;
    graph.node_mut(nodes[2])?.replace_all_uses_with(new)?;
    graph
        .node_mut(nodes[3])?
        .set_op(Op::CallFunction(operator::abs))?;
    graph.eliminate_dead_code()?;
    drop(graph);
    gm.apply(&Canonicalize)?;
    Ok(())
}

#[test]
fn a_pass_that_fails_after_renaming_retyping_and_erasing_leaves_equal_bytes() -> Result<()> {
    let mut gm = sample()?;
    gm.propagate_shapes((1.0, 2.0))?;
    let before = gm.to_bytes()?;
    let fails = pass_fn("fails", |gm| {
        wreck(gm)?;
        assert_ne!(gm.graph().to_string(), sample()?.graph().to_string());
        Err(Error::msg("no"))
    });
    let error = gm.apply(&fails).map_err(|e| e.to_string());
    assert!(error.is_err_and(|e| e.contains("fails")));
    assert_eq!(gm.to_bytes()?, before);

    let panics = pass_fn("panics", |gm| {
        wreck(gm)?;
        panic!("no")
    });
    assert!(catch_unwind(AssertUnwindSafe(|| gm.apply(&panics))).is_err());
    assert_eq!(gm.to_bytes()?, before);

    let refused = PassManager::new()
        .pass(pass_fn("refused", |gm| wreck(gm).map(|()| true)))
        .check(|_| Err(Error::msg("no")));
    assert!(refused.run(&mut gm).is_err());
    assert_eq!(gm.to_bytes()?, before);

    // New nodes get the names that they would have got, and no pass is recorded any more.
    let mut other = sample()?;
    for gm in [&mut gm, &mut other] {
        for _ in 0..2 {
            let mut graph = gm.graph_mut();
            let x = graph.nodes().next().map(|node| node.id());
            let x = x.ok_or_else(|| Error::msg("there are nodes"))?;
            let new = graph
                .inserting_after(x)?
                .call_function(operator::neg, (x,), ())?;
            assert!(graph.node(new)?.sources().is_empty());
        }
    }
    assert_eq!(gm.graph().to_string(), other.graph().to_string());
    Ok(())
}

#[test]
fn the_record_of_a_pass_tells_what_it_did() -> Result<()> {
    let mut gm = sample()?;
    let pass = pass_fn("works", |gm| {
        let mut graph = gm.graph_mut();
        let named = |name: &str| graph.find_name(name).map(|node| node.id());
        let [Some(add), Some(neg), Some(abs)] = ["add", "neg", "abs"].map(named) else {
            return Err(Error::msg("the sample has them"));
        };
        let new = graph
            .inserting_before(neg)?
            .call_function(operator::abs, (add,), ())?;
        graph.node_mut(neg)?.replace_all_uses_with(new)?;
        graph.erase_node(neg)?;
        graph
            .node_mut(abs)?
            .set_op(Op::CallFunction(operator::neg))?;
        let spare = graph.call_function(operator::neg, (add,), ())?;
        graph.erase_node(spare)?;
        // A change and its reverse are not change.
        graph
            .node_mut(add)?
            .set_op(Op::CallFunction(operator::sub))?;
        graph
            .node_mut(add)?
            .set_op(Op::CallFunction(operator::add))?;
        Ok(true)
    });
    let record = gm.apply(&pass)?;
    assert_eq!(record.created, ["abs_1"]);
    assert_eq!(record.erased, ["neg"]);
    assert_eq!(record.replaced, [("neg".to_string(), "abs_1".to_string())]);
    assert_eq!(record.edited, ["abs"]);
    assert_eq!((record.nodes_before, record.nodes_after), (7, 7));

    let record = gm.apply(&DeadCode)?;
    assert_eq!(record.erased, ["sub"]);
    assert!(!gm.apply(&DeadCode)?.changed);

    // Replaces the whole module, and the whole graph, by another one.
    let record = gm.apply(&pass_fn("again", |gm| {
        *gm = gm.transform(&mut fx_core::run::PlainInterpreter)?;
        Ok(true)
    }))?;
    // A transform gives nodes new names.
    assert_eq!(record.created, ["neg"]);
    assert_eq!(record.erased, ["abs_1"]);
    let record = gm.apply(&pass_fn("other", |gm| {
        gm.graph_mut().placeholder("z")?;
        *gm.graph_mut() = Trace::new(traced!(|x: Float| x * 2.0)).graph()?;
        Ok(true)
    }))?;
    assert_eq!(record.created, ["mul"]);
    assert_eq!(record.erased, ["y", "add", "abs", "neg"]);
    let mul = gm.graph().find_name("mul").map(|node| node.sources().len());
    assert_eq!(mul, Some(1));
    Ok(())
}
