//! Tracing as its users see it: what functions, closures and modules are recorded as.
#![allow(
    clippy::needless_borrows_for_generic_args,
    reason = "arguments are lent, as users write it"
)]

#[path = "trace/annotations.rs"]
mod annotations;
#[path = "trace/arguments.rs"]
mod arguments;
#[path = "trace/assertions.rs"]
mod assertions;
#[path = "trace/concrete.rs"]
mod concrete;
#[path = "trace/errors.rs"]
mod errors;
#[path = "trace/leaves.rs"]
mod leaves;
#[path = "trace/modules.rs"]
mod modules;
#[path = "trace/retrace.rs"]
mod retrace;
#[path = "trace/scalars.rs"]
mod scalars;
use crate::support;
#[path = "trace/tracers.rs"]
mod tracers;

use std::sync::Arc;

use fx_core::ir::{Graph, Op, Opcode};
use fx_core::module::{Module, Visitor, Walk};
use fx_core::prelude::*;
use fx_core::trace::{TraceContext, Tracer};
use fx_core::value::NodeId;
use fx_core::{Module, operator};
use insta::assert_snapshot;
use support::modules::{Activation, Block, Linear, Shift, Tied};
use support::*;

/// The lines of a graph without its header, targets cut to their last segment.
fn lines(graph: &Graph) -> Vec<String> {
    let text = graph.to_string();
    text.lines().skip(1).map(|l| l.trim().to_string()).collect()
}

fn opcodes(graph: &Graph) -> Vec<Opcode> {
    graph.nodes().map(|n| n.opcode()).collect()
}

// ---- functions and closures --------------------------------------------------------------------

#[trace]
fn gate(x: &Array, y: &Array) -> Result<Array> {
    let open = (x > 0.0)?;
    (open * (y + 1.0)?)? - 2
}

#[test]
fn a_function_is_recorded_operator_by_operator() -> Result<()> {
    let gm = symbolic_trace(traced!(gate))?;
    assert_eq!(
        gm.graph().to_string(),
        "graph():
    %x : &Array [num_users=1] = placeholder[target=x]
    %y : &Array [num_users=1] = placeholder[target=y]
    %gt : [num_users=1] = call_function[target=fx_core::operator::gt](args = (%x, 0.0), kwargs = {})
    %add : [num_users=1] = call_function[target=fx_core::operator::add](args = (%y, 1.0), kwargs = {})
    %mul : [num_users=1] = call_function[target=fx_core::operator::mul](args = (%gt, %add), kwargs = {})
    %sub : [num_users=1] = call_function[target=fx_core::operator::sub](args = (%mul, 2), kwargs = {})
    return %sub"
    );
    assert_eq!(gm.class_name(), "gate");
    let y: Array = gm.forward((&x(), &x()))?;
    assert_eq!(y.to_vec()?, gate(&x(), &x())?.to_vec()?);
    gm.graph().lint()
}

#[test]
fn a_closure_is_recorded_with_what_it_captured() -> Result<()> {
    let factor = 3.0;
    let offset = Array::vec(&[10.0, 20.0]);
    let f = traced!(move |x: &Array| {
        let y = (2.0 * x)?.relu()?;
        let z = relu(&(-(1 - &y)?)?)?;
        if factor > 2.0 { z + &offset } else { Ok(z) }
    });
    let gm = symbolic_trace(f)?;
    assert_eq!(
        lines(gm.graph()),
        [
            "%x : &Array [num_users=1] = placeholder[target=x]",
            "%mul : [num_users=1] = call_function[target=fx_core::operator::mul](args = (2.0, %x), kwargs = {})",
            "%relu : [num_users=1] = call_method[target=relu](args = (%mul,), kwargs = {})",
            "%sub : [num_users=1] = call_function[target=fx_core::operator::sub](args = (1, %relu), kwargs = {})",
            "%neg : [num_users=1] = call_function[target=fx_core::operator::neg](args = (%sub,), kwargs = {})",
            "%relu_1 : [num_users=1] = call_function[target=array::relu](args = (%neg,), kwargs = {})",
            "%_tensor_constant0 : [num_users=1] = get_attr[target=_tensor_constant0]",
            "%add : [num_users=1] = call_function[target=fx_core::operator::add](args = (%relu_1, %_tensor_constant0), kwargs = {})",
            "return %add",
        ]
    );
    let y: Array = gm.forward(&Array::vec(&[1.0, 4.0]))?;
    assert_eq!(y.to_vec()?, [11.0, 27.0]);
    Ok(())
}

#[test]
fn reflected_comparisons_are_turned_round() -> Result<()> {
    let gm = symbolic_trace(traced!(|x: &Array| (0.5 < x)? * (x == 1.0)?))?;
    assert_snapshot!(gm.graph(), @"
    graph():
        %x : &Array [num_users=2] = placeholder[target=x]
        %gt : [num_users=1] = call_function[target=fx_core::operator::gt](args = (%x, 0.5), kwargs = {})
        %eq : [num_users=1] = call_function[target=fx_core::operator::eq](args = (%x, 1.0), kwargs = {})
        %mul : [num_users=1] = call_function[target=fx_core::operator::mul](args = (%gt, %eq), kwargs = {})
        return %mul
    ");
    Ok(())
}

#[test]
fn structures_go_in_and_out() -> Result<()> {
    let f = traced!(|x: &Array, n: Int| Ok((x.relu()?, vec![len(x)?, n], Bool::from(true))));
    let gm = symbolic_trace(f)?;
    assert_eq!(
        lines(gm.graph()),
        [
            "%x : &Array [num_users=2] = placeholder[target=x]",
            "%n : Int [num_users=1] = placeholder[target=n]",
            "%relu : [num_users=1] = call_method[target=relu](args = (%x,), kwargs = {})",
            "%len : [num_users=1] = call_function[target=array::len](args = (%x,), kwargs = {})",
            "return (%relu, [%len, %n], true)",
        ]
    );
    let (y, sizes, yes): (Array, Vec<i64>, bool) = gm.forward((&x(), 7))?;
    assert_eq!(
        (y.to_vec()?, sizes, yes),
        (vec![1.0, 0.0], vec![2, 7], true)
    );
    Ok(())
}

#[test]
fn a_call_with_two_results_is_one_node_and_two_getitems() -> Result<()> {
    let gm = symbolic_trace(traced!(|x: &Array| {
        let (positive, negative) = split_sign(x)?;
        negative - &positive
    }))?;
    assert_eq!(
        lines(gm.graph())[1..4],
        [
            "%split_sign : [num_users=2] = call_function[target=array::split_sign](args = (%x,), kwargs = {})",
            "%getitem : [num_users=1] = call_function[target=fx_core::operator::getitem](args = (%split_sign, 0), kwargs = {})",
            "%getitem_1 : [num_users=1] = call_function[target=fx_core::operator::getitem](args = (%split_sign, 1), kwargs = {})",
        ]
    );
    let y: Array = gm.forward(&x())?;
    assert_eq!(y.to_vec()?, [-1.0, -2.0]);
    Ok(())
}

#[test]
fn both_results_handed_on_are_the_call_itself() -> Result<()> {
    let gm = symbolic_trace(traced!(|x: &Array| split_sign(x)))?;
    assert_eq!(names(gm.graph()), ["x", "split_sign", "output"]);
    let swapped = symbolic_trace(traced!(|x: &Array| split_sign(x).map(|(a, b)| (b, a))))?;
    assert_eq!(
        lines(swapped.graph()).last().map(String::as_str),
        Some("return (%getitem_1, %getitem)")
    );
    let (a, b): (Array, Array) = gm.forward(&x())?;
    let (c, d): (Array, Array) = swapped.forward(&x())?;
    assert_eq!(
        (a.to_vec()?, b.to_vec()?),
        (vec![1.0, 0.0], vec![0.0, -2.0])
    );
    assert_eq!((c.to_vec()?, d.to_vec()?), (b.to_vec()?, a.to_vec()?));
    Ok(())
}

#[test]
fn keywords_are_recorded_by_name_and_defaults_left_out() -> Result<()> {
    let gm = symbolic_trace(traced!(|x: &Array| {
        scale(&x.scale(2.0)?, 3.0)?.scale(-2.0)
    }))?;
    assert_eq!(
        lines(gm.graph())[1..4],
        [
            "%scale : [num_users=1] = call_method[target=scale](args = (%x,), kwargs = {})",
            "%scale_1 : [num_users=1] = call_function[target=array::scale](args = (%scale,), kwargs = {factor: 3.0})",
            "%scale_2 : [num_users=1] = call_method[target=scale](args = (%scale_1,), kwargs = {factor: -2.0})",
        ]
    );
    let y: Array = gm.forward(&x())?;
    assert_eq!(y.to_vec()?, [-12.0, 24.0]);
    Ok(())
}

#[test]
fn lists_of_symbolic_and_concrete_values_are_one_argument() -> Result<()> {
    let constant = Array::vec(&[9.0]);
    let gm = symbolic_trace(traced!(move |x: &Array| concat(&[
        x.clone(),
        constant.clone(),
        x.relu()?
    ])))?;
    let found = lines(gm.graph());
    assert!(
        found[3]
            .ends_with("array::concat](args = ([%x, %_tensor_constant0, %relu],), kwargs = {})"),
        "{found:?}"
    );
    let y: Array = gm.forward(&x())?;
    assert_eq!(y.to_vec()?, [1.0, -2.0, 9.0, 1.0, 0.0]);
    Ok(())
}

#[test]
fn a_random_constructor_is_recorded_and_drawn_anew_by_each_run() -> Result<()> {
    let gm = symbolic_trace(traced!(|x: &Array| x + noise(2)?))?;
    let found = lines(gm.graph());
    assert_eq!(
        found[1],
        "%noise : [num_users=1] = call_function[target=array::noise](args = (2,), kwargs = {})"
    );
    let run = || gm.forward::<Array>(&Array::vec(&[0.0, 0.0]))?.to_vec();
    assert_ne!(run()?, run()?);
    assert!(noise(1)?.to_vec()?[0] >= 2.0, "outside a trace it runs");
    Ok(())
}

#[test]
fn concrete_work_inside_a_trace_is_run() -> Result<()> {
    let gm = symbolic_trace(traced!(|x: &Array| {
        let table = (Array::vec(&[1.0, 2.0]) * 10.0)?.relu()?;
        assert_eq!(table.to_vec()?, [10.0, 20.0]);
        x + &table
    }))?;
    assert_eq!(
        names(gm.graph()),
        ["x", "_tensor_constant0", "add", "output"]
    );
    Ok(())
}

// ---- constants ---------------------------------------------------------------------------------

#[test]
fn constants_are_interned_by_identity() -> Result<()> {
    let (a, b) = (Array::vec(&[1.0]), Array::vec(&[1.0]));
    let (first, second) = (a.clone(), b.clone());
    let gm = symbolic_trace(traced!(move |x: &Array| {
        let y = ((x + &a)? + &b)?;
        y + &a.clone()
    }))?;
    let targets: Vec<&str> = gm
        .graph()
        .nodes()
        .filter(|n| n.opcode() == Opcode::GetAttr)
        .map(|n| n.target())
        .collect();
    assert_eq!(
        targets,
        [
            "_tensor_constant0",
            "_tensor_constant1",
            "_tensor_constant0"
        ]
    );
    let tensors = &gm.attributes().tensors;
    assert_eq!(
        tensors.len(),
        2,
        "one constant each, by identity and not by value"
    );
    for (path, original) in [("_tensor_constant0", first), ("_tensor_constant1", second)] {
        let kept = tensors[path]
            .1
            .as_object()
            .and_then(fx_core::tensor::Object::object_id);
        assert_eq!(kept, fx_core::tensor::Object::object_id(&original));
    }
    Ok(())
}

#[test]
fn a_constant_never_takes_a_path_that_a_tracer_gave_away() -> Result<()> {
    struct Keeps;
    impl Tracer for Keeps {
        fn create_args_for_root(
            &self,
            cx: &TraceContext,
            params: &[fx_core::ir::ParamSpec],
        ) -> Result<Vec<Value>> {
            let own = Array::vec(&[1000.0]);
            let path = Arc::from("_tensor_constant0");
            cx.keep_tensor(
                &path,
                fx_core::module::TensorKind::Buffer,
                fx_core::tensor::Object::to_value(&own),
            );
            cx.default_create_args_for_root(self, params)
        }
    }
    let constant = Array::vec(&[1.0]);
    let f = traced!(move |x: &Array| x + &constant);
    let gm = Trace::new(f).tracer(Keeps).graph_module()?;
    assert_eq!(gm.forward::<Array>(&Array::vec(&[0.0]))?.to_vec()?, [1.0]);
    Ok(())
}

// ---- modules -----------------------------------------------------------------------------------

#[test]
fn a_module_with_every_kind_of_field() -> Result<()> {
    let block = Block::new(2);
    let gm = symbolic_trace(&block)?;
    assert_eq!(
        gm.graph().to_string(),
        "graph():
    %x : &Array [num_users=1] = placeholder[target=x]
    %first : [num_users=1] = call_module[target=first](args = (%x,), kwargs = {})
    %second : [num_users=1] = call_module[target=second](args = (%first,), kwargs = {})
    %layers_0_by : [num_users=1] = get_attr[target=layers.0.by]
    %add : [num_users=1] = call_function[target=fx_core::operator::add](args = (%second, %layers_0_by), kwargs = {})
    %layers_1_by : [num_users=1] = get_attr[target=layers.1.by]
    %add_1 : [num_users=1] = call_function[target=fx_core::operator::add](args = (%add, %layers_1_by), kwargs = {})
    %shared : [num_users=1] = call_module[target=shared](args = (%add_1,), kwargs = {})
    %mean : [num_users=1] = get_attr[target=mean]
    %sub : [num_users=1] = call_function[target=fx_core::operator::sub](args = (%shared, %mean), kwargs = {})
    %relu : [num_users=1] = call_method[target=relu](args = (%sub,), kwargs = {})
    return %relu"
    );
    assert_eq!(gm.class_name(), "Block");
    let modules: Vec<&str> = gm.attributes().modules.keys().map(|k| &**k).collect();
    assert_eq!(modules, ["first", "second", "shared"]);
    let input = Array::vec(&[-5.0, 7.0]);
    let y: Array = gm.forward(&input)?;
    assert_eq!(y.to_vec()?, block.forward(&input)?.to_vec()?);
    Ok(())
}

#[test]
fn an_absent_module_and_the_training_flag_are_seen_by_the_trace() -> Result<()> {
    let mut block = Block::new(2);
    block.second = None;
    block.train();
    let gm = symbolic_trace(&block)?;
    assert!(gm.graph().find_name("second").is_none());
    assert!(
        gm.graph().find_name("mul_1").is_some(),
        "both shifts double: {}",
        gm.graph()
    );
    block.eval();
    assert!(symbolic_trace(&block)?.graph().find_name("mul").is_none());
    Ok(())
}

#[test]
fn shared_modules_and_parameters_go_by_their_first_name() -> Result<()> {
    let tied = Tied::new(2);
    let gm = symbolic_trace(&tied)?;
    assert_eq!(
        lines(gm.graph()),
        [
            "%x : &Array [num_users=1] = placeholder[target=x]",
            "%a : [num_users=1] = call_module[target=a](args = (%x,), kwargs = {})",
            "%a_1 : [num_users=1] = call_module[target=a](args = (%a,), kwargs = {})",
            "%p : [num_users=2] = get_attr[target=p]",
            "%add : [num_users=1] = call_function[target=fx_core::operator::add](args = (%a_1, %p), kwargs = {})",
            "%mul : [num_users=1] = call_function[target=fx_core::operator::mul](args = (%add, %p), kwargs = {})",
            "return %mul",
        ]
    );
    assert_eq!(
        (gm.attributes().modules.len(), gm.attributes().tensors.len()),
        (1, 1)
    );
    Ok(())
}

/// No argument is symbolic, yet both are parameters: the graph must compute the result, not freeze
/// it.
#[derive(Module)]
struct TwoParameters {
    a: Array,
    b: Array,
    #[module(buffer)]
    c: Array,
}

#[trace]
impl TwoParameters {
    fn forward(&self, x: &Array) -> Result<Array> {
        let parameters = (&self.a + &self.b)?.relu()?;
        let buffers = (&self.c * 2.0)?;
        (parameters * x)? + &buffers
    }
}

#[test]
fn operations_on_parameters_are_recorded_and_on_buffers_frozen() -> Result<()> {
    let [a, b, c] = [1.0, 2.0, 4.0].map(|v| Array::vec(&[v]));
    let gm = symbolic_trace(&TwoParameters { a, b, c })?;
    assert_eq!(
        lines(gm.graph()),
        [
            "%x : &Array [num_users=1] = placeholder[target=x]",
            "%a : [num_users=1] = get_attr[target=a]",
            "%b : [num_users=1] = get_attr[target=b]",
            "%add : [num_users=1] = call_function[target=fx_core::operator::add](args = (%a, %b), kwargs = {})",
            "%relu : [num_users=1] = call_method[target=relu](args = (%add,), kwargs = {})",
            "%mul : [num_users=1] = call_function[target=fx_core::operator::mul](args = (%relu, %x), kwargs = {})",
            "%_tensor_constant0 : [num_users=1] = get_attr[target=_tensor_constant0]",
            "%add_1 : [num_users=1] = call_function[target=fx_core::operator::add](args = (%mul, %_tensor_constant0), kwargs = {})",
            "return %add_1",
        ]
    );
    assert_eq!(gm.forward::<Array>(&Array::vec(&[10.0]))?.to_vec()?, [38.0]);
    Ok(())
}

/// Holds the next level twice; `visits` counts the visits.
struct Twice {
    next: Option<Arc<Twice>>,
    visits: Arc<std::sync::atomic::AtomicUsize>,
}

impl fx_core::module::Component for Twice {
    fn visit(&self, walk: &mut Walk<'_, '_>) {
        self.visits
            .fetch_add(1, std::sync::atomic::Ordering::SeqCst);
        walk.component(self, |walk| {
            walk.child("left", &self.next);
            walk.child("right", &self.next);
        });
    }

    fn duplicate(&self) -> Self {
        Twice {
            next: self.next.clone(),
            visits: self.visits.clone(),
        }
    }
}

#[trace]
impl Twice {
    fn forward(&self, x: &Array) -> Result<Array> {
        x.relu()
    }
}

#[test]
fn a_module_shared_at_every_level_is_walked_once() -> Result<()> {
    let visits = Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let root = (0..14).fold(None, |next, _| {
        Some(Arc::new(Twice {
            next,
            visits: visits.clone(),
        }))
    });
    let root = root.ok_or_else(|| Error::msg("fourteen levels"))?;
    symbolic_trace(&*root)?;
    let visits = visits.load(std::sync::atomic::Ordering::SeqCst);
    assert!(visits <= 4 * 14, "14 modules were visited {visits} times");
    Ok(())
}

// ---- leaves ------------------------------------------------------------------------------------

struct LeafPaths(&'static [&'static str]);

impl Tracer for LeafPaths {
    fn is_leaf_module(&self, _: &TraceContext, _: &dyn Module, path: &str) -> bool {
        self.0.contains(&path)
    }
}

#[test]
fn a_tracer_decides_what_is_a_leaf() -> Result<()> {
    let block = Block::new(2);
    let graph = Trace::new(&block)
        .tracer(LeafPaths(&["layers.1", "boxed"]))
        .graph()?;
    assert_eq!(
        names(&graph),
        [
            "x",
            "first_weight",
            "first_bias",
            "linear",
            "second_weight",
            "second_bias",
            "linear_1",
            "layers_0_by",
            "add",
            "layers_1",
            "shared_weight",
            "shared_bias",
            "linear_2",
            "mean",
            "sub",
            "boxed",
            "output"
        ]
    );
    let outcome = LeafPaths(&[]).trace(&Linear::square(2, 1.0))?;
    assert_eq!(
        lines(&outcome.graph)[3],
        "%linear : [num_users=1] = call_function[target=array::linear](args = (%x, %weight, %bias), kwargs = {})"
    );
    Ok(())
}

#[test]
fn a_leaf_as_root_is_traced_through() -> Result<()> {
    let gm = symbolic_trace(&Linear {
        bias: None,
        ..Linear::square(2, 1.0)
    })?;
    assert_eq!(
        lines(gm.graph())[2],
        "%linear : [num_users=1] = call_function[target=array::linear](args = (%x, %weight), kwargs = {})"
    );
    Ok(())
}

#[test]
fn a_module_outside_the_root_is_run_or_installed_under_a_fresh_name() -> Result<()> {
    let (shift, layer) = (
        Shift {
            by: Array::vec(&[1.0, 1.0]),
            training: false,
        },
        Linear::square(2, 2.0),
    );
    let gm = symbolic_trace(traced!(move |x: &Array| layer.forward(&shift.forward(x)?)))?;
    assert_eq!(
        opcodes(gm.graph())[1..4],
        [Opcode::GetAttr, Opcode::CallFunction, Opcode::CallModule]
    );
    let [(path, _)] = gm.attributes().modules.iter().collect::<Vec<_>>()[..] else {
        return Err(Error::msg("one installed module"));
    };
    assert_eq!(&**path, "_linear_0");
    let y: Array = gm.forward(&x())?;
    assert_eq!(y.to_vec()?, [4.5, -1.5]);
    Ok(())
}

#[test]
fn a_call_of_a_leaf_is_recorded_whatever_its_arguments() -> Result<()> {
    #[derive(Module)]
    struct Constant {
        layer: Linear,
    }
    #[trace]
    impl Constant {
        fn forward(&self, x: &Array) -> Result<Array> {
            x + &self.layer.forward(&Array::vec(&[1.0, 2.0]))?
        }
    }
    let gm = symbolic_trace(&Constant {
        layer: Linear::square(2, 2.0),
    })?;
    assert_eq!(
        names(gm.graph()),
        ["x", "_tensor_constant0", "layer", "add", "output"]
    );
    Ok(())
}

#[test]
fn a_tracer_can_name_and_refuse_nodes() -> Result<()> {
    struct NoNegation;
    impl Tracer for NoNegation {
        fn create_node(
            &self,
            cx: &TraceContext,
            op: Op,
            args: fx_core::ir::Args,
            kwargs: fx_core::ir::Kwargs,
            _: Option<&str>,
        ) -> Result<NodeId> {
            if op == Op::CallFunction(operator::neg) {
                return Err(Error::msg("no negation here"));
            }
            let mut graph = cx.graph_mut()?;
            graph.create_node(op, args, kwargs)
        }
    }
    let graph = Trace::new(traced!(|x: &Array| x + 1.0))
        .tracer(NoNegation)
        .graph()?;
    assert_eq!(names(&graph), ["x", "add", "output"]);
    let line = line!() + 1;
    let refused = Trace::new(traced!(|x: &Array| -x))
        .tracer(NoNegation)
        .graph();
    let error = refused.expect_err("the tracer refuses");
    assert!(error.to_string().contains("no negation here"), "{error}");
    assert_eq!(error.location().map(|l| l.line), Some(line));
    Ok(())
}

// ---- where nodes come from ---------------------------------------------------------------------

/// The text at a node's source location: the expression begins there.
fn source_at(node: fx_core::ir::NodeRef<'_>) -> Result<String> {
    let place = node.location().ok_or_else(|| Error::msg("a location"))?;
    let directory = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let text = std::fs::read_to_string(directory.join(&*place.file)).map_err(Error::other)?;
    let line = text
        .lines()
        .nth(place.line as usize - 1)
        .unwrap_or_default();
    Ok(line.chars().skip(place.column as usize - 1).collect())
}

#[trace]
fn located(x: &Array) -> Result<Array> {
    let y = (x + 1.0)?;
    let z = y.relu()?;
    let c = (&z > 0.5)?;
    let s = scale(&c, 3.0)?;
    let (a, _) = split_sign(&s)?;
    -a
}

#[test]
fn nodes_know_the_users_expression() -> Result<()> {
    let graph = Trace::new(traced!(located)).graph()?;
    for (name, text) in [
        ("x", "located(x: &Array)"),
        // rustc counts the parentheses of an operator as part of it.
        ("add", "(x + 1.0)?;"),
        ("relu", "relu()?;"),
        ("gt", "(&z > 0.5)?;"),
        ("scale", "scale(&c, 3.0)?;"),
        ("split_sign", "split_sign(&s)?;"),
        ("getitem", "split_sign(&s)?;"),
        ("neg", "-a"),
    ] {
        let found = source_at(node(&graph, name)?)?;
        assert!(found.starts_with(text), "%{name} is at {found:?}");
    }
    Ok(())
}

#[trace]
fn through_the_library(x: &Array) -> Result<Array> {
    let y = (x * 3.0)?;
    std::iter::once(&y)
        .map(relu)
        .next_back()
        .unwrap_or(Ok(y.clone()))
}

#[test]
fn a_leaf_called_by_the_library_is_at_the_enclosing_function() -> Result<()> {
    let graph = Trace::new(traced!(through_the_library)).graph()?;
    let found = source_at(node(&graph, "relu")?)?;
    assert!(
        found.starts_with("through_the_library("),
        "%relu is at {found:?}"
    );
    Ok(())
}

#[test]
fn the_output_comes_from_the_roots_forward() -> Result<()> {
    let graph = Trace::new(&Block::new(2)).graph()?;
    let found = source_at(node(&graph, "output")?)?;
    let of_block = node(&graph, "first")?.location().map(|l| l.line);
    let line = node(&graph, "output")?.location().map(|l| l.line);
    assert!(
        line >= of_block.map(|l| l - 1),
        "the output is at {found:?}, outside Block::forward"
    );
    Ok(())
}

#[test]
fn nodes_know_the_modules_that_they_were_recorded_in() -> Result<()> {
    #[derive(Module)]
    struct Outer {
        blocks: Vec<Block>,
    }
    #[trace]
    impl Outer {
        fn forward(&self, x: &Array) -> Result<Array> {
            let mut h = x.clone();
            for block in &self.blocks {
                h = block.forward(&h)?;
            }
            -h
        }
    }
    let root = Outer {
        blocks: vec![Block::new(2), Block::new(2)],
    };
    let graph = Trace::new(&root).graph()?;
    let stack = |name: &str| -> Result<Vec<String>> {
        let node = node(&graph, name)?;
        Ok(node
            .module_stack()
            .map(|s| {
                format!(
                    "{}: {}",
                    s.path,
                    s.type_name.rsplit("::").next().unwrap_or("")
                )
            })
            .collect())
    };
    assert_eq!(stack("neg")?, [": Outer"]);
    assert_eq!(stack("sub_1")?, ["blocks.1: Block", ": Outer"]);
    assert_eq!(
        stack("relu")?,
        ["blocks.0.boxed: Activation", "blocks.0: Block", ": Outer"]
    );
    assert_eq!(
        stack("add_3")?,
        ["blocks.1.layers.1: Shift", "blocks.1: Block", ": Outer"]
    );
    assert_eq!(stack("blocks_1_layers_1_by")?, stack("add_3")?);
    assert!(stack("blocks_0_first")?.ends_with(&["blocks.0: Block".into(), ": Outer".into()]));
    assert_eq!(stack("x")?, [""; 0]);
    Ok(())
}

// ---- what modules hold -------------------------------------------------------------------------

#[test]
fn modules_list_what_they_hold() {
    let block = Block::new(2);
    let parameters: Vec<String> = block.named_parameters().into_keys().collect();
    assert_eq!(
        parameters,
        [
            "first.weight",
            "first.bias",
            "second.weight",
            "second.bias",
            "layers.0.by",
            "layers.1.by",
            "shared.weight",
            "shared.bias"
        ]
    );
    assert_eq!(
        block.named_buffers().into_keys().collect::<Vec<_>>(),
        ["mean"]
    );
    let modules: Vec<String> = block.named_modules().into_keys().collect();
    assert_eq!(
        modules,
        [
            "", "first", "second", "layers.0", "layers.1", "boxed", "shared"
        ]
    );
    let tied = Tied::new(2);
    assert_eq!(
        tied.named_parameters().into_keys().collect::<Vec<_>>(),
        ["a.weight", "a.bias", "p"]
    );
    assert_eq!(tied.state_dict().len(), 6, "under each name");
}

#[test]
fn a_changing_walk_keeps_sharing_and_reaches_every_flag() {
    struct Paths(Vec<String>);
    impl Visitor for Paths {
        fn enter(
            &mut self,
            path: &str,
            _: fx_core::module::ComponentKey,
            name: &'static str,
        ) -> bool {
            self.0.push(format!(
                "{path}: {}",
                name.rsplit("::").next().unwrap_or("")
            ));
            true
        }
    }
    let mut tied = Tied::new(2);
    tied.set_training(false);
    assert!(Arc::ptr_eq(&tied.a, &tied.b), "still one module");
    let mut block = Block::new(1);
    block.set_training(true);
    assert!(block.training && block.layers.iter().all(|l| l.training));
    let mut paths = Paths(Vec::new());
    fx_core::module::walk(
        &vec![Activation::default(), Activation::default()],
        &mut paths,
    );
    assert_eq!(paths.0, ["0: Activation", "1: Activation"]);
}
