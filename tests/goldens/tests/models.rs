//! Models against PyTorch: equal graphs by the strict comparator, numbers within 1e-5 of abs-max, and
//! traced results equal to eager ones.

use fx_core::{Component, Module, Result, Value, symbolic_trace};
use fx_goldens::exception::Exception;
use fx_goldens::golden::NumGolden;
use fx_goldens::model;
use fx_nn::models::mlp::Mlp;
use fx_nn::models::resnet::{resnet18, resnet50};
use fx_nn::models::vgg::vgg11_bn;
use fx_nn::nn;

const BAR: f64 = 1e-5;

/// Fills, traces, runs and compares one model; gives the number of nodes.
fn parity<M: Module + Component>(
    name: &str,
    mut module: M,
    exceptions: &[Exception],
) -> Result<usize> {
    let golden = NumGolden::load(name).expect("the golden is in the repository");
    model::fill(&mut module, golden.gain)?;
    fx_core::ComponentExt::eval(&mut module);
    nn::set_requires_grad(&mut module, false)?;
    let traced = symbolic_trace(&module)?;
    traced.graph().lint()?;
    let graph = model::compare(name, &traced, exceptions)?;
    assert!(graph.equal, "{graph}");

    let inputs = model::inputs(&golden)?;
    let result = model::run(&traced, inputs.clone())?;
    let numbers = model::compare_outputs(&golden, &result)?;
    assert_eq!(numbers.problem, None);
    assert!(
        numbers.max_rel_err <= BAR,
        "{name}: {:e}",
        numbers.max_rel_err
    );

    let lent: Vec<&Value> = inputs.iter().collect();
    let mut eager = Value::None;
    module.run(&lent, &mut eager)?;
    assert_eq!(model::max_abs_err(&eager, &result)?, 0.0);
    Ok(traced.graph().len())
}

#[test]
fn resnet18_is_pytorchs() -> Result<()> {
    assert_eq!(parity("resnet18", resnet18(1000)?, &[])?, 71);
    Ok(())
}

#[test]
fn resnet50_is_pytorchs() -> Result<()> {
    assert_eq!(parity("resnet50", resnet50(1000)?, &[])?, 177);
    Ok(())
}

#[test]
fn vgg11_bn_is_pytorchs() -> Result<()> {
    assert_eq!(parity("vgg11_bn", vgg11_bn(1000)?, &[])?, 40);
    Ok(())
}

#[test]
fn mlp_is_pytorchs() -> Result<()> {
    let exceptions = [
        Exception::PythonInplaceFlag,
        Exception::PythonStacklevel,
        Exception::NoneDtype,
    ];
    assert_eq!(parity("mlp", Mlp::new(16, 32, 4)?, &exceptions)?, 9);
    Ok(())
}
