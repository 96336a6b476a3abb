//! What torch.fx's own tests of graphs assert: editing, dead code, hooks, argument binding (`docs/torchfx-tests.md`).

mod support;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Weak};

use fx_core::prelude::*;
use fx_core::{
    Args, Argument, Attributes, GraphObserver, IntoArguments, IntoKwargs, Kwargs, Meta, MetaPolicy,
    Module, NodeRef, TensorKind, TraceContext, ValueMap, operator,
};
use insta::assert_snapshot;
use support::modules::Linear;
use support::{Array, relu, scale, without_lines};

fn names<'g>(nodes: impl Iterator<Item = NodeRef<'g>>) -> Vec<String> {
    nodes.map(|n| n.name().to_string()).collect()
}

fn order(graph: &Graph) -> Vec<String> {
    names(graph.nodes())
}

fn users(graph: &Graph, id: NodeId) -> Result<Vec<String>> {
    Ok(names(graph.node(id)?.users()))
}

fn inputs(graph: &Graph, id: NodeId) -> Result<Vec<String>> {
    Ok(names(graph.node(id)?.all_input_nodes()))
}

fn named(graph: &Graph, name: &str) -> Result<NodeId> {
    let node = graph.find_name(name).map(|n| n.id());
    node.ok_or_else(|| Error::msg(format_args!("no %{name} in {graph}")))
}

/// A module of a graph that names no attributes.
fn module(graph: Graph) -> Result<GraphModule> {
    GraphModule::new(Attributes::default(), graph, "Rows")
}

fn left() -> Array {
    Array::vec(&[1.0, -2.0])
}

fn right() -> Array {
    Array::vec(&[-3.0, 5.0])
}

fn run(gm: &GraphModule, args: impl fx_core::IntoArgs) -> Result<Vec<f64>> {
    gm.forward::<Array>(args)?.to_vec()
}

#[track_caller]
fn refused<T>(result: Result<T>) -> Error {
    match result {
        Ok(_) => panic!("it was accepted"),
        Err(error) => error,
    }
}

// ---- argument binding --------------------------------------------------------------------------

/// Its result shows what each parameter was bound to, a digit each.
#[wrap(path = "rows::digits")]
fn digits(
    a: Int,
    b: Int,
    #[default(3)] c: Int,
    #[kw]
    #[default(4)]
    d: Int,
) -> Result<Int> {
    number(&[a, b, c, d])
}

/// As `digits`, where the keyword argument must be given.
#[wrap(path = "rows::keyed")]
fn keyed(
    a: Int,
    #[kw] b: Int,
    #[kw]
    #[default(3)]
    c: Int,
) -> Result<Int> {
    number(&[a, b, c])
}

fn number(digits: &[Int]) -> Result<Int> {
    let mut number = 0;
    for digit in digits {
        let digit = digit.concrete().ok_or_else(|| Error::msg("symbolic"))?;
        number = number * 10 + digit;
    }
    Ok(number.into())
}

/// A root that takes what `digits` takes.
#[trace]
fn digits_root(
    a: Int,
    b: Int,
    #[default(3)] c: Int,
    #[kw]
    #[default(4)]
    d: Int,
) -> Result<Int> {
    digits(a, b, c, d)
}

#[trace]
fn keyed_root(
    a: Int,
    #[kw] b: Int,
    #[kw]
    #[default(3)]
    c: Int,
) -> Result<Int> {
    keyed(a, b, c)
}

/// Runs a graph of one call.
fn call(
    function: fx_core::Function,
    args: impl IntoArguments,
    kwargs: impl IntoKwargs,
) -> Result<i64> {
    let mut graph = Graph::new();
    let call = graph.call_function(function, args, kwargs)?;
    graph.output(call)?;
    module(graph)?.forward(())
}

/// The error says this of a call, and what the callee takes.
#[track_caller]
fn refused_for<T>(problem: &str, result: Result<T>) {
    let error = refused(result).to_string();
    assert!(
        error.contains(&format!("{problem}; it takes (a: Int, b: Int")),
        "{error}"
    );
}

#[test]
fn positions_keywords_and_defaults_bind_alike() -> Result<()> {
    let f = function!(digits);
    assert_eq!(call(f, (1, 2), ())?, 1234);
    assert_eq!(call(f, (1, 2, 7), ())?, 1274);
    assert_eq!(call(f, (1,), [("b", 2)])?, 1234);
    assert_eq!(call(f, (1,), [("c", 7), ("b", 2)])?, 1274);
    assert_eq!(call(f, (), [("d", 9), ("c", 7), ("b", 2), ("a", 1)])?, 1279);

    let mut graph = Graph::new();
    let node = graph.call_function(f, (1,), [("d", 9), ("b", 2)])?;
    let bound = [("a", 1), ("b", 2), ("c", 3), ("d", 9)]
        .map(|(name, digit)| (name.to_string(), Argument::Int(digit)));
    assert_eq!(graph.node(node)?.normalized_arguments()?, bound);

    let gm = symbolic_trace(traced!(digits_root))?;
    assert_eq!(gm.forward::<i64>((1, 2))?, 1234);
    assert_eq!(gm.forward::<i64>(args![1, 2, 7])?, 1274);
    assert_eq!(gm.forward::<i64>(args![1, c = 7, b = 2])?, 1274);
    assert_eq!(gm.forward::<i64>(args![d = 9, c = 7, b = 2, a = 1])?, 1279);
    Ok(())
}

#[test]
fn a_missing_argument_is_an_error() -> Result<()> {
    let problem = "is missing its argument `b`";
    refused_for(problem, call(function!(digits), (1,), ()));
    refused_for(problem, call(function!(digits), (1,), [("c", 3)]));
    let gm = symbolic_trace(traced!(digits_root))?;
    refused_for(problem, gm.forward::<i64>(1));
    refused_for(problem, gm.forward::<i64>(args![1, c = 3]));
    Ok(())
}

#[test]
fn too_many_arguments_are_an_error() -> Result<()> {
    let problem = "takes 4 arguments but 5 were given";
    refused_for(problem, call(function!(digits), (1, 2, 3, 4, 5), ()));
    let gm = symbolic_trace(traced!(digits_root))?;
    refused_for(problem, gm.forward::<i64>((1, 2, 3, 4, 5)));
    Ok(())
}

#[test]
fn two_values_for_one_parameter_are_an_error() -> Result<()> {
    let problem = "got more than one value for `a`";
    refused_for(problem, call(function!(digits), (1, 2), [("a", 1)]));
    let gm = symbolic_trace(traced!(digits_root))?;
    refused_for(problem, gm.forward::<i64>(args![1, 2, a = 1]));
    Ok(())
}

#[test]
fn keyword_parameters_are_recorded_by_name() -> Result<()> {
    let f = function!(keyed);
    assert_eq!(call(f, (1,), [("b", 2)])?, 123);
    assert_eq!(call(f, (1,), [("c", 7), ("b", 2)])?, 127);
    let problem = "is missing its argument `b`";
    refused_for(problem, call(f, (1,), ()));

    let gm = symbolic_trace(traced!(keyed_root))?;
    assert_eq!(gm.forward::<i64>(args![1, b = 2])?, 123);
    refused_for(problem, gm.forward::<i64>(1));
    let node = gm.graph().node(named(gm.graph(), "keyed")?)?;
    assert_eq!(node.args().len(), 1, "recorded by name");
    let recorded: Vec<&str> = node.kwargs().iter().map(|(name, _)| &**name).collect();
    assert_eq!(recorded, ["b", "c"]);
    Ok(())
}

// ---- construction and editing ------------------------------------------------------------------

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
    assert_eq!(order(more.graph()), ["x", "y", "add", "add_1", "output"]);
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
    let mut seen = order(&graph);
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

/// Something whose life shows.
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
    assert_eq!(order(&graph), ["x", "relu", "output"]);
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
    assert_eq!(order(&graph), ["x", "neg", "relu", "output"]);
    assert_eq!(run(&module(graph.clone())?, left())?, [0.0, 2.0]);
    graph.erase_node(output)?;
    graph.output(neg)?;
    assert_eq!(order(&graph), ["x", "neg", "relu", "output_1"]);
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
    assert_eq!(order(&graph), ["x", "neg", "relu", "output"]);
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
        assert_eq!(order(&graph), ["x", "relu", "output"]);
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
    let y = named(inlined.graph(), "y")?;
    let relu = named(&graph, "relu")?;
    let mut map = ValueMap::from_iter([(y, Argument::Node(relu))]);
    let output = graph.output_node().map(|n| n.id());
    let result = graph
        .inserting_before(output)?
        .graph_copy(inlined.graph(), &mut map)?;
    let result = result.ok_or_else(|| Error::msg("a result"))?;
    let output = named(&graph, "output")?;
    graph.node_mut(output)?.set_args((result,))?;
    graph.lint()?;
    assert_eq!(order(&graph), ["x", "add", "relu", "mul", "output"]);
    assert_eq!(run(&module(graph)?, left())?, [6.0, 0.0]);
    Ok(())
}

#[test]
fn a_used_node_is_not_erased_and_its_users_are_named() -> Result<()> {
    let mut gm = symbolic_trace(traced!(|x: &Array| x.relu()? + 1.0))?;
    for (name, user) in [("x", "relu"), ("relu", "add"), ("add", "output")] {
        let id = named(gm.graph(), name)?;
        let error = refused(gm.graph_mut().erase_node(id));
        assert_eq!(
            error.to_string(),
            format!("cannot erase %{name}: it still has 1 user (%{user}); replace its uses first")
        );
    }
    assert_eq!(gm.graph().len(), 4);
    Ok(())
}

/// A target of another type than its opcode's cannot be built; text can name what is no function.
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
    let twin = named(&graph, "f_1")?;
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

// ---- dead code ---------------------------------------------------------------------------------

/// Eliminates dead code, and checks what went and that the result is the same.
#[track_caller]
fn check_dce(gm: &mut GraphModule, gone: &[&str], args: &[Value]) -> Result<()> {
    let call = || fx_core::CallArgs {
        args: args.to_vec(),
        kwargs: Vec::new(),
    };
    let (before, result) = (order(gm.graph()), run(gm, call())?);
    assert_eq!(gm.eliminate_dead_code()?, gone.len());
    let left: Vec<String> = before
        .into_iter()
        .filter(|name| !gone.contains(&name.as_str()))
        .collect();
    assert_eq!(order(gm.graph()), left);
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
    assert_eq!(order(gm.graph()), ["x", "y", "add_1", "output"]);
    Ok(())
}

#[derive(Module, Debug)]
struct Loud {
    tag: fx_core::Tag,
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
    assert_snapshot!(without_lines(error), @r#"while executing %assert_specialized (fx-core/tests/torchfx_graph.rs:_): argument "flag" was specialised to true when this graph was traced, but false came: trace again for other values"#);
    Ok(())
}

/// Changes `x` where it lies, and forgot to say so.
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
    assert_eq!(order(&graph), ["x", "add_", "output"]);
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

// ---- hooks -------------------------------------------------------------------------------------

#[derive(Default)]
struct Counts {
    created: AtomicUsize,
    erased: AtomicUsize,
}

impl GraphObserver for Counts {
    fn created(&self, _: NodeRef<'_>) {
        self.created.fetch_add(1, Ordering::Relaxed);
    }

    fn erased(&self, _: NodeRef<'_>) {
        self.erased.fetch_add(1, Ordering::Relaxed);
    }
}

impl Counts {
    fn get(&self) -> (usize, usize) {
        (
            self.created.load(Ordering::Relaxed),
            self.erased.load(Ordering::Relaxed),
        )
    }
}

#[test]
fn observers_hear_of_nodes_until_they_are_removed() -> Result<()> {
    let mut gm = symbolic_trace(traced!(|x: &Array| x.relu()))?;
    let (first, second) = (Arc::new(Counts::default()), Arc::new(Counts::default()));
    let ids = {
        let mut graph = gm.graph_mut();
        [graph.observe(first.clone()), graph.observe(second.clone())]
    };
    let relu = named(gm.graph(), "relu")?;
    let mut graph = gm.graph_mut();
    let neg = graph
        .inserting_after(relu)?
        .call_function(operator::neg, (relu,), ())?;
    assert_eq!((first.get(), second.get()), ((1, 0), (1, 0)));
    graph.erase_node(neg)?;
    assert_eq!((first.get(), second.get()), ((1, 1), (1, 1)));
    for id in ids {
        assert!(graph.unobserve(id));
        assert!(!graph.unobserve(id), "it is registered no more");
    }
    let output = graph.output_node().map(|n| n.id());
    let neg = graph
        .inserting_before(output)?
        .call_function(operator::neg, (relu,), ())?;
    graph.erase_node(neg)?;
    assert_eq!((first.get(), second.get()), ((1, 1), (1, 1)));
    Ok(())
}

// ---- verifier ----------------------------------------------------------------------------------

#[test]
fn a_sound_graph_passes_lint_and_a_broken_one_does_not() -> Result<()> {
    let mut gm = symbolic_trace(traced!(|x: &Array, y: &Array| x.relu()? + y))?;
    gm.lint()?;
    gm.recompile()?;
    let output = named(gm.graph(), "output")?;
    let x = named(gm.graph(), "x")?;
    gm.graph_mut().node_mut(x)?.prepend(output)?;
    assert!(
        !gm.graph().findings().is_empty(),
        "a broken one does not pass"
    );
    Ok(())
}
