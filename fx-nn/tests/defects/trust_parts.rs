//! Defects once found in the parts of graph modules and in what is known of sizes: none may come back.

use fx_nn::ir::ValueMeta;
use fx_nn::prelude::*;
use fx_nn::shapes::spec;

#[derive(Module, Clone, Debug)]
struct Inner {
    late: nn::Linear,
    scale: Tensor,
    early: nn::Linear,
    shift: Tensor,
}

#[trace]
impl Inner {
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let y = (self.early.forward(x)? + &self.shift)?;
        self.late.forward(&(y * &self.scale)?)
    }
}

#[derive(Module, Clone, Debug)]
struct Outer {
    w: Tensor,
    lin: nn::Linear,
    inner: Vec<Inner>,
    norm: nn::BatchNorm1d,
    last: Tensor,
}

#[trace]
impl Outer {
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let mut y = (self.norm.forward(x)? * &self.last)?;
        for inner in self.inner.iter().rev() {
            y = inner.forward(&y)?;
        }
        self.lin.forward(&y)? * &self.w
    }
}

fn parameter(size: usize) -> Result<Tensor> {
    Tensor::ones(size)?.into_parameter()
}

fn model() -> Result<Outer> {
    let inner = || -> Result<Inner> {
        Ok(Inner {
            late: nn::Linear::new(3, 3)?,
            scale: parameter(3)?,
            early: nn::Linear::new(3, 3)?,
            shift: parameter(3)?,
        })
    };
    Ok(Outer {
        w: parameter(3)?,
        lin: nn::Linear::new(3, 3)?,
        inner: vec![inner()?, inner()?],
        norm: nn::BatchNorm1d::new(3)?,
        last: parameter(3)?,
    })
}

#[test]
fn defect_t3_v7_parameters_are_in_the_models_order() -> Result<()> {
    let mut model = model()?;
    model.eval();
    let gm = symbolic_trace(&model)?;
    let loaded = GraphModule::from_bytes(&gm.to_bytes()?)?;
    let mut changed = gm.clone();
    changed.eliminate_dead_code()?;
    for (what, gm) in [("traced", &gm), ("loaded", &loaded), ("changed", &changed)] {
        let names = |map: &IndexMap<String, Value>| map.keys().cloned().collect::<Vec<_>>();
        assert_eq!(
            names(&gm.named_parameters()),
            names(&model.named_parameters()),
            "{what}"
        );
        assert_eq!(
            names(&gm.named_buffers()),
            names(&model.named_buffers()),
            "{what}"
        );
        assert_eq!(
            names(&gm.state_dict()),
            names(&model.state_dict()),
            "{what}"
        );
    }
    Ok(())
}

fn metas(gm: &GraphModule) -> Vec<String> {
    let metas = gm
        .graph()
        .nodes()
        .filter_map(|node| node.meta::<ValueMeta>());
    metas.map(ToString::to_string).collect()
}

#[test]
fn defect_t3_v7_a_size_that_a_guard_fixes_is_a_number() -> Result<()> {
    let f = traced!(|x: &Tensor, y: &Tensor| x.relu()? + y);
    let mut gm = symbolic_trace(f.clone())?;
    gm.infer_shapes(&[spec!["n"; F32], spec![3; F32]])?;
    assert!(
        metas(&gm).iter().all(|meta| meta == "float32[3]"),
        "{:?}",
        metas(&gm)
    );
    let gm = Trace::new(f)
        .inputs([spec!["n"; F32], spec![3; F32]])
        .graph_module()?;
    assert!(
        metas(&gm).iter().all(|meta| meta == "float32[3]"),
        "{:?}",
        metas(&gm)
    );
    assert!(
        gm.forward::<Tensor>((&Tensor::ones(4)?, &Tensor::ones(3)?))
            .is_err()
    );
    Ok(())
}

#[test]
fn defect_t3_v7_what_is_appended_has_numbers_for_known_sizes() -> Result<()> {
    let mut gm = symbolic_trace(traced!(|x: &Tensor| x.relu()?.exp()))?;
    gm.infer_shapes(&[spec!["n", 6; F32]])?;
    let exp = gm
        .graph()
        .find_name("exp")
        .ok_or_else(|| Error::msg("exp"))?
        .id();
    gm.append_before(exp, |cx| {
        let x = cx.graph()?.node(exp)?.args()[0].as_node();
        let x: Tensor = cx.proxy(x.ok_or_else(|| Error::msg("x"))?).to()?;
        let half = x.size(1)?.floordiv(2)?;
        assert!(half.concrete() == Some(3), "a known size is a number");
        let y = x.reshape((x.size(0)?, half, 2))?;
        assert!(
            y.size(-1)?.concrete() == Some(2),
            "of what was appended, too"
        );
        y.flatten(1, 2)?.tanh()
    })?;
    gm.eliminate_dead_code()?;
    let text = gm.graph().to_string();
    assert_eq!(text.matches("target=size").count(), 1, "{text}");
    let x = Tensor::rand((2, 6))?;
    assert_eq!(
        gm.forward::<Tensor>(&x)?.to_vec()?,
        x.relu()?.tanh()?.to_vec()?
    );
    Ok(())
}

/// Seconds to split a chain into parts of ten nodes and to inline each.
fn seconds(parts: usize) -> Result<f64> {
    let chain = traced!(move |x: &Tensor| {
        let mut y = x.clone();
        for _ in 0..parts * 10 {
            y = y.relu()?;
        }
        Ok(y)
    });
    let gm = symbolic_trace(chain)?;
    let start = std::time::Instant::now();
    let mut at = 0usize;
    let part = |_: fx_nn::ir::NodeRef<'_>| {
        at += 1;
        Some(format!("part_{}", (at - 1) / 10))
    };
    let mut split = gm.split(&fx_nn::passes::SplitOptions::new(), part)?.module;
    let calls: Vec<_> = split
        .graph()
        .nodes()
        .filter(|node| matches!(node.op(), fx_nn::ir::Op::CallModule(_)))
        .map(|node| node.id())
        .collect();
    assert_eq!(calls.len(), parts);
    for call in calls {
        split.inline_module(call)?;
    }
    assert_eq!(split.graph().len(), parts * 10 + 2);
    Ok(start.elapsed().as_secs_f64())
}

#[test]
fn defect_t3_v8_inlining_many_parts_takes_time_in_proportion() -> Result<()> {
    let few = seconds(200)?;
    let many = seconds(2000)?;
    assert!(
        many < few * 30.0 + 0.5,
        "{few} s for 200 parts, {many} s for 2,000"
    );
    Ok(())
}

#[test]
fn defect_t3_v8_deeply_nested_modules_are_traced() -> Result<()> {
    // A hierarchy itself is dropped by recursion, on a stack that is large enough for that.
    let run = || -> Result<usize> {
        let mut net = nn::Sequential::new().push(nn::ReLU::new());
        for _ in 0..2_000 {
            net = nn::Sequential::new().push(net);
        }
        let traced = std::thread::scope(|scope| {
            let small = std::thread::Builder::new().stack_size(1 << 20);
            let traced =
                small.spawn_scoped(scope, || symbolic_trace(&net).map(|gm| gm.graph().len()));
            traced
                .map_err(Error::other)?
                .join()
                .map_err(|_| Error::msg("the trace panicked"))?
        })?;
        drop(net);
        Ok(traced)
    };
    let large = std::thread::Builder::new().stack_size(256 << 20).spawn(run);
    let nodes = large
        .map_err(Error::other)?
        .join()
        .map_err(|_| Error::msg("it panicked"))??;
    assert_eq!(nodes, 3);
    Ok(())
}
