//! The text of programs: every model, every core function, and what names of the user become.

#[path = "../../fx-onnx/examples/support/families.rs"]
mod families;
#[path = "../../fx-onnx/examples/support/models.rs"]
#[allow(dead_code, reason = "each program uses a part of it")]
mod models;
use crate::parse;

use fx_nn::control;
use fx_nn::func::{Transform, parameters, value_and_grad};
use fx_nn::ir::FunctionTable;
use fx_nn::lowering::{Form, Rules};
use fx_nn::passes::CoreSet;
use fx_nn::prelude::*;
use fx_nn::shapes::spec;
use fx_nn::trace::CallArgs;
use fx_stablehlo::{Cx, Export, Program, StableHloExt};

fn parsed(gm: &GraphModule, export: &Export) -> Result<parse::Program> {
    let text = gm.to_stablehlo_text(export)?;
    parse::parse(&text).map_err(|error| Error::msg(format_args!("{error}\n{text}")))
}

#[test]
fn every_function_has_a_rule_or_a_reason() -> Result<()> {
    let rules = Rules::<Cx>::default();
    let mut without = Vec::new();
    for (function, _) in FunctionTable::<CoreSet>::registered()?.iter() {
        let is_ours = function.path().starts_with("fx_nn::ops::")
            || function.path().starts_with("fx_core::operator");
        if is_ours && rules.form(function)?.is_none() {
            without.push(function.path());
        }
    }
    assert!(without.is_empty(), "no rule: {without:?}");
    let nonzero = rules.form(function!(ops::nonzero))?;
    assert!(matches!(nonzero, Some(Form::Refused(_))), "{nonzero:?}");
    Ok(())
}

#[test]
fn every_model_is_a_program() -> Result<()> {
    let mut count = 0;
    for case in models::all()? {
        let args = (case.inputs)(2)?.into_iter().map(Value::object).collect();
        let export = Export::example(CallArgs {
            args,
            kwargs: Vec::new(),
        });
        let program = parsed(&case.gm, &export);
        let program =
            program.map_err(|error| Error::msg(format_args!("{}: {error}", case.name)))?;
        assert!(
            !program.ops.is_empty() && !program.results.is_empty(),
            "{}",
            case.name
        );
        count += 1;
    }
    assert!(count >= 25, "{count} models");
    Ok(())
}

#[test]
fn branches_are_regions() -> Result<()> {
    let branch = traced!(|x: &Tensor| {
        let positive = x.sum(..)?.gt(0.0)?;
        control::cond(positive, || x * 2.0, || x - 1.0)
    });
    let x = Tensor::ones(3)?;
    let program = parsed(&symbolic_trace(branch)?, &Export::example(&x))?;
    let case = program.ops.iter().find(|op| op.name == "stablehlo.case");
    assert_eq!(case.map(|op| op.regions.len()), Some(2));
    Ok(())
}

#[test]
fn random_numbers_take_a_key() -> Result<()> {
    let noisy = traced!(|x: &Tensor| ops::randn_like(x, None)? + ops::randn_like(x, None)?);
    let program = parsed(&symbolic_trace(noisy)?, &Export::example(&Tensor::ones(3)?))?;
    assert_eq!(program.arguments.len(), 2);
    assert_eq!(program.arguments[1].shape, [2]);
    let draws = program
        .ops
        .iter()
        .filter(|op| op.name == "stablehlo.rng_bit_generator");
    assert_eq!(draws.count(), 2);
    Ok(())
}

/// A name of a module is shown in quotes, whatever is in it.
#[test]
fn names_are_never_code() -> Result<()> {
    let hostile = "a\"(%0) loc(#x) } \n module";
    let model = nn::Sequential::new().add_module(hostile, nn::ReLU::new());
    let gm = symbolic_trace(&model)?;
    let text = gm.to_stablehlo_text(&Export::example(&Tensor::ones(2)?))?;
    assert!(!text.contains(hostile), "{text}");
    assert!(text.contains("a\\22(%0) loc(#x) } \\0A module"), "{text}");
    Ok(())
}

/// The error lists every call that a program cannot have.
#[test]
fn what_cannot_be_written_is_listed() -> Result<()> {
    let both = traced!(|x: &Tensor| Ok((ops::nonzero(x)?, ops::masked_select(x, &x.gt(0.0)?)?)));
    let gm = symbolic_trace(both)?;
    let error = gm.to_stablehlo_text(&Export::example(&Tensor::ones(3)?));
    let error = error
        .err()
        .map(|error| error.to_string())
        .unwrap_or_default();
    assert!(
        error.starts_with("2 calls cannot be written as StableHLO"),
        "{error}"
    );
    assert!(error.contains("text.rs:"), "{error}");
    Ok(())
}

/// A layer with a number of its results.
#[derive(Module)]
struct Loss {
    net: nn::Sequential,
}

#[trace]
impl Loss {
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let out: Tensor = self.net.forward(x)?;
        out.square()?.mean(..)
    }
}

#[test]
fn gradients_of_convolutions_are_programs() -> Result<()> {
    // The last columns are in no window: the gradient has as many as the weight.
    let conv = nn::Conv2d::new(2, 3, 3)?.stride(2).padding(1);
    let net = nn::Sequential::new().push(conv).push(nn::ReLU::new());
    let both = value_and_grad(&Loss { net }).wrt(parameters("**"));
    let gm = both.graph_module(&[spec![2, 2, 8, 8; F32]])?;
    let program = Program::of(&gm, &Export::specs([spec![2, 2, 8, 8; F32]]))?;
    let results: Vec<_> = program.results().map(|(_, shape)| shape.to_vec()).collect();
    assert_eq!(results, [vec![], vec![3, 2, 3, 3], vec![3]]);
    Ok(())
}

#[test]
fn what_is_donated_takes_its_result_over() -> Result<()> {
    let gm = symbolic_trace(traced!(|a: &Tensor, b: &Tensor, x: &Tensor| {
        Ok(((b + x)?, x.sum(..)?, (a * x)?))
    }))?;
    let x = Tensor::ones((2, 3))?;
    let export = |names: &[&str]| Export::example((&x, &x, &x)).donate(names.iter().copied());
    let text = gm.to_stablehlo_text(&export(&["b", "a"]))?;
    // In the order of the arguments.
    assert!(
        text.contains("%a0: tensor<2x3xf32> {tf.aliasing_output = 0 : i32}"),
        "{text}"
    );
    assert!(
        text.contains("%a1: tensor<2x3xf32> {tf.aliasing_output = 2 : i32}"),
        "{text}"
    );
    let error = gm
        .to_stablehlo_text(&export(&["c"]))
        .expect_err("there is none")
        .to_string();
    assert!(
        error.contains("`c` cannot be donated: the program takes a, b, x"),
        "{error}"
    );
    let error = gm.to_stablehlo_text(&export(&["a", "b", "x"]));
    let error = error.expect_err("there are two results").to_string();
    assert!(
        error.contains("`x` cannot be donated: no result is left"),
        "{error}"
    );
    Ok(())
}

#[test]
fn results_are_the_value_of_the_graph() -> Result<()> {
    let gm = symbolic_trace(traced!(|x: &Tensor| {
        Ok(vec![(x.relu()?, x.size(0)?), (x.exp()?, x.size(1)?)])
    }))?;
    let x = Tensor::ones((2, 3))?;
    let program = Program::of(&gm, &Export::example(&x))?;
    let number = |n: i64| Tensor::full((), n, DType::I64);
    let all = vec![x.relu()?, number(2)?, x.exp()?, number(3)?];
    let value = program.result_tree().build(all.clone())?;
    let expected: Value = gm.forward(&x)?;
    assert_eq!(value.to_string(), expected.to_string());
    assert!(program.result_tree().build(all[..3].to_vec()).is_err());
    Ok(())
}
