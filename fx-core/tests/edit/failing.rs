//! Every public method that changes a graph or a graph module and can fail is made to fail: nothing
//! differs afterwards, and observers stay registered.

use std::sync::Arc;

use fx_core::graph_module::Surgery;
use fx_core::ir::{Argument, Graph, IntoArguments, NewNode, Op, ValueMap};
use fx_core::module::Attributes;
use fx_core::operator;
use fx_core::passes::{PassManager, pass_fn};
use fx_core::pattern::{Rewriter, Rule, replace_pattern};
use fx_core::prelude::*;
use fx_core::value::NodeId;

use super::mirror::Mirror;
use super::modules::{Scale, module_state, sample};
use crate::support::Array;

/// The inputs of a case.
struct Given {
    foreign: NodeId,
    x: NodeId,
    add: NodeId,
    neg: NodeId,
    mul: NodeId,
    inner: NodeId,
    surgery: Option<Surgery>,
}

type Case = (&'static str, fn(&mut GraphModule, &Given) -> Result<()>);

fn function(op: fx_core::ir::Function) -> Op {
    Op::CallFunction(op)
}

/// A graph whose second node uses the third.
fn out_of_order() -> Result<Graph> {
    let mut graph = Graph::new();
    let x = graph.placeholder("x")?;
    let a = graph.call_function(operator::neg, (x,), ())?;
    let b = graph.call_function(operator::abs, (x,), ())?;
    graph.node_mut(a)?.set_args((b,))?;
    graph.output(a)?;
    Ok(graph)
}

fn failing() -> Error {
    Error::msg("it fails")
}

const CASES: &[Case] = &[
    ("add", |gm, given| {
        let new = NewNode::new(function(operator::neg)).args((given.foreign,));
        gm.graph_mut().add(new.name("fresh")).map(drop)
    }),
    ("create_node", |gm, given| {
        let args = (given.foreign,);
        gm.graph_mut()
            .create_node(Op::CallMethod("neg".into()), args, ())
            .map(drop)
    }),
    ("placeholder_with_default, deep", |gm, _| {
        let deep = (0..10_000).fold(Argument::Int(1), |inner, _| {
            Argument::List(Arc::new(vec![inner]))
        });
        let made = gm.graph_mut().call_function(operator::neg, (deep,), ());
        made.map(drop)
    }),
    ("call_function", |gm, given| {
        let mut graph = gm.graph_mut();
        let made = graph.call_function(operator::neg, (given.foreign,), ());
        made.map(drop)
    }),
    ("call_function, a keyword twice", |gm, given| {
        let mut graph = gm.graph_mut();
        let made = graph.call_function(operator::add, (given.x,), [("b", 1), ("b", 2)]);
        made.map(drop)
    }),
    ("call_method", |gm, given| {
        let mut graph = gm.graph_mut();
        graph
            .call_method("new_method", (given.foreign,), ())
            .map(drop)
    }),
    ("call_module", |gm, given| {
        let mut graph = gm.graph_mut();
        graph
            .call_module("new_path", (given.foreign,), ())
            .map(drop)
    }),
    ("output", |gm, given| {
        gm.graph_mut().output(given.foreign).map(drop)
    }),
    ("erase_node", |gm, given| {
        gm.graph_mut().erase_node(given.add)
    }),
    ("erase_node, foreign", |gm, given| {
        gm.graph_mut().erase_node(given.foreign)
    }),
    ("graph_copy, foreign", |gm, given| {
        let other = symbolic_trace(traced!(|x: Float| x * 2.0))?;
        let input = other.graph().placeholders().next().map(|node| node.id());
        let mut map = ValueMap::default();
        map.extend(input.map(|input| (input, Argument::Node(given.foreign))));
        let copied = gm.graph_mut().graph_copy(other.graph(), &mut map);
        copied.map(drop)
    }),
    ("graph_copy, out of order", |gm, _| {
        let mut map = ValueMap::default();
        let copied = gm.graph_mut().graph_copy(&out_of_order()?, &mut map);
        assert!(map.is_empty());
        copied.map(drop)
    }),
    ("inline", |gm, given| {
        gm.graph_mut().inline(given.neg, &out_of_order()?)
    }),
    ("node_copy", |gm, given| {
        let other = symbolic_trace(traced!(|x: Float| x * 2.0))?;
        let mul = other.graph().find_name("mul").ok_or_else(failing)?;
        let mut graph = gm.graph_mut();
        let copied = graph.node_copy(mul, |_| Argument::Node(given.foreign));
        copied.map(drop)
    }),
    ("inserting_before", |gm, given| {
        gm.graph_mut().inserting_before(given.foreign).map(drop)
    }),
    ("inserting_after", |gm, given| {
        gm.graph_mut().inserting_after(given.foreign).map(drop)
    }),
    ("set_insertion_point", |gm, given| {
        gm.graph_mut().set_insertion_point(given.foreign)
    }),
    ("node_mut", |gm, given| {
        gm.graph_mut().node_mut(given.foreign).map(drop)
    }),
    ("append", |gm, given| {
        gm.graph_mut().node_mut(given.x)?.append(given.foreign)
    }),
    ("prepend", |gm, given| {
        gm.graph_mut().node_mut(given.x)?.prepend(given.foreign)
    }),
    ("insert_arg", |gm, given| {
        gm.graph_mut().node_mut(given.neg)?.insert_arg(0, given.mul)
    }),
    ("replace_all_uses_with", |gm, given| {
        let mut graph = gm.graph_mut();
        let users = graph
            .node_mut(given.add)?
            .replace_all_uses_with(given.inner);
        users.map(drop)
    }),
    ("replace_input_with", |gm, given| {
        let mut graph = gm.graph_mut();
        let mut neg = graph.node_mut(given.neg)?;
        neg.replace_input_with(given.add, given.mul)
    }),
    ("replace_uses_with_filter", |gm, given| {
        let mut graph = gm.graph_mut();
        let mut add = graph.node_mut(given.add)?;
        add.replace_uses_with_filter(given.mul, |_| true).map(drop)
    }),
    ("set_args", |gm, given| {
        gm.graph_mut().node_mut(given.add)?.set_args((given.mul,))
    }),
    ("set_kwargs", |gm, given| {
        let mut graph = gm.graph_mut();
        graph.node_mut(given.add)?.set_kwargs([("b", given.mul)])
    }),
    ("set_inputs", |gm, given| {
        let mut graph = gm.graph_mut();
        let mut add = graph.node_mut(given.add)?;
        add.set_inputs((given.foreign,).into_arguments(), ())
    }),
    ("update_arg", |gm, given| {
        gm.graph_mut().node_mut(given.add)?.update_arg(1, given.mul)
    }),
    ("update_kwarg", |gm, given| {
        let mut graph = gm.graph_mut();
        graph.node_mut(given.add)?.update_kwarg("b", given.mul)
    }),
    ("Graph::eliminate_dead_code", |gm, given| {
        gm.edit(|gm| {
            let mut graph = gm.graph_mut();
            graph.node_mut(given.add)?.prepend(given.mul)?;
            graph.eliminate_dead_code().map(drop)
        })
    }),
    ("add_submodule", |gm, _| {
        gm.add_submodule("scale.inside", Scale::by(1.0))
    }),
    ("append_before", |gm, given| {
        let x = given.x;
        let appended = gm.append_before(given.neg, |cx| {
            let x: Float = cx.proxy(x).to()?;
            let _recorded = (x * 77.0)?;
            Err::<Float, Error>(failing())
        });
        appended.map(drop)
    }),
    ("append_before, no symbolic value", |gm, given| {
        let x = given.x;
        let appended = gm.append_before(given.neg, |cx| {
            let x: Float = cx.proxy(x).to()?;
            let _recorded = (x * 77.0)?;
            Ok(1.0)
        });
        appended.map(drop)
    }),
    ("append_before, a circle", |gm, given| {
        let inner = given.inner;
        let appended = gm.append_before(given.neg, |cx| {
            let later: Float = cx.proxy(inner).to()?;
            later * 2.0
        });
        appended.map(drop)
    }),
    ("apply", |gm, _| {
        let pass = pass_fn("wrecks", |gm| {
            gm.eliminate_dead_code()?;
            gm.delete_submodule("scale");
            Ok(true)
        });
        gm.apply(&pass).map(drop)
    }),
    ("PassManager::run", |gm, _| {
        let manager = PassManager::new()
            .pass(pass_fn("works", |gm| Ok(gm.eliminate_dead_code()? > 0)))
            .check(|_| Err(failing()));
        manager.run(gm).map(drop)
    }),
    ("GraphModule::eliminate_dead_code", |gm, given| {
        gm.edit(|gm| {
            gm.graph_mut().node_mut(given.add)?.prepend(given.mul)?;
            gm.eliminate_dead_code().map(drop)
        })
    }),
    ("inline_module", |gm, given| gm.inline_module(given.add)),
    ("lift_subgraph, not one piece", |gm, given| {
        gm.lift_subgraph(&[given.add, given.mul], "lifted")
            .map(drop)
    }),
    ("lift_subgraph, a path that is taken", |gm, given| {
        gm.lift_subgraph(&[given.add], "weight").map(drop)
    }),
    ("propagate_shapes", |gm, _| {
        gm.propagate_shapes("no number").map(drop)
    }),
    ("recompile", |gm, _| {
        gm.edit(|gm| {
            gm.delete_submodule("scale");
            gm.recompile()
        })
    }),
    ("replace_modules", |gm, _| {
        let replaced = gm.replace_modules("**", |_, _: &Scale| Err::<Scale, Error>(failing()));
        replaced.map(drop)
    }),
    ("replace_any_modules", |gm, _| {
        let replaced = gm.replace_any_modules("**", |path, _| match path {
            "inner" => Ok(Some(Box::new(Scale::by(1.0)))),
            _ => Err(failing()),
        });
        replaced.map(drop)
    }),
    ("Surgery::undo", |gm, given| {
        given.surgery.as_ref().ok_or_else(failing)?.undo(gm)
    }),
    ("retarget", |gm, _| {
        let to = Op::CallModule("nowhere".into());
        gm.retarget(&function(operator::mul), to).map(drop)
    }),
    ("set_buffer", |gm, _| {
        gm.set_buffer("scale", &Array::vec(&[1.0]))
    }),
    ("set_parameter", |gm, _| {
        gm.set_parameter("scale.weight", &Array::vec(&[1.0]))
    }),
    ("set_submodule", |gm, _| {
        gm.set_submodule("nowhere", Scale::by(1.0))
    }),
    ("set_submodule_of_same_shapes", |gm, _| {
        gm.set_submodule_of_same_shapes("nowhere", Scale::by(1.0))
    }),
    ("take_submodule", |gm, _| {
        gm.take_submodule::<Scale>("inner").map(drop)
    }),
    ("replace_pattern", |gm, _| {
        let pattern = traced!(|x: Float| x * 2.0);
        replace_pattern(gm, pattern, names_nothing()?).map(drop)
    }),
    ("Rule::apply, computed", |gm, _| {
        let pattern = traced!(|x: Float, y: Float| x + y);
        let rule = Rule::computed(pattern, |gm, found| {
            let made = gm.graph().nodes().any(|node| *node.target() == *"nothing");
            match found.anchors().count() {
                1 if !made => symbolic_trace(traced!(|x: Float, y: Float| x - y)),
                _ => Err(failing()),
            }
        })?;
        // The first match is replaced, and the second one cannot be.
        let second = Rule::computed(traced!(|x: Float| x * 2.0), |gm, _| {
            match gm.graph().find_name("sub_1").is_some() {
                true => Err(failing()),
                false => symbolic_trace(traced!(|x: Float| x + 9.0)),
            }
        })?;
        Rewriter::new().rule(rule).rule(second).run(gm).map(drop)
    }),
    ("Rewriter::run", |gm, _| {
        let grow = Rule::new(
            traced!(|x: Float| x * 2.0),
            traced!(|x: Float| {
                let y = (x * 2.0)?;
                y * 2.0
            }),
        )?;
        Rewriter::new().rule(grow).limit(10).run(gm).map(drop)
    }),
];

/// A replacement that names something that does not exist.
fn names_nothing() -> Result<Graph> {
    let mut graph = Graph::new();
    let x = graph.placeholder("x")?;
    let weight = graph.get_attr("nowhere")?;
    let product = graph.call_function(operator::mul, (x, weight), ())?;
    graph.output(product)?;
    Ok(graph)
}

fn given(gm: &mut GraphModule) -> Result<Given> {
    let mut other = Graph::new();
    let named = |name: &str| gm.graph().find_name(name).map(|node| node.id());
    let [Some(x), Some(add), Some(neg), Some(mul), Some(inner)] =
        ["x", "add", "neg", "mul", "inner"].map(named)
    else {
        return Err(Error::msg(gm.graph().to_string()));
    };
    let surgery = gm.replace_modules("scale", |_, _: &Scale| Ok(Scale::by(4.0)))?;
    gm.set_submodule(
        "scale",
        Other {
            tag: Tag::default(),
        },
    )?;
    Ok(Given {
        foreign: other.placeholder("foreign")?,
        x,
        add,
        neg,
        mul,
        inner,
        surgery: Some(surgery),
    })
}

/// A module to replace a `Scale`.
#[derive(Module)]
struct Other {
    tag: Tag,
}

#[trace(leaf)]
impl Other {
    fn forward(&self, x: Float) -> Result<Float> {
        x * 2.0
    }
}

#[test]
fn what_fails_leaves_no_trace() -> Result<()> {
    for (what, fails) in CASES {
        let mut gm = sample()?;
        let given = given(&mut gm)?;
        let mirror = Mirror::of(&mut gm.graph_mut());
        let before = module_state(&gm);
        let error = match fails(&mut gm, &given) {
            Err(error) => error.to_string(),
            Ok(()) => panic!("{what} does not fail"),
        };
        assert_eq!(module_state(&gm), before, "{what}: {error}");
        mirror.check(gm.graph());
        mirror.check_replaced();
        // The observer is notified of later changes.
        gm.graph_mut().placeholder("later")?;
        mirror.check(gm.graph());
    }
    Ok(())
}

#[test]
fn a_graph_that_nobody_holds_and_its_attributes_are_edited_together() -> Result<()> {
    let mut graph = Graph::new();
    let mut attributes = Attributes::default();
    let x = graph.placeholder("x")?;
    let before = super::state::state(&graph);
    let failed = graph.edit(|graph| {
        fx_core::trace::GraphAppendingTracer::append(graph, &mut attributes, |cx| {
            let x: Float = cx.proxy(x).to()?;
            let _recorded = (x * 2.0)?;
            Err::<(), Error>(failing())
        })
    });
    assert!(failed.is_err());
    assert_eq!(super::state::state(&graph), before);
    Ok(())
}
