//! `Graph` as its users see it: building, editing, use lists, names, printing, lint, ids.

#[path = "graph/binding.rs"]
mod binding;
#[path = "graph/dead_code.rs"]
mod dead_code;
#[path = "graph/editing.rs"]
mod editing;
#[path = "graph/model.rs"]
mod model;
#[path = "graph/observers.rs"]
mod observers;
use crate::support;

use std::sync::Arc;

use fx_core::ir::{Argument, Graph, Literal, Op, Opcode};
use fx_core::module::Attributes;
use fx_core::prelude::*;
use fx_core::value::{DType, NodeId};
use fx_core::{ErrorKind, function, operator};
use insta::assert_snapshot;
use support::*;

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

/// x -> neg -> relu -> output.
fn chain() -> Result<(Graph, [NodeId; 4])> {
    let mut graph = Graph::new();
    let x = graph.placeholder("x")?;
    let neg = graph.call_function(operator::neg, (x,), ())?;
    let relu = graph.call_method("relu", (neg,), ())?;
    let output = graph.output(relu)?;
    Ok((graph, [x, neg, relu, output]))
}

// ---- building and printing ---------------------------------------------------------------------

#[test]
fn the_six_opcodes_print_as_torch_prints_them() -> Result<()> {
    let mut graph = Graph::new();
    let x = graph.placeholder("x")?;
    let y = graph.placeholder_with_default("y", &Literal::Int(2))?;
    graph.node_mut(y)?.set_type_expr(Some("i64"));
    let param = graph.get_attr("layer.weight")?;
    let add = graph.call_function(operator::add, (x, param), ())?;
    let linear = graph.call_module("blocks.0.linear", (add,), ())?;
    let kwargs = [("min", 0.0), ("max", 1.0)];
    let clamp = graph.call_method("clamp", (linear,), kwargs)?;
    let scaled = graph.call_function(function!(scale), (clamp,), [("factor", y)])?;
    graph.output((scaled,).0)?;
    assert_eq!(
        graph.to_string(),
        "graph():
    %x : [num_users=1] = placeholder[target=x]
    %y : i64 [num_users=1] = placeholder[target=y](default=2)
    %layer_weight : [num_users=1] = get_attr[target=layer.weight]
    %add : [num_users=1] = call_function[target=fx_core::operator::add](args = (%x, %layer_weight), kwargs = {})
    %blocks_0_linear : [num_users=1] = call_module[target=blocks.0.linear](args = (%add,), kwargs = {})
    %clamp : [num_users=1] = call_method[target=clamp](args = (%blocks_0_linear,), kwargs = {min: 0.0, max: 1.0})
    %scale : [num_users=1] = call_function[target=array::scale](args = (%clamp,), kwargs = {factor: %y})
    return %scale"
    );
    let opcodes: Vec<Opcode> = graph.nodes().map(|n| n.opcode()).collect();
    use Opcode::*;
    assert_eq!(
        opcodes,
        [
            Placeholder,
            Placeholder,
            GetAttr,
            CallFunction,
            CallModule,
            CallMethod,
            CallFunction,
            Output
        ]
    );
    graph.lint()
}

#[test]
fn every_kind_of_argument_prints() -> Result<()> {
    let mut graph = Graph::new();
    let x = graph.placeholder("x")?;
    let args: Vec<Argument> = vec![
        Argument::None,
        true.into(),
        (-3).into(),
        2.0.into(),
        1e-30.into(),
        f64::NAN.into(),
        "a \"b\"".into(),
        DType::F32.into(),
        Argument::Ellipsis,
        vec![x].into(),
        Argument::List(Arc::new(vec![])),
        Argument::Tuple(Arc::new(vec![x.into()])),
        Argument::Tuple(Arc::new(vec![1.into(), Argument::from([x, x])])),
        Argument::Dict(Arc::new(vec![
            ("k".into(), x.into()),
            ("l".into(), 1.into()),
        ])),
        Argument::Slice(Arc::new([x.into(), Argument::None, 2.into()])),
    ];
    let call = graph.call_method("f", args, ())?;
    assert_eq!(
        graph.node(call)?.to_string(),
        "%f : [num_users=0] = call_method[target=f](args = (None, true, -3, 2.0, 1e-30, NaN, \"a \\\"b\\\"\", \
         float32, ..., [%x], [], (%x,), (1, [%x, %x]), {\"k\": %x, \"l\": 1}, slice(%x, None, 2)), kwargs = {})"
    );
    assert_eq!(graph.node(x)?.num_users(), 1, "a user counts once");
    assert_eq!(Graph::new().to_string(), "graph():");
    Ok(())
}

#[test]
fn the_table_has_torchs_columns() -> Result<()> {
    let (mut graph, [_, neg, relu, _]) = chain()?;
    graph.node_mut(relu)?.set_kwargs([("slope", neg)])?;
    assert_eq!(
        graph.tabular(),
        "\
opcode         name    target                  args      kwargs
-------------  ------  ----------------------  --------  -------------
placeholder    x       x                       ()        {}
call_function  neg     fx_core::operator::neg  (%x,)     {}
call_method    relu    relu                    (%neg,)   {slope: %neg}
output         output  output                  (%relu,)  {}
"
    );
    Ok(())
}

#[test]
fn nodes_walk_both_ways_and_know_their_neighbours() -> Result<()> {
    let (graph, [x, neg, relu, output]) = chain()?;
    assert_eq!(graph.len(), 4);
    assert_eq!(graph.nodes().len(), 4);
    assert_eq!(names(graph.nodes().rev()), ["output", "relu", "neg", "x"]);
    let mut both = graph.nodes();
    assert_eq!(both.next().map(|n| n.id()), Some(x));
    assert_eq!(both.next_back().map(|n| n.id()), Some(output));
    assert_eq!(both.len(), 2);
    assert_eq!(names(both), ["neg", "relu"]);
    let node = graph.node(neg)?;
    assert_eq!(node.next().map(|n| n.id()), Some(relu));
    assert_eq!(node.prev().map(|n| n.id()), Some(x));
    assert!(graph.node(x)?.prev().is_none() && graph.node(output)?.next().is_none());
    assert_eq!(graph.output_node().map(|n| n.id()), Some(output));
    assert_eq!(names(graph.placeholders()), ["x"]);
    assert_eq!(graph.find_name("relu").map(|n| n.id()), Some(relu));
    assert!(graph.find_name("relu_1").is_none() && graph.find_name("").is_none());
    Ok(())
}

#[test]
fn nodes_know_the_line_that_made_them() -> Result<()> {
    let mut graph = Graph::new();
    let line = line!() + 1;
    let x = graph.placeholder("x")?;
    let location = graph.node(x)?.location().cloned();
    let location = location.ok_or_else(|| Error::msg("a node knows its place"))?;
    assert_eq!((location.line, location.column), (line, 19));
    assert!(location.file.ends_with("tests/graph.rs"), "{location}");
    Ok(())
}

// ---- insertion points --------------------------------------------------------------------------

#[test]
fn a_guard_inserts_in_writing_order_and_puts_the_point_back() -> Result<()> {
    let (mut graph, [x, neg, relu, _]) = chain()?;
    {
        let mut after = graph.inserting_after(neg)?;
        after.call_method("a", (neg,), ())?;
        after.call_method("b", (neg,), ())?;
        {
            let mut before = after.inserting_before(x)?;
            before.get_attr("c")?;
            {
                let mut front = before.inserting_before(None)?;
                front.get_attr("d")?;
                let mut end = front.inserting_after(None)?;
                end.get_attr("e")?;
            }
            before.get_attr("f")?;
        }
        after.call_method("g", (neg,), ())?;
    }
    graph.inserting_before(relu)?.call_method("h", (x,), ())?;
    graph.call_method("i", (x,), ())?;
    let expected = [
        "d", "c", "f", "x", "neg", "a", "b", "g", "h", "relu", "output", "e", "i",
    ];
    assert_eq!(names(&graph), expected);
    Ok(())
}

#[test]
fn an_erased_insertion_point_moves_to_the_next_node() -> Result<()> {
    let (mut graph, [x, _, relu, output]) = chain()?;
    let extra = graph
        .inserting_before(relu)?
        .call_method("extra", (x,), ())?;
    {
        let mut guard = graph.inserting_before(extra)?;
        guard.erase_node(extra)?;
        guard.call_method("a", (x,), ())?;
    }
    assert_eq!(names(&graph), ["x", "neg", "a", "relu", "output"]);
    let mut guard = graph.inserting_before(output)?;
    guard.erase_node(output)?;
    guard.call_method("b", (x,), ())?;
    drop(guard);
    assert_eq!(names(&graph), ["x", "neg", "a", "relu", "b"]);
    Ok(())
}

///
/// The outer guard's node is erased while an inner guard is alive: the outer point becomes the node
/// after it.
#[test]
fn an_outer_insertion_point_erased_inside_an_inner_guard_moves_on_too() -> Result<()> {
    let (mut graph, [x, _, relu, _]) = chain()?;
    let extra = graph
        .inserting_before(relu)?
        .call_method("extra", (x,), ())?;
    let mut outer = graph.inserting_before(extra)?;
    {
        let mut inner = outer.inserting_after(x)?;
        inner.erase_node(extra)?;
        inner.call_method("a", (x,), ())?;
    }
    outer.call_method("b", (x,), ())?;
    drop(outer);
    assert_eq!(names(&graph), ["x", "a", "neg", "b", "relu", "output"]);
    Ok(())
}

#[test]
fn a_graph_replaced_through_a_guard_is_usable() -> Result<()> {
    let (mut graph, [_, neg, relu, _]) = chain()?;
    {
        let mut outer = graph.inserting_before(relu)?;
        let mut inner = outer.inserting_before(neg)?;
        *inner = Graph::new();
    }
    graph.placeholder("y")?;
    assert_eq!(names(&graph), ["y"]);
    Ok(())
}

#[test]
fn a_clone_taken_inside_a_guard_grows_at_its_end() -> Result<()> {
    let (mut graph, [_, neg, ..]) = chain()?;
    let mut copy = {
        let guard = graph.inserting_before(neg)?;
        Graph::clone(&guard)
    };
    copy.get_attr("last")?;
    assert_eq!(names(&copy), ["x", "neg", "relu", "output", "last"]);
    Ok(())
}

#[test]
fn inserting_at_an_erased_node_is_an_error() -> Result<()> {
    let (mut graph, [.., output]) = chain()?;
    graph.erase_node(output)?;
    assert!(graph.inserting_before(output).is_err());
    assert!(graph.inserting_after(output).is_err());
    graph.get_attr("last")?;
    assert_eq!(names(&graph), ["x", "neg", "relu", "last"]);
    Ok(())
}

// ---- order -------------------------------------------------------------------------------------

/// The keys behind `is_before` agree with the order of the list.
fn assert_ordered(graph: &Graph) -> Result<()> {
    let ids: Vec<NodeId> = graph.nodes().map(|n| n.id()).collect();
    for (i, pair) in ids.windows(2).enumerate() {
        assert!(
            graph.is_before(pair[0], pair[1])?,
            "nodes {i} and {} are out of order",
            i + 1
        );
        assert!(!graph.is_before(pair[1], pair[0])?);
    }
    let ends = (ids.first().copied(), ids.last().copied());
    if let (Some(first), Some(last)) = ends
        && ids.len() > 1
    {
        assert!(graph.is_before(first, last)? && !graph.is_before(last, first)?);
    }
    Ok(())
}

const MANY: usize = 100_000;

#[test]
fn order_holds_after_many_insertions_after_one_node() -> Result<()> {
    let (mut graph, [x, neg, ..]) = chain()?;
    for _ in 0..MANY {
        graph.inserting_after(x)?.get_attr("p")?;
    }
    assert_eq!(graph.len(), MANY + 4);
    assert!(graph.is_before(x, neg)? && !graph.is_before(x, x)?);
    assert_ordered(&graph)
}

#[test]
fn order_holds_after_many_insertions_before_one_node() -> Result<()> {
    let (mut graph, [_, neg, ..]) = chain()?;
    let mut guard = graph.inserting_before(neg)?;
    for _ in 0..MANY {
        guard.get_attr("p")?;
    }
    drop(guard);
    assert_ordered(&graph)
}

///
/// Each new node is inserted before all others: thirty are enough to use up the room before the
/// first.
#[test]
fn order_holds_after_insertions_at_the_front() -> Result<()> {
    for count in [30, 3_000] {
        let (mut graph, _) = chain()?;
        for _ in 0..count {
            graph.inserting_before(None)?.get_attr("p")?;
        }
        assert_ordered(&graph)?;
        graph.lint().or_else(|error| {
            let spurious = error.to_string().contains("before it is computed");
            if spurious { Err(error) } else { Ok(()) }
        })?;
    }
    Ok(())
}

#[test]
fn order_holds_after_insertions_everywhere() -> Result<()> {
    let (mut graph, _) = chain()?;
    for _ in 0..8 {
        let ids: Vec<NodeId> = graph.nodes().map(|n| n.id()).collect();
        for id in ids {
            graph.inserting_after(id)?.get_attr("p")?;
        }
        assert_ordered(&graph)?;
    }
    assert_eq!(graph.len(), 4 << 8);
    Ok(())
}

// ---- arguments and uses ------------------------------------------------------------------------

#[test]
fn setting_arguments_keeps_use_lists_in_step() -> Result<()> {
    let mut graph = Graph::new();
    let [x, y, z] = [
        graph.placeholder("x")?,
        graph.placeholder("y")?,
        graph.placeholder("z")?,
    ];
    let f = graph.call_method("f", (x, y, x), [("k", z)])?;
    assert_eq!(inputs(&graph, f)?, ["x", "y", "z"]);
    graph.node_mut(f)?.set_args((y, 1))?;
    assert_eq!(inputs(&graph, f)?, ["y", "z"]);
    assert_eq!(graph.node(x)?.num_users(), 0);
    assert_eq!(
        graph.node(f)?.kwargs().len(),
        1,
        "set_args leaves the keywords alone"
    );
    graph.node_mut(f)?.set_kwargs([("a", vec![x, y])])?;
    assert_eq!(inputs(&graph, f)?, ["y", "x"]);
    assert_eq!(users(&graph, z)?, [""; 0]);
    graph.node_mut(f)?.update_arg(1, z)?;
    assert_eq!(inputs(&graph, f)?, ["y", "z", "x"]);
    assert_eq!(
        graph.node(f)?.to_string(),
        "%f : [num_users=0] = call_method[target=f](args = (%y, %z), kwargs = {a: [%x, %y]})"
    );
    let out_of_range = graph
        .node_mut(f)?
        .update_arg(2, x)
        .expect_err("there is no third");
    assert_snapshot!(out_of_range, @"%f has 2 positional arguments, so there is none at 2");
    Ok(())
}

#[test]
fn refused_arguments_change_nothing() -> Result<()> {
    let (mut graph, [x, neg, relu, output]) = chain()?;
    let stranger = Graph::new().placeholder("s")?;
    graph.erase_node(output)?;
    let before = graph.to_string();
    for bad in [stranger, output] {
        let nested = Argument::Tuple(Arc::new(vec![x.into(), Argument::from([bad])]));
        assert!(graph.node_mut(relu)?.set_args((x, bad)).is_err());
        assert!(
            graph
                .node_mut(relu)?
                .set_kwargs([("k", nested.clone())])
                .is_err()
        );
        assert!(graph.node_mut(relu)?.update_arg(0, nested.clone()).is_err());
        assert!(graph.node_mut(neg)?.replace_all_uses_with(bad).is_err());
        assert!(graph.call_method("f", (nested,), ()).is_err());
        assert!(graph.output(bad).is_err());
    }
    assert_eq!(graph.to_string(), before);
    assert_eq!(inputs(&graph, relu)?, ["neg"]);
    assert_eq!(users(&graph, x)?, ["neg"]);
    Ok(())
}

#[test]
fn arguments_nest_sixty_four_levels_and_no_deeper() -> Result<()> {
    let mut graph = Graph::new();
    let x = graph.placeholder("x")?;
    let nested = |depth: usize| (0..depth).fold(Argument::Node(x), |a, _| vec![a].into());
    let f = graph.call_method("f", (nested(64),), ())?;
    assert_eq!(inputs(&graph, f)?, ["x"]);
    let error = graph
        .call_method("f", (nested(65),), ())
        .expect_err("too deep");
    assert_snapshot!(error, @"an argument nests deeper than 64 levels");
    assert!(graph.node_mut(f)?.set_args((nested(65),)).is_err());
    assert_eq!(graph.len(), 2);
    Ok(())
}

#[test]
fn replacing_all_uses_reaches_into_structures() -> Result<()> {
    let mut graph = Graph::new();
    let (x, y) = (graph.placeholder("x")?, graph.placeholder("y")?);
    let f = graph.call_method("f", (vec![x, y], x), [("k", x)])?;
    let slice = Argument::Slice(Arc::new([x.into(), Argument::None, x.into()]));
    let dict = Argument::Dict(Arc::new(vec![("d".into(), x.into())]));
    let g = graph.call_method("g", (slice, dict), ())?;
    let out = graph.output(Argument::Tuple(Arc::new(vec![f.into(), x.into()])))?;
    assert_eq!(graph.node_mut(x)?.replace_all_uses_with(y)?, [f, g, out]);
    assert_eq!(
        graph.to_string(),
        "graph():
    %x : [num_users=0] = placeholder[target=x]
    %y : [num_users=3] = placeholder[target=y]
    %f : [num_users=1] = call_method[target=f](args = ([%y, %y], %y), kwargs = {k: %y})
    %g : [num_users=0] = call_method[target=g](args = (slice(%y, None, %y), {\"d\": %y}), kwargs = {})
    return (%f, %y)"
    );
    assert_eq!(users(&graph, y)?, ["f", "g", "output"]);
    Ok(())
}

/// torch.fx's recipe: a new node after an old one takes over its uses, and keeps the old one as
/// input.
#[test]
fn a_node_put_after_another_takes_over_its_uses_but_its_own() -> Result<()> {
    let (mut graph, [_, neg, old, _]) = chain()?;
    let new = graph
        .inserting_after(neg)?
        .call_function(function!(relu), (neg,), ())?;
    let changed = graph.node_mut(neg)?.replace_all_uses_with(new)?;
    assert_eq!(changed, [old]);
    assert_eq!(
        graph.to_string(),
        "graph():
    %x : [num_users=1] = placeholder[target=x]
    %neg : [num_users=1] = call_function[target=fx_core::operator::neg](args = (%x,), kwargs = {})
    %relu_1 : [num_users=1] = call_function[target=array::relu](args = (%neg,), kwargs = {})
    %relu : [num_users=1] = call_method[target=relu](args = (%relu_1,), kwargs = {})
    return %relu"
    );
    graph.lint()
}

#[test]
fn a_filter_picks_the_users_to_change() -> Result<()> {
    let mut graph = Graph::new();
    let (x, y) = (graph.placeholder("x")?, graph.placeholder("y")?);
    let calls = ["f", "g", "h"].map(|m| graph.call_method(m, (x,), ()));
    let changed = graph
        .node_mut(x)?
        .replace_uses_with_filter(y, |user| user.target() != "g")?;
    let [f, g, h] = calls;
    let (f, g, h) = (f?, g?, h?);
    assert_eq!(changed, [f, h]);
    assert_eq!(
        (users(&graph, x)?, users(&graph, y)?),
        (vec!["g".into()], vec!["f".into(), "h".into()])
    );
    assert_eq!(inputs(&graph, g)?, ["x"]);
    assert_eq!(
        graph.node_mut(x)?.replace_all_uses_with(x)?,
        [],
        "by itself: nothing changes"
    );
    assert_eq!(users(&graph, x)?, ["g"]);
    Ok(())
}

// ---- erasing and ids ---------------------------------------------------------------------------

#[test]
fn erasing_a_used_node_is_an_error_that_lists_its_users() -> Result<()> {
    let (mut graph, [x, neg, relu, output]) = chain()?;
    graph.call_method("other", (neg,), ())?;
    let error = graph.erase_node(neg).expect_err("it is used");
    assert_eq!(
        error.to_string(),
        "cannot erase %neg: it still has 2 users (%relu, %other); replace its uses first"
    );
    assert!(matches!(error.kind(), ErrorKind::NodeInUse { node, users }
        if node == "neg" && users == &["relu", "other"]));
    for id in [output, relu] {
        graph.erase_node(id)?;
    }
    assert_eq!(users(&graph, neg)?, ["other"]);
    for _ in 0..10 {
        graph.call_method("more", (x,), ())?;
    }
    let text = graph.erase_node(x).expect_err("it is used").to_string();
    assert_snapshot!(text, @"cannot erase %x: it still has 11 users (%neg, %more, %more_1, %more_2, %more_3, %more_4, %more_5, %more_6, ...); replace its uses first");
    Ok(())
}

#[test]
fn erased_ids_stay_stale_when_their_place_is_taken_again() -> Result<()> {
    let mut graph = Graph::new();
    let mut erased = Vec::new();
    for _ in 0..3_000 {
        let id = graph.get_attr("p")?;
        graph.erase_node(id)?;
        erased.push(id);
    }
    let alive = graph.get_attr("p")?;
    for id in erased {
        assert_ne!(id, alive);
        assert!(graph.node(id).is_err() && graph.node_mut(id).is_err());
        assert!(matches!(
            graph.erase_node(id).expect_err("erased twice").kind(),
            ErrorKind::StaleNode { .. }
        ));
        assert!(graph.is_before(id, alive).is_err());
    }
    assert_eq!(graph.len(), 1);
    Ok(())
}

#[test]
fn another_graphs_ids_are_errors() -> Result<()> {
    let (mut one, ids) = chain()?;
    let (other, others) = chain()?;
    for (mine, foreign) in ids.into_iter().zip(others) {
        assert!(one.node(mine).is_ok() && other.node(foreign).is_ok());
        assert!(one.node(foreign).is_err() && other.node(mine).is_err());
        assert!(one.erase_node(foreign).is_err());
    }
    assert_eq!(one.len(), 4);
    Ok(())
}

#[test]
fn a_clone_keeps_ids_and_then_goes_its_own_way() -> Result<()> {
    let (mut graph, ids) = chain()?;
    let mut copy = graph.clone();
    assert_eq!(copy.to_string(), graph.to_string());
    for id in ids {
        assert_eq!(copy.node(id)?.to_string(), graph.node(id)?.to_string());
    }
    let here = graph.call_method("here", (ids[0],), ())?;
    let there = copy.call_method("there", (ids[0],), ())?;
    assert!(graph.node(there).is_err() && copy.node(here).is_err());
    assert!(
        graph
            .node_mut(ids[0])?
            .replace_all_uses_with(there)
            .is_err()
    );
    copy.node_mut(ids[2])?.set_args((ids[0],))?;
    assert_eq!(inputs(&graph, ids[2])?, ["neg"]);
    assert_eq!(inputs(&copy, ids[2])?, ["x"]);
    copy.erase_node(ids[1])?;
    assert!(graph.node(ids[1]).is_ok() && copy.node(ids[1]).is_err());
    Ok(())
}

#[test]
fn indexing_gives_the_op() -> Result<()> {
    let (graph, [x, neg, ..]) = chain()?;
    assert_eq!(graph[x], Op::Placeholder("x".into()));
    assert_eq!(graph[neg], Op::CallFunction(operator::neg));
    Ok(())
}

#[test]
#[should_panic(expected = "is not in this graph")]
fn indexing_by_a_stale_id_panics_as_documented() {
    let (graph, ids) = chain().expect("a chain");
    let (other, _) = chain().expect("a chain");
    drop(graph);
    let _ = &other[ids[0]];
}

// ---- names -------------------------------------------------------------------------------------

fn named(candidates: &[&str]) -> Result<Vec<String>> {
    let mut graph = Graph::new();
    for candidate in candidates {
        graph.get_attr(candidate)?;
    }
    for node in graph.nodes() {
        let found = graph.find_name(&node.name().to_string()).map(|n| n.id());
        assert_eq!(found, Some(node.id()), "%{} is found by name", node.name());
    }
    Ok(names(&graph))
}

#[test]
fn names_follow_torchs_rules() -> Result<()> {
    for (candidates, expected) in [
        (
            &["add", "add", "add", "add_1"][..],
            &["add", "add_1", "add_2", "add_3"][..],
        ),
        (
            &["foo_1_1", "foo_1", "foo_1"],
            &["foo_1_1", "foo_1", "foo_2"],
        ),
        (&["foo_7", "foo", "foo"], &["foo_7", "foo", "foo_8"]),
        (
            &["b.l", "b.l", "0", "x.y.z", "a  b"],
            &["b_l", "b_l_1", "_0", "x_y_z", "a_b"],
        ),
        (
            &["ReLU", "HTTPServer", "BatchNorm2d"],
            &["re_lu", "httpserver", "batch_norm2d"],
        ),
        (&["3d", ""], &["_3d", "_unnamed"]),
        (&["x_0", "x_0", "x_01"], &["x_0", "x_1", "x_01"]),
        // Rust's words, where torch avoids Python's.
        (
            &["type", "match", "self", "fn", "type"],
            &["type_1", "match_1", "self_1", "fn_1", "type_2"],
        ),
    ] {
        let found = named(candidates)?;
        assert_eq!(found, expected, "{candidates:?}");
    }
    Ok(())
}

#[test]
fn names_stay_distinct_at_the_largest_numbers() -> Result<()> {
    for candidates in [
        &["a", "a_4294967294", "a_4294967294", "a_4294967294"][..],
        &["a_4294967294", "a", "a", "a", "a"],
        &["a_4294967295", "a", "a_4294967295"],
        &["a_99999999999999999999", "a_99999999999999999999", "a"],
    ] {
        let mut found = named(candidates)?;
        found.sort();
        found.dedup();
        assert_eq!(
            found.len(),
            candidates.len(),
            "{candidates:?} gave {found:?}"
        );
    }
    Ok(())
}

#[test]
fn an_erased_nodes_name_is_not_given_again() -> Result<()> {
    let mut graph = Graph::new();
    let first = graph.get_attr("p")?;
    graph.erase_node(first)?;
    graph.get_attr("p")?;
    assert_eq!(names(&graph), ["p_1"]);
    assert!(graph.find_name("p").is_none());
    Ok(())
}

// ---- lint --------------------------------------------------------------------------------------

fn findings(graph: &Graph) -> Vec<String> {
    graph
        .findings()
        .iter()
        .map(|f| f.kind().to_string())
        .collect()
}

#[test]
fn lint_finds_each_broken_rule() -> Result<()> {
    let (graph, _) = chain()?;
    assert_eq!(findings(&graph), [""; 0]);
    let (mut graph, [_, neg, relu, output]) = chain()?;
    graph.node_mut(relu)?.append(neg)?;
    assert_eq!(
        findings(&graph),
        ["argument %neg of %relu is used before it is computed: move it up, or sort the graph"]
    );
    graph.erase_node(output)?;
    let late = graph.placeholder("late")?;
    assert_eq!(
        findings(&graph)[1..],
        [
            "placeholder %late comes after other nodes: placeholders must come first",
            "a graph has exactly one output, this one has 0: add one with `graph.output(..)`",
        ]
    );
    graph.output(late)?;
    graph.output(late)?;
    // All findings, one per line, with the source lines that made the nodes.
    let error = graph.lint().expect_err("it has findings");
    assert_snapshot!(support::without_lines(error), @"
    while checking %relu (fx-core/tests/graph.rs:_): argument %neg of %relu is used before it is computed: move it up, or sort the graph
    while checking %late (fx-core/tests/graph.rs:_): placeholder %late comes after other nodes: placeholders must come first
    while checking %output_1 (fx-core/tests/graph.rs:_): the output is not the last node: move it to the end
    a graph has exactly one output, this one has 2: erase all but the last
    ");
    Ok(())
}

/// `a` uses `b` and `b` uses `a`: no editing call may leave that undetected.
#[test]
fn a_replacement_that_would_make_a_cycle_is_refused() -> Result<()> {
    let (mut graph, [x, neg, relu, _]) = chain()?;
    let before = graph.to_string();
    let error = graph.node_mut(x)?.replace_all_uses_with(relu).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Cycle { .. }), "{error}");
    assert_eq!(graph.to_string(), before);
    let error = graph.node_mut(neg)?.set_args((relu,)).unwrap_err();
    assert_eq!(
        error.to_string(),
        "%neg would depend on itself through %relu"
    );
    assert_eq!(graph.to_string(), before);
    Ok(())
}

#[test]
fn arguments_nested_too_deep_are_refused_and_dropped_without_overflow() -> Result<()> {
    let mut graph = Graph::new();
    let x = graph.placeholder("x")?;
    let mut deep = Argument::Node(x);
    for i in 0..200_000 {
        deep = match i % 3 {
            0 => Argument::List(Arc::new(vec![deep])),
            1 => Argument::Tuple(Arc::new(vec![deep, Argument::Int(1)])),
            _ => Argument::Dict(Arc::new(vec![("k".into(), deep)])),
        };
    }
    let error = graph.output(deep.clone()).unwrap_err();
    assert_snapshot!(error, @"an argument nests deeper than 64 levels");
    assert_eq!(graph.len(), 1);
    drop(deep);
    Ok(())
}

#[test]
fn every_kind_of_argument_prints_and_parses() -> Result<()> {
    let mut graph = Graph::new();
    let x = graph.placeholder("x")?;
    let three = |a: Argument, b: Argument| Arc::new([a, b, Argument::None]);
    let args = vec![
        Argument::Range(three(0.into(), x.into())),
        Argument::Slice(three(Argument::None, (-1).into())),
        Argument::Device(fx_core::value::Device::Cuda(1)),
        Argument::Device(fx_core::value::Device::Cpu),
        Argument::DType(DType::F32),
        Argument::Ellipsis,
        Argument::from("text"),
    ];
    let list = graph.call_function(operator::neg, (args,), ())?;
    graph.output(list)?;
    let text = graph.to_string();
    assert_snapshot!(text, @r#"
    graph():
        %x : [num_users=1] = placeholder[target=x]
        %neg : [num_users=1] = call_function[target=fx_core::operator::neg](args = ([range(0, %x, None), slice(None, -1, None), cuda:1, cpu, float32, ..., "text"],), kwargs = {})
        return %neg
    "#);
    assert_eq!(text.parse::<Graph>()?.to_string(), text);
    Ok(())
}

#[test]
fn lint_names_calls_that_do_not_fit_their_signature() -> Result<()> {
    let mut graph = Graph::new();
    let x = graph.placeholder("x")?;
    let y = graph.call_function(operator::neg, (x, x), ())?;
    graph.output(y)?;
    assert_snapshot!(support::without_lines(graph.lint().unwrap_err()), @"while checking %neg (fx-core/tests/graph.rs:_): `fx_core::operator::neg` takes 1 argument but 2 were given; it takes (a: Value)");
    Ok(())
}
