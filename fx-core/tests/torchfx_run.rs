//! What torch.fx's own tests of running assert: interpreters and transforms (`docs/torchfx-tests.md`).
#![allow(
    clippy::needless_borrows_for_generic_args,
    reason = "arguments are lent, as users write it"
)]

mod support;

use std::sync::Arc;

use fx_core::prelude::*;
use fx_core::{
    CallArgs, Function, Interpretation, Interpreter, IntoValue, Meta, MetaPolicy, NodeRef,
    PlainInterpreter,
};
use insta::assert_snapshot;
use support::modules::{Block, Linear};
use support::*;

fn x() -> Array {
    Array::vec(&[1.0, -2.0])
}

fn same(a: &Array, b: &Array) -> Result<()> {
    assert_eq!(a.to_vec()?, b.to_vec()?);
    Ok(())
}

#[derive(Module, Debug)]
struct MyModule {
    param: Array,
    linear: Linear,
}

#[trace]
impl MyModule {
    fn forward(&self, x: &Array) -> Result<Array> {
        self.linear.forward(&(x + &self.param)?)?.relu()
    }
}

fn my_module() -> MyModule {
    MyModule {
        param: Array::vec(&[0.5, 3.0]),
        linear: Linear::square(2, 2.0),
    }
}

#[test]
fn an_interpreted_run_is_the_eager_one() -> Result<()> {
    let module = my_module();
    let gm = symbolic_trace(&module)?;
    let y: Array = gm.interpret(&mut PlainInterpreter, &x())?;
    same(&y, &module.forward(&x())?)
}

#[test]
fn a_boxed_run_takes_its_inputs_or_leaves_them() -> Result<()> {
    let gm = symbolic_trace(traced!(|x: &Array, y: &Array| x + y))?;
    let mut run = gm.interpretation();
    let mut inputs = vec![x().into_value(), x().into_value()];
    let sum = run.boxed_run(&mut PlainInterpreter, &mut inputs)?;
    assert_eq!(Array::from_value(sum)?.to_vec()?, [2.0, -4.0]);
    assert!(inputs.is_empty(), "the list is consumed");
    for count in [3, 1] {
        let mut inputs = vec![x().into_value(); count];
        let error = run.boxed_run(&mut PlainInterpreter, &mut inputs);
        let text = error.err().map(|e| e.to_string()).unwrap_or_default();
        assert!(text.contains("the graph has 2 inputs (x, y)"), "{text}");
        assert!(text.contains(&format!("{count} were given")), "{text}");
        assert_eq!(inputs.len(), count, "the list stays as it was");
    }
    Ok(())
}

/// The names of the nodes that ran.
struct Seen(Vec<String>);

impl Interpreter for Seen {
    fn run_node(&mut self, run: &mut Interpretation<'_>, node: NodeRef<'_>) -> Result<Value> {
        self.0.push(node.name().to_string());
        run.run_node(self, node)
    }
}

#[test]
fn an_override_sees_every_node() -> Result<()> {
    let module = my_module();
    let gm = symbolic_trace(&module)?;
    let mut names = Seen(Vec::new());
    let y: Array = gm.interpret(&mut names, &x())?;
    same(&y, &module.forward(&x())?)?;
    let all: Vec<String> = gm.graph().nodes().map(|n| n.name().to_string()).collect();
    assert_eq!(names.0, all);
    Ok(())
}

/// Swaps the operator `neg` and the method `relu`.
struct Swap;

impl Interpreter for Swap {
    fn call_function(
        &mut self,
        run: &mut Interpretation<'_>,
        function: Function,
        call: CallArgs,
    ) -> Result<Value> {
        if function == fx_core::operator::neg {
            return run.call_method("relu", call);
        }
        run.call_function(function, call)
    }

    fn call_method(
        &mut self,
        run: &mut Interpretation<'_>,
        name: &str,
        call: CallArgs,
    ) -> Result<Value> {
        if name == "relu" {
            return run.call_function(fx_core::operator::neg, call);
        }
        run.call_method(name, call)
    }
}

fn swapped() -> Result<(GraphModule, Array)> {
    let gm = symbolic_trace(traced!(|x: &Array| {
        let y = x.relu()?;
        -y
    }))?;
    // relu becomes neg, and neg becomes relu.
    let expected = (-x())?.relu()?;
    Ok((gm, expected))
}

#[test]
fn overrides_swap_functions_and_methods() -> Result<()> {
    let (gm, expected) = swapped()?;
    same(&gm.interpret(&mut Swap, &x())?, &expected)?;
    let plain: Array = gm.forward(&x())?;
    assert_ne!(
        plain.to_vec()?,
        expected.to_vec()?,
        "the graph stays as it was"
    );
    Ok(())
}

#[test]
fn a_transform_swaps_functions_and_methods() -> Result<()> {
    let (gm, expected) = swapped()?;
    let swapped = gm.transform(&mut Swap)?;
    same(&swapped.forward(&x())?, &expected)?;
    let ops: Vec<String> = swapped
        .graph()
        .nodes()
        .map(|n| n.target().to_string())
        .collect();
    assert_eq!(ops, ["x", "fx_core::operator::neg", "relu", "output"]);
    Ok(())
}

#[test]
fn a_given_value_stands_for_its_node() -> Result<()> {
    let module = my_module();
    let gm = symbolic_trace(&module)?;
    let linear = gm.graph().find_name("linear").map(|n| n.id());
    let linear = linear.ok_or_else(|| Error::msg("the graph calls linear"))?;
    let mut seen = Seen(Vec::new());
    let mut run = gm.interpretation().with_value(linear, x().into_value());
    let y = run.run(&mut seen, vec![x().into_value()])?;
    assert_eq!(Array::from_value(y)?.to_vec()?, [1.0, 0.0]);
    assert!(!seen.0.contains(&"linear".to_string()), "{:?}", seen.0);
    assert!(seen.0.contains(&"relu".to_string()));
    Ok(())
}

#[test]
fn values_are_dropped_unless_they_are_kept() -> Result<()> {
    let gm = symbolic_trace(&my_module())?;
    let value_of = |run: &Interpretation<'_>, name: &str| {
        let node = gm.graph().find_name(name).map(|n| n.id());
        node.and_then(|id| run.value(id).cloned())
    };
    let mut run = gm.interpretation();
    run.run(&mut PlainInterpreter, vec![x().into_value()])?;
    assert!(value_of(&run, "add").is_none());
    let mut run = gm.interpretation().keep_values();
    run.run(&mut PlainInterpreter, vec![x().into_value()])?;
    let add = Array::from_value(value_of(&run, "add").unwrap_or_default())?;
    assert_eq!(add.to_vec()?, [1.5, 1.0]);
    Ok(())
}

#[test]
fn an_interpreted_run_knows_defaults() -> Result<()> {
    let f = traced!(|x: &Array, #[default(2.5)] by: Float| x * by);
    let gm = symbolic_trace(f)?;
    let y = gm
        .interpretation()
        .run(&mut PlainInterpreter, vec![x().into_value()])?;
    assert_eq!(Array::from_value(y)?.to_vec()?, [2.5, -5.0]);
    let missing = gm.interpretation().run(&mut PlainInterpreter, Vec::new());
    let text = missing.err().map(|e| e.to_string()).unwrap_or_default();
    assert_snapshot!(without_lines(text), @"the graph has 2 inputs (x, by), 0 were given");
    Ok(())
}

#[test]
fn a_transform_without_overrides_gives_the_same_graph() -> Result<()> {
    let module = my_module();
    let gm = symbolic_trace(&module)?;
    let copy = gm.transform(&mut PlainInterpreter)?;
    copy.graph().lint()?;
    assert_eq!(copy.graph().to_string(), gm.graph().to_string());
    assert_eq!(copy.class_name(), "MyModule");
    same(&copy.forward(&x())?, &module.forward(&x())?)
}

/// A mark that copies keep.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Mark(u32);

impl Meta for Mark {
    const ON_COPY: MetaPolicy = MetaPolicy::Copy;
    const ON_REPLACE: MetaPolicy = MetaPolicy::Copy;
}

#[test]
fn a_transform_keeps_entries_and_module_stacks() -> Result<()> {
    let block = Block::new(2);
    let mut gm = symbolic_trace(&block)?;
    let ids: Vec<NodeId> = gm.graph().nodes().map(|n| n.id()).collect();
    for (at, id) in (0..).zip(&ids) {
        gm.graph_mut().node_mut(*id)?.set_meta(Mark(at));
    }
    let copy = gm.transform(&mut PlainInterpreter)?;
    assert_eq!(copy.graph().len(), gm.graph().len());
    for (old, new) in gm.graph().nodes().zip(copy.graph()) {
        if !matches!(old.op(), Op::Output) {
            assert_eq!(old.meta::<Mark>(), new.meta::<Mark>(), "{}", old.name());
        }
        let stack = |node: NodeRef<'_>| -> Vec<Arc<str>> {
            node.module_stack()
                .map(|scope| scope.path.clone())
                .collect()
        };
        assert_eq!(stack(old), stack(new), "{}", old.name());
    }
    Ok(())
}

#[test]
fn a_transform_keeps_places() -> Result<()> {
    let gm = symbolic_trace(&my_module())?;
    let copy = gm.transform(&mut PlainInterpreter)?;
    for (old, new) in gm.graph().nodes().zip(copy.graph()) {
        if !matches!(old.op(), Op::Output) {
            assert_eq!(old.location(), new.location(), "{}", old.name());
            assert!(new.location().is_some_and(|l| l.file.ends_with(".rs")));
        }
    }
    Ok(())
}

#[test]
fn an_overrides_error_names_the_node_and_its_line() -> Result<()> {
    struct NoRelu;
    impl Interpreter for NoRelu {
        fn call_method(
            &mut self,
            _: &mut Interpretation<'_>,
            _: &str,
            _: CallArgs,
        ) -> Result<Value> {
            Err(Error::msg("methods are not for this device"))
        }
    }
    let gm = symbolic_trace(&my_module())?;
    let text = gm.interpret::<Array>(&mut NoRelu, &x()).err();
    let text = text.map(|e| e.to_string()).unwrap_or_default();
    assert_snapshot!(without_lines(text), @"while executing %relu (fx-core/tests/torchfx_run.rs:_): methods are not for this device");
    assert!(gm.transform(&mut NoRelu).is_err());
    assert!(!fx_core::is_tracing(), "a refused transform ends its trace");
    Ok(())
}

#[test]
fn an_appended_body_that_fails_gives_the_graph_back() -> Result<()> {
    let mut gm = symbolic_trace(&my_module())?;
    let before = gm.graph().to_string();
    let relu = gm.graph().find_name("relu").map(|n| n.id());
    let relu = relu.ok_or_else(|| Error::msg("the graph has a relu"))?;
    let refused = gm.append_before(relu, |_| Err::<Value, _>(Error::msg("not this one")));
    assert!(refused.is_err());
    assert_eq!(gm.graph().to_string(), before);
    let unwound = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        gm.append_before(relu, |_| -> Result<Value> { panic!("a rule's own") })
    }));
    assert!(unwound.is_err());
    assert_eq!(gm.graph().to_string(), before);
    gm.graph().lint()
}

// ---- what a graph module holds -----------------------------------------------------------------

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
        other.set_buffer("linear", x()),
        other.submodule("net_c").map(drop),
        other.buffer("net_c").map(drop),
    ];
    let said = refused.map(|result| result.err().map(|e| e.to_string()).unwrap_or_default());
    assert_snapshot!(said.join("\n"), @"
    `linear.inner` and the module `linear` cannot both be there: one is inside the other, which is a whole
    `net_b` and the module `net_b.conv` cannot both be there: one is inside the other, which is a whole
    `a..b` is no path: it is names with dots between them
    `param` is a tensor of this module: a module needs another path
    no module at `nothing`; add it to the attributes of the graph module
    `linear` is a module: a tensor needs another path
    no module at `net_c`; add it to the attributes of the graph module
    no buffer at `net_c`; add it to the attributes of the graph module
    ");

    // A module in the place of another is what runs next.
    let before: Array = gm.forward(&x())?;
    gm.set_submodule("linear", Linear::square(2, 20.0))?;
    let after: Array = gm.forward(&x())?;
    assert_ne!(before.to_vec()?, after.to_vec()?);
    gm.set_parameter("param", Array::vec(&[0.0, 2.0]))?;
    assert_eq!(gm.forward::<Array>(&x())?.to_vec()?, [20.5, 0.5]);

    assert!(gm.delete_submodule("net_b") && !gm.delete_submodule("net_b"));
    gm.add_submodule("unused", Linear::square(2, 3.0))?;
    assert_eq!(gm.delete_all_unused_submodules(), 1);
    assert!(gm.parameter("param").is_ok(), "parameters stay");
    gm.forward::<Array>(&x())?;

    // What a node calls and is not there is an error that names both.
    assert!(gm.delete_submodule("linear"));
    let text = gm.forward::<Array>(&x()).err().map(|e| e.to_string());
    let text = text.unwrap_or_default();
    assert_snapshot!(without_lines(text), @"while compiling %linear (fx-core/tests/torchfx_run.rs:_): no module at `linear`; add it to the attributes of the graph module");
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
    same(&gm.forward(&x())?, &outer.forward(&x())?)
}

#[test]
fn every_node_is_told_its_shape() -> Result<()> {
    let mut gm = symbolic_trace(&my_module())?;
    let result = gm.propagate_shapes(&x())?;
    assert_eq!(Array::from_value(result)?.shape()?, [2]);
    for node in gm.graph() {
        let meta = node.meta::<fx_core::ValueMeta>();
        let shape = meta.and_then(|meta| Some(meta.tensor()?.shape.clone()));
        assert_eq!(shape, Some(vec![2]), "{}", node.name());
    }
    let mut tuple = symbolic_trace(traced!(|x: &Array| split_sign(x)))?;
    tuple.propagate_shapes(&x())?;
    let meta = tuple
        .graph()
        .output_node()
        .and_then(|n| n.meta::<fx_core::ValueMeta>());
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
    same(&copy.forward(&x())?, &gm.forward(&x())?)
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
    same(
        &copy.interpret(&mut PlainInterpreter, &x())?,
        &gm.forward(&x())?,
    )
}

// ---- compiled when it runs ---------------------------------------------------------------------

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
    same(&gm.forward(&x())?, &relu(&x())?)?;
    relu_to_neg(&mut gm)?;
    same(&gm.forward(&x())?, &(-x())?)
}

#[test]
fn an_edit_needs_no_recompile() -> Result<()> {
    let mut gm = relu_module()?;
    relu_to_neg(&mut gm)?;
    // Nobody called recompile.
    same(&gm.forward(&x())?, &(-x())?)?;
    let module: &dyn Module = &gm;
    let mut out = Value::None;
    module.run(&[&x().into_value()], &mut out)?;
    same(&Array::from_value(out)?, &(-x())?)
}

#[test]
fn recompile_shows_errors_of_each_edit() -> Result<()> {
    let mut gm = relu_module()?;
    gm.recompile()?;
    relu_to_neg(&mut gm)?;
    gm.recompile()?;
    same(&gm.forward(&x())?, &(-x())?)?;
    // An edit that cannot run is seen by recompile, and the next edit mends it.
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
    same(&again.forward(&x())?, &(-x())?)
}
