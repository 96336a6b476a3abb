//! Normal forms, types, targets, parts as modules, canonical order.

use fx_nn::ErrorKind;
use fx_nn::ir::{Function, Graph, Op, ParamSpec, ValueMeta};
use fx_nn::models::resnet::resnet18;
use fx_nn::module::Attributes;
use fx_nn::operator;
use fx_nn::passes::{
    AnnotateTypes, Canonicalize, Decompositions, MethodsToFunctions, NormalizeArguments,
};
use fx_nn::prelude::*;
use fx_nn::value::NodeId;

use super::{count, keeps_numbers};

fn small_resnet() -> Result<(GraphModule, Tensor)> {
    let mut model = resnet18(10)?;
    model.eval();
    nn::set_requires_grad(&mut model, false)?;
    Ok((symbolic_trace(&model)?, Tensor::rand((1, 3, 32, 32))?))
}

#[test]
fn all_calls_of_a_function_get_another() -> Result<()> {
    let mut gm = symbolic_trace(traced!(|a: &Tensor, b: &Tensor| (a + b)? + (a * b)?))?;
    let add = Op::CallFunction(operator::add);
    assert_eq!(gm.retarget(&add, Op::CallFunction(operator::sub))?, 2);
    assert_eq!(
        (count(&gm, "add"), count(&gm, "sub"), count(&gm, "mul")),
        (0, 2, 1)
    );
    // The parameters follow an input.
    gm.retarget(&Op::Placeholder("a".into()), Op::Placeholder("left".into()))?;
    let x = Tensor::ones(1)?;
    assert_eq!(
        gm.forward::<Tensor>(args![left = &x, b = &x])?.to_vec()?,
        [-1.0]
    );
    // A target that takes other arguments is refused, and nothing changes.
    let before = gm.graph().to_string();
    let sub = Op::CallFunction(operator::sub);
    let error = gm
        .retarget(&sub, Op::CallFunction(operator::neg))
        .unwrap_err()
        .to_string();
    assert!(error.contains("while checking %"), "{error}");
    assert_eq!(gm.graph().to_string(), before);
    Ok(())
}

#[test]
fn all_arguments_become_keywords_and_come_back() -> Result<()> {
    let (mut gm, x) = small_resnet()?;
    assert!(keeps_numbers(&mut gm, &NormalizeArguments::by_name(), &x)?);
    for node in gm.graph().nodes() {
        match node.op() {
            Op::CallFunction(_) | Op::CallModule(_) => assert!(node.args().is_empty(), "{node}"),
            Op::CallMethod(_) => assert_eq!(node.args().len(), 1, "{node}"),
            _ => {}
        }
    }
    // And back to what the trace recorded.
    let (traced, _) = small_resnet()?;
    assert!(keeps_numbers(
        &mut gm,
        &NormalizeArguments::canonical(),
        &x
    )?);
    assert_eq!(gm.graph().to_string(), traced.graph().to_string());
    assert!(!gm.apply(&NormalizeArguments::canonical())?.changed);
    Ok(())
}

#[test]
fn normal_forms_keep_entries() -> Result<()> {
    #[derive(Debug, Clone, PartialEq)]
    struct Number(usize);
    impl fx_nn::ir::Meta for Number {
        const ON_COPY: fx_nn::ir::MetaPolicy = fx_nn::ir::MetaPolicy::Copy;
        const ON_REPLACE: fx_nn::ir::MetaPolicy = fx_nn::ir::MetaPolicy::Copy;
    }
    let mut gm = symbolic_trace(traced!(|x: &Tensor| x + 3.0))?;
    let nodes: Vec<NodeId> = gm.graph().nodes().map(|node| node.id()).collect();
    for (at, node) in nodes.iter().enumerate() {
        gm.graph_mut().node_mut(*node)?.set_meta(Number(at));
    }
    gm.propagate_shapes(&Tensor::ones(2)?)?;
    gm.apply(&NormalizeArguments::by_name())?;
    for (at, node) in nodes.iter().enumerate() {
        let node = gm.graph().node(*node)?;
        assert_eq!(node.meta::<Number>(), Some(&Number(at)));
        assert!(node.meta::<ValueMeta>().is_some());
    }
    Ok(())
}

#[test]
fn a_node_that_is_changed_forgets_its_shape_and_keeps_what_it_is_told() -> Result<()> {
    let mut gm = symbolic_trace(traced!(|x: &Tensor| x.sum(..)? + x.relu()?))?;
    gm.propagate_shapes(&Tensor::ones(2)?)?;
    let sum = gm.graph().find_name("sum").map(|node| node.id());
    let sum = sum.ok_or_else(|| Error::msg("it sums"))?;
    assert!(gm.graph().node(sum)?.meta::<ValueMeta>().is_some());
    gm.graph_mut().node_mut(sum)?.update_kwarg("dim", vec![0])?;
    assert!(gm.graph().node(sum)?.meta::<ValueMeta>().is_none());
    // Another way to write the same call changes nothing.
    gm.propagate_shapes(&Tensor::ones(2)?)?;
    assert!(gm.apply(&MethodsToFunctions)?.changed);
    assert!(gm.graph().node(sum)?.meta::<ValueMeta>().is_some());
    Ok(())
}

#[test]
fn methods_become_functions() -> Result<()> {
    let mut gm = symbolic_trace(traced!(|x: &Tensor| x.relu()?.clamp(0.0, 0.5)))?;
    assert!(keeps_numbers(
        &mut gm,
        &MethodsToFunctions,
        &Tensor::rand(4)?
    )?);
    let calls: Vec<&Op> = gm.graph().nodes().map(|node| node.op()).collect();
    assert_eq!(*calls[1], Op::CallFunction(function!(ops::relu)));
    assert_eq!(*calls[2], Op::CallFunction(function!(ops::clamp)));
    Ok(())
}

#[test]
fn calls_have_the_types_of_their_signatures() -> Result<()> {
    let (mut gm, x) = small_resnet()?;
    assert!(keeps_numbers(&mut gm, &AnnotateTypes, &x)?);
    for node in gm.graph().nodes() {
        let is_typed = matches!(node.op(), Op::CallModule(_) | Op::CallMethod(_));
        if is_typed {
            assert_eq!(node.type_expr(), Some("Tensor"), "{node}");
        }
    }
    Ok(())
}

#[test]
fn items_have_the_types_of_their_places() -> Result<()> {
    #[wrap]
    fn parts_of(x: &Tensor) -> Result<(Tensor, Int, Tensor)> {
        Ok((x.clone(), x.size(0)?, (x * 2.0)?))
    }
    let mut gm = symbolic_trace(traced!(|x: &Tensor| {
        let (a, n, b) = parts_of(x)?;
        ((a * n)? + b)? + x.chunk(2, 0)?.get(0)?
    }))?;
    gm.apply(&AnnotateTypes)?;
    let items = gm.graph().find_nodes(&Op::CallFunction(operator::getitem));
    let types: Vec<Option<&str>> = items.iter().map(|node| node.type_expr()).collect();
    assert_eq!(
        types,
        [Some("Tensor"), Some("Int"), Some("Tensor"), Some("Tensor")]
    );
    Ok(())
}

#[test]
fn decompositions_of_methods_functions_and_what_they_make() -> Result<()> {
    let table = Decompositions::new()
        .rule(function!(ops::silu), |call| {
            let x: Tensor = call.arg("x")?;
            &x * x.sigmoid()?
        })
        .rule(function!(ops::sigmoid), |call| {
            let x: Tensor = call.arg("x")?;
            ((x.neg()?.exp()? + 1.0)?).reciprocal()
        });
    let mut gm = symbolic_trace(traced!(|x: &Tensor| ops::silu(x)? + x.sigmoid()?))?;
    let x = Tensor::rand(4)?;
    let before: Tensor = gm.forward(&x)?;
    let record = gm.apply(&table)?;
    assert_eq!(
        (count(&gm, "silu"), count(&gm, "sigmoid"), count(&gm, "exp")),
        (0, 0, 2)
    );
    assert!(fx_nn::allclose(&gm.forward(&x)?, &before, 1e-6, 0.0)?.close);
    assert_eq!(record.erased, ["silu", "sigmoid"]);
    // A rule's nodes have the source of the call.
    let exp = gm
        .graph()
        .find_name("exp")
        .ok_or_else(|| Error::msg("it has exponentials"))?;
    assert!(
        exp.location()
            .is_some_and(|l| l.file.ends_with("normalize.rs"))
    );

    let endless = Decompositions::new().rule(function!(ops::relu), |call| {
        let x: Tensor = call.arg("x")?;
        ops::relu(&(x + 0.0)?)
    });
    let mut gm = symbolic_trace(traced!(|x: &Tensor| x.relu()))?;
    let error = gm.apply(&endless).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Limit { .. }));
    let text = error.to_string();
    assert!(
        text.contains("the rule for `fx_nn::ops::relu` never ends"),
        "{text}"
    );
    assert_eq!(count(&gm, "relu"), 1);

    let wrong =
        Decompositions::new().rule(function!(ops::relu), |call| call.arg::<Tensor>("input"));
    let text = gm.apply(&wrong).unwrap_err().to_string();
    assert!(
        text.contains("`fx_nn::ops::relu` has no parameter `input`: it takes x"),
        "{text}"
    );
    Ok(())
}

#[test]
fn a_rule_that_gives_several_values_stands_for_the_items() -> Result<()> {
    #[wrap]
    fn sum_and_product(x: &Tensor, y: &Tensor) -> Result<(Tensor, Tensor)> {
        Ok(((x + y)?, (x * y)?))
    }
    let table = Decompositions::new().rule(function!(sum_and_product), |call| {
        let (x, y): (Tensor, Tensor) = (call.arg("x")?, call.arg("y")?);
        Ok(((&x + &y)?, (x * y)?))
    });
    // Another rule for the items that belong to the call.
    let table = table.rule(operator::getitem, |call| Ok(call.args()[0].clone()));
    let mut gm = symbolic_trace(traced!(|x: &Tensor| {
        let (sum, product) = sum_and_product(x, x)?;
        sum - product
    }))?;
    assert!(keeps_numbers(&mut gm, &table, &Tensor::rand(3)?)?);
    let targets: Vec<&str> = gm.graph().nodes().map(|node| node.target()).collect();
    assert_eq!(
        targets,
        [
            "x",
            "fx_core::operator::add",
            "fx_core::operator::mul",
            "fx_core::operator::sub",
            "output"
        ]
    );
    Ok(())
}

#[test]
fn a_part_becomes_a_module_and_comes_back() -> Result<()> {
    let (mut gm, x) = small_resnet()?;
    let before = gm.clone();
    let expected: Tensor = gm.forward(&x)?;
    let block: Vec<NodeId> = gm
        .graph()
        .nodes()
        .filter(|node| node.module_stack().any(|scope| &*scope.path == "layer2.0"))
        .map(|node| node.id())
        .collect();
    let call = gm.lift_subgraph(&block, "block")?;
    gm.lint()?;
    // Its source is that of its nodes.
    let place = gm.graph().node(call)?.location();
    assert!(place.is_some_and(|place| place.file.ends_with("resnet.rs")));
    assert_eq!(gm.graph().len(), before.graph().len() - block.len() + 1);
    assert_eq!(gm.forward::<Tensor>(&x)?.to_vec()?, expected.to_vec()?);
    // Modules that only the block called are in it.
    assert!(gm.submodule("layer2.0.conv1").is_err());
    assert_eq!(gm.named_parameters().len(), before.named_parameters().len());

    gm.inline_module(call)?;
    assert_eq!(gm.graph().len(), before.graph().len());
    assert!(gm.attributes().module("block").is_err());
    assert!(gm.submodule("block.layer2.0.conv1").is_ok());
    assert_eq!(gm.forward::<Tensor>(&x)?.to_vec()?, expected.to_vec()?);

    // Two ends without the middle are not one part.
    let mut gm = symbolic_trace(traced!(|x: &Tensor| x.relu()?.sigmoid()?.tanh()))?;
    let ends: Vec<NodeId> = ["relu", "tanh"]
        .iter()
        .filter_map(|name| Some(gm.graph().find_name(name)?.id()))
        .collect();
    let text = gm.lift_subgraph(&ends, "ends").unwrap_err().to_string();
    assert!(
        text.contains("while lifting %tanh (") && text.contains("%sigmoid is not among them"),
        "{text}"
    );
    Ok(())
}

#[test]
fn a_part_with_several_results_and_users_in_between() -> Result<()> {
    let mut gm = symbolic_trace(traced!(|x: &Tensor| {
        let a = x.relu()?;
        let user = (&a + 1.0)?;
        let late = x.sigmoid()?;
        let b = (&a * &late)?;
        Ok(((user - &b)?, late))
    }))?;
    let x = Tensor::rand(3)?;
    let (p, q): (Tensor, Tensor) = gm.forward(&x)?;
    // The addition stands before the input of the second.
    let part: Vec<NodeId> = ["relu", "mul"]
        .iter()
        .filter_map(|name| Some(gm.graph().find_name(name)?.id()))
        .collect();
    let call = gm.lift_subgraph(&part, "part")?;
    let (r, s): (Tensor, Tensor) = gm.forward(&x)?;
    assert_eq!((r.to_vec()?, s.to_vec()?), (p.to_vec()?, q.to_vec()?));
    gm.inline_module(call)?;
    assert_eq!(count(&gm, "getitem"), 0);
    let (r, s): (Tensor, Tensor) = gm.forward(&x)?;
    assert_eq!((r.to_vec()?, s.to_vec()?), (p.to_vec()?, q.to_vec()?));
    Ok(())
}

#[test]
fn canonical_graphs_print_alike_and_hash_alike_however_they_were_put_together() -> Result<()> {
    let build = |swap: bool, function: Function| -> Result<GraphModule> {
        let mut graph = Graph::new();
        let x = graph.placeholder("x")?;
        let one = |graph: &mut Graph| graph.call_function(operator::neg, (x,), ());
        let two = |graph: &mut Graph| graph.call_function(function, (x,), ());
        let (a, b) = if swap {
            let b = two(&mut graph)?;
            (one(&mut graph)?, b)
        } else {
            (one(&mut graph)?, two(&mut graph)?)
        };
        let sum = graph.call_function(operator::add, (a, b), ())?;
        graph.output(sum)?;
        GraphModule::new(Attributes::default(), graph, "Sum")
    };
    let mut a = build(false, operator::abs)?;
    let mut b = build(true, operator::abs)?;
    let c = build(true, operator::neg)?;
    assert_eq!(a.structural_hash(), b.structural_hash());
    assert_ne!(a.structural_hash(), c.structural_hash());
    let hash = a.structural_hash();
    a.apply(&Canonicalize)?;
    b.apply(&Canonicalize)?;
    assert_eq!(a.graph().to_string(), b.graph().to_string());
    assert_eq!(b.structural_hash(), hash);
    assert!(!b.apply(&Canonicalize)?.changed);
    Ok(())
}

#[test]
fn a_structural_hash_is_the_same_on_every_machine() -> Result<()> {
    // A hash has the paths of its functions in it, and this one's path is not the name of a library.
    let x = ParamSpec::of_text("x", "Tensor");
    let same = Function::dynamic("hashed::same", [x], |values| Ok(values[0].clone()))?;
    let mut graph = Graph::new();
    let x = graph.placeholder("x")?;
    let call = graph.call_function(same, (x,), ())?;
    graph.output(call)?;
    let gm = GraphModule::new(Attributes::default(), graph, "Same")?;
    assert_eq!(
        format!("{:032x}", gm.structural_hash()),
        "d736ec14f837f98dc1bf2402ad743dec"
    );
    Ok(())
}
