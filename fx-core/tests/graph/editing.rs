//! Graphs built by hand and edited: insertion, moves, arguments, copies, attributes.

use std::sync::{Arc, Weak};

use fx_core::ir::{Args, Argument, Graph, Kwargs, Meta, MetaPolicy, Op, ValueMap};
use fx_core::module::{Attributes, TensorKind};
use fx_core::prelude::*;
use fx_core::trace::{TraceContext, Tracer};
use fx_core::value::NodeId;
use fx_core::{Module, function, operator};
use insta::assert_snapshot;

use crate::graph::{left, module, right};
use crate::support::modules::Linear;
use crate::support::*;

#[test]
fn a_graph_by_hand_calls_a_users_function() -> Result<()> {
    let mut graph = Graph::new();
    let (x, y) = (graph.placeholder("x")?, graph.placeholder("y")?);
    let add = graph.call_function(operator::add, (x, y), ())?;
    let relu = graph.call_function(function!(relu), (add,), ())?;
    graph.output(relu)?;
    assert_eq!(run(&module(graph)?, (&left(), &right()))?, [0.0, 3.0]);
    Ok(())
}

#[test]
fn a_traced_call_of_a_graph_module_extends_it() -> Result<()> {
    let first = symbolic_trace(traced!(|x: &Array, y: &Array| x + y))?;
    let inner = first.clone();
    let more = symbolic_trace(traced!(move |x: &Array, y: &Array| {
        let copied: Array = inner.forward((x, y))?;
        copied + 5.0
    }))?;
    more.graph().lint()?;
    assert_eq!(names(more.graph()), ["x", "y", "add", "add_1", "output"]);
    assert_eq!(run(&more, (&left(), &right()))?, [3.0, 8.0]);
    assert_eq!(first.graph().len(), 4, "the original is as it was");
    Ok(())
}

#[test]
fn a_copied_graph_keeps_names_distinct() -> Result<()> {
    let first = symbolic_trace(traced!(|x: &Array, y: &Array| x + y))?;
    let mut graph = Graph::new();
    let result = graph.graph_copy(first.graph(), &mut ValueMap::default())?;
    let result = result.ok_or_else(|| Error::msg("a result"))?;
    let add = graph.call_function(operator::add, (result, 5.0), ())?;
    graph.output(add)?;
    let mut seen = names(&graph);
    assert_eq!(seen, ["x", "y", "add", "add_1", "output"]);
    seen.sort();
    seen.dedup();
    assert_eq!(seen.len(), graph.len());
    graph.lint()
}

#[test]
fn input_nodes_are_listed_once_in_order() -> Result<()> {
    let mut graph = Graph::new();
    let a = graph.placeholder("a")?;
    let b = graph.call_module("linear_mod", (a,), ())?;
    let c = graph.get_attr("y_attr")?;
    let d = graph.call_function(operator::add, (b, c), ())?;
    let e = graph.call_function(function!(scale), (d,), [("factor", 0.0)])?;
    let both = graph.call_method("f", (e, d, e), [("k", a)])?;
    let output = graph.output(Argument::from([e, both]))?;
    let none: [&str; 0] = [];
    assert_eq!(inputs(&graph, a)?, none);
    assert_eq!(inputs(&graph, b)?, ["a"]);
    assert_eq!(inputs(&graph, c)?, none);
    assert_eq!(inputs(&graph, d)?, ["linear_mod", "y_attr"]);
    assert_eq!(inputs(&graph, e)?, ["add"]);
    assert_eq!(inputs(&graph, both)?, ["scale", "add", "a"]);
    assert_eq!(inputs(&graph, output)?, ["scale", "f"]);
    Ok(())
}

/// A value whose lifetime can be observed.
#[derive(Debug)]
struct Held(#[allow(dead_code, reason = "held to be freed")] Arc<()>);

impl Meta for Held {
    const ON_COPY: MetaPolicy = MetaPolicy::Drop;
    const ON_REPLACE: MetaPolicy = MetaPolicy::Drop;
}

#[test]
fn a_moved_and_erased_node_is_freed() -> Result<()> {
    let mut graph = Graph::new();
    let x = graph.placeholder("x")?;
    let relu = graph.call_function(function!(relu), (x,), ())?;
    let neg = graph.call_function(operator::neg, (x,), ())?;
    graph.output(relu)?;
    let held = Arc::new(());
    let weak: Weak<()> = Arc::downgrade(&held);
    graph.node_mut(neg)?.set_meta(Held(held));
    graph.node_mut(relu)?.prepend(neg)?;
    assert!(weak.upgrade().is_some());
    graph.erase_node(neg)?;
    assert!(weak.upgrade().is_none(), "what the node held is freed");
    assert!(graph.node(neg).is_err());
    assert_eq!(names(&graph), ["x", "relu", "output"]);
    Ok(())
}

#[test]
fn replacing_an_input_leaves_its_other_users() -> Result<()> {
    let mut graph = Graph::new();
    let (x, y) = (graph.placeholder("x")?, graph.placeholder("y")?);
    let b = graph.call_function(function!(relu), (x,), ())?;
    let other = graph.call_function(operator::mul, (x, 0.0), ())?;
    let sum = graph.call_function(operator::add, (b, other), ())?;
    graph.output(sum)?;
    graph.node_mut(b)?.replace_input_with(x, y)?;
    assert_eq!(users(&graph, x)?, ["mul"], "the other user is as it was");
    assert_eq!(users(&graph, y)?, ["relu"]);
    assert_eq!(run(&module(graph)?, (&left(), &right()))?, [0.0, 5.0]);
    Ok(())
}

#[test]
fn a_node_is_inserted_before_another() -> Result<()> {
    let mut graph = Graph::new();
    let x = graph.placeholder("x")?;
    let relu = graph.call_function(function!(relu), (x,), ())?;
    let output = graph.output(relu)?;
    let neg = graph
        .inserting_before(relu)?
        .call_function(operator::neg, (x,), ())?;
    graph.node_mut(relu)?.set_args((neg,))?;
    assert_eq!(names(&graph), ["x", "neg", "relu", "output"]);
    assert_eq!(run(&module(graph.clone())?, left())?, [0.0, 2.0]);
    graph.erase_node(output)?;
    graph.output(neg)?;
    assert_eq!(names(&graph), ["x", "neg", "relu", "output_1"]);
    Ok(())
}

#[test]
fn a_node_is_moved_before_another() -> Result<()> {
    let mut graph = Graph::new();
    let x = graph.placeholder("x")?;
    let relu = graph.call_function(function!(relu), (x,), ())?;
    graph.output(relu)?;
    let neg = graph.call_function(operator::neg, (x,), ())?;
    graph.node_mut(relu)?.set_args((neg,))?;
    assert!(graph.lint().is_err());
    graph.node_mut(relu)?.prepend(neg)?;
    assert_eq!(names(&graph), ["x", "neg", "relu", "output"]);
    graph.lint()?;
    assert_eq!(run(&module(graph)?, left())?, [0.0, 2.0]);
    Ok(())
}

#[test]
fn a_node_moved_beside_itself_stays() -> Result<()> {
    let mut graph = Graph::new();
    let x = graph.placeholder("x")?;
    let relu = graph.call_function(function!(relu), (x,), ())?;
    graph.output(relu)?;
    for id in [x, relu] {
        graph.node_mut(id)?.prepend(id)?;
        graph.node_mut(id)?.append(id)?;
        assert_eq!(names(&graph), ["x", "relu", "output"]);
        assert_eq!(graph.len(), 3);
    }
    Ok(())
}

#[test]
fn an_updated_argument_is_what_runs_next() -> Result<()> {
    let mut graph = Graph::new();
    let (x, y) = (graph.placeholder("x")?, graph.placeholder("y")?);
    let relu = graph.call_function(function!(relu), (x,), ())?;
    graph.output(relu)?;
    let before = module(graph.clone())?;
    assert_eq!(run(&before, (&left(), &right()))?, [1.0, 0.0]);
    graph.node_mut(relu)?.update_arg(0, y)?;
    assert_eq!(run(&module(graph)?, (&left(), &right()))?, [0.0, 5.0]);
    assert_eq!(run(&before, (&left(), &right()))?, [1.0, 0.0]);
    Ok(())
}

#[test]
fn an_inserted_argument_shifts_the_rest() -> Result<()> {
    let mut graph = Graph::new();
    let (x, y) = (graph.placeholder("x")?, graph.placeholder("y")?);
    let f = graph.call_method("f", (x, 1), ())?;
    graph.node_mut(f)?.insert_arg(1, y)?;
    graph.node_mut(f)?.insert_arg(3, 2)?;
    assert_eq!(
        graph.node(f)?.args(),
        [x.into(), y.into(), Argument::Int(1), Argument::Int(2)]
    );
    assert_eq!(users(&graph, y)?, ["f"]);
    let error = refused(graph.node_mut(f)?.insert_arg(9, y)).to_string();
    assert!(
        error.ends_with("so the position must be between 0 and 4, not 9"),
        "{error}"
    );
    assert_eq!(graph.node(f)?.args().len(), 4);
    Ok(())
}

#[test]
fn reassigned_arguments_move_uses_on_both_sides() -> Result<()> {
    let mut graph = Graph::new();
    let (x, y) = (graph.placeholder("x")?, graph.placeholder("y")?);
    let z = graph.call_function(operator::add, (x, y), ())?;
    let zed = graph.call_function(operator::add, (z, z), ())?;
    graph.output(zed)?;
    graph.node_mut(zed)?.set_args((x, y))?;
    assert_eq!(users(&graph, z)?, [""; 0]);
    assert_eq!(users(&graph, x)?, ["add", "add_1"]);
    assert_eq!(inputs(&graph, zed)?, ["x", "y"]);
    graph.node_mut(zed)?.set_args(())?;
    graph.node_mut(zed)?.set_kwargs([("a", z), ("b", z)])?;
    assert_eq!(users(&graph, z)?, ["add_1"]);
    assert_eq!(users(&graph, x)?, ["add"]);
    assert_eq!(inputs(&graph, zed)?, ["add"]);
    Ok(())
}

#[test]
fn a_graph_is_inlined_by_a_map_of_its_inputs() -> Result<()> {
    let outer = symbolic_trace(traced!(|x: &Array| (x + 1.0)?.relu()))?;
    let inlined = symbolic_trace(traced!(|y: &Array| y * 3.0))?;
    let mut graph = outer.graph().clone();
    let y = node(inlined.graph(), "y")?.id();
    let relu = node(&graph, "relu")?.id();
    let mut map = ValueMap::from_iter([(y, Argument::Node(relu))]);
    let output = graph.output_node().map(|n| n.id());
    let result = graph
        .inserting_before(output)?
        .graph_copy(inlined.graph(), &mut map)?;
    let result = result.ok_or_else(|| Error::msg("a result"))?;
    let output = node(&graph, "output")?.id();
    graph.node_mut(output)?.set_args((result,))?;
    graph.lint()?;
    assert_eq!(names(&graph), ["x", "add", "relu", "mul", "output"]);
    assert_eq!(run(&module(graph)?, left())?, [6.0, 0.0]);
    Ok(())
}

#[test]
fn a_used_node_is_not_erased_and_its_users_are_named() -> Result<()> {
    let mut gm = symbolic_trace(traced!(|x: &Array| x.relu()? + 1.0))?;
    for (name, user) in [("x", "relu"), ("relu", "add"), ("add", "output")] {
        let id = node(gm.graph(), name)?.id();
        let error = refused(gm.graph_mut().erase_node(id));
        assert_eq!(
            error.to_string(),
            format!("cannot erase %{name}: it still has 1 user (%{user}); replace its uses first")
        );
    }
    assert_eq!(gm.graph().len(), 4);
    Ok(())
}

/// A target of another type than its opcode's cannot be built; text can name something that is not
/// a function.
#[test]
fn an_unknown_target_in_text_is_refused() -> Result<()> {
    let text = |target: &str| {
        format!(
            "graph():\n    %f : [num_users=1] = call_function[target={target}](args = (), kwargs = {{}})\n    return %f"
        )
    };
    text("rows::digits").parse::<Graph>()?;
    let error = refused(text("foo").parse::<Graph>()).to_string();
    assert_snapshot!(error, @"line 2, column 47: expected a registered function, found `foo`, which no crate of this program registers: link its crate in (`use its_crate as _;`)");
    Ok(())
}

#[test]
fn copies_of_structures_are_equal() -> Result<()> {
    let mut graph = Graph::new();
    let x = graph.placeholder("x")?;
    let list = Argument::from([1, 2]);
    let dict = Argument::Dict(Arc::new(vec![
        ("k".into(), x.into()),
        ("l".into(), list.clone()),
    ]));
    assert_eq!(dict.clone(), dict);
    let f = graph.call_method("f", (list, dict), ())?;
    let copy = graph.clone();
    assert_eq!(copy.node(f)?.args(), graph.node(f)?.args());
    let twin = graph.graph_copy(&copy, &mut ValueMap::from_iter([(x, x.into())]))?;
    assert_eq!(twin, None, "there is no output");
    let twin = node(&graph, "f_1")?.id();
    assert_eq!(graph.node(twin)?.args(), graph.node(f)?.args());
    Ok(())
}

#[derive(Debug, PartialEq)]
struct Tagged(&'static str);

impl Meta for Tagged {
    const ON_COPY: MetaPolicy = MetaPolicy::Copy;
    const ON_REPLACE: MetaPolicy = MetaPolicy::Drop;
}

struct TaggingTracer;

impl Tracer for TaggingTracer {
    fn create_node(
        &self,
        cx: &TraceContext,
        op: Op,
        args: Args,
        kwargs: Kwargs,
        name: Option<&str>,
    ) -> Result<NodeId> {
        let id = cx.insert(op, args, kwargs, name)?;
        cx.graph_mut()?.node_mut(id)?.set_meta(Tagged("foo"));
        Ok(id)
    }
}

#[test]
fn a_tracer_can_tag_every_node() -> Result<()> {
    let constant = left();
    let root = traced!(move |x: &Array, y: &Array| (x + y)? + &constant);
    let graph = Trace::new(root).tracer(TaggingTracer).graph()?;
    graph.lint()?;
    assert_eq!(graph.len(), 6);
    for node in graph.nodes() {
        assert_eq!(node.meta(), Some(&Tagged("foo")), "{node}");
    }
    Ok(())
}

#[test]
fn parameters_and_buffers_come_from_attributes() -> Result<()> {
    let mut graph = Graph::new();
    let x = graph.placeholder("x")?;
    let param = graph.get_attr("my_param")?;
    let buffer = graph.get_attr("my.buff")?;
    let add = graph.call_function(operator::add, (x, param), ())?;
    let sub = graph.call_function(operator::sub, (add, buffer), ())?;
    graph.output(sub)?;
    let mut root = Attributes::default();
    root.tensors.insert(
        "my_param".into(),
        (TensorKind::Parameter, Value::object(left())),
    );
    root.tensors.insert(
        "my.buff".into(),
        (TensorKind::Buffer, Value::object(right())),
    );
    let gm = GraphModule::new(root, graph, "Dict")?;
    assert_eq!(
        gm.named_parameters().keys().collect::<Vec<_>>(),
        ["my_param"]
    );
    assert_eq!(gm.named_buffers().keys().collect::<Vec<_>>(), ["my.buff"]);
    assert_eq!(run(&gm, Array::vec(&[0.0, 0.0]))?, [4.0, -7.0]);
    Ok(())
}

/// A leaf with a child of its own.
#[derive(Module, Debug)]
struct Outer {
    inner: Linear,
}

#[trace(leaf)]
impl Outer {
    fn forward(&self, x: &Array) -> Result<Array> {
        self.inner.forward(x)
    }
}

#[derive(Module, Debug)]
struct Net {
    called: Outer,
    unused: Outer,
}

#[trace]
impl Net {
    fn forward(&self, x: &Array) -> Result<Array> {
        self.called.forward(x)
    }
}

#[test]
fn dead_code_keeps_the_children_of_a_called_leaf() -> Result<()> {
    let outer = |factor| Outer {
        inner: Linear::square(2, factor),
    };
    let mut gm = symbolic_trace(&Net {
        called: outer(2.0),
        unused: outer(3.0),
    })?;
    gm.eliminate_dead_code()?;
    let modules = gm.named_modules();
    assert!(modules.contains_key("called.inner"), "{modules:?}");
    assert!(!modules.contains_key("unused"), "{modules:?}");
    assert_eq!(run(&gm, left())?, [2.5, -3.5]);
    Ok(())
}

#[test]
fn a_sound_graph_passes_lint_and_a_broken_one_does_not() -> Result<()> {
    let mut gm = symbolic_trace(traced!(|x: &Array, y: &Array| x.relu()? + y))?;
    gm.lint()?;
    gm.recompile()?;
    let output = node(gm.graph(), "output")?.id();
    let x = node(gm.graph(), "x")?.id();
    gm.graph_mut().node_mut(x)?.prepend(output)?;
    assert!(
        !gm.graph().findings().is_empty(),
        "a broken one does not pass"
    );
    Ok(())
}

#[test]
fn an_item_that_an_inlined_graph_lacks_leaves_the_graph_as_it_was() -> Result<()> {
    let mut inner = Graph::new();
    let a = inner.placeholder("a")?;
    let b = inner.call_function(operator::neg, (a,), ())?;
    inner.output(vec![a, b])?;

    let mut graph = Graph::new();
    let x = graph.placeholder("x")?;
    let call = graph.call_method("both", (x,), ())?;
    let item = graph.call_function(operator::getitem, (call, 5), ())?;
    graph.output(item)?;
    let before = graph.to_string();
    let error = graph.inline(call, &inner).unwrap_err();
    assert!(error.to_string().contains("has no such item"), "{error}");
    assert_eq!(error.node(), Some("getitem"));
    assert_eq!(graph.to_string(), before);

    graph.node_mut(item)?.update_arg(1, -1)?;
    graph.inline(call, &inner)?;
    assert_eq!(
        graph.to_string(),
        "graph():\n    %x : [num_users=1] = placeholder[target=x]\n    \
         %neg : [num_users=1] = call_function[target=fx_core::operator::neg](args = (%x,), kwargs = {})\n    \
         return %neg"
    );
    Ok(())
}
