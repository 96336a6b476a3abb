//! Compiled modules give the numbers of their sources.

use fx_nn::cpu::Cpu;
use fx_nn::models::gpt2::{self, Gpt2};
use fx_nn::models::mobilenet::mobilenet_v2;
use fx_nn::models::resnet::{resnet18, resnet50};
use fx_nn::models::vit::{self, VisionTransformer};
use fx_nn::module::Module;
use fx_nn::passes::backend::{Compile, LowerReport};
use fx_nn::prelude::*;
use fx_nn::{allclose, no_grad};

/// Compiles a model, and compares a run with the traced one.
fn compiled(model: impl Module + 'static, x: &Tensor, cpu: Cpu) -> Result<GraphModule> {
    let mut gm = symbolic_trace(&model)?;
    gm.eval();
    let fast = gm.compile(Compile::new(cpu))?;
    compare(&gm, &fast, x)?;
    Ok(fast)
}

fn compare(gm: &GraphModule, fast: &GraphModule, x: &Tensor) -> Result<()> {
    let (expected, found): (Tensor, Tensor) =
        no_grad(|| Ok::<_, Error>((gm.forward(x)?, fast.forward(x)?)))?;
    let close = allclose(&found, &expected, 2e-5, 2e-5)?;
    assert!(close.close, "{close}\n{}", steps(fast)?);
    assert!(!steps(fast)?.contains("instead"), "{}", steps(fast)?);
    Ok(())
}

/// What the parts do, and why the graph ran instead.
fn steps(fast: &GraphModule) -> Result<String> {
    let mut text = String::new();
    let report = fast.meta::<LowerReport>();
    let report = report.ok_or_else(|| Error::msg("the report stays with the module"))?;
    text += &report.to_string();
    for part in &report.parts {
        let code = fast.submodule_as::<GraphModule>(&part.path)?;
        let code = code
            .compiled()
            .ok_or_else(|| Error::msg("it is compiled"))?;
        for step in code.steps() {
            text += &format!("{}: {}\n", step.name, step.nodes.join(", "));
        }
        for (why, count) in code.fallbacks() {
            text += &format!("{count} runs used the graph instead: {why}\n");
        }
    }
    Ok(text)
}

#[test]
fn convolutional_nets_agree() -> Result<()> {
    fx_nn::manual_seed(0);
    let x = Tensor::randn((2, 3, 65, 67))?;
    compiled(resnet18(10)?, &x, Cpu::new())?;
    compiled(resnet50(10)?, &Tensor::randn((1, 3, 64, 64))?, Cpu::new())?;
    compiled(mobilenet_v2(10)?, &x, Cpu::new())?;
    Ok(())
}

#[test]
fn transformers_agree() -> Result<()> {
    fx_nn::manual_seed(0);
    let config = vit::Config {
        image_size: 32,
        patch_size: 8,
        num_layers: 2,
        num_heads: 2,
        hidden_dim: 32,
        mlp_dim: 64,
        num_classes: 10,
    };
    let vit = VisionTransformer::new(&config)?;
    compiled(vit, &Tensor::randn((2, 3, 32, 32))?, Cpu::new())?;
    let config = gpt2::Config {
        vocab_size: 50,
        block_size: 8,
        n_layer: 2,
        n_head: 2,
        n_embd: 32,
        dropout: 0.0,
    };
    compiled(
        Gpt2::new(&config)?,
        &Tensor::arange(0, 8)?.reshape((1, 8))?,
        Cpu::new(),
    )?;
    Ok(())
}

#[test]
fn a_chain_that_reads_its_parts_several_times_is_one_step() -> Result<()> {
    let gm = symbolic_trace(traced!(|x: &Tensor| {
        let a = ops::relu(&((x * 1.5)? + x)?)?;
        let b = ((&a * &a)? - x)?;
        (b.abs()? - &a)? * (&a + x)?
    }))?;
    let fast = gm.compile(Compile::new(Cpu::new()))?;
    compare(&gm, &fast, &Tensor::randn((3, 1000))?)?;
    assert_eq!(steps(&fast)?.matches("pointwise").count(), 1);
    Ok(())
}

#[test]
fn weights_that_are_written_in_place_are_packed_again() -> Result<()> {
    let mut layer = nn::Linear::new(8, 8)?;
    nn::set_requires_grad(&mut layer, false)?;
    let gm = symbolic_trace(&layer)?;
    let x = Tensor::randn((2, 8))?;
    let fast = gm.compile(Compile::new(Cpu::new()).like(&x))?;
    compare(&gm, &fast, &x)?;
    // The layer, its graph and the compiled source share the tensor.
    layer.weight.copy_from(&Tensor::ones((8, 8))?)?;
    compare(&gm, &fast, &x)?;
    Ok(())
}

#[test]
fn writes_by_candle_are_seen_after_a_refresh() -> Result<()> {
    let layer = nn::Linear::new(8, 8)?;
    let gm = symbolic_trace(&layer)?;
    let x = Tensor::randn((2, 8))?;
    let fast = gm.compile(Compile::new(Cpu::new()).like(&x))?;
    compare(&gm, &fast, &x)?;
    let var = candle_core::Var::from_tensor(layer.weight.candle()?).map_err(Error::other)?;
    let zeros = var.zeros_like().map_err(Error::other)?;
    var.set(&zeros).map_err(Error::other)?;
    fast.refresh();
    compare(&gm, &fast, &x)?;
    Ok(())
}

#[test]
fn released_modules_run_without_their_source() -> Result<()> {
    let mut model = resnet18(10)?;
    model.eval();
    nn::set_requires_grad(&mut model, false)?;
    let gm = symbolic_trace(&model)?;
    let x = Tensor::randn((1, 3, 64, 64))?;
    let mut fast = gm.compile(Compile::new(Cpu::new()).like(&x))?;
    fast.release_source()?;
    compare(&gm, &fast, &x)?;
    assert!(fast.to_string().contains("cpu_0"), "{fast}");
    // What the code does not cover is an error, since the graph has no weights.
    let error = fast
        .forward::<Tensor>(&x.to_dtype(DType::F64)?)
        .unwrap_err();
    assert!(
        error.to_string().contains("its source was released"),
        "{error}"
    );

    // A module that nothing compiled has no source to release.
    let error = gm.clone().release_source().unwrap_err().to_string();
    assert!(
        error.contains("nothing of this module is compiled"),
        "{error}"
    );
    Ok(())
}

#[test]
fn sides_of_branches_are_compiled() -> Result<()> {
    let f = traced!(|x: &Tensor, up: Bool| {
        fx_nn::control::cond(
            up,
            || ops::relu(&((x * 2.0)? + 1.0)?),
            || ops::silu(&((x * 3.0)? - 1.0)?),
        )
    });
    let gm = symbolic_trace(f)?;
    let mut fast = gm.compile(Compile::new(Cpu::new()))?;
    let report = fast.meta::<LowerReport>();
    assert_eq!(report.map(|report| report.parts.len()), Some(2));
    let x = Tensor::randn((3, 5))?;
    for up in [true, false] {
        let expected: Tensor = gm.forward((&x, up))?;
        let found: Tensor = fast.forward((&x, up))?;
        assert!(allclose(&found, &expected, 1e-6, 1e-6)?.close);
    }
    assert_eq!(fast.decompile()?, 2);
    Ok(())
}

/// A norm whose tensors a call may change, read between two calls that keep their order.
#[derive(Module)]
struct Between {
    mean: Tensor,
    weight: Tensor,
}

#[trace]
impl Between {
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let kept = ops::dropout(x, 0.5, false)?;
        let variance = kept.square()?.sum(0)?;
        let (mean, weight) = (Some(&self.mean), Some(&self.weight));
        ops::batch_norm(&kept, mean, Some(&variance), weight, None, false, 0.1, 1e-5)
    }
}

#[test]
fn tensors_that_a_call_may_change_are_read_in_their_order() -> Result<()> {
    let model = Between {
        mean: Tensor::from_vec(vec![0.5f32, -0.5], 2)?,
        weight: Tensor::from_vec(vec![2.0f32, 3.0], 2)?,
    };
    compiled(model, &Tensor::ones((3, 2))?, Cpu::new()).map(drop)
}

/// A number as the weight decides which end a step starts from.
#[derive(Module)]
struct Blended {
    end: Tensor,
}

#[trace]
impl Blended {
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let near = ops::lerp(x, &self.end, 0.25)?;
        let far = ops::lerp(x, &self.end, 0.75)?;
        near.exp()? + far.exp()?
    }
}

#[test]
fn the_end_that_a_weight_is_nearer_to() -> Result<()> {
    let gm = symbolic_trace(&Blended {
        end: Tensor::from_vec(vec![2.0f32], 1)?,
    })?;
    let fast = gm.compile(Compile::new(Cpu::new()))?;
    let x = Tensor::from_vec(vec![f32::INFINITY, f32::NEG_INFINITY, 1.5, 0.3], (2, 2))?;
    let run = |gm: &GraphModule| no_grad(|| gm.forward::<Tensor>(&x)?.to_vec());
    // From an infinity there is no way to another number.
    for (found, expected) in run(&fast)?.into_iter().zip(run(&gm)?) {
        let is_same = (found.is_nan() && expected.is_nan()) || (found - expected).abs() < 1e-5;
        assert!(is_same, "{found} for {expected}\n{}", steps(&fast)?);
    }
    assert!(steps(&fast)?.contains("lerp"), "{}", steps(&fast)?);
    Ok(())
}

/// Functions whose small results are lost where they are differences.
fn near(x: &Tensor) -> Result<Tensor> {
    let elu = ops::elu(x, 2.0)?;
    let selu = ops::selu(x)?;
    let celu = ops::celu(x, 3.0)?;
    let all = [elu, selu, celu, ops::tanhshrink(x)?, x.expm1()?];
    ops::cat(&all, 0)
}

#[test]
fn small_results_keep_their_digits() -> Result<()> {
    let x = Tensor::from_vec(vec![1e-4f32, -1e-4, 3e-4, -0.02, 0.3, -0.699], 6)?;
    let gm = Trace::new(traced!(|x: Tensor| near(&x))).graph_module()?;
    let fast = gm.compile(Compile::new(Cpu::new()).like((x.clone(),)))?;
    let (expected, found): (Tensor, Tensor) = (gm.forward(&x)?, fast.forward(&x)?);
    for (a, b) in found.to_vec()?.into_iter().zip(expected.to_vec()?) {
        assert!((a - b).abs() <= 5e-7 * b.abs(), "{a}, expected {b}");
    }
    let steps = steps(&fast)?;
    assert!(steps.contains("tanhshrink"), "it is compiled: {steps}");
    Ok(())
}

/// A product that overflows, over a divisor that would have kept it in range.
fn over(x: &Tensor, by: &Tensor) -> Result<Tensor> {
    ops::addcdiv(&ops::relu(x)?, x, by, 2.0)
}

#[test]
fn sums_overflow_where_the_graph_has_it() -> Result<()> {
    let x = Tensor::from_vec(vec![3e38f32, 1.0], 2)?;
    let by = Tensor::from_vec(vec![4f32, 2.0], 2)?;
    let gm = Trace::new(traced!(|x: Tensor, by: Tensor| over(&x, &by))).graph_module()?;
    let fast = gm.compile(Compile::new(Cpu::new()).like((x.clone(), by.clone())))?;
    for module in [&gm, &fast] {
        let found: Tensor = module.forward((&x, &by))?;
        assert_eq!(found.to_vec()?, [f64::INFINITY, 2.0]);
    }
    let steps = steps(&fast)?;
    assert!(steps.contains("addcdiv"), "it is compiled: {steps}");
    Ok(())
}
