//! What dead-code elimination removes, and what stays because of its effects.

use fx_core::ir::{Graph, NodeRef};
use fx_core::prelude::*;
use fx_core::{Module, function, operator};
use insta::assert_snapshot;

use crate::graph::{left, module, right};
use crate::support::modules::Linear;
use crate::support::*;

/// Eliminates dead code, and checks what was removed and that the result is the same.
#[track_caller]
fn check_dce(gm: &mut GraphModule, gone: &[&str], args: &[Value]) -> Result<()> {
    let call = || fx_core::trace::CallArgs {
        args: args.to_vec(),
        kwargs: Vec::new(),
    };
    let (before, result) = (names(gm.graph()), run(gm, call())?);
    assert_eq!(gm.eliminate_dead_code()?, gone.len());
    let left: Vec<String> = before
        .into_iter()
        .filter(|name| !gone.contains(&name.as_str()))
        .collect();
    assert_eq!(names(gm.graph()), left);
    gm.graph().lint()?;
    assert_eq!(run(gm, call())?, result);
    Ok(())
}

#[test]
fn an_unused_call_is_dead() -> Result<()> {
    let mut gm = symbolic_trace(traced!(|x: &Array| {
        let _unused = (x + 1.0)?;
        x * 2.0
    }))?;
    check_dce(&mut gm, &["add"], &[Value::object(left())])
}

/// Adds nothing, and reads its parameter.
#[derive(Module, Debug)]
struct Dead {
    attr: Array,
}

#[trace]
impl Dead {
    fn forward(&self, x: &Array) -> Result<Array> {
        let _unused = (&self.attr * 2.0)?;
        x + 11.0
    }
}

#[test]
fn an_unused_attribute_is_dead() -> Result<()> {
    let mut gm = symbolic_trace(&Dead { attr: left() })?;
    assert_eq!(gm.graph().len(), 5);
    check_dce(&mut gm, &["attr", "mul"], &[Value::object(left())])
}

#[test]
fn an_unused_input_stays() -> Result<()> {
    let mut gm = symbolic_trace(traced!(|x: &Array, _y: &Array| x + 7.0))?;
    check_dce(
        &mut gm,
        &[],
        &[Value::object(left()), Value::object(right())],
    )
}

#[test]
fn a_dead_user_leaves_and_its_input_stays() -> Result<()> {
    let mut gm = symbolic_trace(traced!(|x: &Array, y: &Array| {
        let _unused = (y + 2.0)?;
        x + 7.0
    }))?;
    check_dce(
        &mut gm,
        &["add"],
        &[Value::object(left()), Value::object(right())],
    )?;
    assert_eq!(names(gm.graph()), ["x", "y", "add_1", "output"]);
    Ok(())
}

#[derive(Module, Debug)]
struct Loud {
    tag: fx_core::module::Tag,
}

#[trace(leaf, impure)]
impl Loud {
    fn forward(&self, x: &Array) -> Result<Array> {
        x.relu()
    }
}

#[derive(Module, Debug)]
struct Calls {
    loud: Loud,
    quiet: Linear,
}

#[trace]
impl Calls {
    fn forward(&self, x: &Array) -> Result<Array> {
        let _unused = (self.loud.forward(x)?, self.quiet.forward(x)?);
        x + 1.0
    }
}

#[test]
fn an_impure_module_stays() -> Result<()> {
    let mut gm = symbolic_trace(&Calls {
        loud: Loud {
            tag: Default::default(),
        },
        quiet: Linear::square(2, 2.0),
    })?;
    check_dce(&mut gm, &["quiet"], &[Value::object(left())])
}

#[test]
fn an_unused_assertion_stays() -> Result<()> {
    let mut graph = Graph::new();
    let x = graph.placeholder("x")?;
    let flag = graph.placeholder("flag")?;
    graph.call_function(operator::assert_specialized, (flag, "flag", true), ())?;
    let add = graph.call_function(operator::add, (x, 1.0), ())?;
    graph.output(add)?;
    let mut gm = module(graph)?;
    check_dce(&mut gm, &[], &[Value::object(left()), Value::Bool(true)])?;
    let error = refused(run(&gm, (&left(), false))).to_string();
    assert_snapshot!(without_lines(error), @r#"while executing %assert_specialized (fx-core/tests/graph/dead_code.rs:_): argument "flag" was specialised to true when this graph was traced, but false came: trace again for other values"#);
    Ok(())
}

/// Changes `x` in place, but does not declare it.
#[wrap(path = "rows::add_")]
fn add_(
    x: &Array,
    by: f64,
    #[kw]
    #[default(None)]
    out: Option<&Array>,
) -> Result<Array> {
    let _ = out;
    x + by
}

#[test]
fn a_users_rule_keeps_what_it_calls_impure() -> Result<()> {
    let mut graph = Graph::new();
    let x = graph.placeholder("x")?;
    graph.call_function(function!(add_), (x, 1.0), ())?;
    graph.call_function(operator::mul, (x, 2.0), ())?;
    graph.output(x)?;
    let mut unaided = graph.clone();
    let erased = graph.eliminate_dead_code_with(|node| node.target().ends_with('_'))?;
    assert_eq!(erased, 1);
    assert_eq!(names(&graph), ["x", "add_", "output"]);
    assert_eq!(unaided.eliminate_dead_code()?, 2);
    Ok(())
}

#[test]
fn a_users_rule_may_look_at_keywords() -> Result<()> {
    let mut graph = Graph::new();
    let (x, y) = (graph.placeholder("x")?, graph.placeholder("y")?);
    let kept = graph.call_function(function!(add_), (x, 1.0), [("out", y)])?;
    graph.call_function(function!(add_), (x, 1.0), ())?;
    graph.output(y)?;
    let writes = |node: NodeRef<'_>| node.kwargs().iter().any(|(name, _)| &**name == "out");
    assert_eq!(graph.eliminate_dead_code_with(writes)?, 1);
    assert!(graph.node(kept).is_ok());
    Ok(())
}

/// Stands for a call that other processes wait for.
#[wrap(impure, path = "rows::all_reduce")]
fn all_reduce(x: &Array) -> Result<Array> {
    Ok(x.clone())
}

#[test]
fn an_impure_function_stays() -> Result<()> {
    let mut gm = symbolic_trace(traced!(|x: &Array| {
        let _unused = all_reduce(&(x + 2.0)?)?;
        let _dead = x.relu()?;
        x * 7.0
    }))?;
    check_dce(&mut gm, &["relu"], &[Value::object(left())])
}
