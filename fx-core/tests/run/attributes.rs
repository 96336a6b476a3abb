//! What a graph module holds by path, and clones of it.

use fx_core::ir::NodeRef;
use fx_core::module::Module;
use fx_core::prelude::*;
use fx_core::run::PlainInterpreter;
use fx_core::trace::{TraceContext, Tracer};
use fx_core::value::NodeId;
use insta::assert_snapshot;

use crate::run::{equal, my_module};
use crate::support::modules::{Block, Linear};
use crate::support::*;

#[test]
fn modules_and_tensors_are_added_replaced_and_deleted_by_path() -> Result<()> {
    let mut gm = symbolic_trace(&my_module())?;
    gm.add_submodule("net_b.conv", Linear::square(2, 3.0))?;
    assert!(gm.submodule("net_b.conv").is_ok());
    assert!(gm.parameter("net_b.conv.weight").is_ok());
    assert!(gm.parameter("param").is_ok() && gm.buffer("param").is_err());

    let mut other = gm.clone();
    let square = || Linear::square(2, 1.0);
    let refused = [
        other.add_submodule("linear.inner", square()),
        other.add_submodule("net_b", square()),
        other.add_submodule("a..b", square()),
        other.add_submodule("param", square()),
        other.set_submodule("nothing", square()),
        other.set_buffer("linear", &x()),
        other.submodule("net_c").map(drop),
        other.buffer("net_c").map(drop),
    ];
    let said = refused.map(|result| result.err().map(|e| e.to_string()).unwrap_or_default());
    assert_snapshot!(said.join("\n"), @"
    `linear.inner` and the module `linear` cannot both be there: one is inside the other, which is a whole
    `net_b` and the module `net_b.conv` cannot both be there: one is inside the other, which is a whole
    `a..b` is not a path: a path is names separated by dots
    `param` is a tensor of this module: a module needs another path
    no module at `nothing`; add it with `GraphModule::add_submodule`
    `linear` is a module: a tensor needs another path
    no module at `net_c`; this module has `linear`, `net_b`
    no buffer at `net_c`; add it with `GraphModule::set_parameter` or `set_buffer`
    ");

    // The next run uses the new module.
    let before: Array = gm.forward(&x())?;
    gm.set_submodule("linear", Linear::square(2, 20.0))?;
    let after: Array = gm.forward(&x())?;
    assert_ne!(before.to_vec()?, after.to_vec()?);
    gm.set_parameter("param", &Array::vec(&[0.0, 2.0]))?;
    assert_eq!(gm.forward::<Array>(&x())?.to_vec()?, [20.5, 0.5]);

    assert!(gm.delete_submodule("net_b") && !gm.delete_submodule("net_b"));
    gm.add_submodule("unused", Linear::square(2, 3.0))?;
    assert_eq!(gm.delete_all_unused_submodules(), 1);
    assert!(gm.parameter("param").is_ok(), "parameters stay");
    gm.forward::<Array>(&x())?;

    // If a node calls something that is missing, the error names both.
    assert!(gm.delete_submodule("linear"));
    let text = gm.forward::<Array>(&x()).err().map(|e| e.to_string());
    let text = text.unwrap_or_default();
    assert_snapshot!(without_lines(text), @"while compiling %linear (fx-core/tests/run.rs:_): no module at `linear`; add it with `GraphModule::add_submodule`");
    Ok(())
}

#[test]
fn children_of_a_called_leaf_are_not_unused() -> Result<()> {
    #[derive(Module)]
    struct Outer {
        block: Block,
    }
    #[trace]
    impl Outer {
        fn forward(&self, x: &Array) -> Result<Array> {
            self.block.forward(x)
        }
    }
    struct BlockIsLeaf;
    impl Tracer for BlockIsLeaf {
        fn is_leaf_module(&self, _: &TraceContext, _: &dyn Module, path: &str) -> bool {
            path == "block"
        }
    }
    let outer = Outer {
        block: Block::new(2),
    };
    let mut gm = Trace::new(&outer).tracer(BlockIsLeaf).graph_module()?;
    assert_eq!(gm.delete_all_unused_submodules(), 0);
    assert!(
        gm.parameter("block.first.weight").is_ok(),
        "children of a called leaf are kept"
    );
    equal(&gm.forward(&x())?, &outer.forward(&x())?)
}

#[test]
fn every_node_is_told_its_shape() -> Result<()> {
    let mut gm = symbolic_trace(&my_module())?;
    let result = gm.propagate_shapes(&x())?;
    assert_eq!(Array::from_value(result)?.shape()?, [2]);
    for node in gm.graph() {
        let meta = node.meta::<fx_core::ir::ValueMeta>();
        let shape = meta.and_then(|meta| meta.tensor()?.known_shape());
        assert_eq!(shape, Some(vec![2]), "{}", node.name());
    }
    let mut tuple = symbolic_trace(traced!(|x: &Array| split_sign(x)))?;
    tuple.propagate_shapes(&x())?;
    let meta = tuple
        .graph()
        .output_node()
        .and_then(|n| n.meta::<fx_core::ir::ValueMeta>());
    assert_eq!(
        meta.map(ToString::to_string),
        Some("([2], [2])".to_string())
    );
    Ok(())
}

#[test]
fn a_clone_of_a_graph_module_does_the_same() -> Result<()> {
    let gm = symbolic_trace(&Block::new(2))?;
    let copy = gm.clone();
    copy.lint()?;
    assert_eq!(copy.graph().to_string(), gm.graph().to_string());
    equal(&copy.forward(&x())?, &gm.forward(&x())?)
}

#[test]
fn a_deep_graph_is_cloned_with_its_users() -> Result<()> {
    const DEPTH: usize = 20_000;
    let f = traced!(|x: &Array| {
        let mut y = x.clone();
        for _ in 0..DEPTH {
            y = y.relu()?;
        }
        Ok(y)
    });
    let gm = symbolic_trace(f)?;
    let copy = gm.clone();
    for (old, new) in gm.graph().nodes().zip(copy.graph()) {
        let users = |node: NodeRef<'_>| -> Vec<NodeId> { node.users().map(|u| u.id()).collect() };
        assert_eq!(users(old), users(new));
    }
    equal(
        &copy.interpret(&mut PlainInterpreter, &x())?,
        &gm.forward(&x())?,
    )
}
