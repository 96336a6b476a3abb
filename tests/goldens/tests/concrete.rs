//! Specialised arguments and defaults, each against its golden: the differences are named, and there are no others.

use fx_core::prelude::*;
use fx_core::value::IntoValue;
use fx_goldens::exception::Exception;
use fx_goldens::model;
use fx_nn::Tensor;
use indexmap::IndexMap;

const GUARD: &str =
    "one guard node compares and says what came, where PyTorch has a comparison and an assertion";
const NAME: &str = "a specialised argument keeps its name";

fn guarded(theirs: &'static str, ours: &'static str) -> [Exception; 4] {
    [
        Exception::PlaceholderRenamed {
            theirs,
            ours,
            why: NAME,
        },
        Exception::OnlyInTorch {
            node: "eq",
            why: GUARD,
        },
        Exception::OnlyInTorch {
            node: "_assert",
            why: GUARD,
        },
        Exception::OnlyInRust {
            node: "assert_specialized",
            why: GUARD,
        },
    ]
}

fn check(name: &str, gm: &GraphModule, exceptions: &[Exception]) -> Result<()> {
    gm.graph().lint()?;
    let graph = model::compare(name, gm, exceptions)?;
    assert!(graph.equal, "{graph}");
    Ok(())
}

#[trace]
fn concrete_f(a: &Tensor, b: bool) -> Result<Tensor> {
    if b { Ok(a.clone()) } else { a * 2 }
}

#[test]
fn doc_concrete_args_b() -> Result<()> {
    for (name, b) in [
        ("doc_concrete_args_b_true", true),
        ("doc_concrete_args_b_false", false),
    ] {
        let gm = Trace::new(traced!(concrete_f))
            .concrete("b", b)
            .graph_module()?;
        check(name, &gm, &guarded("b_1", "b"))?;
        let a = Tensor::rand((2, 3))?;
        let y: Tensor = gm.forward((&a, b))?;
        assert_eq!(
            model::max_abs_err(&y.into_value(), &concrete_f(&a, b)?.into_value())?,
            0.0
        );
        let error = gm.forward::<Tensor>((&a, !b)).expect_err("guarded");
        assert!(
            error.to_string().contains("\"b\" was specialised"),
            "{error}"
        );
    }
    Ok(())
}

#[trace]
fn concrete_flag(x: &Tensor, flag: bool) -> Result<Tensor> {
    if flag { Ok(x.clone()) } else { x * 2 }
}

#[test]
fn doc_concrete_args_flag_true() -> Result<()> {
    let gm = Trace::new(traced!(concrete_flag))
        .concrete("flag", true)
        .graph_module()?;
    check(
        "doc_concrete_args_flag_true",
        &gm,
        &guarded("flag_1", "flag"),
    )
}

/// PyTorch stops at the condition; here the argument is named before anything runs.
#[test]
fn doc_concrete_args_none_fails() {
    let error = symbolic_trace(traced!(concrete_f)).expect_err("`b` is a plain bool");
    assert!(
        error.to_string().contains("Trace::concrete(\"b\", value)"),
        "{error}"
    );
}

#[trace]
fn pytree_f(x: IndexMap<String, Tensor>) -> Result<Tensor> {
    let mut values = x.values();
    let first = values
        .next()
        .ok_or_else(|| Error::msg("an empty dict has no sum"))?;
    let mut out = (0i64 + first)?;
    for v in values {
        out = (out + v)?;
    }
    Ok(out)
}

#[test]
fn doc_concrete_args_pytree() -> Result<()> {
    let gm = Trace::new(traced!(pytree_f))
        .concrete("x", tree!({"a": PH, "b": PH, "c": PH}))
        .graph_module()?;
    check(
        "doc_concrete_args_pytree",
        &gm,
        &[Exception::FlattenedOutput],
    )?;
    let x: IndexMap<String, Tensor> = ["a", "b", "c"]
        .into_iter()
        .map(|key| Ok((key.to_string(), Tensor::rand((2, 3))?)))
        .collect::<Result<_>>()?;
    let y: Tensor = gm.forward(x.clone())?;
    assert_eq!(
        model::max_abs_err(&y.into_value(), &pytree_f(x)?.into_value())?,
        0.0
    );
    Ok(())
}

#[trace]
fn feat_defaults_f(
    x: &Tensor,
    #[default(2.0)] y: Float,
    #[default(true)] flag: bool,
    #[default(3)] scale: Int,
) -> Result<Tensor> {
    if flag {
        (x * y)? + scale
    } else {
        Ok(x.clone())
    }
}

#[test]
fn feat_defaults() -> Result<()> {
    let gm = Trace::new(traced!(feat_defaults_f))
        .concrete("flag", true)
        .graph_module()?;
    check("feat_defaults", &gm, &guarded("flag_1", "flag"))?;
    let x = Tensor::rand((2, 3))?;
    let y: Tensor = gm.forward(&x)?;
    let eager = ((&x * 2.0)? + 3)?;
    assert_eq!(
        model::max_abs_err(&y.into_value(), &eager.into_value())?,
        0.0
    );
    Ok(())
}
