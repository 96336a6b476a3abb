//! Interpreted runs and transforms: what an override sees and changes, what is kept, what an error
//! names.

use std::sync::Arc;

use fx_core::ir::{Function, Meta, MetaPolicy, NodeRef, Op};
use fx_core::prelude::*;
use fx_core::run::{Interpretation, Interpreter, PlainInterpreter};
use fx_core::trace::CallArgs;
use fx_core::value::{IntoValue, NodeId};
use insta::assert_snapshot;

use crate::run::{equal, my_module};
use crate::support::modules::Block;
use crate::support::*;

#[test]
fn an_interpreted_run_is_the_eager_one() -> Result<()> {
    let module = my_module();
    let gm = symbolic_trace(&module)?;
    let y: Array = gm.interpret(&mut PlainInterpreter, &x())?;
    equal(&y, &module.forward(&x())?)
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
        let given = if count == 1 {
            "1 was given"
        } else {
            "3 were given"
        };
        assert!(text.contains(given), "{text}");
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
    equal(&y, &module.forward(&x())?)?;
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
    equal(&gm.interpret(&mut Swap, &x())?, &expected)?;
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
    equal(&swapped.forward(&x())?, &expected)?;
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
    equal(&copy.forward(&x())?, &module.forward(&x())?)
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
    assert_snapshot!(without_lines(text), @"while executing %relu (fx-core/tests/run.rs:_): methods are not for this device");
    assert!(gm.transform(&mut NoRelu).is_err());
    assert!(
        !fx_core::trace::is_tracing(),
        "a refused transform ends its trace"
    );
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
