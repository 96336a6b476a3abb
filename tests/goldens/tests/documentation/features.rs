//! One feature of tracing each, against its golden: operators, indices, shapes, pieces, methods and functions.

use fx_core::prelude::*;
use fx_core::{Operator, binary, operator};
use fx_goldens::exception::Exception;
use fx_goldens::model;
use fx_nn::prelude::*;

use crate::{check, value};

/// Compares the graph alone: the golden has no numbers.
fn check_graph(name: &str, traced: &GraphModule, exceptions: &[Exception]) -> Result<()> {
    traced.graph().lint()?;
    let graph = model::compare(name, traced, exceptions)?;
    assert!(graph.equal, "{graph}");
    Ok(())
}

#[trace]
fn operators(x: &Tensor, y: &Tensor) -> Result<Vec<Tensor>> {
    let a = (x + 1)?;
    let b = (1 - y)?;
    let c = binary::<Tensor>(Operator::Pow, &2, &x)?;
    let d = (-&a)?;
    let e = ((x > y)? & (x != 0)?)?;
    let f = (!&e)?;
    let g = x.matmul(&y.t()?)?;
    let h = (x.floor_divide(2)? + (x % 3)?)?;
    let i = (1.5 / (y.abs()? + 1)?)?;
    let j = ((x <= y)? | (x >= 1)?)?;
    Ok(vec![a, b, c, d, e, f, g, h, i, j])
}

#[test]
fn feat_operators() -> Result<()> {
    let gm = symbolic_trace(traced!(operators))?;
    let exceptions = [
        Exception::MethodForFunction {
            theirs: "matmul",
            ours: "matmul",
            why: "Rust has no sign for it",
        },
        Exception::ListForTuple,
    ];
    check("feat_operators", &gm, &exceptions, |t| {
        operators(&t[0], &t[1]).map(value)
    })
}

#[test]
fn feat_bitshift() -> Result<()> {
    let f = traced!(|x: &Tensor| (x << 2)? ^ (x >> 1)?);
    let gm = symbolic_trace(f)?;
    check_graph("feat_bitshift", &gm, &[])?;
    let x = Tensor::from_vec(vec![5i64, -3, 0], 3)?;
    assert_eq!(gm.forward::<Tensor>(&x)?.to_vec()?, [22.0, 10.0, 0.0]);
    Ok(())
}

#[trace]
fn slicing(x: &Tensor) -> Result<(Tensor, Tensor, Tensor, Tensor)> {
    Ok((
        x.i((.., 1..3, NewAxis, Ellipsis))?,
        x.i(0)?,
        x.i((Ellipsis, -1))?,
        x.i(every(2))?,
    ))
}

#[test]
fn feat_slicing() -> Result<()> {
    let gm = symbolic_trace(traced!(slicing))?;
    check("feat_slicing", &gm, &[], |t| slicing(&t[0]).map(value))
}

#[trace]
fn shaped(x: &Tensor) -> Result<Tensor> {
    x.view((x.shape()?.get(0)?, -1))? * x.ndim()?
}

#[test]
fn feat_shape_getattr() -> Result<()> {
    let gm = symbolic_trace(traced!(shaped))?;
    check(
        "feat_shape_getattr",
        &gm,
        &[Exception::VariadicAsOneSequence],
        |t| shaped(&t[0]).map(value),
    )
}

#[trace]
fn unpacked(x: &Tensor) -> Result<Tensor> {
    let [a, b] = x.chunk(2, 0)?.unpack()?;
    let [c, d, e] = ops::split(&a, 1, 0)?.unpack()?;
    let (v, i) = ops::max(&b, 0, false)?;
    let first = a.sum(..)?;
    let first = (first + ((c * d)? * e)?.sum(..)?)?;
    (first + v.sum(..)?)? + i.sum(..)?
}

#[test]
fn feat_unpack() -> Result<()> {
    let gm = symbolic_trace(traced!(unpacked))?;
    check("feat_unpack", &gm, &[], |t| unpacked(&t[0]).map(value))
}

#[trace]
fn methods_and_functions(x: &Tensor) -> Result<Tensor> {
    let sum = (ops::relu(x)? + x.relu()?)?;
    (sum + ops::relu(x)?)? + ops::silu(x)?
}

#[test]
fn feat_methods_vs_functions() -> Result<()> {
    let gm = symbolic_trace(traced!(methods_and_functions))?;
    check(
        "feat_methods_vs_functions",
        &gm,
        &[Exception::PythonInplaceFlag],
        |t| methods_and_functions(&t[0]).map(value),
    )
}

/// PyTorch cannot trace `torch.Tensor.relu(x)`; here a method by its path is the method.
#[test]
fn feat_method_descriptor() -> Result<()> {
    let graph = Trace::new(traced!(|x: &Tensor| Tensor::relu(x))).graph()?;
    assert_eq!(graph.find_nodes(&Op::CallMethod("relu".into())).len(), 1);
    Ok(())
}

#[test]
fn feat_identity() -> Result<()> {
    let gm = symbolic_trace(traced!(|x: &Tensor| Ok(x.clone())))?;
    check_graph("feat_identity", &gm, &[])
}

#[trace]
fn dead_code(x: &Tensor) -> Result<Tensor> {
    let _a = (x + 1)?;
    assert!(x.ndim()? == 2, "rank 2 wanted");
    x * 2
}

#[test]
fn feat_dead_code() -> Result<()> {
    let mut gm = symbolic_trace(traced!(dead_code))?;
    check("feat_dead_code", &gm, &[], |t| dead_code(&t[0]).map(value))?;
    let error = gm
        .forward::<Tensor>(&Tensor::ones(3)?)
        .expect_err("a vector is stopped");
    assert!(error.to_string().contains("rank 2 wanted"), "{error}");
    assert_eq!(gm.eliminate_dead_code()?, 1);
    assert_eq!(
        gm.graph()
            .find_nodes(&Op::CallFunction(operator::_assert))
            .len(),
        1
    );
    Ok(())
}

#[trace]
fn deep_names(x: &Tensor) -> Result<Tensor> {
    let mut x = x.clone();
    for _ in 0..12 {
        x = ops::relu(&x)?;
    }
    Ok(x)
}

#[test]
fn feat_deep_names() -> Result<()> {
    let gm = symbolic_trace(traced!(deep_names))?;
    assert!(gm.graph().find_name("relu_11").is_some());
    check("feat_deep_names", &gm, &[], |t| {
        deep_names(&t[0]).map(value)
    })
}

#[trace]
fn annotated(x: &Tensor, y: &Tensor, #[default(1)] n: Int) -> Result<(Tensor, Int)> {
    Ok(((x + y)?, n))
}

#[test]
fn feat_annotated() -> Result<()> {
    check_graph("feat_annotated", &symbolic_trace(traced!(annotated))?, &[])
}

#[test]
fn feat_no_return() -> Result<()> {
    let f = traced!(|x: &Tensor| {
        let _y = (x + 1)?;
        Ok(())
    });
    check_graph("feat_no_return", &symbolic_trace(f)?, &[])
}

/// Strings, lists and flags among the arguments of a leaf.
#[wrap]
fn interpolate(
    x: &Tensor,
    #[kw] size: Vec<i64>,
    #[kw]
    #[default(None)]
    scale_factor: Option<f64>,
    #[kw]
    #[default("nearest")]
    mode: &str,
    #[kw]
    #[default(None)]
    align_corners: Option<bool>,
    #[kw]
    #[default(None)]
    recompute_scale_factor: Option<bool>,
    #[kw]
    #[default(false)]
    antialias: bool,
) -> Result<Tensor> {
    let _ = (
        size,
        scale_factor,
        mode,
        align_corners,
        recompute_scale_factor,
        antialias,
    );
    Ok(x.clone())
}

#[test]
fn feat_strings() -> Result<()> {
    let f = traced!(|x: &Tensor| {
        interpolate(x, vec![4, 4], None, "bilinear", Some(false), None, false)
    });
    check_graph("feat_strings", &symbolic_trace(f)?, &[])
}

#[wrap]
fn len(x: &Tensor) -> Result<Int> {
    x.size(0)
}

#[wrap]
fn sqrt(n: Int) -> Result<Float> {
    match n.concrete() {
        Some(n) if n >= 0 => Ok((n as f64).sqrt().into()),
        _ => Err(Error::msg("the square root of a negative number")),
    }
}

#[trace]
fn normalize(x: &Tensor) -> Result<Tensor> {
    x / sqrt(len(x)?)?
}

#[test]
fn doc_wrap_normalize() -> Result<()> {
    let gm = symbolic_trace(traced!(normalize))?;
    check("doc_wrap_normalize", &gm, &[], |t| {
        normalize(&t[0]).map(value)
    })
}

/// What an operation on numbers needs to know is an error that names the value and the line.
#[test]
fn doc_len_unwrapped_fails() {
    let error = symbolic_trace(traced!(|x: &Tensor| x / (x.dims()?.len() as f64).sqrt()))
        .expect_err("the sizes of a traced tensor are not known");
    assert!(error.to_string().contains("leaf with #[wrap]"), "{error}");
}

#[wrap]
fn torch_randn(x: &Tensor, shape: usize) -> Result<Tensor> {
    let _ = x;
    Tensor::rand(shape)
}

#[test]
fn doc_wrap_randn() -> Result<()> {
    let f = traced!(|x: &Tensor| x + torch_randn(x, 5)?);
    check_graph("doc_wrap_randn", &symbolic_trace(f)?, &[])
}

#[derive(Module)]
struct DropoutRepro {
    training: bool,
}

#[trace]
impl DropoutRepro {
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        ops::dropout(x, 0.5, self.training)
    }
}

/// The flag is read while tracing: the graph keeps what it was, and the report says so.
#[test]
fn doc_dropout_repro1() -> Result<()> {
    for (name, training) in [
        ("doc_dropout_repro1", true),
        ("doc_dropout_repro1_eval", false),
    ] {
        let root = DropoutRepro { training };
        check_graph(
            name,
            &symbolic_trace(&root)?,
            &[Exception::PythonInplaceFlag],
        )?;
        let report = Trace::new(&root).report()?.to_string();
        assert!(report.contains(&format!("= {training}")), "{report}");
    }
    Ok(())
}

#[derive(Module)]
struct DropoutRepro2 {
    drop: nn::Dropout,
}

#[trace]
impl DropoutRepro2 {
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        self.drop.forward(x)
    }
}

#[test]
fn doc_dropout_repro2() -> Result<()> {
    let root = DropoutRepro2 {
        drop: nn::Dropout::new(0.5)?,
    };
    check_graph("doc_dropout_repro2", &symbolic_trace(&root)?, &[])
}
