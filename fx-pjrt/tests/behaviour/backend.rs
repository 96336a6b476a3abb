//! The backend: parts of graph modules, their weights, and sizes.

use fx_nn::Result;
use fx_nn::passes::backend::{Compile, Compiled, LowerReport};
use fx_nn::prelude::*;
use fx_nn::trace::CallArgs;
use fx_pjrt::Pjrt;

use super::stub::Stub;

/// The code of a module that is one part.
fn code(gm: &GraphModule) -> &Compiled {
    let report = gm.meta::<LowerReport>().expect("it was compiled");
    assert_eq!(report.parts.len(), 1, "{report}");
    let part = gm.submodule_as::<GraphModule>(&report.parts[0].path);
    part.expect("it is there").compiled().expect("it has code")
}

fn steps(gm: &GraphModule) -> Vec<String> {
    code(gm).steps().into_iter().map(|step| step.name).collect()
}

/// A graph whose result the plugin of the tests takes for its weight, which has the same sizes.
fn scaled() -> Result<GraphModule> {
    let weight = Tensor::ones(3)?;
    symbolic_trace(traced!(|x: &Tensor| &weight * x.sum(..)?))
}

#[test]
fn weights_that_are_written_are_placed_again() -> Result<()> {
    let stub = Stub::new("");
    {
        let pjrt = Pjrt::new(stub.client()?);
        let x = Tensor::ones(5)?;
        let gm = scaled()?;
        let compiled = gm.compile(Compile::new(pjrt).like(&x))?;
        assert_eq!(compiled.forward::<Tensor>(&x)?.to_vec()?, [1.0; 3]);
        let state = gm.state_dict();
        let (_, weight) = state.first().expect("it has a weight");
        let mut weight = weight
            .downcast_ref::<Tensor>()
            .expect("it is a tensor")
            .clone();
        weight.copy_from(&Tensor::full(3, 4.0, DType::F32)?)?;
        assert_eq!(compiled.forward::<Tensor>(&x)?.to_vec()?, [4.0; 3]);
        assert_eq!(code(&compiled).plans(), 1);
        compiled.refresh();
        assert_eq!(compiled.forward::<Tensor>(&x)?.to_vec()?, [4.0; 3]);
    }
    assert_eq!(stub.live(), 0);
    Ok(())
}

#[test]
fn a_failed_compile_leaves_the_graph() -> Result<()> {
    let stub = Stub::new("fail:PJRT_Client_Compile");
    {
        let gm = symbolic_trace(traced!(|x: &Tensor| x.relu()?.exp()? + 1.0))?;
        let before = gm.graph().to_string();
        let x = Tensor::ones(5)?;
        let compiled = gm.compile(Compile::new(Pjrt::new(stub.client()?)).like(&x))?;
        let report = compiled.meta::<LowerReport>().expect("it has a report");
        assert!(report.parts.is_empty());
        assert!(
            report.failed[0]
                .1
                .contains("PJRT_Client_Compile was to fail"),
            "{report}"
        );
        assert_eq!(gm.graph().to_string(), before);
        let (found, expected): (Tensor, Tensor) = (compiled.forward(&x)?, gm.forward(&x)?);
        assert_eq!(found.to_vec()?, expected.to_vec()?);
    }
    assert_eq!(stub.live(), 0);
    Ok(())
}

#[test]
fn what_stablehlo_lacks_stays_in_the_graph() -> Result<()> {
    #[wrap]
    fn own(x: &Tensor) -> Result<Tensor> {
        x + 1.0
    }
    let stub = Stub::new("");
    let gm = symbolic_trace(traced!(|x: &Tensor| own(&x.relu()?.exp()?)?.relu()?.exp()))?;
    let x = Tensor::ones(5)?;
    let compiled = gm.compile(Compile::new(Pjrt::new(stub.client()?)).like(&x))?;
    let report = compiled.meta::<LowerReport>().expect("it has a report");
    assert_eq!((report.parts.len(), report.left.len()), (2, 1), "{report}");
    assert!(
        report.left[0].reason.contains("StableHLO has no form of"),
        "{report}"
    );
    // The plugin of the tests gives arguments back; the call in the middle adds one.
    assert_eq!(compiled.forward::<Tensor>(&x)?.to_vec()?, [2.0; 5]);
    Ok(())
}

#[test]
fn other_sizes_are_compiled_for() -> Result<()> {
    let stub = Stub::new("");
    let gm = symbolic_trace(traced!(|x: &Tensor| x.relu()?.exp()))?;
    let compiled =
        gm.compile(Compile::new(Pjrt::new(stub.client()?)).like(&Tensor::ones((2, 3))?))?;
    assert_eq!(code(&compiled).plans(), 1);
    for size in [2, 4, 5, 4] {
        let x = Tensor::full((size, 3), size as f64, DType::F32)?;
        assert_eq!(compiled.forward::<Tensor>(&x)?.to_vec()?, x.to_vec()?);
    }
    assert_eq!(code(&compiled).plans(), 3, "{:?}", steps(&compiled));
    Ok(())
}

#[test]
fn batches_are_padded_where_samples_are_independent() -> Result<()> {
    let stub = Stub::new("");
    let pjrt = Pjrt::new(stub.client()?).batch_sizes([4, 8]);
    let gm = symbolic_trace(traced!(|x: &Tensor| x.relu()?.exp()))?;
    let compiled = gm.compile(Compile::new(pjrt.clone()))?;
    for size in [1, 2, 3, 4, 5, 7, 8] {
        let x = Tensor::full((size, 3), size as f64, DType::F32)?;
        let y: Tensor = compiled.forward(&x)?;
        assert_eq!((y.dims()?, y.to_vec()?), (x.dims()?, x.to_vec()?));
    }
    // One program for 4, and one for 8.
    assert_eq!(code(&compiled).plans(), 2);
    let found = steps(&compiled);
    assert!(
        found
            .iter()
            .any(|step| step.contains("batches padded to 4")),
        "{found:?}"
    );
    let large = Tensor::ones((9, 3))?;
    assert_eq!(compiled.forward::<Tensor>(&large)?.dims()?, [9, 3]);
    assert_eq!(code(&compiled).plans(), 3, "{found:?}");

    Ok(())
}

#[test]
fn batches_whose_samples_meet_or_whose_size_counts_are_not_padded() -> Result<()> {
    let stub = Stub::new("");
    let pjrt = Pjrt::new(stub.client()?).batch_sizes([4]);
    let is_padded = |gm: GraphModule, inputs: Vec<Tensor>| -> Result<bool> {
        let args: Vec<Value> = inputs.into_iter().map(Value::of).collect();
        let args = CallArgs {
            args,
            kwargs: Vec::new(),
        };
        let compiled = gm.compile(Compile::new(pjrt.clone()).like(args.clone()))?;
        compiled.forward::<Value>(args)?;
        let found = steps(&compiled);
        assert_eq!(found.len(), 1, "{found:?}");
        let is_refused = found[0].contains("not padded: ");
        assert!(is_refused != found[0].contains("padded to 4"), "{found:?}");
        Ok(!is_refused)
    };
    let x = |shape: &[usize]| Tensor::ones(shape);
    // Each of three samples is by itself, viewed by the size of the batch or not.
    let rows = symbolic_trace(traced!(|x: &Tensor| x.exp()?.sum(1)?.relu()))?;
    assert!(is_padded(rows, vec![x(&[3, 2])?])?);
    let viewed = symbolic_trace(traced!(|x: &Tensor| x.exp()?.reshape((x.size(0)?, -1))))?;
    assert!(is_padded(viewed, vec![x(&[3, 2, 2])?])?);
    // A mean over the batch; rows that are merged with the batch; pairs of samples; the size of the batch as a number;
    // zeros for each sample; a batch of one that is added to several.
    let mean = symbolic_trace(traced!(|x: &Tensor| x - x.mean(0)?))?;
    assert!(!is_padded(mean, vec![x(&[3, 2])?])?);
    let merged = symbolic_trace(traced!(|x: &Tensor| x.exp()?.reshape((-1, 2))))?;
    assert!(!is_padded(merged, vec![x(&[3, 5, 2])?])?);
    let pairs = symbolic_trace(traced!(|x: &Tensor| x.exp()?.reshape((2, -1, 2))?.mean(1)))?;
    assert!(!is_padded(pairs, vec![x(&[2, 2])?])?);
    let counted = symbolic_trace(traced!(|x: &Tensor| x.exp()? * x.size(0)?))?;
    assert!(!is_padded(counted, vec![x(&[3, 2])?])?);
    let zeros = symbolic_trace(traced!(|x: &Tensor| {
        Ok((x.exp()?.relu()?, ops::zeros((x.size(0)?, 2), None)?))
    }))?;
    assert!(!is_padded(zeros, vec![x(&[3, 2])?])?);
    let broadcast = symbolic_trace(traced!(|x: &Tensor, y: &Tensor| (x.exp()? + y)?.relu()))?;
    assert!(!is_padded(broadcast, vec![x(&[1, 2])?, x(&[4, 2])?])?);
    Ok(())
}
