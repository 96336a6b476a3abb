//! Rewrites are checked claims: right ones are verified, and each planted wrong one is refused within a second, with a
//! counterexample of a few lines.

use std::time::{Duration, Instant};

use fx_nn::ir::{Argument, Graph, Op};
use fx_nn::operator;
use fx_nn::passes::{Decompositions, FuseBatchNorm, RemoveDropout, pass_fn};
use fx_nn::pattern::{Rewriter, Rule, SubgraphMatcher};
use fx_nn::prelude::*;
use fx_nn::testing::{Draw, Instance, Rewrite, Verify, pass, verify};
use fx_nn::value::NodeId;
use fx_nn::{Error, ErrorKind};

fn rule(pattern: fx_nn::trace::TracedFn, replacement: fx_nn::trace::TracedFn) -> Result<Rule> {
    Rule::new(pattern, replacement)
}

/// The counterexample of a wrong rewrite, which has to come within a second of optimised code.
fn refused(name: &str, rewrite: &dyn Rewrite, options: &Verify) -> Result<String> {
    let start = Instant::now();
    let error = match options.of(rewrite) {
        Ok(verified) => return Err(Error::msg(format!("{name} is not refused: {verified}"))),
        Err(error) => error,
    };
    let text = error.to_string();
    if !matches!(error.kind(), ErrorKind::Numbers(_)) {
        return Err(Error::msg(format!("{name} has no counterexample: {text}")));
    }
    let most = Duration::from_secs(if cfg!(debug_assertions) { 20 } else { 1 });
    assert!(start.elapsed() < most, "{name}: {:?}", start.elapsed());
    assert!(text.lines().count() <= 8, "{name}: {text}");
    assert!(text.contains(" is wrong: "), "{name}: {text}");
    Ok(text)
}

fn planted(
    name: &str,
    pattern: fx_nn::trace::TracedFn,
    replacement: fx_nn::trace::TracedFn,
) -> Result<String> {
    let rule = rule(pattern, replacement)?.named(name);
    refused(name, &rule, &Verify::new())
}

#[test]
fn planted_rules_are_refused() -> Result<()> {
    planted(
        "swapped operands",
        traced!(|x: &Tensor, y: &Tensor| x - y),
        traced!(|x: &Tensor, y: &Tensor| y - x),
    )?;
    planted(
        "swapped matrices",
        traced!(|x: &Tensor, y: &Tensor| x.matmul(y)),
        traced!(|x: &Tensor, y: &Tensor| y.matmul(x)),
    )?;
    planted(
        "a wrong constant",
        traced!(|x: &Tensor| ops::relu6(x)),
        traced!(|x: &Tensor| ops::clamp(x, 0, 6.01)),
    )?;
    planted(
        "lost keepdim",
        traced!(|x: &Tensor| ops::sum(x, -1, true)),
        traced!(|x: &Tensor| ops::sum(x, -1, false)),
    )?;
    planted(
        "a wrong type",
        traced!(|x: &Tensor| x.exp()),
        traced!(|x: &Tensor| ops::to_dtype(x, DType::F32)?.exp()),
    )?;
    planted(
        "a wrong axis",
        traced!(|x: &Tensor| ops::softmax(x, -1)),
        traced!(|x: &Tensor| ops::softmax(x, 0)),
    )?;
    planted(
        "missing eps",
        traced!(|x: &Tensor| ops::rsqrt(&(x + 1e-5)?)),
        traced!(|x: &Tensor| ops::rsqrt(x)),
    )?;
    let tie = rule(
        traced!(|x: &Tensor, y: &Tensor| ops::maximum(x, y)),
        traced!(|x: &Tensor, y: &Tensor| ops::r#where(&x.gt(y)?, x, y)),
    )?;
    let tie = refused("a gradient at a tie", &tie, &Verify::new().finite())?;
    assert!(tie.contains("its gradient is"), "{tie}");
    planted(
        "a gradient at zero",
        traced!(|x: &Tensor| ops::relu(x)),
        traced!(|x: &Tensor| ops::r#where(&x.lt(0)?, 0, x)),
    )?;
    let nan = planted(
        "lost NaN",
        traced!(|x: &Tensor| ops::relu(x)),
        traced!(|x: &Tensor| ops::r#where(&x.gt(0)?, x, 0)),
    )?;
    assert!(nan.contains("NaN"), "{nan}");
    planted(
        "integer division",
        traced!(|x: &Tensor| x / 2),
        traced!(|x: &Tensor| ops::floor_divide(x, 2)),
    )?;
    planted(
        "negative quotients",
        traced!(|x: &Tensor| ops::floor_divide(x, 2)),
        traced!(|x: &Tensor| ops::trunc(&(x / 2)?)),
    )?;
    planted(
        "another count",
        traced!(|x: &Tensor| ops::var(x, -1, true, false)),
        traced!(|x: &Tensor| ops::var(x, -1, false, false)),
    )?;
    planted(
        "lost shape",
        traced!(|x: &Tensor, y: &Tensor| (x * 0)? + y),
        traced!(|x: &Tensor, y: &Tensor| {
            let _ = x;
            Ok(y.clone())
        }),
    )?;
    planted(
        "an overflow",
        traced!(|x: &Tensor| x.exp()?.log()),
        traced!(|x: &Tensor| x * 1.0),
    )?;
    planted(
        "a lost sign",
        traced!(|x: &Tensor| (x * x)?.sqrt()),
        traced!(|x: &Tensor| x * 1.0),
    )?;
    planted(
        "halves",
        traced!(|x: &Tensor| ops::round(x, 0)),
        traced!(|x: &Tensor| ops::floor(&(x + 0.5)?)),
    )?;
    planted(
        "a lost domain",
        traced!(|x: &Tensor| x * x),
        traced!(|x: &Tensor| (x.log()? * 2.0)?.exp()),
    )?;
    planted(
        "lost digits",
        traced!(|x: &Tensor| ops::log1p(x)),
        traced!(|x: &Tensor| (x + 1.0)?.log()),
    )?;
    planted(
        "an inverted test",
        traced!(|x: &Tensor| ops::isnan(x)),
        traced!(|x: &Tensor| x.eq(x)),
    )?;
    planted(
        "only finite",
        traced!(|x: &Tensor| x - x),
        traced!(|x: &Tensor| ops::zeros_like(x, None)),
    )?;
    planted(
        "a lost tail",
        traced!(|x: &Tensor| ops::gelu(x, "none")),
        traced!(|x: &Tensor| ops::gelu(x, "tanh")),
    )?;
    Ok(())
}

#[test]
fn the_error_is_a_small_counterexample() -> Result<()> {
    let text = planted(
        "thrice",
        traced!(|x: &Tensor| x * 2.0),
        traced!(|x: &Tensor| x * 3.0),
    )?;
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(
        lines[..4],
        [
            "`thrice` is wrong: its result is 3.0 for 2.0",
            "  x = float64 1.0",
            "  before: let mul = (x * 2.0)?; Ok(mul)  // result float64 2.0",
            "  after: let mul_1 = (x * 3.0)?; Ok(mul_1)  // result float64 3.0",
        ],
        "{text}"
    );
    Ok(())
}

/// Literals that a pattern leaves open are drawn, and so is what stands for alternatives and optional nodes.
#[test]
fn what_is_open_is_drawn() -> Result<()> {
    let scaled = || {
        SubgraphMatcher::new(traced!(|x: &Tensor| (x * 2.0)? * 2.0))?
            .any_literal("mul", "b")?
            .any_literal("mul_1", "b")
    };
    let merged = |combine: fn(f64, f64) -> f64| {
        Rule::computed(scaled()?, move |gm, found| {
            let number = |name: &str| -> Result<f64> {
                let node = found.node(name).ok_or_else(|| Error::msg("it was found"))?;
                match gm.graph().node(node)?.argument("b")? {
                    Argument::Float(x) => Ok(x),
                    Argument::Int(n) => Ok(n as f64),
                    _ => Err(Error::msg("a number is expected")),
                }
            };
            let both = combine(number("mul")?, number("mul_1")?);
            symbolic_trace(traced!(move |x: &Tensor| x * both))
        })
    };
    let floats = Verify::new().finite().dtypes([DType::F64, DType::F32]);
    let right = floats.of(&merged(|a, b| a * b)?)?;
    assert_eq!((right.cases, right.matched), (200, 200));
    refused("a sum", &merged(|a, b| a + b)?.named("a sum"), &floats)?;

    let either = SubgraphMatcher::new(traced!(|x: &Tensor| ops::relu(x)?.neg()))?
        .one_of("relu", [function!(ops::sigmoid)])?;
    let either = Rule::new(either, traced!(|x: &Tensor| ops::relu(x)?.neg()))?;
    let text = refused("either", &either.named("either"), &Verify::new())?;
    assert!(text.contains("sigmoid"), "{text}");

    let maybe = SubgraphMatcher::new(traced!(|x: &Tensor| x.abs()?.neg()))?.optional("abs")?;
    let maybe = Rule::new(maybe, traced!(|x: &Tensor| x.abs()?.neg()))?;
    refused("maybe", &maybe.named("maybe"), &Verify::new())?;
    Ok(())
}

/// A linear layer and the gelu behind it: the wrong one forgets which gelu it is.
#[test]
fn modules_are_drawn() -> Result<()> {
    #[derive(Module, Clone, Debug)]
    struct LinearGelu {
        linear: nn::Linear,
        approximate: String,
    }
    #[trace(leaf)]
    impl LinearGelu {
        fn forward(&self, x: &Tensor) -> Result<Tensor> {
            ops::gelu(&self.linear.forward(x)?, &self.approximate)
        }
    }
    let fused = |keeps: bool| -> Result<Rule> {
        let mut pattern = Graph::new();
        let x = pattern.placeholder("x")?;
        let linear = pattern.call_module("linear", (x,), ())?;
        let gelu = pattern.call_module("gelu", (linear,), ())?;
        pattern.output(gelu)?;
        let pattern = SubgraphMatcher::new(pattern)?
            .module_type::<nn::Linear>("linear")?
            .module_type::<nn::GELU>("gelu")?;
        Rule::computed(pattern, move |gm, found| {
            let target = |name: &str| -> Result<String> {
                let node = found.node(name).ok_or_else(|| Error::msg("it was found"))?;
                Ok(gm.graph().node(node)?.target().to_string())
            };
            let gelu: &nn::GELU = gm.submodule_as(&target("gelu")?)?;
            let linear: &nn::Linear = gm.submodule_as(&target("linear")?)?;
            let fused = LinearGelu {
                linear: linear.clone(),
                approximate: if keeps {
                    gelu.approximate.clone()
                } else {
                    "none".to_string()
                },
            };
            symbolic_trace(traced!(move |x: &Tensor| fused.forward(x)))
        })
    };
    let right = verify(&fused(true)?)?;
    assert_eq!((right.cases, right.matched), (200, 200));
    assert!(right.gradients > 10, "{right}");
    refused(
        "always none",
        &fused(false)?.named("always none"),
        &Verify::new(),
    )?;
    Ok(())
}

fn conv_and_norm(draw: &mut Draw, training: bool) -> Result<Instance> {
    let n = draw.features();
    let mut model = nn::Sequential::new()
        .push(nn::Conv2d::new(2, n, 2)?)
        .push(nn::BatchNorm2d::new(n)?);
    draw.weights(&mut model)?;
    model.set_training(training);
    Ok(Instance::new(
        symbolic_trace(&model)?,
        draw.tensor(&[2, 2, 4, 3])?,
    ))
}

/// Replaces a convolution and its batch norm in a wrong way.
fn fused_wrongly(change: fn(&mut nn::BatchNorm2d)) -> impl fx_nn::passes::Pass {
    pass_fn("fused wrongly", move |gm| {
        change(gm.submodule_as_mut::<nn::BatchNorm2d>("1")?);
        Ok(gm.apply(&FuseBatchNorm)?.changed)
    })
}

#[test]
fn fusions_are_verified() -> Result<()> {
    let finite = Verify::new().finite();
    let right = finite.of(&pass(FuseBatchNorm, |draw| conv_and_norm(draw, false)))?;
    assert_eq!(right.matched, 200);
    assert!(right.gradients > 10, "{right}");
    // In training mode the fusion refuses, which is no case.
    let none = finite
        .clone()
        .cases(5)
        .of(&pass(FuseBatchNorm, |draw| conv_and_norm(draw, true)));
    let none = none.map(|_| ()).unwrap_err().to_string();
    assert!(
        none.contains("is unverified") && none.contains("0 cases"),
        "{none}"
    );

    let no_eps = pass(fused_wrongly(|norm| norm.eps = 0.0), |draw| {
        conv_and_norm(draw, false)
    });
    refused("no eps", &no_eps, &finite)?;
    let training = pass(fused_wrongly(|norm| norm.training = false), |draw| {
        conv_and_norm(draw, true)
    });
    refused("training", &training, &finite)?;
    let dropout = pass(RemoveDropout, |draw| {
        let model = nn::Sequential::new().push(nn::Dropout::new(0.5)?);
        Ok(Instance::new(symbolic_trace(&model)?, draw.tensor(&[8])?))
    });
    refused("dropout in training", &dropout, &finite)?;
    Ok(())
}

#[wrap]
fn square(x: &Tensor) -> Result<Tensor> {
    x * x
}

#[wrap]
fn scaled(x: &Tensor, by: f64, #[default(false)] twice: bool) -> Result<Tensor> {
    if twice { (x * by)? * by } else { x * by }
}

/// Arguments of a decomposed function are drawn by the types of its parameters.
#[test]
fn decompositions_are_verified() -> Result<()> {
    let table = Decompositions::new()
        .rule(function!(square), |call| {
            let x: Tensor = call.arg("x")?;
            &x * &x
        })
        .rule(function!(scaled), |call| {
            let (x, by, twice): (Tensor, f64, bool) =
                (call.arg("x")?, call.arg("by")?, call.arg("twice")?);
            if twice { (&x * by)? * by } else { &x * by }
        });
    let verified = verify(&table)?;
    assert_eq!((verified.cases, verified.matched), (400, 400));
    let wrong = table.rule(function!(scaled), |call| {
        let (x, by): (Tensor, f64) = (call.arg("x")?, call.arg("by")?);
        &x * by
    });
    let text = refused("scaled", &wrong, &Verify::new())?;
    assert!(
        text.starts_with("`behaviour::verify::scaled` is wrong"),
        "{text}"
    );
    Ok(())
}

/// A case that a filter refuses does not count, and a rule that hardly matches is unverified.
#[test]
fn a_rule_that_does_not_match_is_unverified() -> Result<()> {
    let rows = Rule::new(
        traced!(|x: &Tensor| x.abs()),
        traced!(|x: &Tensor| ops::maximum(x, &(-x)?)),
    )?
    .filter(|gm, found| {
        let x = found.node("x").and_then(|id| gm.graph().node(id).ok());
        let meta = x.and_then(|x| x.meta::<fx_nn::ir::ValueMeta>()?.tensor().cloned());
        meta.is_some_and(|meta| meta.dtype == Some(DType::F32))
    });
    let verified = verify(&rows)?;
    assert_eq!(verified.matched, 200);
    assert!(verified.refused > 100, "{verified}");

    let never = Rule::new(traced!(|x: &Tensor| x.abs()), traced!(|x: &Tensor| x.abs()))?
        .filter(|_, _| false);
    let error = Verify::new()
        .cases(5)
        .of(&never)
        .map(|_| ())
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("is unverified: ") && error.contains("gave 0 cases"),
        "{error}"
    );

    // A pass that finds nothing in its own instances.
    let blind = pass(pass_fn("blind", |_| Ok(false)), |draw: &mut Draw| {
        let gm = symbolic_trace(traced!(|x: &Tensor| x.abs()))?;
        Ok(Instance::new(gm, draw.tensor(&[2])?))
    });
    let error = verify(&blind).map(|_| ()).unwrap_err().to_string();
    assert!(
        error.starts_with("`blind` is unverified: it matched in 0 of 200 cases"),
        "{error}"
    );
    Ok(())
}

/// The rules of a rewriter are verified one by one.
#[test]
fn rewriters_are_verified_rule_by_rule() -> Result<()> {
    let silu = rule(
        traced!(|x: &Tensor| x * ops::sigmoid(x)?),
        traced!(|x: &Tensor| ops::silu(x)),
    )?;
    let twice = rule(
        traced!(|x: &Tensor| x.neg()?.neg()),
        traced!(|x: &Tensor| Ok(x.clone())),
    )?;
    let floats = Verify::new().dtypes([DType::F64, DType::F32, DType::F16, DType::BF16]);
    let verified = floats.of(&Rewriter::new()
        .rule(silu.named("silu"))
        .rule(twice.named("twice")))?;
    assert_eq!((verified.cases, verified.matched), (400, 400));
    assert_eq!(verified.name, "silu, twice");
    Ok(())
}

/// Equal seeds give equal counterexamples.
#[test]
fn a_seed_says_all() -> Result<()> {
    let wrong = rule(
        traced!(|x: &Tensor, y: &Tensor| x - y),
        traced!(|x: &Tensor, y: &Tensor| y - x),
    )?;
    let text = |seed: u64| {
        Verify::new()
            .seed(seed)
            .of(&wrong)
            .map_or_else(|e| e.to_string(), |v| v.to_string())
    };
    assert_eq!(text(5), text(5));
    assert!(text(5).contains("(seed 5, case "), "{}", text(5));
    Ok(())
}

/// A pass that replaces by hand is seen too.
#[test]
fn hand_written_passes_are_verified() -> Result<()> {
    let add_to_sub = pass_fn("add to sub", |gm| {
        let adds = gm.graph().find_nodes(&Op::CallFunction(operator::add));
        let adds: Vec<NodeId> = adds.into_iter().map(|node| node.id()).collect();
        for add in &adds {
            gm.graph_mut()
                .node_mut(*add)?
                .set_op(Op::CallFunction(operator::sub))?;
        }
        Ok(!adds.is_empty())
    });
    let wrong = pass(add_to_sub, |draw: &mut Draw| {
        let gm = symbolic_trace(traced!(|x: &Tensor, y: &Tensor| x + y))?;
        Ok(Instance::new(gm, (draw.input()?, draw.input()?)))
    });
    let text = refused("add to sub", &wrong, &Verify::new())?;
    assert!(text.contains("  y = "), "{text}");
    Ok(())
}
