//! The core set: every function is a member or decomposed, decompositions give PyTorch's numbers, and models become graphs
//! of members that give the models' numbers.
#![allow(clippy::print_stdout, reason = "its figures are read with --nocapture")]

use std::collections::{BTreeMap, BTreeSet};

use fx_differential::{
    Call, DifferenceKind, Kind, Mode, difference, judged_elsewhere, reason, recorded,
};
use fx_nn::control;
use fx_nn::ir::{FunctionTable, ValueMeta, registry};
use fx_nn::models;
use fx_nn::passes::{CoreSet, Decompositions, verify_core};
use fx_nn::prelude::*;
use fx_nn::shapes::{Spec, spec};

#[test]
fn every_function_is_a_member_or_decomposed() -> Result<()> {
    let table = FunctionTable::<CoreSet>::registered()?;
    let ours = registry::functions().into_iter();
    let ours = ours
        .filter(|f| f.path().starts_with("fx_nn::") || f.path().starts_with("fx_core::operator::"));
    let missing: Vec<&str> = ours
        .filter(|f| table.get(*f).is_none())
        .map(|f| f.path())
        .collect();
    assert_eq!(missing, Vec::<&str>::new());
    Ok(())
}

#[test]
fn decompositions_agree_with_pytorch() -> Result<()> {
    let table = Decompositions::core()?;
    let functions = table.functions().into_iter();
    let functions = functions.filter(|function| judged_elsewhere(*function).is_none());
    let decomposed: BTreeSet<&str> = functions.map(|function| function.name()).collect();
    let mut checked: BTreeMap<String, usize> = BTreeMap::new();
    let mut found = String::new();
    for line in recorded()?.lines() {
        let call = Call::parse(line)?;
        let is_function = matches!(call.kind, Kind::Function | Kind::Method);
        if !is_function || !decomposed.contains(call.name.trim_start_matches("r#")) {
            continue;
        }
        // What PyTorch refuses, its composition may compute.
        let refused = |of: &fx_differential::Difference| of.kind == DifferenceKind::Refusal;
        match difference(&call, Mode::Decomposed, None) {
            Some(other) if refused(&other) && !other.is_ours() => continue,
            Some(other) if reason(&call, &other).is_none() => {
                found += &format!("{} #{}: {}\n", call.name, call.id, other.text);
            }
            _ => *checked.entry(call.name).or_default() += 1,
        }
    }
    let calls: usize = checked.values().sum();
    println!("decomposed {} calls {calls}", checked.len());
    assert!(found.is_empty(), "{found}");
    assert_eq!(checked.len(), decomposed.len());
    Ok(())
}

/// Opens, decomposes and runs a model, and compares with the model.
fn check_model<M: Module>(name: &str, mut model: M, input: &Tensor, spec: Spec) -> Result<()> {
    model.eval();
    let mut gm = symbolic_trace(&model)?;
    let before: Tensor = gm.forward(input)?;
    gm.infer_shapes(&[spec])?;
    let mut core = gm.opened()?;
    assert_eq!(core.contract(), gm.contract(), "{name}");
    core.apply(&Decompositions::core()?)?;
    verify_core(&core)?;
    core.lint()?;
    let unknown = core.graph().nodes();
    let unknown = unknown.filter(|node| node.meta::<ValueMeta>().is_none());
    let unknown: Vec<String> = unknown.map(|node| node.name().to_string()).collect();
    assert_eq!(unknown, Vec::<String>::new(), "{name}: shapes of new nodes");
    let after: Tensor = core.forward(input)?;
    let close = fx_nn::allclose(&after, &before, 1e-4, 1e-5)?;
    println!("{name}: {} nodes, {close}", core.graph().len());
    assert!(close.close, "{name}: {close}");
    Ok(())
}

#[test]
fn models_become_graphs_of_members() -> Result<()> {
    fx_nn::manual_seed(0);
    let image = &Tensor::randn((2, 3, 64, 64))?;
    let spec = || spec!["batch", 3, 64, 64; F32];
    check_model("resnet18", models::resnet::resnet18(10)?, image, spec())?;
    let mobilenet = models::mobilenet::mobilenet_v2(10)?;
    check_model("mobilenet_v2", mobilenet, image, spec())?;
    check_model("unet", models::unet::UNet::new(3, 2, 8)?, image, spec())?;
    check_model("vit", models::vit::vit_b_16(64, 10)?, image, spec())?;
    let tokens = &Tensor::from_vec((0..16i64).collect(), (2, 8))?;
    let spec = || spec!["batch", 8; I64];
    let lstm = models::lstm_classifier::LstmClassifier::new(50, 16, 24, 5)?;
    check_model("lstm_classifier", lstm, tokens, spec())?;
    let gpt2 = models::gpt2::Gpt2::new(&models::gpt2::Config {
        vocab_size: 50,
        block_size: 8,
        n_layer: 2,
        n_head: 2,
        n_embd: 16,
        dropout: 0.0,
    })?;
    check_model("gpt2", gpt2, tokens, spec())
}

#[test]
fn what_is_not_of_the_core_set_is_named() -> Result<()> {
    let model = nn::Sequential::new().push(nn::Linear::new(4, 4)?);
    let gm = symbolic_trace(&model)?;
    let says =
        |gm: &GraphModule| verify_core(gm).map_or_else(|e| e.to_string(), |()| String::new());
    let found = says(&gm);
    assert!(found.contains("`0` is a layer: `gm.opened()`"), "{found}");
    let gm = symbolic_trace(traced!(|x: &Tensor| ops::silu(x)))?;
    let found = says(&gm);
    assert!(
        found.contains("`fx_nn::ops::silu` is not in the core set: apply `Decompositions::core()`"),
        "{found}"
    );
    assert!(found.contains("core_set.rs:"), "{found}");
    Ok(())
}

/// What a rule makes is decomposed too, and what depends on it keeps its shape and type: a later rule reads them.
#[test]
fn later_calls_know_what_earlier_ones_give() -> Result<()> {
    let attend = |x: &Tensor, mask: Option<&Tensor>| {
        ops::scaled_dot_product_attention(x, x, x, mask, 0.0, false, None, false)
    };
    let f = traced!(move |x: &Tensor| {
        let y = attend(x, None)?;
        attend(&y, Some(&ops::matmul(&y, &y.transpose(-2, -1)?)?))
    });
    let mut gm = symbolic_trace(f)?;
    gm.infer_shapes(&[spec![2, 3, 4; F32]])?;
    let x = Tensor::randn((2, 3, 4))?;
    let before: Tensor = gm.forward(&x)?;
    gm.apply(&Decompositions::core()?)?;
    verify_core(&gm)?;
    let after: Tensor = gm.forward(&x)?;
    assert!(fx_nn::allclose(&before, &after, 1e-5, 1e-6)?.close);
    Ok(())
}

/// Branches and loops are opened and decomposed inside.
#[test]
fn sides_are_decomposed_too() -> Result<()> {
    let f = traced!(|x: &Tensor, up: Bool| control::cond(up, || ops::silu(x), || ops::mish(x)));
    let mut gm = symbolic_trace(f)?;
    let x = Tensor::randn(5)?;
    let before: [Tensor; 2] = [gm.forward((&x, true))?, gm.forward((&x, false))?];
    assert!(verify_core(&gm).is_err());
    gm.apply(&Decompositions::core()?)?;
    verify_core(&gm)?;
    for (up, before) in [true, false].into_iter().zip(&before) {
        let after: Tensor = gm.forward((&x, up))?;
        assert!(fx_nn::allclose(&after, before, 1e-6, 1e-6)?.close);
    }
    Ok(())
}

/// A rule that needs no argument's value gives a constant, which stands before what takes it.
#[test]
fn a_rule_may_give_a_constant() -> Result<()> {
    let mut graph = fx_nn::ir::Graph::new();
    let x = graph.placeholder("x")?;
    let ones = graph.call_function(function!(ops::ones), (vec![2i64, 3],), ())?;
    let sum = graph.call_function(fx_nn::operator::add, (x, ones), ())?;
    graph.output(vec![sum, ones])?;
    let mut gm = GraphModule::new(Default::default(), graph, "Constant")?;
    gm.apply(&Decompositions::core()?)?;
    gm.lint()?;
    assert!(gm.graph().find_name("ones").is_none());
    let given: Vec<Tensor> = gm.forward(&Tensor::zeros((2, 3))?)?;
    assert_eq!([given[0].to_vec()?, given[1].to_vec()?].concat(), [1.0; 12]);
    Ok(())
}

/// A named size may be 0: what is left open beside it is not found.
#[test]
fn a_norm_of_groups_takes_a_batch_of_none() -> Result<()> {
    let f = traced!(|x: &Tensor, n: Int| ops::group_norm(&x.narrow(0, 0, n)?, 2, None, None, 1e-5));
    let mut gm = symbolic_trace(f)?;
    gm.infer_shapes(&[spec![3, 4, 5; F32], Spec::int("n").constrained("n >= 0")])?;
    gm.apply(&Decompositions::core()?)?;
    let x = Tensor::randn((3, 4, 5))?;
    for count in [0, 2] {
        let y: Tensor = gm.forward((&x, count))?;
        let norm = ops::group_norm(&x.narrow(0, 0, count)?, 2, None, None, 1e-5)?;
        assert_eq!(y.dims()?, norm.dims()?);
        assert!(fx_nn::allclose(&y, &norm, 1e-5, 1e-6)?.close);
    }
    Ok(())
}

/// A product of halves that nothing of is taken is no infinity times 0.
#[test]
fn sums_with_products_of_halves_are_rounded_once() -> Result<()> {
    let f = traced!(|x: &Tensor, a: &Tensor, b: &Tensor| ops::addbmm(x, a, b, 1, 0.0));
    let mut gm = symbolic_trace(f)?;
    let spec = spec![1, 1, 1; F16];
    gm.infer_shapes(&[spec![1, 1; F16], spec.clone(), spec])?;
    gm.apply(&Decompositions::core()?)?;
    verify_core(&gm)?;
    let half = |number: f64, shape: &[usize]| Tensor::full(shape, number, DType::F16);
    let (x, a) = (half(2.0, &[1, 1])?, half(60_000.0, &[1, 1, 1])?);
    let y: Tensor = gm.forward((&x, &a, &a))?;
    assert_eq!((y.dtype()?, y.to_vec()?), (DType::F16, vec![2.0]));
    Ok(())
}
