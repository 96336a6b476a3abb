//! Traces that know the shapes of their inputs.

use fx_nn::ir::ValueMeta;
use fx_nn::models::{gpt2, lstm_classifier::LstmClassifier, resnet, unet};
use fx_nn::module::ComponentExt;
use fx_nn::prelude::*;
use fx_nn::shapes::{Spec, spec};

fn metas(gm: &GraphModule) -> Vec<(String, Option<String>)> {
    let meta = |node: fx_nn::ir::NodeRef<'_>| node.meta::<ValueMeta>().map(ValueMeta::to_string);
    gm.graph()
        .nodes()
        .map(|node| (node.name().to_string(), meta(node)))
        .collect()
}

/// The entries of a trace that knows its inputs are those of an inference afterwards.
fn agrees<M: Module>(model: &M, spec: Spec) -> Result<GraphModule> {
    let gm = Trace::new(model).inputs([spec.clone()]).graph_module()?;
    let mut later = gm.clone();
    later.unguarded();
    later.infer_shapes(&[spec])?;
    assert_eq!(metas(&gm), metas(&later));
    assert!(metas(&gm).iter().all(|(_, meta)| meta.is_some()));
    assert_eq!(gm.contract(), later.contract());
    Ok(gm)
}

#[test]
fn models_know_their_shapes_while_they_are_traced() -> Result<()> {
    let mut model = resnet::resnet18(10)?;
    model.eval();
    let gm = agrees(&model, spec!["n", 3, "h", "w"; F32])?;
    let x = Tensor::rand((1, 3, 32, 40))?;
    assert_eq!(
        gm.forward::<Tensor>(&x)?.to_vec()?,
        model.forward(&x)?.to_vec()?
    );
    let mut model = unet::UNet::new(3, 2, 8)?;
    model.eval();
    agrees(&model, spec!["n", 3, "16*h", "16*w"; F32])?;
    agrees(&LstmClassifier::new(30, 8, 16, 4)?, spec!["n", "t"; I64])?;

    let mut model = gpt2::Gpt2::new(&gpt2::Config {
        vocab_size: 50,
        block_size: 8,
        n_layer: 2,
        n_head: 2,
        n_embd: 16,
        dropout: 0.0,
    })?;
    model.eval();
    let gm = agrees(&model, spec!["n", "t"; I64])?;
    let guards: Vec<String> = gm.contract().map_or(Vec::new(), |contract| {
        contract.guards().iter().map(ToString::to_string).collect()
    });
    assert_eq!(guards.len(), 1);
    assert!(
        guards[0].contains("8   (") && guards[0].contains("gpt2.rs"),
        "{guards:?}"
    );
    // With numbers, no size is left to compute.
    let gm = agrees(&model, spec![3, 8; I64])?;
    assert_eq!(
        gm.graph().to_string().matches("size").count(),
        0,
        "{}",
        gm.graph()
    );
    let ids = Tensor::zeros((3, 8))?.to_dtype(DType::I64)?;
    assert_eq!(
        gm.forward::<Tensor>(&ids)?.to_vec()?,
        model.forward(&ids)?.to_vec()?
    );
    Ok(())
}

#[test]
fn a_mistake_is_an_error_at_its_line() -> Result<()> {
    let f = traced!(|x: &Tensor, y: &Tensor| {
        let wide = x.relu()?;
        wide.matmul(y)
    });
    let line = line!() - 2;
    let trace = Trace::new(f).inputs([spec!["n", 3; F32], spec![4, 5; F32]]);
    let error = trace.graph().unwrap_err().to_string();
    assert!(
        error.contains("the shapes [n, 3] and [4, 5] do not fit: 3 and 4 differ"),
        "{error}"
    );
    assert!(
        error.contains(&format!("trace_inputs.rs:{line}")),
        "{error}"
    );
    Ok(())
}

#[test]
fn what_is_known_is_no_node() -> Result<()> {
    let f = traced!(|x: &Tensor| {
        let (batch, rows, columns) = x.dims3()?;
        assert!(x.ndim()?.concrete() == Some(3), "the rank is known");
        let area = (rows * columns)?;
        assert!(area.concrete() == Some(20), "the area is known");
        x.view((batch, area))
    });
    let gm = Trace::new(f.clone())
        .inputs([spec!["n", 4, 5; F32]])
        .graph_module()?;
    assert_eq!(
        gm.forward::<Tensor>(&Tensor::ones((2, 4, 5))?)?.dims()?,
        [2, 20]
    );
    assert!(gm.graph().find_name("mul").is_none(), "{}", gm.graph());
    let plain = traced!(|x: &Tensor| {
        let dims = x.dims()?;
        x.view((dims[1], dims[0]))
    });
    let gm = Trace::new(plain.clone())
        .inputs([spec![2, 3; F32]])
        .graph_module()?;
    assert_eq!(
        gm.forward::<Tensor>(&Tensor::ones((2, 3))?)?.dims()?,
        [3, 2]
    );
    let error = gm
        .forward::<Tensor>(&Tensor::ones((4, 3))?)
        .unwrap_err()
        .to_string();
    assert!(error.contains("dim 0 is 4, not 2"), "{error}");
    let error = Trace::new(plain)
        .inputs([spec!["n", 3; F32]])
        .graph()
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("x.ndim()") && error.contains("x.size(0)"),
        "{error}"
    );
    Ok(())
}

#[test]
fn questions_are_answered_by_ranges_and_hints() -> Result<()> {
    let f = traced!(|x: &Tensor| {
        let n = x.size(0)?;
        if n.ge(1)?.to_bool()? && n.gt(4)?.to_bool()? {
            x.relu()
        } else {
            x.sigmoid()
        }
    });
    let error = Trace::new(f.clone())
        .inputs([spec!["n"; F32]])
        .graph()
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("hint") && error.contains("control_flow"),
        "{error}"
    );
    let gm = Trace::new(f.clone())
        .inputs([spec!["n"; F32].hint("n", 8)])
        .graph_module()?;
    assert!(gm.graph().find_name("relu").is_some());
    let error = gm
        .forward::<Tensor>(&Tensor::ones(3)?)
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("`n` is 3, and the graph is for `n >= 5` ("),
        "{error}"
    );
    let report = Trace::new(f)
        .inputs([spec!["n"; F32].hint("n", 2)])
        .report()?
        .to_string();
    assert!(report.contains("sizes: n <= 4 (guarded)"), "{report}");

    let number = traced!(|x: &Tensor| {
        let n = x.size(0)?.concrete().unwrap_or(0);
        x.view((n, 1))
    });
    let gm = Trace::new(number)
        .inputs([spec!["n"; F32].hint("n", 6)])
        .graph_module()?;
    assert!(gm.forward::<Tensor>(&Tensor::ones(5)?).is_err());
    assert_eq!(gm.forward::<Tensor>(&Tensor::ones(6)?)?.dims()?, [6, 1]);

    let rows = traced!(|x: &Tensor| {
        let mut sum = x.sum(..)?;
        for row in x.iter()? {
            sum = (sum + row.sum(..)?)?;
        }
        Ok(sum)
    });
    let gm = Trace::new(rows)
        .inputs([spec![3, "m"; F32]])
        .graph_module()?;
    assert_eq!(gm.forward::<Tensor>(&Tensor::ones((3, 2))?)?.item()?, 12.0);
    Ok(())
}

#[test]
fn specs_that_do_not_fit_are_errors() -> Result<()> {
    let f = traced!(|x: &Tensor, n: Int| x * n);
    let error = |specs: Vec<Spec>| {
        Trace::new(f.clone())
            .inputs(specs)
            .graph()
            .unwrap_err()
            .to_string()
    };
    assert!(error(vec![spec!["n"; F32]]).contains("`n` has no spec"));
    let three = vec![spec!["n"; F32], Spec::int(1), Spec::int(2)];
    assert!(error(three).contains("3 specs for 2 parameters"));
    assert!(error(vec![spec!["n +"; F32], Spec::int(1)]).contains("n +"));
    Ok(())
}

#[trace(control_flow)]
fn halved_if_long(x: &Tensor) -> Result<Tensor> {
    let n = x.size(0)?;
    if n > 4 { x * 0.5 } else { x.relu() }
}

#[test]
fn branches_are_taken_where_sizes_decide() -> Result<()> {
    let known = Trace::new(traced!(halved_if_long))
        .inputs([spec![8; F32]])
        .graph_module()?;
    assert!(known.graph().find_name("relu").is_none() && known.graph().find_name("cond").is_none());
    let open = Trace::new(traced!(halved_if_long))
        .inputs([spec!["n"; F32]])
        .graph_module()?;
    for n in [3, 6] {
        let x = Tensor::ones(n)?;
        assert_eq!(
            open.forward::<Tensor>(&x)?.to_vec()?,
            halved_if_long(&x)?.to_vec()?
        );
    }
    let result = open
        .graph()
        .output_node()
        .and_then(|node| node.meta::<ValueMeta>());
    assert_eq!(
        result.map(ValueMeta::to_string).as_deref(),
        Some("float32[n]")
    );
    Ok(())
}

/// A new trace of a graph keeps what the graph was specialised to, where the parameter's default is another value.
#[test]
fn a_new_trace_keeps_what_a_graph_was_specialised_to() -> Result<()> {
    let layer = nn::MultiheadAttention::new(2, 2)?;
    let gm = Trace::new(&layer)
        .concrete("need_weights", false)
        .graph_module()?;
    let x = Tensor::rand((3, 1, 2))?;
    let expected: (Tensor, Tensor) = gm.forward((&x, &x, &x, None::<Tensor>, false))?;
    for again in [symbolic_trace(&gm)?, gm.opened()?] {
        let found: (Tensor, Tensor) = again.forward((&x, &x, &x, None::<Tensor>, false))?;
        assert_eq!(found.0.to_vec()?, expected.0.to_vec()?);
        // Another value is refused as before.
        let error = again.forward::<Value>((&x, &x, &x, None::<Tensor>, true));
        let error = error.unwrap_err().to_string();
        assert!(error.contains("was specialised to false"), "{error}");
    }
    Ok(())
}
