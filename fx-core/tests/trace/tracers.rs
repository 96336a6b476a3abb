//! Custom tracers: each override changes what a trace records, and the report lists what was fixed.

use std::sync::Arc;

use fx_core::ir::{Argument, Op};
use fx_core::module::{Module, TensorKind};
use fx_core::prelude::*;
use fx_core::tensor::Object;
use fx_core::trace::{CallArgs, TraceContext, Tracer};
use fx_core::value::{NodeId, Proxy};
use fx_core::{ErrorKind, Module, operator};
use insta::assert_snapshot;

use crate::support::modules::{Block, Linear};
use crate::support::*;

/// Knows the answers.
struct Knows;

impl Tracer for Knows {
    fn to_bool(&self, _: &TraceContext, _: Proxy) -> Result<bool> {
        Ok(true)
    }
    fn iter(&self, cx: &TraceContext, proxy: Proxy) -> Result<Vec<Proxy>> {
        self.create_items(cx, proxy, 2)
    }
    fn keys(&self, _: &TraceContext, _: Proxy) -> Result<Vec<Arc<str>>> {
        Ok(vec!["a".into(), "b".into()])
    }
}

fn asks() -> fx_core::trace::TracedFn {
    traced!(|flag: Bool, x: &Array, d: Value| {
        let x = if flag.to_bool()? {
            x.relu()?
        } else {
            x.clone()
        };
        let mut sum: Option<Array> = None;
        for item in x.iter()? {
            sum = Some(match sum {
                Some(sum) => (sum + item)?,
                None => item,
            });
        }
        let keys: Vec<Arc<str>> = d.keys()?.collect();
        let items: Vec<Value> = d.iter()?.collect();
        Ok((
            sum.ok_or_else(|| Error::msg("there are two"))?,
            Int::from(keys.len()),
            items,
        ))
    })
}

#[test]
fn a_tracer_answers_for_symbolic_values() -> Result<()> {
    let trace = || Trace::new(asks()).tracer(Knows);
    assert_eq!(
        names(&trace().graph()?),
        [
            "flag",
            "x",
            "d",
            "relu",
            "getitem",
            "getitem_1",
            "add",
            "getitem_2",
            "getitem_3",
            "output"
        ]
    );
    let report = trace().report()?;
    let answers: Vec<String> = report
        .entries()
        .iter()
        .map(|entry| entry.what.to_string())
        .collect();
    assert_eq!(
        answers,
        [
            "to_bool of %flag = true",
            "iter of %relu = 2 items",
            "keys of %d = [\"a\", \"b\"]",
            "iter of %d = 2 items",
        ]
    );
    let first = report.entries().first().and_then(|e| e.location.clone());
    assert!(first.is_some_and(|l| l.file.ends_with("tracers.rs")));
    Ok(())
}

#[test]
fn without_an_answer_each_question_is_an_error_with_the_way_out() {
    let error = Trace::new(asks())
        .graph()
        .expect_err("the truth is not known");
    assert!(matches!(error.kind(), ErrorKind::ControlFlow { value } if value == "%flag"));
    assert_snapshot!(without_lines(error), @"while tracing `to_bool` (fx-core/tests/trace/tracers.rs:_): symbolically traced variables cannot be used as inputs to control flow: the truth of %flag is known only when the graph runs; record both ways with `control::cond`, decide by a plain `bool` argument and bind it with `Trace::concrete`, make the function a leaf with #[wrap], or answer in `Tracer::to_bool`");
    for (f, what) in [
        (
            traced!(|x: Value| Ok(x.iter()?.collect::<Vec<_>>())),
            "items",
        ),
        (traced!(|x: Value| Ok(Int::from(x.keys()?.len()))), "keys"),
    ] {
        let error = Trace::new(f).graph().expect_err("not known");
        assert!(
            matches!(error.kind(), ErrorKind::Iteration { what: w, .. } if *w == what),
            "{error}"
        );
    }
}

#[test]
fn known_values_answer_themselves() -> Result<()> {
    assert!(Bool::from(true).to_bool()?);
    let list = tree!([1, 2]);
    assert_eq!(list.iter()?.count(), 2);
    assert_eq!(
        tree!({"a": 1}).keys()?.collect::<Vec<_>>(),
        [Arc::from("a")]
    );
    assert!(tree!(1).iter().is_err() && tree!(1).keys().is_err());
    Ok(())
}

// ---- the report --------------------------------------------------------------------------------

#[derive(Module)]
struct Frozenness {
    block: Block,
    training: bool,
}

#[trace]
impl Frozenness {
    fn forward(&self, x: &Array) -> Result<Array> {
        let x = (x + Array::vec(&[1.0, 2.0]))?;
        let layer = Linear::square(2, 3.0);
        let x = layer.forward(&x)?;
        if self.training { x.relu() } else { Ok(x) }
    }
}

#[test]
fn the_report_says_what_was_frozen_and_where() -> Result<()> {
    let root = Frozenness {
        block: Block::new(2),
        training: true,
    };
    let report = Trace::new(&root).report()?;
    assert_snapshot!(without_lines(&report), @"
    training flag of the root = true (fx-core/tests/trace/tracers.rs:_)
    constant `_tensor_constant0`: a tensor of shape [2] (fx-core/tests/trace/tracers.rs:_)
    layer `_linear_0`: Linear, not part of the root (fx-core/tests/trace/tracers.rs:_)
    ");
    assert!(
        Trace::new(traced!(|x: &Array| x + 1.0))
            .report()?
            .is_empty()
    );
    Ok(())
}

// ---- every other override -----------------------------------------------------------------------

/// Shows buffers like parameters: one cached node each.
struct ProxyBuffers;

impl Tracer for ProxyBuffers {
    fn getattr(&self, cx: &TraceContext, object: &dyn Object) -> Result<Argument> {
        let buffer = object
            .object_id()
            .and_then(|id| cx.path_of_tensor(id))
            .filter(|(_, kind)| *kind == TensorKind::Buffer);
        let Some((path, kind)) = buffer else {
            return cx.default_getattr(self, object);
        };
        if let Some(known) = cx.graph()?.find_nodes(&Op::GetAttr(path.clone())).first() {
            return Ok(Argument::Node(known.id()));
        }
        cx.keep_tensor(&path, kind, object.to_value());
        let node = self.create_node(
            cx,
            Op::GetAttr(path),
            fx_core::ir::Args::new(),
            fx_core::ir::Kwargs::new(),
            None,
        )?;
        Ok(Argument::Node(node))
    }
}

#[derive(Module)]
struct Buffered {
    #[module(buffer)]
    mean: Array,
}

#[trace]
impl Buffered {
    fn forward(&self, x: &Array) -> Result<Array> {
        (x - &self.mean)? * &self.mean
    }
}

#[test]
fn buffers_can_be_one_node_each() -> Result<()> {
    let root = Buffered {
        mean: Array::vec(&[1.0]),
    };
    assert_eq!(
        names(&Trace::new(&root).graph()?),
        ["x", "mean", "sub", "mean_1", "mul", "output"]
    );
    assert_eq!(
        names(&Trace::new(&root).tracer(ProxyBuffers).graph()?),
        ["x", "mean", "sub", "mul", "output"]
    );
    Ok(())
}

/// Puts the graph's tensors into a separate name space.
struct Renamed;

impl Tracer for Renamed {
    fn get_fresh_qualname(&self, cx: &TraceContext, prefix: &str) -> Arc<str> {
        cx.fresh_path(&format!("extra{prefix}"))
    }
    fn path_of_module(&self, cx: &TraceContext, module: &dyn Module) -> Option<Arc<str>> {
        // Everything except the root is outside.
        cx.path_of(module).filter(|path| path.is_empty())
    }
    fn create_proxy(&self, cx: &TraceContext, op: Op, call: CallArgs) -> Result<Proxy> {
        // Every addition becomes a doubling of its first operand.
        if op == Op::CallFunction(operator::add) {
            let doubled = CallArgs {
                args: vec![call.args[0].clone(), Value::Float(2.0)],
                ..CallArgs::default()
            };
            cx.default_create_proxy(self, Op::CallFunction(operator::mul), doubled)
        } else {
            cx.default_create_proxy(self, op, call)
        }
    }
}

#[test]
fn names_paths_and_calls_are_the_tracers() -> Result<()> {
    let root = Frozenness {
        block: Block::new(2),
        training: false,
    };
    let graph = Trace::new(&root).tracer(Renamed).graph()?;
    assert_eq!(names(&graph), ["x", "mul", "extra_linear_0", "output"]);
    Ok(())
}

// ---- overrides together
// --------------------------------------------------------------------------

/// Rounds every number that goes into the graph, and notes each node's call.
struct RoundsAndNotes;

#[derive(Debug, Clone, Copy)]
struct Noted(usize);

impl fx_core::ir::Meta for Noted {
    const ON_COPY: fx_core::ir::MetaPolicy = fx_core::ir::MetaPolicy::Copy;
    const ON_REPLACE: fx_core::ir::MetaPolicy = fx_core::ir::MetaPolicy::Copy;
}

impl Tracer for RoundsAndNotes {
    fn create_arg(&self, cx: &TraceContext, value: &Value) -> Result<Argument> {
        match value {
            Value::Float(x) => Ok(Argument::Float(x.round())),
            other => cx.default_create_arg(self, other),
        }
    }
    fn create_node(
        &self,
        cx: &TraceContext,
        op: Op,
        args: fx_core::ir::Args,
        kwargs: fx_core::ir::Kwargs,
        name: Option<&str>,
    ) -> Result<NodeId> {
        let noted = Noted(cx.graph()?.len());
        let node = cx.insert(op, args, kwargs, name)?;
        cx.graph_mut()?.node_mut(node)?.set_meta(noted);
        Ok(node)
    }
    fn getattr(&self, cx: &TraceContext, object: &dyn Object) -> Result<Argument> {
        let read = cx.default_getattr(self, object)?;
        let twice = [read, Argument::Float(1.9)].into_iter().collect();
        let add = Op::CallFunction(operator::add);
        let node = self.create_node(cx, add, twice, fx_core::ir::Kwargs::new(), None)?;
        Ok(Argument::Node(node))
    }
    fn create_proxy(&self, cx: &TraceContext, op: Op, call: CallArgs) -> Result<Proxy> {
        cx.default_create_proxy(self, op, call)
    }
}

#[wrap]
fn weigh(x: &Array, by: Vec<f64>, pairs: Vec<(f64, f64)>) -> Result<Array> {
    x * (by.iter().sum::<f64>() + pairs.iter().map(|(a, b)| a * b).sum::<f64>())
}

#[test]
fn overrides_hold_inside_lists_and_beside_each_other() -> Result<()> {
    let root = Buffered {
        mean: Array::vec(&[1.0]),
    };
    let graph = Trace::new(&root).tracer(RoundsAndNotes).graph()?;
    assert_eq!(
        names(&graph),
        [
            "x", "mean", "add", "sub", "mean_1", "add_1", "mul", "output"
        ]
    );
    let noted = graph.nodes().map(|node| node.meta::<Noted>().map(|n| n.0));
    assert_eq!(
        noted.collect::<Vec<_>>(),
        (0..8).map(Some).collect::<Vec<_>>()
    );

    let listed = traced!(|x: &Array| weigh(x, vec![1.9, 0.2], vec![(2.4, 2.6)]));
    let graph = Trace::new(listed).tracer(RoundsAndNotes).graph()?;
    let weigh = graph.find_name("weigh").expect("it is recorded");
    let text = weigh.to_string();
    assert!(text.contains("(%x, [2.0, 0.0], [(2.0, 3.0)])"), "{text}");
    assert_eq!(weigh.meta::<Noted>().map(|n| n.0), Some(1));
    Ok(())
}
