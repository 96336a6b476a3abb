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
