//! Running graphs as their users do: arguments, results, errors, memory, threads, edits and source
//! code.
#![allow(
    clippy::needless_borrows_for_generic_args,
    reason = "arguments are lent, as users write it"
)]

#[path = "run/attributes.rs"]
mod attributes;
#[path = "run/code.rs"]
mod code;
#[path = "run/edited.rs"]
mod edited;
#[path = "run/interpret.rs"]
mod interpret;
#[path = "run/module_arguments.rs"]
mod module_arguments;
#[path = "run/objects.rs"]
mod objects;
#[path = "run/paths.rs"]
mod paths;
use crate::support;

use std::sync::atomic::Ordering;
use std::sync::{Arc, Barrier};

use fx_core::ir::{Graph, Literal};
use fx_core::module::Attributes;
use fx_core::prelude::*;
use fx_core::value::NodeId;
use fx_core::{ErrorKind, operator};
use insta::assert_snapshot;
use support::modules::{Block, Linear};
use support::*;

/// What follows `->` runs; the same code is eager Rust.
#[trace]
fn mixture(
    x: &Array,
    y: &Array,
    #[kw]
    #[default(1.5)]
    by: Float,
) -> Result<Array> {
    let (a, b) = split_sign(&(x - y)?)?;
    concat(&[(a * by)?, b.scale(3.0)?])
}

fn equal(a: &Array, b: &Array) -> Result<()> {
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

// ---- arguments ---------------------------------------------------------------------------------

#[test]
fn arguments_come_alone_as_a_tuple_or_with_keywords() -> Result<()> {
    let gm = symbolic_trace(traced!(mixture))?;
    let (a, b) = (Array::vec(&[3.0]), Array::vec(&[1.0]));
    let expected = mixture(&a, &b, 1.5.into())?.to_vec()?;
    assert_eq!(expected, [3.0, 0.0]);
    let run = |y: Result<Array>| y.and_then(|y| y.to_vec());
    assert_eq!(run(gm.forward((&a, &b)))?, expected);
    assert_eq!(run(gm.forward((&a, &b, 1.5)))?, expected);
    assert_eq!(run(gm.forward(args![&a, &b]))?, expected);
    assert_eq!(run(gm.forward(args![&a, y = &b]))?, expected);
    assert_eq!(run(gm.forward(args![y = &b, x = &a]))?, expected);
    assert_eq!(run(gm.forward(args![&a, &b, by = 2.0]))?, [4.0, 0.0]);
    assert_eq!(run(gm.forward((&a, &b, 2)))?, [4.0, 0.0]);
    let one = symbolic_trace(traced!(|x: &Array| x.relu()))?;
    assert_eq!(run(one.forward(&x()))?, [1.0, 0.0]);
    assert_eq!(run(one.forward(x()))?, [1.0, 0.0]);
    assert_eq!(run(one.forward((x(),)))?, [1.0, 0.0]);
    let none = symbolic_trace(traced!(|| noise(3)))?;
    assert_eq!(run(none.forward(()))?.len(), 3);
    assert_eq!(run(none.forward(args![]))?.len(), 3);
    Ok(())
}

#[test]
fn arguments_that_do_not_fit_are_errors_in_words() -> Result<()> {
    let gm = symbolic_trace(traced!(mixture))?;
    let words = |result: Result<Array>| match result {
        Ok(y) => format!("it ran: {y:?}"),
        Err(error) => error.to_string(),
    };
    let signature = "it takes (x: &Array, y: &Array, by: Float = 1.5)";
    assert_eq!(
        words(gm.forward(&x())),
        format!("`mixture` is missing its argument `y`; {signature}")
    );
    assert_eq!(
        words(gm.forward((&x(), &x(), 1.0, 2.0))),
        format!("`mixture` takes 3 arguments but 4 were given; {signature}")
    );
    assert_eq!(
        words(gm.forward(args![&x(), &x(), bye = 1.0])),
        format!("`mixture` has no parameter `bye`; {signature}")
    );
    assert_eq!(
        words(gm.forward(args![&x(), &x(), x = 1.0])),
        format!("`mixture` got more than one value for `x`; {signature}")
    );
    let wrong = gm
        .forward::<Array>(("text", &x()))
        .expect_err("text is not an array");
    assert_snapshot!(without_lines(wrong), @"while executing %sub (fx-core/tests/run.rs:_): not an operand of an array");
    let wrong = symbolic_trace(traced!(|x: &Array| x.relu()))?.forward::<Array>(2.0);
    let text = wrong.expect_err("a float is not an array").to_string();
    assert_snapshot!(without_lines(text), @"while executing %relu (fx-core/tests/run.rs:_): `array::relu` takes `Array` as `x`, found a float; it takes (x: &Array)");
    let text = gm
        .forward::<f64>((&x(), &x()))
        .expect_err("an array is not a float")
        .to_string();
    assert_eq!(text, "expected `f64`, found a tensor of shape [4]");
    let text = gm
        .forward::<(Array, Array)>((&x(), &x()))
        .expect_err("nor two")
        .to_string();
    assert_eq!(text, "expected a tuple of 2, found a tensor of shape [4]");
    Ok(())
}

#[test]
fn defaults_of_inputs_stand_in() -> Result<()> {
    let mut graph = Graph::new();
    let x = graph.placeholder("x")?;
    let n = graph.placeholder_with_default("n", &Literal::Float(4.0))?;
    let y = graph.call_function(operator::mul, (x, n), ())?;
    graph.output(y)?;
    let mut gm = GraphModule::new(Attributes::default(), graph, "Times")?;
    assert_eq!(gm.forward::<f64>(2.0)?, 8.0);
    assert_eq!(gm.forward::<f64>((2.0, 3.0))?, 6.0);
    gm.graph_mut().node_mut(n)?.set_args((5.0,))?;
    assert_eq!(gm.forward::<f64>(2.0)?, 10.0);
    gm.graph_mut().node_mut(x)?.set_args((1.0,))?;
    assert_eq!(gm.forward::<f64>(())?, 5.0);
    Ok(())
}

#[test]
fn a_graph_module_made_of_an_edited_outcome_takes_the_graphs_inputs() -> Result<()> {
    let mut outcome = Trace::new(traced!(|x: Float| Ok(x))).run()?;
    let graph = &mut outcome.graph;
    let first = graph.nodes().next().map(|n| n.id());
    let extra = graph.inserting_after(first)?.placeholder("extra")?;
    let output = graph.output_node().map(|n| n.id());
    let output = output.ok_or_else(|| Error::msg("an output"))?;
    graph.node_mut(output)?.set_args((extra,))?;
    let gm = GraphModule::from(outcome);
    assert_eq!(gm.forward::<f64>((1.0, 2.0))?, 2.0);
    Ok(())
}

// ---- results -----------------------------------------------------------------------------------

#[test]
fn results_are_those_of_the_eager_run() -> Result<()> {
    let block = Block::new(3);
    let gm = symbolic_trace(&block)?;
    for scale in [-4.0, 0.0, 0.1, 7.0] {
        let x = Array::vec(&[scale, 1.0 - scale, -1.0]);
        let (eager, traced) = (block.forward(&x)?, gm.forward::<Array>(&x)?);
        assert_eq!(
            (traced.shape()?, traced.to_vec()?),
            (eager.shape()?, eager.to_vec()?)
        );
    }
    Ok(())
}

#[test]
fn structures_with_repeated_values_come_out_whole() -> Result<()> {
    let gm = symbolic_trace(traced!(|x: &Array| {
        let y = x.relu()?;
        Ok((y.clone(), vec![y.clone(), x.clone()], y))
    }))?;
    for _ in 0..3 {
        let (a, list, b): (Array, Vec<Array>, Array) = gm.forward(&x())?;
        for y in [&a, &list[0], &b] {
            assert_eq!(y.to_vec()?, [1.0, 0.0]);
        }
        assert_eq!(list[1].to_vec()?, [1.0, -2.0]);
    }
    Ok(())
}

/// A result kept from one run must not change when the next one refills its boxes.
#[test]
fn results_of_earlier_runs_stay_as_they_were() -> Result<()> {
    let gm = symbolic_trace(traced!(|x: &Array| {
        let (a, b) = split_sign(&(x * 2.0)?)?;
        Ok((a, vec![b.clone(), b]))
    }))?;
    let kept: Vec<Value> = (0..4)
        .map(|i| gm.forward(&Array::vec(&[f64::from(i), -f64::from(i)])))
        .collect::<Result<_>>()?;
    for (i, value) in (0..4).zip(kept) {
        let (a, list) = <(Array, Vec<Array>)>::from_value(value)?;
        let n = 2.0 * f64::from(i);
        assert_eq!(
            (a.to_vec()?, list[1].to_vec()?),
            (vec![n, 0.0], vec![0.0, -n])
        );
    }
    Ok(())
}

#[test]
fn scalars_are_computed_with_pythons_rules() -> Result<()> {
    let run = |op: fx_core::ir::Function, a: Value, b: Value| -> Result<Value> {
        let mut graph = Graph::new();
        let (x, y) = (graph.placeholder("x")?, graph.placeholder("y")?);
        let result = graph.call_function(op, (x, y), ())?;
        graph.output(result)?;
        GraphModule::new(Attributes::default(), graph, "Scalars")?.forward((a, b))
    };
    use Value::{Bool, Float, Int};
    for (op, a, b, expected) in [
        (operator::floordiv, Int(-7), Int(2), "-4"),
        (operator::r#mod, Int(-7), Int(2), "1"),
        (operator::r#mod, Int(7), Int(-2), "-1"),
        (operator::truediv, Int(7), Int(2), "3.5"),
        (operator::pow, Int(2), Int(-1), "0.5"),
        (operator::pow, Int(2), Int(10), "1024"),
        (operator::r#mod, Float(-7.5), Float(2.0), "0.5"),
        (operator::lt, Int(1), Float(1.5), "true"),
        (operator::xor, Bool(true), Bool(true), "false"),
        (operator::lshift, Int(3), Int(4), "48"),
        (operator::rshift, Int(-1), Int(80), "-1"),
        (
            operator::floordiv,
            Int(i64::MIN),
            Int(1),
            "-9223372036854775808",
        ),
    ] {
        assert_eq!(run(op, a, b)?.to_string(), expected, "{op}");
    }
    for (op, a, b) in [
        (operator::add, Int(i64::MAX), Int(1)),
        (operator::floordiv, Int(i64::MIN), Int(-1)),
        (operator::truediv, Int(1), Int(0)),
        (operator::r#mod, Int(1), Int(0)),
        (operator::lshift, Int(1), Int(64)),
        (operator::lshift, Int(1), Int(-1)),
        (operator::add, Value::None, Int(1)),
    ] {
        assert!(
            run(op, a.clone(), b.clone()).is_err(),
            "{op} of {a} and {b}"
        );
    }
    Ok(())
}

#[test]
fn scalars_neither_lose_bits_nor_turn_to_floats() -> Result<()> {
    let apply = |op: fx_core::ir::Function, a: Value, b: Value| -> Result<Value> {
        let mut out = Value::None;
        op.run(&[&a, &b], &mut out)?;
        Ok(out)
    };
    assert!(apply(operator::lshift, Value::Int(1), Value::Int(63)).is_err());
    assert!(apply(operator::lshift, Value::Int(i64::MAX), Value::Int(1)).is_err());
    let two = apply(operator::add, Value::Bool(true), Value::Int(1))?;
    assert!(matches!(two, Value::Int(2)), "True + 1 is 2, found {two}");
    let rest = apply(
        operator::r#mod,
        Value::Float(5.0),
        Value::Float(f64::INFINITY),
    )?;
    assert!(
        matches!(rest, Value::Float(5.0)),
        "5 % inf is 5, found {rest}"
    );
    Ok(())
}

// ---- errors ------------------------------------------------------------------------------------

#[derive(fx_core::Module)]
struct Guarded {
    layers: Vec<Strict>,
}

#[derive(fx_core::Module)]
struct Strict {
    by: Array,
}

#[trace]
impl Strict {
    fn forward(&self, x: &Array) -> Result<Array> {
        let y = (x - &self.by)?;
        fail_if_negative(&y)
    }
}
const STRICT_LINE: u32 = line!() - 3;

#[trace]
impl Guarded {
    fn forward(&self, x: &Array) -> Result<Array> {
        let mut h = x.clone();
        for layer in &self.layers {
            h = layer.forward(&h)?;
        }
        Ok(h)
    }
}

#[test]
fn a_kernels_error_names_node_source_line_and_module() -> Result<()> {
    let layers = (0..3)
        .map(|_| Strict {
            by: Array::vec(&[1.0]),
        })
        .collect();
    let gm = symbolic_trace(&Guarded { layers })?;
    assert_eq!(gm.forward::<Array>(&Array::vec(&[3.0]))?.to_vec()?, [0.0]);
    let error = gm
        .forward::<Array>(&Array::vec(&[1.5]))
        .expect_err("the second fails");
    assert_eq!(error.module_path(), Some("layers.1"));
    assert_eq!(error.location().map(|l| l.line), Some(STRICT_LINE));
    assert_eq!(
        error.to_string(),
        format!(
            "while executing %fail_if_negative_1 (fx-core/tests/run.rs:{STRICT_LINE}:9, in layers.1): -0.5 is negative"
        )
    );
    assert_eq!(
        gm.forward::<Array>(&Array::vec(&[4.0]))?.to_vec()?,
        [1.0],
        "and it runs on"
    );
    Ok(())
}

#[test]
fn what_the_attributes_lack_is_named_when_compiling() -> Result<()> {
    let build = |make: &dyn Fn(&mut Graph, NodeId) -> Result<NodeId>| -> Result<GraphModule> {
        let mut graph = Graph::new();
        let x = graph.placeholder("x")?;
        let y = make(&mut graph, x)?;
        graph.output(y)?;
        GraphModule::new(Attributes::default(), graph, "Broken")
    };
    let module = build(&|g, x| g.call_module("a.b", (x,), ())).expect_err("no module");
    assert!(
        matches!(module.kind(), ErrorKind::NotFound { what: "module", path, .. } if path == "a.b")
    );
    assert!(
        module.to_string().starts_with("while compiling %a_b ("),
        "{module}"
    );
    let tensor = build(&|g, _| g.get_attr("w")).expect_err("no tensor");
    assert!(
        matches!(tensor.kind(), ErrorKind::NotFound { path, .. } if path == "w"),
        "{tensor}"
    );
    let method = build(&|g, x| g.call_method("frobnicate", (x,), ())).expect_err("no method");
    assert_snapshot!(without_lines(method), @"while compiling %frobnicate (fx-core/tests/run.rs:_): no method at `frobnicate`: declare it with #[wrap(method)], or in a #[wrap] impl block, and link its crate in");
    let count = build(&|g, x| g.call_function(operator::add, (x,), ())).expect_err("one of two");
    assert_snapshot!(without_lines(count), @"while checking %add (fx-core/tests/run.rs:_): `fx_core::operator::add` is missing its argument `b`; it takes (a: Value, b: Value)");
    let name = build(&|g, x| g.call_method("relu", (x,), [("slope", 1)])).expect_err("no keyword");
    assert_snapshot!(without_lines(name), @"while checking %relu (fx-core/tests/run.rs:_): `relu` has no parameter `slope`; it takes (x: &Array)");
    let mut empty = symbolic_trace(traced!(|x: &Array| x.relu()))?;
    let output = empty.graph().output_node().map(|n| n.id());
    empty
        .graph_mut()
        .erase_node(output.ok_or_else(|| Error::msg("an output"))?)?;
    let text = empty.recompile().expect_err("no output").to_string();
    assert_snapshot!(without_lines(text), @"a graph has exactly one output, this one has 0: add one with `graph.output(..)`");
    assert!(empty.forward::<Array>(&x()).is_err());
    Ok(())
}

#[test]
fn an_errors_node_is_its_bare_name() -> Result<()> {
    let gm = symbolic_trace(traced!(|x: &Array| fail_if_negative(x)))?;
    let error = gm.forward::<Array>(&x()).expect_err("-2 is negative");
    let node = error.node().ok_or_else(|| Error::msg("a node"))?;
    assert!(
        gm.graph().find_name(node).is_some(),
        "no node is named {node:?}"
    );
    let escape = symbolic_trace(traced!(|x: &Array| Ok(vec![Float::from(x.to_vec()?[0])])));
    assert_eq!(escape.expect_err("an escape").node(), None);
    Ok(())
}

#[test]
fn a_graph_that_calls_an_impure_function_or_method_is_impure() -> Result<()> {
    use fx_core::ir::Effects;
    use fx_core::module::Module;
    let pure = symbolic_trace(traced!(|x: &Array| x.relu()?.scale(3.0)))?;
    assert_eq!(pure.effects(), Effects::PURE);
    let of = |f: fx_core::trace::TracedFn| Ok::<_, Error>(symbolic_trace(f)?.effects());
    assert_eq!(of(traced!(|x: &Array| record(x)))?, Effects::ALL);
    assert_eq!(of(traced!(|x: &Array| x + noise(2)?))?, Effects::RANDOM);
    assert_eq!(of(traced!(|x: &Array| x.record()))?, Effects::ALL);
    Ok(())
}

#[test]
fn impure_calls_run_once_a_run() -> Result<()> {
    let gm = symbolic_trace(traced!(|x: &Array| {
        x.record()?;
        record(x)
    }))?;
    let before = RECORDED.load(Ordering::SeqCst);
    gm.forward::<Array>(&x())?;
    assert_eq!(RECORDED.load(Ordering::SeqCst) - before, 2);
    Ok(())
}

// ---- memory ------------------------------------------------------------------------------------

fn counted(census: &Arc<Census>) -> Array {
    Array::counted(&[2], vec![1.0, -2.0], Some(census.clone()))
}

#[test]
fn values_are_freed_after_their_last_use() -> Result<()> {
    let gm = symbolic_trace(traced!(|x: &Array| {
        let mut y = x.relu()?;
        for _ in 0..50 {
            y = (y.scale(0.5)? + 1.0)?;
        }
        Ok(y)
    }))?;
    for _ in 0..3 {
        let census = Arc::new(Census::default());
        let y: Array = gm.forward(counted(&census))?;
        assert_eq!(census.live(), 1, "only the result is left");
        assert!(
            census.peak() <= 3,
            "{} arrays were alive at once",
            census.peak()
        );
        drop(y);
        assert_eq!(census.live(), 0, "recycled boxes hold nothing");
    }
    Ok(())
}

#[test]
fn unused_results_and_inputs_are_freed_at_once() -> Result<()> {
    let gm = symbolic_trace(traced!(|x: &Array, _unused: &Array| {
        for _ in 0..20 {
            x.relu()?;
            let (_, _) = split_sign(x)?;
        }
        concat(&[x.clone(), x.clone()])
    }))?;
    let census = Arc::new(Census::default());
    let y: Array = gm.forward((counted(&census), counted(&census)))?;
    assert_eq!(y.to_vec()?, [1.0, -2.0, 1.0, -2.0]);
    assert!(
        census.peak() <= 4,
        "{} arrays were alive at once",
        census.peak()
    );
    drop(y);
    assert_eq!(census.live(), 0);
    Ok(())
}

#[test]
fn a_failed_run_leaves_nothing_alive() -> Result<()> {
    let gm = symbolic_trace(traced!(|x: &Array| {
        let (a, b) = split_sign(x)?;
        let both = concat(&[a.clone(), b])?;
        fail_if_negative(&both)? + &a
    }))?;
    let census = Arc::new(Census::default());
    assert!(gm.forward::<Array>(counted(&census)).is_err());
    assert_eq!(census.live(), 0);
    assert_eq!(
        gm.forward::<Array>(&Array::vec(&[1.0]))?.to_vec()?,
        [2.0, 1.0]
    );
    Ok(())
}

#[test]
fn captured_tensors_are_shared_and_not_copied() -> Result<()> {
    let census = Arc::new(Census::default());
    let constant = counted(&census);
    let gm = symbolic_trace(traced!(move |x: &Array| x + &constant))?;
    let copy = gm.clone();
    assert_eq!(census.live(), 1);
    drop(gm);
    assert_eq!(copy.forward::<Array>(&x())?.to_vec()?, [2.0, -4.0]);
    drop(copy);
    assert_eq!(census.live(), 0);
    Ok(())
}

// ---- threads -----------------------------------------------------------------------------------

#[test]
fn eight_threads_run_one_graph_module_at_once() -> Result<()> {
    fn shared<T: Send + Sync + 'static>(value: T) -> Arc<T> {
        Arc::new(value)
    }
    let block = shared(Block::new(4));
    let gm = shared(symbolic_trace(&*block)?);
    let start = Arc::new(Barrier::new(8));
    let threads: Vec<_> = (0..8)
        .map(|t| {
            let (gm, block, start) = (gm.clone(), block.clone(), start.clone());
            std::thread::spawn(move || -> Result<()> {
                start.wait();
                for i in 0..200 {
                    let x = Array::vec(&[f64::from(t), f64::from(i), -1.0, 0.5]);
                    let (eager, traced) = (block.forward(&x)?, gm.forward::<Array>(&x)?);
                    assert_eq!(traced.to_vec()?, eager.to_vec()?);
                }
                Ok(())
            })
        })
        .collect();
    for thread in threads {
        thread
            .join()
            .map_err(|_| Error::msg("a thread panicked"))??;
    }
    Ok(())
}

// ---- edits -------------------------------------------------------------------------------------

#[test]
fn an_edited_graph_is_what_runs_next() -> Result<()> {
    let mut gm = symbolic_trace(traced!(|x: &Array| x.relu()))?;
    let original = gm.clone();
    assert_eq!(gm.forward::<Array>(&x())?.to_vec()?, [1.0, 0.0]);
    let relu = gm.graph().find_name("relu").map(|n| n.id());
    let relu = relu.ok_or_else(|| Error::msg("a relu"))?;
    {
        let mut graph = gm.graph_mut();
        let scaled =
            graph
                .inserting_after(relu)?
                .call_method("scale", (relu,), [("factor", 10.0)])?;
        graph.node_mut(relu)?.replace_all_uses_with(scaled)?;
    }
    assert_eq!(gm.forward::<Array>(&x())?.to_vec()?, [10.0, 0.0]);
    let scaled = gm.graph().find_name("scale").map(|n| n.id());
    let scaled = scaled.ok_or_else(|| Error::msg("a scale"))?;
    gm.graph_mut().node_mut(scaled)?.set_kwargs(())?;
    assert_eq!(gm.forward::<Array>(&x())?.to_vec()?, [2.0, 0.0]);
    std::mem::forget(gm.graph_mut());
    gm.graph_mut()
        .node_mut(scaled)?
        .set_kwargs([("factor", -1.0)])?;
    assert_eq!(gm.forward::<Array>(&x())?.to_vec()?, [-1.0, 0.0]);
    assert_eq!(
        original.forward::<Array>(&x())?.to_vec()?,
        [1.0, 0.0],
        "the clone is its own"
    );
    let output = gm.graph().output_node().map(|n| n.id());
    let output = output.ok_or_else(|| Error::msg("an output"))?;
    gm.graph_mut().node_mut(output)?.append(scaled)?;
    assert!(gm.forward::<Array>(&x()).is_err(), "it comes too late");
    Ok(())
}

#[test]
fn new_inputs_are_new_arguments() -> Result<()> {
    let mut gm = symbolic_trace(traced!(|x: &Array| x.relu()))?;
    let ids: Vec<NodeId> = gm.graph().nodes().map(|n| n.id()).collect();
    let [x_id, relu, output] = ids[..] else {
        return Err(Error::msg("three nodes"));
    };
    {
        let mut graph = gm.graph_mut();
        let by = graph.inserting_after(x_id)?.placeholder("by")?;
        let sum = graph
            .inserting_before(output)?
            .call_function(operator::add, (relu, by), ())?;
        graph.node_mut(output)?.set_args((sum,))?;
    }
    assert_eq!(gm.forward::<Array>((&x(), 5.0))?.to_vec()?, [6.0, 5.0]);
    assert_eq!(
        gm.forward::<Array>(args![by = 5.0, x = &x()])?.to_vec()?,
        [6.0, 5.0]
    );
    assert!(gm.forward::<Array>(&x()).is_err());
    *gm.graph_mut() = Trace::new(traced!(|z: Float| Ok(z))).graph()?;
    assert_eq!(gm.forward::<f64>(args![z = 3.0])?, 3.0);
    Ok(())
}

#[test]
fn weights_are_shared_with_the_module_until_they_are_replaced() -> Result<()> {
    let layer = Linear::square(2, 2.0);
    let gm = symbolic_trace(&layer)?;
    let [own, traced] = [layer.named_parameters(), gm.named_parameters()];
    assert_eq!(
        own.keys().collect::<Vec<_>>(),
        traced.keys().collect::<Vec<_>>()
    );
    for (own, traced) in own.values().zip(traced.values()) {
        let id = |v: &Value| v.as_object().and_then(fx_core::tensor::Object::object_id);
        assert_eq!(id(own), id(traced));
    }
    Ok(())
}
