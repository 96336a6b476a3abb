//! Compiled code keeps to its source: its state, its refusals, its paths.

use fx_nn::cpu::Cpu;
use fx_nn::graph_module::functional_call;
use fx_nn::optim::{Optimizer, SGD};
use fx_nn::passes::SplitOptions;
use fx_nn::passes::backend::{Backend, Compile, Executable, LowerReport, Metas, Support};
use fx_nn::prelude::*;
use fx_nn::value::IntoValue;
use fx_nn::{allclose, weights};

/// A norm, a dropout, two linear layers and a parameter of its own.
#[derive(Clone, Module)]
struct Net {
    first: nn::Linear,
    norm: nn::BatchNorm1d,
    drop: nn::Dropout,
    act: nn::ReLU,
    last: nn::Linear,
    shift: Tensor,
}

#[trace]
impl Net {
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let h = self.norm.forward(&self.first.forward(x)?)?;
        let h = self.drop.forward(&self.act.forward(&h)?)?;
        self.act.forward(&self.last.forward(&(h + &self.shift)?)?)
    }
}

impl Net {
    fn new() -> Result<Net> {
        fx_nn::manual_seed(7);
        let mut net = Net {
            first: nn::Linear::new(6, 8)?,
            norm: nn::BatchNorm1d::new(8)?,
            drop: nn::Dropout::new(0.5)?,
            act: nn::ReLU::new(),
            last: nn::Linear::new(8, 4)?,
            shift: Tensor::rand(8)?.into_parameter()?,
        };
        net.eval();
        Ok(net)
    }
}

fn net() -> Result<(GraphModule, GraphModule, Tensor)> {
    let gm = symbolic_trace(&Net::new()?)?;
    let x = Tensor::randn((5, 6))?;
    let fast = gm.compile(Compile::new(Cpu::new()).like(&x))?;
    Ok((gm, fast, x))
}

/// Both give the same numbers; returns them.
fn same(gm: &GraphModule, fast: &GraphModule, x: &Tensor) -> Result<Tensor> {
    let (expected, found): (Tensor, Tensor) = (gm.forward(x)?, fast.forward(x)?);
    let close = allclose(&found, &expected, 1e-5, 1e-5)?;
    assert!(close.close, "{close}");
    Ok(found)
}

/// Whether the last run of the parts was their code's.
fn fallbacks(fast: &GraphModule) -> Result<Vec<(String, usize)>> {
    let report = fast.meta::<LowerReport>();
    let report = report.ok_or_else(|| Error::msg("it was compiled"))?;
    let mut all = Vec::new();
    for part in &report.parts {
        let part = fast.submodule_as::<GraphModule>(&part.path)?;
        all.extend(
            part.compiled()
                .map(|code| code.fallbacks())
                .unwrap_or_default(),
        );
        let steps = part.compiled().map(|code| code.steps()).unwrap_or_default();
        let failed = steps.iter().filter(|step| step.name.contains("instead"));
        all.extend(failed.map(|step| (step.name.clone(), 1)));
    }
    Ok(all)
}

fn runs_its_code(fast: &GraphModule) -> Result<()> {
    let why = fallbacks(fast)?;
    assert!(why.is_empty(), "{why:?}");
    Ok(())
}

#[test]
fn defect_t3_c1_train_changes_what_compiled_code_runs() -> Result<()> {
    let (gm, mut fast, x) = net()?;
    let before = same(&gm, &fast, &x)?;
    runs_its_code(&fast)?;

    fast.train();
    let zeros = |y: &Tensor| -> Result<usize> {
        Ok(y.to_vec()?.iter().filter(|x: &&f64| **x == 0.0).count())
    };
    let h: Vec<(String, Value)> = fast.named_buffers().into_iter().collect();
    assert!(!h.is_empty());
    let mean = |gm: &GraphModule| -> Result<Vec<f64>> {
        let mean = gm.buffer("norm.running_mean")?;
        Tensor::from_value(mean)?.to_vec()
    };
    assert_eq!(mean(&fast)?, vec![0.0; 8]);
    let (a, b): (Tensor, Tensor) = (fast.forward(&x)?, fast.forward(&x)?);
    assert_ne!(a.to_vec()?, b.to_vec()?, "dropout draws anew");
    assert!(zeros(&a)? <= 20);
    assert_ne!(mean(&fast)?, vec![0.0; 8], "the running mean moves");
    let why = fallbacks(&fast)?;
    assert!(
        why.iter().any(|(why, _)| why.contains("training")),
        "{why:?}"
    );

    // A saved and loaded copy is in training too.
    let loaded = GraphModule::from_bytes(&fast.to_bytes()?)?;
    let (a, b): (Tensor, Tensor) = (loaded.forward(&x)?, loaded.forward(&x)?);
    assert_ne!(a.to_vec()?, b.to_vec()?);

    // The statistics are shared with the source, which is in evaluation.
    fast.eval();
    let after = same(&gm, &fast, &x)?;
    assert_ne!(after.to_vec()?, before.to_vec()?);
    Ok(())
}

#[test]
fn defect_t3_c1_one_layer_in_training_is_enough() -> Result<()> {
    let (_, mut fast, x) = net()?;
    if let Some(drop) = fast.submodule_mut("drop")?.downcast_mut::<nn::Dropout>() {
        drop.train();
    }
    let (a, b): (Tensor, Tensor) = (fast.forward(&x)?, fast.forward(&x)?);
    assert_ne!(a.to_vec()?, b.to_vec()?);
    fast.submodule_mut("drop")?.set_training(false);
    let (a, b): (Tensor, Tensor) = (fast.forward(&x)?, fast.forward(&x)?);
    assert_eq!(a.to_vec()?, b.to_vec()?);
    Ok(())
}

#[test]
fn defect_t3_c1_what_is_replaced_is_what_runs() -> Result<()> {
    let (mut gm, mut fast, x) = net()?;
    same(&gm, &fast, &x)?;
    let weight = Tensor::randn((8, 6))?;
    let mut seen = vec![same(&gm, &fast, &x)?.to_vec()?];
    type Change<'c> = &'c dyn Fn(&mut GraphModule) -> Result<()>;
    let mut other = nn::Linear::new(8, 4)?;
    nn::set_requires_grad(&mut other, false)?;
    let changes: [Change<'_>; 6] = [
        &|gm| gm.set_parameter("first.weight", &weight),
        &|gm| gm.set_parameter("shift", &Tensor::ones(8)?),
        &|gm| gm.set_buffer("norm.running_var", &Tensor::full(8, 3.0, DType::F32)?),
        &|gm| gm.set_submodule("last", other.clone()),
        &|gm| {
            gm.submodule_as_mut::<nn::BatchNorm1d>("norm")?.eps = 0.5;
            Ok(())
        },
        &|gm| {
            let bias = gm.submodule_as_mut::<nn::Linear>("first")?;
            bias.bias = Some(Tensor::full(8, 2.0, DType::F32)?);
            Ok(())
        },
    ];
    for change in changes {
        change(&mut gm)?;
        change(&mut fast)?;
        let now = same(&gm, &fast, &x)?.to_vec()?;
        assert!(!seen.contains(&now), "the change is seen");
        seen.push(now);
    }
    runs_its_code(&fast)?;
    Ok(())
}

#[test]
fn defect_t3_c1_steps_of_an_optimizer_reach_the_code() -> Result<()> {
    let net = Net::new()?;
    let gm = symbolic_trace(&net)?;
    let x = Tensor::randn((5, 6))?;
    let fast = gm.compile(Compile::new(Cpu::new()).like(&x))?;
    let before = same(&gm, &fast, &x)?;
    let mut sgd = SGD::new(&net)?.lr(0.5);
    let loss = gm.forward::<Tensor>(&x)?.sum(..)?;
    sgd.step(&loss.backward()?)?;
    let after = same(&gm, &fast, &x)?;
    assert_ne!(before.to_vec()?, after.to_vec()?);
    Ok(())
}

#[test]
fn defect_t3_c1_gradients_that_are_asked_for_are_the_graphs() -> Result<()> {
    let (_, mut fast, x) = net()?;
    nn::set_requires_grad(&mut fast, true)?;
    let y: Tensor = fast.forward(&x)?;
    assert!(y.requires_grad()?);
    let why = fallbacks(&fast)?;
    assert!(
        why.iter().any(|(why, _)| why.contains("gradients")),
        "{why:?}"
    );
    nn::set_requires_grad(&mut fast, false)?;
    let z: Tensor = fast.forward(&x)?;
    assert!(!z.requires_grad()? && allclose(&z, &y, 1e-5, 1e-5)?.close);
    Ok(())
}

#[test]
fn defect_t3_c4_compiling_freezes_without_being_asked() -> Result<()> {
    let (gm, fast, x) = net()?;
    let y = same(&gm, &fast, &x)?;
    runs_its_code(&fast)?;
    assert!(!y.requires_grad()?);
    let is_trained = |gm: &GraphModule| -> Result<bool> {
        let all = gm.named_parameters();
        let mut any = false;
        for (_, value) in all {
            any |= Tensor::from_value(value)?.requires_grad()?;
        }
        Ok(any)
    };
    assert!(is_trained(&gm)?, "the source is as before");
    assert!(!is_trained(&fast)?);
    // Gradients say so.
    let error = y.sum(..)?.backward().err().map(|e| e.to_string());
    assert!(
        error.as_ref().is_some_and(|e| e.contains("compiled")),
        "{error:?}"
    );
    // An input that needs gradients gets them.
    let x = x.into_parameter()?;
    let loss = fast.forward::<Tensor>(&x)?.sum(..)?;
    assert!(loss.backward()?.get(&x)?.is_some());

    let mut lowered = gm.clone();
    lowered.lower(&Cpu::new())?;
    assert!(!is_trained(&lowered)?);
    assert!(!lowered.forward::<Tensor>(&x.detach()?)?.requires_grad()?);
    Ok(())
}

/// Takes layers, and runs their graph.
struct Layers;

impl Backend for Layers {
    fn name(&self) -> &str {
        "layers"
    }

    fn supports(&self, call: &fx_nn::module::Call<'_>, _: &Metas<'_>) -> Support {
        match call.function() {
            Some(_) => Support::no("a function"),
            None => Support::Yes,
        }
    }

    fn compile(
        &self,
        part: &GraphModule,
        _: &[Option<fx_nn::ir::ValueMeta>],
    ) -> Result<std::sync::Arc<dyn Executable>> {
        struct Code(GraphModule);
        impl Executable for Code {
            fn run(&self, inputs: &[&Value], out: &mut Value) -> Result<()> {
                fx_nn::module::Module::run(&self.0, inputs, out)
            }
        }
        Ok(std::sync::Arc::new(Code(part.clone())))
    }
}

fn keys(gm: &GraphModule) -> [Vec<String>; 4] {
    let mut keys = [
        gm.named_parameters().keys().cloned().collect::<Vec<_>>(),
        gm.named_buffers().keys().cloned().collect(),
        gm.state_dict().keys().cloned().collect(),
        gm.named_modules()
            .into_iter()
            .map(|(path, _)| path.to_string())
            .collect(),
    ];
    keys.iter_mut().for_each(|keys| keys.sort());
    keys
}

/// Copies of the weights, by path.
fn state(gm: &GraphModule) -> Result<fx_nn::IndexMap<String, Tensor>> {
    let state = gm.state_dict().into_iter();
    let copied = state.map(|(path, value)| {
        let tensor = Tensor::from_value(value)?;
        Ok((path, (tensor.detach()? + 0.0)?))
    });
    copied.collect()
}

/// The graph module divided in several ways.
fn divided(gm: &GraphModule, x: &Tensor) -> Result<Vec<GraphModule>> {
    let mut lowered = gm.clone();
    lowered.lower(&Layers)?;
    let mut at = 0;
    let split = gm.split(&SplitOptions::new(), |_| {
        at += 1;
        Some(at / 2)
    })?;
    let mut at = 0;
    let inside = SplitOptions::new().attributes_in_parts(true);
    let inside = gm.split(&inside, |_| {
        at += 1;
        Some(at / 3)
    })?;
    let mut nested = split.module.clone();
    nested.lower(&Layers)?;
    Ok(vec![
        gm.compile(Compile::new(Cpu::new()).like(x))?,
        lowered,
        split.module,
        inside.module,
        nested,
    ])
}

#[test]
fn defect_t3_c5_paths_stay_the_models() -> Result<()> {
    let gm = symbolic_trace(&Net::new()?)?;
    let x = Tensor::randn((5, 6))?;
    let state = state(&gm)?;
    for (way, fast) in divided(&gm, &x)?.into_iter().enumerate() {
        let mut fast = fast;
        same(&gm, &fast, &x)?;
        assert_eq!(keys(&fast), keys(&gm), "way {way}");

        // Traced again it is one graph.
        let mut whole = fast.opened()?;
        same(&gm, &whole, &x)?;
        assert_eq!(keys(&whole)[2], keys(&gm.opened()?)[2], "way {way}");
        whole.set_parameter("shift", &Tensor::zeros(8)?)?;
        let mut again = symbolic_trace(&fast)?;
        assert_eq!(keys(&again), keys(&gm), "way {way}");
        again.set_parameter("shift", &Tensor::zeros(8)?)?;
        same(&again, &whole, &x)?;

        // Found by path, one by one.
        assert_eq!(
            fast.submodule_as::<nn::Linear>("first")?.weight.dims()?,
            [8, 6]
        );
        assert!(fast.parameter("last.bias").is_ok() && fast.parameter("shift").is_ok());
        assert!(fast.buffer("norm.running_mean").is_ok());
        assert_eq!(fast.modules_of::<nn::Linear>().count(), 2);
        assert!(fast.add_submodule("first.more", nn::ReLU::new()).is_err());

        // Called with other tensors.
        let given = [
            ("first.bias", Tensor::ones(8)?),
            ("shift", Tensor::zeros(8)?),
        ];
        let expected: Tensor = functional_call(&gm, given.clone(), &x)?;
        let found: Tensor = functional_call(&fast, given, &x)?;
        assert!(allclose(&found, &expected, 1e-5, 1e-5)?.close, "way {way}");
        same(&gm, &fast, &x)?;

        // Set, and replaced.
        let mut other = gm.clone();
        for gm in [&mut other, &mut fast] {
            gm.set_parameter("last.bias", &Tensor::ones(4)?)?;
            gm.set_parameter("shift", &Tensor::zeros(8)?)?;
            gm.set_submodule("act", nn::ReLU::new())?;
            gm.replace_modules("first", |_, linear: &nn::Linear| {
                Ok::<_, Error>(nn::Linear {
                    weight: (&linear.weight * 2.0)?.detach()?,
                    ..linear.clone()
                })
            })?;
        }
        same(&other, &fast, &x)?;

        // Kept in a file, and loaded.
        let loaded = GraphModule::from_bytes(&fast.to_bytes()?)?;
        assert_eq!(keys(&loaded), keys(&gm), "way {way}");
        same(&other, &loaded, &x)?;
        let mut source = symbolic_trace(&Net::new()?)?;
        weights::load_state_dict(&mut source, &self::state(&fast)?)?;
        same(&other, &source, &x)?;

        // Checkpoints of the model.
        weights::load_state_dict(&mut fast, &state)?;
        weights::load_state_dict(&mut other, &state)?;
        same(&other, &fast, &x)?;
        let file = std::env::temp_dir().join(format!("fx_t3_c5_{}_{way}", std::process::id()));
        fast.save(&file)?;
        let loaded = weights::load(&mut other, &file);
        std::fs::remove_file(&file).map_err(Error::other)?;
        loaded?;
        assert_eq!(fast.delete_all_unused_submodules(), 0);
    }
    Ok(())
}

#[test]
fn defect_t3_c5_what_several_parts_hold_is_changed_in_all() -> Result<()> {
    let gm = symbolic_trace(&Net::new()?)?;
    let x = Tensor::randn((5, 6))?;
    let mut at = 0;
    // `act` is called in two parts.
    let split = gm.split(&SplitOptions::new(), |_| {
        at += 1;
        Some(at / 4)
    })?;
    let mut split = split.module;
    assert_eq!(keys(&split), keys(&gm));
    let error = split.submodule_mut("act").err().map(|e| e.to_string());
    assert!(
        error.as_ref().is_some_and(|e| e.contains("set_submodule")),
        "{error:?}"
    );
    split.train();
    let mut trained = 0;
    for (_, module) in split.modules_of::<nn::Dropout>() {
        trained += usize::from(module.training);
    }
    assert_eq!(trained, 1);
    split.eval();
    same(&gm, &split, &x)?;
    Ok(())
}

#[test]
fn defect_t3_c5_parts_come_back_at_their_paths() -> Result<()> {
    let (gm, mut fast, x) = net()?;
    assert_eq!(fast.decompile()?, 1);
    assert_eq!(fast.structural_hash(), gm.structural_hash());
    assert_eq!(keys(&fast), keys(&gm));
    same(&gm, &fast, &x)?;
    Ok(())
}

/// The error of a graph, and of its compiled code, for arguments; `None` where it gives a result.
fn errors(gm: &GraphModule, like: &[Value], args: &[Value]) -> Result<[Option<String>; 2]> {
    let call = |args: &[Value]| fx_nn::trace::CallArgs {
        args: args.to_vec(),
        kwargs: Vec::new(),
    };
    let fast = match gm.compile(Compile::new(All).like(call(like))) {
        Ok(fast) => fast,
        Err(error) => {
            return Ok([
                gm.forward::<Value>(call(like)).err().map(|e| e.to_string()),
                Some(error.to_string()),
            ]);
        }
    };
    Ok([gm, &fast].map(|gm| gm.forward::<Value>(call(args)).err().map(|e| e.to_string())))
}

/// The compiler for the CPU, which takes single calls too.
struct All;

impl Backend for All {
    fn name(&self) -> &str {
        "cpu"
    }

    fn supports(&self, call: &fx_nn::module::Call<'_>, metas: &Metas<'_>) -> Support {
        Cpu::new().supports(call, metas)
    }

    fn prepare(&self, module: &mut GraphModule) -> Result<()> {
        Cpu::new().prepare(module)
    }

    fn compile(
        &self,
        part: &GraphModule,
        inputs: &[Option<fx_nn::ir::ValueMeta>],
    ) -> Result<std::sync::Arc<dyn Executable>> {
        Cpu::new().compile(part, inputs)
    }
}

/// The graph refuses a call, and compiled code does with the same error, whether it is compiled for
/// these arguments or for others.
fn refused(gm: Result<GraphModule>, good: &[Tensor], bad: &[Tensor]) -> Result<()> {
    // What is refused while tracing has no code.
    let Ok(gm) = gm else {
        return Ok(());
    };
    let values = |tensors: &[Tensor]| -> Vec<Value> {
        tensors.iter().map(|t| t.clone().into_value()).collect()
    };
    let (good, bad) = (values(good), values(bad));
    for like in [&good, &bad] {
        let [eager, compiled] = errors(&gm, like, &bad)?;
        assert!(eager.is_some(), "{}", gm.graph());
        assert_eq!(eager, compiled, "{}", gm.graph());
    }
    Ok(())
}

#[test]
fn defect_t3_c2_compiled_code_refuses_what_the_graph_refuses() -> Result<()> {
    let x = Tensor::randn((2, 3, 4))?;
    let xs = std::slice::from_ref(&x);
    let one = |gm: Result<GraphModule>| refused(gm, xs, xs);
    one(symbolic_trace(traced!(|x: &Tensor| (x * 2.0)?.t())))?;
    one(symbolic_trace(traced!(|x: &Tensor| {
        ops::layer_norm(&(x * 2.0)?, 3, None, None, 1e-5)
    })))?;
    one(symbolic_trace(traced!(
        |x: &Tensor| (x * 2.0)?.reshape((-2, 4))
    )))?;
    one(symbolic_trace(traced!(
        |x: &Tensor| (x * 2.0)?.reshape((-1, -1))
    )))?;
    one(symbolic_trace(traced!(
        |x: &Tensor| (x * 2.0)?.expand((2, -2, 4))
    )))?;
    one(symbolic_trace(
        traced!(|x: &Tensor| (x * 2.0)?.mean([1, 1])),
    ))?;
    one(symbolic_trace(traced!(
        |x: &Tensor| (x * 2.0)?.mean([1, -2])
    )))?;
    one(symbolic_trace(traced!(|x: &Tensor| {
        ops::masked_fill(x, &x.gt(0.0)?, 1e300)
    })))?;
    one(symbolic_trace(traced!(|x: &Tensor| x.gt(0.0)? - x)))?;
    one(symbolic_trace(traced!(|x: &Tensor| x - x.gt(0.0)?)))?;
    one(symbolic_trace(traced!(|x: &Tensor| (x * 2.0)?.pow(1e300))))?;
    one(symbolic_trace(traced!(
        |x: &Tensor| (x * 2.0)?.flatten(-2, 0)
    )))?;
    one(symbolic_trace(traced!(
        |x: &Tensor| (x * 2.0)?.narrow(1, 2, 2)
    )))?;
    one(symbolic_trace(
        traced!(|x: &Tensor| (x * 2.0)?.select(1, 3)),
    ))?;
    one(symbolic_trace(traced!(
        |x: &Tensor| (x * 2.0)?.permute([0, 1])
    )))?;
    one(symbolic_trace(traced!(|x: &Tensor| (x * 2.0)?
        .split(0, 1)?
        .get(0))))?;
    one(symbolic_trace(traced!(|x: &Tensor| (x * 2.0)?
        .chunk(0, 1)?
        .get(0))))?;
    one(symbolic_trace(traced!(|x: &Tensor| ops::softmax(
        &(x * 2.0)?,
        3
    ))))?;
    let q = Tensor::randn((1, 2, 4, 8))?;
    let mask = Tensor::ones((4, 4))?.gt(0.0)?;
    let attend = traced!(|q: &Tensor, mask: &Tensor| {
        ops::scaled_dot_product_attention(q, q, q, Some(mask), 0.0, true, None, false)
    });
    let both = [q, mask];
    refused(symbolic_trace(attend), &both, &both)?;
    // What nothing reads is refused as well.
    one(symbolic_trace(traced!(|x: &Tensor| {
        let _unused = (x * 2.0)?.t()?;
        ops::relu(&(x + 1.0)?)
    })))?;
    Ok(())
}

#[test]
fn defect_t3_c8_sizes_that_change_are_checked() -> Result<()> {
    let of = |dims: &[usize]| Tensor::randn(dims.to_vec());
    let layer = nn::LayerNorm::new(4)?;
    let gm = || symbolic_trace(&layer);
    refused(gm(), &[of(&[2, 4])?], &[of(&[2, 8])?])?;
    refused(gm(), &[of(&[2, 4])?], &[of(&[4, 2])?])?;
    let gm = || {
        symbolic_trace(traced!(|x: &Tensor| ops::layer_norm(
            x, 4, None, None, 1e-5
        )))
    };
    refused(gm(), &[of(&[2, 4])?], &[of(&[2, 8])?])?;
    refused(gm(), &[of(&[2, 4])?], &[of(&[])?])?;
    let gm = || symbolic_trace(traced!(|x: &Tensor| ops::rms_norm(x, 4, None, 1e-5)));
    refused(gm(), &[of(&[2, 4])?], &[of(&[2, 8])?])?;
    let gm = || symbolic_trace(traced!(|x: &Tensor| (x * 2.0)?.t()));
    refused(gm(), &[of(&[2, 4])?], &[of(&[2, 4, 1])?])?;
    let gm = || symbolic_trace(traced!(|x: &Tensor| (x * 2.0)?.reshape((2, -1))));
    refused(gm(), &[of(&[2, 4])?], &[of(&[3, 3])?])?;
    let gm = || symbolic_trace(traced!(|x: &Tensor| (x * 2.0)?.flatten(1, 2)));
    refused(gm(), &[of(&[2, 4, 1])?], &[of(&[3, 3])?])?;
    let gm = || symbolic_trace(traced!(|x: &Tensor, y: &Tensor| x.matmul(y)));
    refused(
        gm(),
        &[of(&[2, 4])?, of(&[4, 3])?],
        &[of(&[2, 4])?, of(&[5, 3])?],
    )?;
    let attend = || {
        symbolic_trace(traced!(|q: &Tensor, k: &Tensor| {
            ops::scaled_dot_product_attention(q, k, k, None, 0.0, false, None, false)
        }))
    };
    let good = [of(&[1, 4, 3, 8])?, of(&[1, 4, 5, 8])?];
    refused(attend(), &good, &[of(&[1, 4, 3, 8])?, of(&[1, 2, 5, 8])?])?;
    refused(attend(), &good, &[of(&[1, 4, 3, 8])?, of(&[1, 4, 5, 6])?])?;
    Ok(())
}

fn attended(
    [q, k, v]: [&Tensor; 3],
    mask: Option<&Tensor>,
    is_causal: bool,
) -> Result<[Vec<f64>; 2]> {
    let gm = match mask {
        Some(_) => symbolic_trace(traced!(|q: &Tensor, k: &Tensor, v: &Tensor, m: &Tensor| {
            ops::scaled_dot_product_attention(q, k, v, Some(m), 0.0, false, None, false)
        }))?,
        None => symbolic_trace(traced!(move |q: &Tensor, k: &Tensor, v: &Tensor| {
            ops::scaled_dot_product_attention(q, k, v, None, 0.0, is_causal, None, false)
        }))?,
    };
    let mut args: Vec<Value> = [q, k, v].map(|x| x.clone().into_value()).to_vec();
    args.extend(mask.map(|mask| mask.clone().into_value()));
    let call = fx_nn::trace::CallArgs {
        args,
        kwargs: Vec::new(),
    };
    let fast = gm.compile(Compile::new(All).like(call.clone()))?;
    let (eager, compiled): (Tensor, Tensor) = (gm.forward(call.clone())?, fast.forward(call)?);
    assert_eq!(eager.dims()?, compiled.dims()?);
    Ok([eager.to_vec()?, compiled.to_vec()?])
}

/// Numbers that are equal or near, NaN included.
fn agree(a: &[f64], b: &[f64]) -> bool {
    let near = |(a, b): (&f64, &f64)| a == b || a.is_nan() && b.is_nan() || (a - b).abs() < 1e-5;
    a.len() == b.len() && a.iter().zip(b).all(near)
}

#[test]
fn defect_t3_c3_rows_that_are_masked_whole_are_zeros() -> Result<()> {
    let numbers = |n: usize| (0..n).map(|x| x as f32).collect::<Vec<_>>();
    let q = (Tensor::from_vec(numbers(8), (1, 1, 4, 2))? / 8.0)?;
    let k = (Tensor::from_vec(numbers(6), (1, 1, 3, 2))? / 6.0)?;
    let v = (Tensor::from_vec(numbers(6), (1, 1, 3, 2))? + 1.0)?;
    let masked: Vec<f32> = (0..12).map(|at| f32::from(u8::from(at / 3 != 1))).collect();
    let truth = Tensor::from_vec(masked, (4, 3))?.gt(0.0)?;
    // PyTorch's.
    let expected = [
        3.039278, 4.039278, 0.0, 0.0, 3.349472, 4.349472, 3.498586, 4.498586,
    ];
    let [eager, compiled] = attended([&q, &k, &v], Some(&truth), false)?;
    assert!(agree(&eager, &expected), "{eager:?}");
    assert!(agree(&compiled, &expected), "{compiled:?}");

    let low = f32::NEG_INFINITY;
    let added = [0.0, 0.0, 0.0, low, low, low, low, 0.0, 0.0, 0.0, 0.0, 0.0];
    let expected = [
        3.039278, 4.039278, 0.0, 0.0, 4.131811, 5.131811, 3.498586, 4.498586,
    ];
    let added = Tensor::from_vec(added.to_vec(), (4, 3))?;
    let [eager, compiled] = attended([&q, &k, &v], Some(&added), false)?;
    assert!(agree(&eager, &expected), "{eager:?}");
    assert!(agree(&compiled, &expected), "{compiled:?}");

    // Fewer keys than queries.
    let expected = [
        1.0, 2.0, 2.073524, 3.073524, 3.349472, 4.349472, 3.498586, 4.498586,
    ];
    let [eager, compiled] = attended([&q, &k, &v], None, true)?;
    assert!(agree(&eager, &expected), "{eager:?}");
    assert!(agree(&compiled, &expected), "{compiled:?}");
    Ok(())
}

#[test]
fn defect_t3_c3_what_is_no_number_is_where_the_graph_has_it() -> Result<()> {
    let random = |dims: [usize; 4]| Tensor::randn(dims.to_vec());
    for (queries, keys) in [(1, 3), (2, 5), (4, 3), (9, 40), (300, 270)] {
        let (q, k, v) = (
            random([2, 2, queries, 4])?,
            random([2, 2, keys, 4])?,
            random([2, 2, keys, 4])?,
        );
        let truth = Tensor::rand((queries, keys))?.gt(0.6)?;
        let added = ops::masked_fill(&Tensor::zeros((queries, keys))?, &truth, f64::NEG_INFINITY)?;
        for special in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            let broken = |x: &Tensor, at: usize| -> Result<Tensor> {
                let mut numbers: Vec<f32> = x.to_vec()?.iter().map(|x: &f64| *x as f32).collect();
                numbers[at] = special as f32;
                Tensor::from_vec(numbers, x.dims()?.to_vec())
            };
            let last = keys * 4 - 1;
            let (bq, bk, bv) = (broken(&q, 1)?, broken(&k, last)?, broken(&v, last)?);
            let bm = broken(&added, keys - 1)?;
            for (case, operands) in [[&bq, &k, &v], [&q, &bk, &v], [&q, &k, &bv]]
                .iter()
                .enumerate()
            {
                for (mask, is_causal) in [
                    (None, false),
                    (None, true),
                    (Some(&truth), false),
                    (Some(&added), false),
                    (Some(&bm), false),
                ] {
                    let [eager, compiled] = attended(*operands, mask, is_causal)?;
                    assert!(
                        agree(&eager, &compiled),
                        "{special} in {case}, {queries} and {keys}, {} {is_causal}: {:?}",
                        mask.is_some(),
                        eager
                            .iter()
                            .zip(&compiled)
                            .find(|(a, b)| !agree(&[**a], &[**b]))
                    );
                }
            }
        }
    }
    Ok(())
}
