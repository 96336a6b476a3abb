//! Compiled code of graphs of 16-bit floats: it has the types of its graph, and numbers that are at least as near to those
//! of the same weights in f32.

use fx_core::trace::CallArgs;
use fx_core::value::Value;
use fx_nn::cpu::{Cpu, Level, Precision, WeightKind};
use fx_nn::models::gpt2::{self, Gpt2};
use fx_nn::models::hf::decoder::{Cache, CausalLM, Config};
use fx_nn::models::resnet::resnet18;
use fx_nn::models::vit::{self, VisionTransformer};
use fx_nn::passes::backend::{Compile, Compiled, LowerReport};
use fx_nn::prelude::*;
use fx_nn::shapes::spec;
use fx_nn::{allclose, no_grad};

/// Calls a closure with the code of each part of a module.
fn each_code(fast: &GraphModule, mut f: impl FnMut(&Compiled)) -> Result<()> {
    let report = fast.meta::<LowerReport>();
    let report = report.ok_or_else(|| Error::msg("the report stays with the module"))?;
    for part in &report.parts {
        let code = fast.submodule_as::<GraphModule>(&part.path)?;
        f(code
            .compiled()
            .ok_or_else(|| Error::msg("it is compiled"))?);
    }
    Ok(())
}

/// What code calls for sizes, and for integers such as positions.
const OF_INTEGERS: [&str; 14] = [
    "arange",
    "size",
    "narrow",
    "floordiv",
    "mul",
    "ge",
    "getitem",
    "add",
    "and_",
    "sub",
    "lt",
    "unsqueeze",
    "eq",
    "_assert",
];

/// Fails if a graph ran instead of its code, or the code calls something that is not of integers.
pub(crate) fn runs_compiled(fast: &GraphModule) -> Result<()> {
    each_code(fast, |code| {
        assert!(code.fallbacks().is_empty(), "{:?}", code.fallbacks());
        let steps = code.steps();
        assert!(code.plans() >= 1, "no program: {steps:?}");
        for step in code.steps() {
            let is_allowed = |name: &str| step.name.ends_with(name);
            let is_kernel = !step.name.starts_with("call of") && !step.name.contains("instead");
            assert!(
                is_kernel || OF_INTEGERS.iter().any(|name| is_allowed(name)),
                "{step:?}"
            );
        }
    })
}

/// The relative root mean square of the difference of two tensors.
pub(crate) fn error(found: &Tensor, exact: &Tensor) -> Result<f64> {
    let (found, exact) = (found.to_vec()?, exact.to_vec()?);
    let squares = |all: &mut dyn Iterator<Item = f64>| all.map(|x| x * x).sum::<f64>();
    let differences = squares(&mut found.iter().zip(&exact).map(|(a, b)| a - b));
    Ok((differences / squares(&mut exact.into_iter())).sqrt())
}

/// Compiles a model in 16 bits: its result has the type and is nearer to that in f32 than the graph's, but for noise.
fn is_near(model: &GraphModule, x: &Tensor) -> Result<()> {
    for (half, step) in [(DType::BF16, 2f64.powi(-9)), (DType::F16, 2f64.powi(-12))] {
        let mut gm = model.clone();
        nn::to_dtype(&mut gm, half)?;
        let mut wide = gm.clone();
        nn::to_dtype(&mut wide, DType::F32)?;
        let is_floats = x.dtype()? == DType::F32;
        let (input, wide_input) = match is_floats {
            true => (x.to_dtype(half)?, x.to_dtype(half)?.to_dtype(DType::F32)?),
            false => (x.clone(), x.clone()),
        };
        for fast in [
            gm.compile(Compile::new(Cpu::new()))?,
            gm.compile(Compile::new(Cpu::new()).like(&input))?,
        ] {
            no_grad(|| {
                let exact: Tensor = wide.forward(&wide_input)?;
                let (graph, found): (Tensor, Tensor) = (gm.forward(&input)?, fast.forward(&input)?);
                assert_eq!((graph.dtype()?, found.dtype()?), (half, half));
                let (of_graph, of_code) = (error(&graph, &exact)?, error(&found, &exact)?);
                assert!(
                    of_code <= of_graph.max(step),
                    "{half}: {of_code:.2e} beside {of_graph:.2e}"
                );
                runs_compiled(&fast)
            })?;
        }
    }
    Ok(())
}

#[test]
fn models_have_their_type_and_are_nearer_to_f32() -> Result<()> {
    fx_nn::manual_seed(0);
    let mut net = resnet18(10)?;
    net.eval();
    is_near(&symbolic_trace(&net)?, &Tensor::randn((1, 3, 64, 64))?)?;
    let config = gpt2::Config {
        vocab_size: 50,
        block_size: 16,
        n_layer: 2,
        n_head: 4,
        n_embd: 32,
        dropout: 0.0,
    };
    let tokens = Tensor::arange(0, 12)?.reshape((1, 12))?;
    is_near(&symbolic_trace(&Gpt2::new(&config)?)?, &tokens)?;
    let config = vit::Config {
        image_size: 32,
        patch_size: 8,
        num_layers: 2,
        num_heads: 4,
        hidden_dim: 64,
        mlp_dim: 128,
        num_classes: 10,
    };
    let net = VisionTransformer::new(&config)?;
    is_near(&symbolic_trace(&net)?, &Tensor::randn((2, 3, 32, 32))?)
}

/// A decoder of two layers whose heads share keys.
fn decoder(family: &str) -> Result<CausalLM> {
    let config = format!(
        r#"{{
            "model_type": "{family}", "vocab_size": 64, "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2,
            "num_attention_heads": 4, "num_key_value_heads": 2, "max_position_embeddings": 64, "tie_word_embeddings": true
        }}"#
    );
    CausalLM::new(&Config::from_json(&config)?)
}

#[test]
fn decoders_of_16_bits_write_token_after_token() -> Result<()> {
    fx_nn::manual_seed(0);
    for family in ["llama", "qwen2", "gemma"] {
        for half in [DType::BF16, DType::F16] {
            let mut model = decoder(family)?;
            nn::to_dtype(&mut model, half)?;
            let mut wide = model.clone();
            nn::to_dtype(&mut wide, DType::F32)?;
            let gm = model.trace()?;
            let fast = gm.compile(Compile::new(Cpu::new()))?;
            no_grad(|| {
                let mut tokens = Tensor::from_vec(vec![3i64, 1, 4, 1, 5], (1, 5))?;
                let caches = [model.caches(1)?, model.caches(1)?, wide.caches(1)?];
                let [mut of_graph, mut of_code, mut of_wide] = caches;
                for _ in 0..3 {
                    let graph: (Tensor, Vec<Cache>) = gm.forward((&tokens, of_graph))?;
                    let found: (Tensor, Vec<Cache>) = fast.forward((&tokens, of_code))?;
                    let exact = wide.forward(&tokens, of_wide)?;
                    assert_eq!((found.0.dtype()?, found.1[0].k.dtype()?), (half, half));
                    assert_eq!(found.1[1].v.dims()?, exact.1[1].v.dims()?);
                    let (a, b) = (error(&graph.0, &exact.0)?, error(&found.0, &exact.0)?);
                    assert!(b <= a * 1.1, "{family} {half}: {b:.2e} beside {a:.2e}");
                    (of_graph, of_code, of_wide) = (graph.1, found.1, exact.1);
                    tokens = exact.0.i((.., -1))?.argmax(-1, false)?.unsqueeze(1)?;
                }
                runs_compiled(&fast)
            })?;
        }
    }
    Ok(())
}

/// A function that compiled code calls as it is.
#[wrap]
fn doubled_on_the_host(x: &Tensor) -> Result<Tensor> {
    let dtype = x.dtype()?;
    let doubled: Vec<f64> = x.to_vec()?.iter().map(|x| 2.0 * x).collect();
    Tensor::from_vec(doubled, x.dims()?)?.to_dtype(dtype)
}

#[test]
fn casts_round_and_calls_get_what_the_graph_gives_them() -> Result<()> {
    let x = (Tensor::randn((3, 33))? * 100.0)?;
    let rare = Tensor::from_vec(
        vec![
            f32::NAN,
            f32::INFINITY,
            -f32::INFINITY,
            1e-7,
            -3e-6,
            65519.0,
            65520.0,
            3.4e38,
            -0.0,
        ],
        9,
    )?;
    for half in [DType::BF16, DType::F16] {
        let rounded = symbolic_trace(traced!(|x: Tensor| {
            x.relu()?.to_dtype(half)?.to_dtype(DType::F32)? * 2.0
        }))?;
        let kept = symbolic_trace(traced!(
            |x: Tensor| (x.to_dtype(half)? + 0.0)?.to_dtype(DType::F32)
        ))?;
        let narrow = x.to_dtype(half)?;
        for level in Level::available() {
            let cpu = Cpu::new().level(level);
            let of_half = symbolic_trace(traced!(|x: Tensor| {
                let wide = x.to_dtype(DType::F32)?;
                ((wide * 1.001)?.to_dtype(half)? + doubled_on_the_host(&(&x + &x)?)?)?.exp()
            }))?;
            let fast = of_half.compile(Compile::new(cpu.clone()).like(&narrow))?;
            let (expected, found): (Tensor, Tensor) =
                (of_half.forward(&narrow)?, fast.forward(&narrow)?);
            assert_eq!(found.dtype()?, half);
            let (found, expected) = (found.to_vec()?, expected.to_vec()?);
            let is_near =
                |(a, b): (&f64, &f64)| a == b || (a.ln() - b.ln()).abs() <= 0.02 * b.ln().abs();
            assert!(found.iter().zip(&expected).all(is_near), "{half} {level:?}");
            for input in [&x, &rare] {
                for gm in [&rounded, &kept] {
                    // A graph of f32 alone, with halves inside: its calls run as they are, or are rounded like them.
                    let fast = gm.compile(Compile::new(cpu.clone()).like(input))?;
                    let (expected, found): (Tensor, Tensor) =
                        (gm.forward(input)?, fast.forward(input)?);
                    let bits = |x: &Tensor| {
                        Ok::<_, Error>(
                            x.to_vec()?
                                .iter()
                                .map(|x| if x.is_nan() { 1 } else { x.to_bits() })
                                .collect::<Vec<u64>>(),
                        )
                    };
                    assert_eq!(bits(&found)?, bits(&expected)?, "{half} {level:?}");
                }
            }
        }
    }
    Ok(())
}

#[test]
fn weights_are_stored_as_they_are_or_as_asked_for() -> Result<()> {
    let mut layer = nn::Linear::new(96, 40)?;
    for half in [DType::BF16, DType::F16] {
        nn::to_dtype(&mut layer, half)?;
        let gm = symbolic_trace(&nn::Sequential::new().push(layer.clone()))?;
        let mut wide = layer.clone();
        nn::to_dtype(&mut wide, DType::F32)?;
        for rows in [1, 3, 8, 40] {
            let x = Tensor::randn((rows, 96))?.to_dtype(half)?;
            let exact = no_grad(|| wide.forward(&x.to_dtype(DType::F32)?))?.to_dtype(half)?;
            for (kind, tolerance) in [
                (None, 0.0),
                (Some(WeightKind::F32), 0.0),
                (Some(WeightKind::I8), 0.05),
            ] {
                for level in Level::available() {
                    let cpu = Cpu::new().level(level);
                    let cpu = match kind {
                        Some(kind) => cpu.weights(kind),
                        None => cpu,
                    };
                    let fast = gm.compile(Compile::new(cpu).like(&x))?;
                    let found: Tensor = no_grad(|| fast.forward(&x))?;
                    // Sums in another order are rounded to a neighbour at most.
                    let step = if half == DType::BF16 { 0.008 } else { 0.001 };
                    let close = allclose(&found, &exact, step + tolerance, step / 8.0 + tolerance)?;
                    assert!(close.close, "{half} {kind:?} {rows} {level:?} {close}");
                }
            }
        }
    }
    Ok(())
}

#[test]
fn one_code_takes_arguments_of_each_type() -> Result<()> {
    let gm = symbolic_trace(traced!(
        |x: Tensor, y: Tensor| ((&x * &y)?.silu()? + &x)?.sum(-1)
    ))?;
    let fast = gm.compile(Compile::new(Cpu::new()))?;
    let (x, y) = (Tensor::randn((3, 40))?, Tensor::randn((3, 40))?);
    let types = [DType::F32, DType::BF16, DType::F16, DType::F64];
    for a in types {
        for b in types {
            let call = || -> Result<CallArgs> {
                Ok(CallArgs {
                    args: vec![Value::of(x.to_dtype(a)?), Value::of(y.to_dtype(b)?)],
                    kwargs: Vec::new(),
                })
            };
            let (expected, found): (Tensor, Tensor) =
                (gm.forward(call()?)?, fast.forward(call()?)?);
            assert_eq!(found.dtype()?, expected.dtype()?, "{a} and {b}");
            assert!(allclose(&found, &expected, 0.05, 0.3)?.close, "{a} and {b}");
        }
    }
    each_code(&fast, |code| assert_eq!(code.plans(), 9))
}

#[test]
fn open_sizes_are_compiled_by_the_first_run() -> Result<()> {
    let mut layer = nn::Linear::new(16, 8)?;
    nn::to_dtype(&mut layer, DType::BF16)?;
    nn::set_requires_grad(&mut layer, false)?;
    let mut gm = symbolic_trace(traced!(|x: Tensor| layer.forward(&x)?.relu()))?;
    gm.infer_shapes(&[spec!["n", 16; BF16]])?;
    let fast = gm.compile(Compile::new(Cpu::new()))?;
    for rows in [1, 5] {
        let x = Tensor::randn((rows, 16))?.to_dtype(DType::BF16)?;
        let (expected, found): (Tensor, Tensor) = (gm.forward(&x)?, fast.forward(&x)?);
        assert!(allclose(&found, &expected, 0.01, 0.01)?.close);
    }
    runs_compiled(&fast)
}

/// Compiles a graph for some arguments, and compares it with its code on these and on others: types, too.
fn same_types(gm: &GraphModule, all: &[Vec<Tensor>]) -> Result<()> {
    let call = |inputs: &Vec<Tensor>| CallArgs {
        args: inputs.iter().map(|x| Value::of(x.clone())).collect(),
        kwargs: Vec::new(),
    };
    for fast in [
        gm.compile(Compile::new(Cpu::new()))?,
        gm.compile(Compile::new(Cpu::new()).like(call(&all[0])))?,
    ] {
        for inputs in all {
            let (expected, found): (Tensor, Tensor) =
                (gm.forward(call(inputs))?, fast.forward(call(inputs))?);
            assert_eq!(found.dtype()?, expected.dtype()?, "{}", gm.graph());
            let close = allclose(&found, &expected, 0.02, 0.02)?;
            assert!(close.close, "{}: {close}", gm.graph());
        }
    }
    Ok(())
}

#[test]
fn types_follow_dims_and_are_forgotten_where_data_decides() -> Result<()> {
    let random = |dims: &[usize], dtype: DType| Tensor::randn(dims.to_vec())?.to_dtype(dtype);
    // A tensor without dims leaves the type of another one as it is.
    let row = symbolic_trace(traced!(|x: Tensor, w: Tensor| (x * w.i(0)?)?.relu()? * 2.0))?;
    let x = random(&[2, 3], DType::BF16)?;
    let rows = [[5].as_slice(), &[5, 3], &[2]];
    let all = rows.map(|dims| Ok::<_, Error>(vec![x.clone(), random(dims, DType::F32)?]));
    same_types(&row, &all.into_iter().collect::<Result<Vec<_>>>()?)?;
    // What a mask picks has a size of the run.
    let picked = symbolic_trace(traced!(|x: Tensor, m: Tensor| {
        (x.relu()?.masked_select(&m)? * 2.0)? + 1.0
    }))?;
    let mask = random(&[2, 3], DType::F32)?.gt(0.0)?;
    let all = [DType::F32, DType::BF16, DType::F16, DType::F64];
    let all = all.map(|dtype| Ok::<_, Error>(vec![random(&[2, 3], dtype)?, mask.clone()]));
    same_types(&picked, &all.into_iter().collect::<Result<Vec<_>>>()?)?;
    // 16 bits inside of a graph of f32.
    let inside = symbolic_trace(traced!(|x: Tensor| {
        let h = x.relu()?.to_dtype(DType::BF16)?;
        &h * x.sum(..)?
    }))?;
    let zeros = symbolic_trace(traced!(|x: Tensor| {
        (&x.relu()? * 0.0)?.to_dtype(DType::F16)? + ops::zeros_like(&x.relu()?, Some(DType::F16))?
    }))?;
    for gm in [inside, zeros] {
        same_types(
            &gm,
            &[
                vec![random(&[4], DType::F32)?],
                vec![random(&[2, 4], DType::F32)?],
            ],
        )?;
    }
    // Numbers: integers and floats.
    let mask = symbolic_trace(traced!(|x: Tensor, m: Tensor| {
        x.masked_fill(&m.gt(0.0)?, f64::NEG_INFINITY)?.softmax(-1)
    }))?;
    let m = random(&[3, 1], DType::F32)?;
    let half = random(&[3, 5], DType::BF16)?;
    let kept = m.lt(0.0)?.to_dtype(DType::F32)?.neg()?;
    same_types(&mask, &[vec![half, kept]])
}

/// Whether the processor multiplies pairs of `bf16`.
fn has_pairs() -> bool {
    #[cfg(target_arch = "x86_64")]
    return Level::Avx512.is_available() && std::arch::is_x86_feature_detected!("avx512bf16");
    #[cfg(not(target_arch = "x86_64"))]
    false
}

/// The steps whose names say that they multiply `bf16`.
fn in_bf16(fast: &GraphModule) -> Result<Vec<String>> {
    let mut names = Vec::new();
    each_code(fast, |code| {
        names.extend(code.steps().into_iter().map(|step| step.name));
    })?;
    names.retain(|name| name.contains("in bf16"));
    Ok(names)
}

/// A graph of floats in `bf16` is near to itself, where the machine has the instructions and where it has not.
#[test]
fn graphs_of_floats_multiply_bf16_if_asked() -> Result<()> {
    fx_nn::manual_seed(0);
    let mut net = resnet18(10)?;
    net.eval();
    let (gm, x) = (symbolic_trace(&net)?, Tensor::randn((2, 3, 64, 64))?);
    let exact: Tensor = gm.forward(&x)?;
    let compiled = |cpu: Cpu| gm.compile(Compile::new(cpu).like(&x));
    assert!(in_bf16(&compiled(Cpu::new())?)?.is_empty());
    for level in Level::available() {
        for winograd in [true, false] {
            let cpu = Cpu::new().level(level).winograd(winograd);
            let fast = compiled(cpu.precision(Precision::Bf16))?;
            let found: Tensor = fast.forward(&x)?;
            let apart = error(&found, &exact)?;
            assert!((1e-4..0.02).contains(&apart), "{level:?}: {apart:.2e}");
            let rounds = level == Level::Avx512 && has_pairs();
            // All convolutions but the first, of three channels, and the linear layer.
            let expected = if rounds { 20 } else { 0 };
            assert_eq!(in_bf16(&fast)?.len(), expected, "{level:?}");
            runs_compiled(&fast)?;
        }
    }
    Ok(())
}

/// Layers with weights in `bf16` multiply it, unless floats are asked for; other types stay as they are.
#[test]
fn graphs_of_bf16_multiply_it() -> Result<()> {
    fx_nn::manual_seed(0);
    let layers = || -> Result<_> {
        let first = nn::Linear::new(64, 48)?;
        Ok(nn::Sequential::new()
            .push(first)
            .push(nn::GELU::new())
            .push(nn::Linear::new(48, 8)?))
    };
    for (dtype, precision, rounded) in [
        (DType::BF16, None, true),
        (DType::BF16, Some(Precision::F32), false),
        (DType::F16, None, false),
        (DType::F16, Some(Precision::Bf16), true),
        (DType::F32, Some(Precision::Bf16), true),
    ] {
        let mut model = layers()?;
        nn::to_dtype(&mut model, dtype)?;
        let gm = symbolic_trace(&model)?;
        let cpu = precision.map_or(Cpu::new(), |precision| Cpu::new().precision(precision));
        let fast = gm.compile(Compile::new(cpu))?;
        for rows in [1, 3, 40] {
            let x = Tensor::randn((rows, 64))?.to_dtype(dtype)?;
            let (exact, found): (Tensor, Tensor) = (gm.forward(&x)?, fast.forward(&x)?);
            let apart = error(&found.to_dtype(DType::F32)?, &exact.to_dtype(DType::F32)?)?;
            assert!(apart < 0.01, "{dtype} {precision:?} {rows}: {apart:.2e}");
        }
        let steps = in_bf16(&fast)?.len();
        let expected = if rounded && has_pairs() { 2 } else { 0 };
        assert_eq!(steps, expected, "{dtype} {precision:?}");
    }
    Ok(())
}
