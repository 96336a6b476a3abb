//! A fault in each table and on each route is found: operations with one wrong fact, and routes that give wrong values.

use fx_core::{Error, Result, function, function_table};
use fx_nn::cpu::{Binary, Point, Points};
use fx_nn::func::{BatchCall, Pullback};
use fx_nn::ir::ValueMeta;
use fx_nn::op;
use fx_nn::passes::DecomposedCall;
use fx_nn::prelude::{DType, Tensor, Value};
use fx_nn::shapes::RuleCall;
use fx_nn::testing::{Given, Route, Sample, check_op, routes};
use fx_onnx::testing::ReadBack;

use super::stablehlo::Programs;

/// An operation of which one fact is wrong: it doubles, and by that fact it triples.
macro_rules! doubling {
    ($name:ident: $($fact:tt)*) => {
        #[op($($fact)*)]
        #[allow(dead_code, reason = "graphs call it by `function!`")]
        fn $name(x: &Tensor) -> Result<Tensor> {
            x * 2.0
        }
    };
}

doubling! { by_rule: rule = another_type }
doubling! { by_decomposition: decomposed = tripled }
doubling! { by_composition: member, composed = tripled }
doubling! { by_compiled_code: cpu = triple }
doubling! { by_derivative: unary, vjp = thrice }
doubling! { by_batching: unary, batch = all_but_one }
doubling! { by_onnx: unary }
doubling! { by_stablehlo: unary, decomposed = tripled }

fn thrice(call: &mut Pullback<'_>) -> Result<()> {
    call.give("x", |call| call.grad()? * 3.0)
}

fn all_but_one(call: &BatchCall<'_>) -> Result<Value> {
    use fx_nn::value::IntoValue;
    (call.tensor("x")?.roll(1, 0)? * 2.0).map(IntoValue::into_value)
}

/// x², whose gradient is lost.
#[op(unary)]
fn by_gradient(x: &Tensor) -> Result<Tensor> {
    x * x.detach()?
}

function_table! { fx_onnx::Rule {
    function!(by_onnx) => fx_onnx::Rule::new(|cx: &mut fx_onnx::Cx, call| {
        let x = call.tensor("x")?;
        let sum = cx.op("Add", &[&x.name, &x.name]);
        call.given(cx.op("Add", &[&sum, &x.name]))
    }),
} }

fn another_type(call: &mut RuleCall<'_>) -> Result<ValueMeta> {
    Ok(call.tensor("x")?.clone().dtype(DType::I16).into())
}

fn tripled(call: &DecomposedCall<'_>) -> Result<Tensor> {
    let x: Tensor = call.arg("x")?;
    x * 3.0
}

fn triple(points: &mut Points<'_, '_>) -> Option<Point> {
    let x = points.tensor("x")?;
    let twice = points.binary(Binary::Add, x, x);
    Some(points.binary(Binary::Add, twice, x))
}

/// Refuses every tensor in other words than its rule, by an error of another kind.
#[op(rule = refuses)]
#[allow(dead_code, reason = "graphs call it by `function!`")]
fn by_words(x: &Tensor) -> Result<Tensor> {
    Err(Error::expected("another tensor", format_args!("{x:?}")))
}

fn refuses(_: &mut RuleCall<'_>) -> Result<ValueMeta> {
    Err(Error::msg("by_words: no tensor is taken"))
}

/// A route whose values are moved by a thousandth.
struct Moved<'r>(&'r dyn Route);

impl Route for Moved<'_> {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn run(&self, sample: &Sample<'_>) -> Result<Given> {
        Ok(match self.0.run(sample)? {
            Given::Value(value) => Given::Value(fx_differential::wrong(value)),
            other => other,
        })
    }
}

/// Which routes find a fault of an operation.
fn found(samples: &[Sample<'_>], routes: &[&dyn Route]) -> Vec<String> {
    let report = check_op("planted", samples, routes);
    let names = routes.iter().map(|route| route.name());
    let wrong = |name: &&str| {
        let by = format!(" by {name}: ");
        report.wrong.iter().any(|line| line.contains(&by))
    };
    names.filter(wrong).map(str::to_string).collect()
}

/// Float samples whose elements are not special.
fn plain(function: fx_nn::ir::Function) -> Result<Vec<Sample<'static>>> {
    use fx_nn::value::IntoValue;
    let sample = |dtype| -> Result<Sample<'static>> {
        let x = Tensor::from_vec(vec![0.5f64, -1.5, 2.0, 3.25], (2, 2))?.to_dtype(dtype)?;
        Sample::of(function, vec![x.into_value()])
    };
    [DType::F32, DType::F64].into_iter().map(sample).collect()
}

#[test]
fn planted_faults_are_each_found() -> Result<()> {
    let programs = Programs::new()?;
    let stablehlo = programs.route();
    let mut all: Vec<&dyn Route> = routes();
    all.push(&ReadBack);
    let mut planted = 0;
    let mut finds = |function, expected: &[&str], all: &[&dyn Route]| -> Result<()> {
        let found = found(&plain(function)?, all);
        if found != expected {
            return Err(Error::msg(format_args!(
                "{function:?}: {found:?}, not {expected:?}"
            )));
        }
        planted += 1;
        Ok(())
    };
    // What a transform makes of it has the type of the rule.
    finds(function!(by_rule), &["shape rule", "vjp"], &routes())?;
    // Transforms go by other functions where an operation has no rule of its own.
    finds(
        function!(by_decomposition),
        &["decomposed", "static crate", "vjp", "vmap"],
        &routes(),
    )?;
    finds(
        function!(by_composition),
        &["composed", "static crate", "vjp", "vmap"],
        &routes(),
    )?;
    finds(
        function!(by_compiled_code),
        &["compiled", "static crate"],
        &routes(),
    )?;
    finds(function!(by_gradient), &["gradient"], &routes())?;
    finds(function!(by_derivative), &["vjp"], &routes())?;
    finds(function!(by_batching), &["vmap"], &routes())?;
    finds(function!(by_onnx), &["onnx"], &all)?;
    // A program of which nothing is recorded.
    finds(function!(by_stablehlo), &["stablehlo"], &[&stablehlo])?;
    for name in ["eager", "traced", "interpreted", "saved", "normalized"] {
        let all = routes();
        let route = all.iter().find(|route| route.name() == name);
        let route = Moved(*route.ok_or_else(|| Error::msg("the route is there"))?);
        finds(function!(fx_nn::ops::exp), &[name], &[&route])?;
    }
    assert_eq!(planted, 14);
    Ok(())
}

#[test]
fn a_second_wording_of_a_refusal_is_found() -> Result<()> {
    use fx_nn::value::IntoValue;
    let x = Tensor::ones(2)?.into_value();
    let sample = Sample::refused(function!(by_words), vec![x])?;
    assert_eq!(found(&[sample], &routes()), ["shape rule"]);
    Ok(())
}
