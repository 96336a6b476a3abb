//! Defects once found in tracing, each by its number: none may come back.

use fx_nn::ir::ValueMeta;
use fx_nn::passes::{Cse, FoldConstants, FuseBatchNorm, PassManager, RemoveDropout};
use fx_nn::pattern::replace_pattern;
use fx_nn::prelude::*;
use fx_nn::value::NodeId;

fn unknown(gm: &GraphModule) -> Vec<String> {
    let nodes = gm.graph().nodes();
    let unknown = nodes.filter(|node| node.meta::<ValueMeta>().is_none());
    unknown.map(|node| node.name().to_string()).collect()
}

fn id(gm: &GraphModule, name: &str) -> Result<NodeId> {
    let node = gm.graph().find_name(name);
    node.map(|node| node.id())
        .ok_or_else(|| Error::msg(format!("no %{name}")))
}

#[derive(Module)]
struct Recurrent {
    lstm: nn::LSTM,
    attention: nn::MultiheadAttention,
}

#[trace]
impl Recurrent {
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let (y, _) = self.lstm.forward(x, None)?;
        Ok(self.attention.forward(&y, &y, &y, None, true, None)?.0)
    }
}

#[test]
fn defect_b01_layers_run_without_their_optional_arguments() -> Result<()> {
    let lstm = nn::LSTM::new(4, 4)?;
    let x = Tensor::rand((3, 2, 4))?;
    let gm = symbolic_trace(&lstm)?;
    let (y, (h, c)) = lstm.forward(&x, None)?;
    let found: (Tensor, (Tensor, Tensor)) = gm.forward(&x)?;
    assert_eq!(found.0.to_vec()?, y.to_vec()?);
    let error = gm
        .forward::<(Tensor, (Tensor, Tensor))>((&x, (&h, &c)))
        .unwrap_err();
    assert!(
        error.to_string().contains(".concrete(\"hx\", PH)"),
        "{error}"
    );
    let there = Trace::new(&lstm).concrete("hx", PH).graph_module()?;
    let next: (Tensor, (Tensor, Tensor)) = there.forward((&x, (&h, &c)))?;
    let expected = lstm.forward(&x, Some((h, c)))?;
    assert_eq!(next.0.to_vec()?, expected.0.to_vec()?);
    assert!(there.forward::<(Tensor, (Tensor, Tensor))>(&x).is_err());

    let attention = nn::MultiheadAttention::new(4, 2)?;
    let gm = symbolic_trace(&attention)?;
    let found: (Tensor, Tensor) = gm.forward((&x, &x, &x))?;
    let expected = attention.forward(&x, &x, &x, None, true, None)?;
    assert_eq!(found.0.to_vec()?, expected.0.to_vec()?);
    assert_eq!(found.1.to_vec()?, expected.1.to_vec()?);
    let report = Trace::new(&attention).report()?.to_string();
    for name in ["key_padding_mask", "attn_mask"] {
        assert!(
            report.contains(&format!("argument `{name}` = None (guarded)")),
            "{report}"
        );
    }
    let both = Recurrent { lstm, attention };
    let gm = symbolic_trace(&both)?;
    assert_eq!(
        gm.forward::<Tensor>(&x)?.to_vec()?,
        both.forward(&x)?.to_vec()?
    );
    Ok(())
}

#[derive(Module)]
struct Normed {
    lin: nn::Linear,
    bn: nn::BatchNorm1d,
}

#[trace]
impl Normed {
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        self.bn.forward(&self.lin.forward(&x.exp()?)?)
    }
}

fn normed() -> Result<GraphModule> {
    let mut net = Normed {
        lin: nn::Linear::new(4, 3)?,
        bn: nn::BatchNorm1d::new(3)?,
    };
    net.bn.running_mean = Some(Tensor::rand(3)?);
    net.eval();
    let mut gm = symbolic_trace(&net)?;
    gm.propagate_shapes(&Tensor::rand((2, 4))?)?;
    Ok(gm)
}

#[test]
fn defect_b02_batch_norm_is_not_folded_on_a_stale_shape() -> Result<()> {
    let edits: [fn(&mut GraphModule) -> Result<()>; 3] = [
        |gm| {
            replace_pattern(
                gm,
                traced!(|x: &Tensor| x.exp()),
                traced!(|x: &Tensor| x.exp()?.unsqueeze(1)?.expand((2, 3, 4))),
            )
            .map(drop)
        },
        |gm| {
            let exp = id(gm, "exp")?;
            let new = gm.append_before(exp, |cx| {
                let x = cx.graph()?.node(exp)?.args()[0].as_node();
                let x: Tensor = cx.proxy(x.ok_or_else(|| Error::msg("a node"))?).to()?;
                x.exp()?.unsqueeze(1)?.expand((2, 3, 4))
            })?;
            let _ = new;
            gm.eliminate_dead_code().map(drop)
        },
        |gm| {
            let exp = id(gm, "exp")?;
            let mut graph = gm.graph_mut();
            let wide = graph
                .inserting_after(exp)?
                .call_method("unsqueeze", (exp, 1), ())?;
            let wide =
                graph
                    .inserting_after(wide)?
                    .call_method("expand", (wide, vec![2, 3, 4]), ())?;
            let lin = graph.find_name("lin").map(|node| node.id());
            let lin = lin.ok_or_else(|| Error::msg("a layer"))?;
            graph.node_mut(lin)?.replace_input_with(exp, wide)
        },
    ];
    for edit in edits {
        let mut gm = normed()?;
        assert_eq!(FuseBatchNorm::plan(&gm)?.fused.len(), 1);
        edit(&mut gm)?;
        let x = Tensor::rand((2, 4))?;
        let before: Tensor = gm.forward(&x)?;
        assert_eq!(before.dims()?, [2, 3, 3]);
        let plan = FuseBatchNorm::plan(&gm)?;
        assert!(plan.fused.is_empty(), "{plan}");
        // A rewrite fills in what it knows.
        let reason = &plan.skipped[0].reason;
        assert!(
            reason.contains("run `propagate_shapes`") || reason.contains("gave shape [2, 3, 3]"),
            "{plan}"
        );
        gm.apply(&FuseBatchNorm)?;
        assert_eq!(gm.forward::<Tensor>(&x)?.to_vec()?, before.to_vec()?);
    }
    Ok(())
}

#[test]
fn defect_b02_passes_keep_the_shapes_of_a_model() -> Result<()> {
    let mut model = nn::Sequential::new()
        .push(nn::Conv2d::new(3, 8, 3)?)
        .push(nn::BatchNorm2d::new(8)?)
        .push(nn::ReLU::new())
        .push(nn::Dropout::new(0.5)?)
        .push(nn::Conv2d::new(8, 4, 3)?)
        .push(nn::BatchNorm2d::new(4)?);
    model.eval();
    let mut gm = symbolic_trace(&model)?;
    gm.propagate_shapes(&Tensor::rand((2, 3, 8, 8))?)?;
    PassManager::new()
        .pass(RemoveDropout)
        .pass(FuseBatchNorm)
        .pass(FoldConstants::new())
        .pass(Cse::new())
        .run(&mut gm)?;
    assert_eq!(unknown(&gm), [""; 0]);
    assert_eq!(gm.graph().len(), 5);
    let kept: Vec<String> = gm
        .graph()
        .nodes()
        .filter_map(|n| n.meta::<ValueMeta>().map(ToString::to_string))
        .collect();
    gm.propagate_shapes(&Tensor::rand((2, 3, 8, 8))?)?;
    let fresh: Vec<String> = gm
        .graph()
        .nodes()
        .filter_map(|n| n.meta::<ValueMeta>().map(ToString::to_string))
        .collect();
    assert_eq!(kept, fresh);
    Ok(())
}

#[test]
fn defect_b02_another_type_of_tensors_is_an_edit() -> Result<()> {
    let mut gm = normed()?;
    assert_eq!(unknown(&gm), [""; 0]);
    nn::to_dtype(&mut gm, DType::F64)?;
    assert_eq!(unknown(&gm), ["lin", "bn", "output"]);
    // Setting the same type and mode changes nothing.
    let mut gm = normed()?;
    nn::to_dtype(&mut gm, DType::F32)?;
    gm.train();
    assert_eq!(unknown(&gm), [""; 0]);
    Ok(())
}

#[derive(Module)]
struct Weighted {
    weight: Tensor,
}

#[trace]
impl Weighted {
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        (x * self.weight.exp()?)?.relu()
    }
}

#[test]
fn defect_b02_a_tensor_in_anothers_place_is_an_edit() -> Result<()> {
    let weight = Tensor::rand(4)?.into_parameter()?;
    let mut gm = symbolic_trace(&Weighted { weight })?;
    gm.propagate_shapes(&Tensor::rand((2, 4))?)?;
    gm.set_parameter("weight", &Tensor::rand(4)?.into_parameter()?)?;
    assert_eq!(unknown(&gm), [""; 0]);
    gm.set_parameter("weight", &Tensor::rand((3, 1, 4))?.into_parameter()?)?;
    assert_eq!(unknown(&gm), ["weight", "exp", "mul", "relu", "output"]);
    Ok(())
}

#[test]
fn defect_b09_a_folded_tensor_has_its_shape() -> Result<()> {
    for lazy in [false, true] {
        let weight = Tensor::rand(4)?.into_parameter()?;
        let mut gm = symbolic_trace(&Weighted { weight })?;
        gm.propagate_shapes(&Tensor::rand((2, 4))?)?;
        let pass = FoldConstants::new();
        gm.apply(&if lazy { pass.lazily() } else { pass })?;
        assert_eq!(unknown(&gm), [""; 0]);
        let name = if lazy { "getitem" } else { "_folded_0" };
        let folded = gm.graph().node(id(&gm, name)?)?;
        let meta = folded.meta::<ValueMeta>().and_then(ValueMeta::tensor);
        assert_eq!(meta.and_then(|meta| meta.known_shape()), Some(vec![4]));
    }
    Ok(())
}

#[test]
fn defect_m02_weights_of_ambiguous_modules_are_refused() -> Result<()> {
    #[derive(Module)]
    struct Two {
        weight: Tensor,
        #[module(flatten)]
        linear: nn::Linear,
    }
    let mut two = Two {
        weight: Tensor::ones(2)?,
        linear: nn::Linear::new(2, 3)?,
    };
    let path = std::env::temp_dir().join(format!("fx_m02_{}.safetensors", std::process::id()));
    let saved = fx_nn::weights::save(&two, &path);
    fx_nn::weights::save(&nn::Linear::new(2, 3)?, &path)?;
    let loaded = fx_nn::weights::load(&mut two, &path);
    std::fs::remove_file(&path).map_err(Error::other)?;
    let state = fx_nn::weights::load_state_dict(&mut two, &Default::default());
    for refused in [saved, loaded, state, two.check_paths()] {
        let error = refused.unwrap_err().to_string();
        for part in ["at `weight`", "shape [2]", "shape [3, 2]"] {
            assert!(error.contains(part), "{error}");
        }
    }
    // The lists are unchanged.
    assert_eq!(two.named_parameters().len(), 2);
    Ok(())
}

#[derive(Module)]
struct Early {
    a: nn::Linear,
}

#[trace]
impl Early {
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let y = self.a.forward(x)?;
        let _n = y.abs()?.sum(..)?;
        Ok(y)
    }
}

#[derive(Module)]
struct Pair {
    inner: Early,
    same: Same,
}

/// Records nothing.
#[derive(Module, Default)]
struct Same {
    tag: fx_nn::module::Tag,
}

#[trace]
impl Same {
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        Ok(x.clone())
    }
}

#[trace]
impl Pair {
    fn forward(&self, x: &Tensor) -> Result<(Tensor, (Tensor, Option<Tensor>))> {
        let y = self.inner.forward(x)?;
        let sum = y.sum(1)?;
        Ok((sum, (self.same.forward(x)?, None)))
    }
}

#[derive(Module)]
struct Outer {
    pair: Pair,
    top: Top,
}

/// Returns all results of a call.
#[derive(Module, Default)]
struct Top {
    tag: fx_nn::module::Tag,
}

#[trace]
impl Top {
    fn forward(&self, x: &Tensor) -> Result<(Tensor, Tensor)> {
        x.topk(1, -1, true, true)
    }
}

#[trace]
impl Outer {
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let (sum, (x, _)) = self.pair.forward(x)?;
        let (values, _) = self.top.forward(&x)?;
        values + sum.unsqueeze(1)?
    }
}

fn outer() -> Result<Outer> {
    Ok(Outer {
        pair: Pair {
            inner: Early {
                a: nn::Linear::new(4, 4)?,
            },
            same: Same::default(),
        },
        top: Top::default(),
    })
}

#[test]
fn defect_n05_capture_shows_what_modules_returned() -> Result<()> {
    let model = outer()?;
    let x = Tensor::rand((2, 4))?;
    let gm = symbolic_trace(&model)?;
    let bytes = GraphModule::from_bytes(&gm.to_bytes()?)?;
    let again = gm.transform(&mut fx_nn::run::PlainInterpreter)?;
    for gm in [&gm, &bytes, &again] {
        let seen = gm.capture(&["pair", "pair.inner", "pair.same", "top"], &x)?;
        let early: Tensor = Tensor::from_value(seen["pair.inner"].clone())?;
        assert_eq!(early.to_vec()?, model.pair.inner.forward(&x)?.to_vec()?);
        let same = Tensor::from_value(seen["pair.same"].clone())?;
        assert_eq!(same.to_vec()?, x.to_vec()?);
        type Whole = (Tensor, (Tensor, Option<Tensor>));
        let (sum, (kept, none)) = Whole::from_value(seen["pair"].clone())?;
        assert_eq!(sum.to_vec()?, early.sum(1)?.to_vec()?);
        assert_eq!(kept.to_vec()?, x.to_vec()?);
        assert!(none.is_none());
        let (values, indices) = <(Tensor, Tensor)>::from_value(seen["top"].clone())?;
        assert_eq!(
            (values.dims()?, indices.dims()?),
            (&[2, 1][..], &[2, 1][..])
        );
    }
    Ok(())
}

#[test]
fn defect_n05_summary_shows_what_modules_returned() -> Result<()> {
    let summary = fx_nn::summary(&outer()?, &Tensor::rand((2, 4))?)?;
    let shown = |path: &str| -> Result<String> {
        let output = summary.module(path)?.output.as_ref();
        Ok(output.map(ToString::to_string).unwrap_or_default())
    };
    assert_eq!(shown("pair.inner")?, "float32[2, 4]");
    assert_eq!(shown("pair.inner.a")?, "float32[2, 4]");
    assert_eq!(shown("pair.same")?, "float32[2, 4]");
    assert_eq!(shown("pair")?, "(float32[2], (float32[2, 4], None))");
    assert_eq!(shown("top")?, "(float32[2, 1], int64[2, 1])");
    assert_eq!(shown("")?, "float32[2, 1]");
    // What a layer multiplies is counted once.
    assert_eq!(summary.module("pair.inner.a")?.multiply_adds, 2 * 4 * 4);
    assert_eq!(summary.module("")?.multiply_adds, 2 * 4 * 4);
    Ok(())
}
