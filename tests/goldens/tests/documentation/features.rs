//! One feature of tracing each, against its golden: operators, indices, shapes, pieces, methods and functions.

use fx_core::ir::Op;
use fx_core::operator;
use fx_core::prelude::*;
use fx_goldens::cases::features::dead_code;
use fx_goldens::exception::Exception;
use fx_goldens::model;
use fx_nn::prelude::*;

/// Compares the graph alone: the golden has no numbers.
fn check_graph(name: &str, traced: &GraphModule, exceptions: &[Exception]) -> Result<()> {
    traced.graph().lint()?;
    let graph = model::compare(name, traced, exceptions)?;
    assert!(graph.equal, "{graph}");
    Ok(())
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

#[test]
fn a_claim_stops_a_run_and_outlives_dead_code() -> Result<()> {
    let mut gm = symbolic_trace(traced!(dead_code))?;
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

/// What an operation on numbers needs to know is an error that names the value and the line.
#[test]
fn doc_len_unwrapped_fails() {
    let error = symbolic_trace(traced!(|x: &Tensor| x / (x.dims()?.len() as f64).sqrt()))
        .expect_err("the sizes of a traced tensor are not known");
    assert!(
        error.to_string().contains("`x.shape()?` give sizes"),
        "{error}"
    );
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
