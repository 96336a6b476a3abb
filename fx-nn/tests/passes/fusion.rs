//! `FuseBatchNorm`: which batch norms are folded, which are refused, which stay and why.

use fx_nn::ir::Op;
use fx_nn::module::{ComponentExt, Module};
use fx_nn::passes::{FuseBatchNorm, FusionPlan};
use fx_nn::prelude::*;

use crate::passes::{filled, is_close, says};

/// The reasons of the batch norms that stay, by node.
fn reasons(plan: &FusionPlan) -> Vec<(&str, &str)> {
    let skipped = plan.skipped.iter();
    skipped.map(|s| (&*s.node, &*s.reason)).collect()
}

fn conv(c_in: usize, c_out: usize, bias: bool, groups: usize) -> Result<nn::Conv2d> {
    let conv = nn::Conv2d::grouped(c_in, c_out, 3, groups)?;
    Ok(conv.padding(1).stride(2).bias(bias))
}

/// Applies the pass to a model that it must change, and compares on `x`.
fn fused_is_equal(model: &impl Module, x: &Tensor) -> Result<GraphModule> {
    let mut gm = symbolic_trace(model)?;
    let expected: Tensor = gm.forward(x)?;
    gm.propagate_shapes(x)?;
    let record = gm.apply(&FuseBatchNorm)?;
    assert!(record.changed && record.created.is_empty());
    is_close(&gm.forward(x)?, &expected, 1e-5)?;
    // A second time there is nothing to do.
    assert!(!gm.apply(&FuseBatchNorm)?.changed);
    Ok(gm)
}

#[test]
fn every_pair_of_layers_is_folded() -> Result<()> {
    for (bias, groups) in [(false, 1), (true, 1), (true, 2), (false, 4)] {
        let model = nn::Sequential::new()
            .push(conv(4, 8, bias, groups)?)
            .push(nn::BatchNorm2d::new(8)?);
        let gm = fused_is_equal(&filled(model)?, &Tensor::rand((2, 4, 9, 8))?)?;
        assert_eq!(gm.attributes().modules.len(), 1);
        assert_eq!(gm.graph().len(), 3);
    }
    for bias in [false, true] {
        let model = nn::Sequential::new()
            .push(nn::Conv1d::new(3, 5, 3)?.bias(bias))
            .push(nn::BatchNorm1d::new(5)?);
        fused_is_equal(&filled(model)?, &Tensor::rand((2, 3, 9))?)?;
        let linear = nn::Linear::new(4, 6)?.bias(bias);
        let model = nn::Sequential::new()
            .push(linear)
            .push(nn::BatchNorm1d::new(6)?);
        fused_is_equal(&filled(model)?, &Tensor::rand((3, 4))?)?;
    }
    Ok(())
}

#[test]
fn convolutions_of_volumes_and_transposed_ones_are_folded() -> Result<()> {
    for (bias, groups) in [(false, 1), (true, 2), (true, 4)] {
        let pair = |layer: nn::Sequential, x: Tensor| -> Result<()> {
            let gm = fused_is_equal(&filled(layer)?, &x)?;
            assert_eq!(gm.graph().len(), 3);
            Ok(())
        };
        let pairs = nn::Sequential::new();
        let layer = nn::Conv3d::grouped(4, 8, 2, groups)?.bias(bias);
        pair(
            pairs.push(layer).push(nn::BatchNorm3d::new(8)?),
            Tensor::rand((2, 4, 3, 4, 5))?,
        )?;
        let layer = nn::ConvTranspose1d::grouped(4, 8, 3, groups)?;
        pair(
            nn::Sequential::new()
                .push(layer.stride(2).bias(bias))
                .push(nn::BatchNorm1d::new(8)?),
            Tensor::rand((2, 4, 5))?,
        )?;
        let layer = nn::ConvTranspose2d::grouped(4, 12, (3, 2), groups)?;
        pair(
            nn::Sequential::new()
                .push(layer.stride(2).output_padding(1).bias(bias))
                .push(nn::BatchNorm2d::new(12)?),
            Tensor::rand((2, 4, 4, 3))?,
        )?;
        let layer = nn::ConvTranspose3d::grouped(4, 8, 2, groups)?.bias(bias);
        pair(
            nn::Sequential::new()
                .push(layer)
                .push(nn::BatchNorm3d::new(8)?),
            Tensor::rand((1, 4, 2, 3, 2))?,
        )?;
    }
    Ok(())
}

#[test]
fn a_batch_norm_without_parameters_is_folded() -> Result<()> {
    let norm = nn::BatchNorm2d::new(8)?.affine(false);
    let model = nn::Sequential::new().push(conv(3, 8, false, 1)?).push(norm);
    fused_is_equal(&filled(model)?, &Tensor::rand((1, 3, 8, 8))?).map(drop)
}

/// A bfloat16 convolution with a batch norm in float32, as mixed precision leaves it.
#[test]
fn layers_of_mixed_types_are_folded() -> Result<()> {
    let mut conv = filled(conv(3, 8, true, 1)?)?;
    nn::to_dtype(&mut conv, DType::BF16)?;
    let norm = filled(nn::BatchNorm2d::new(8)?)?;
    let model = nn::Sequential::new().push(conv).push(norm);
    let mut gm = symbolic_trace(&model)?;
    let x = Tensor::randn((2, 3, 8, 8))?.to_dtype(DType::BF16)?;
    let expected: Tensor = gm.forward(&x)?;
    assert_eq!(expected.dtype()?, DType::BF16);
    gm.apply(&FuseBatchNorm)?;
    let layer: nn::Conv2d = gm.clone().take_submodule("0")?;
    assert_eq!(layer.weight.dtype()?, DType::BF16);
    assert_eq!(
        layer.bias.as_ref().map(Tensor::dtype).transpose()?,
        Some(DType::BF16)
    );
    let found: Tensor = gm.forward(&x)?;
    assert_eq!(found.dtype()?, DType::BF16);
    // Eight bits of precision, rounded in several places.
    is_close(&found, &expected, 0.02)
}

/// Weights in the other mix: the layer in float32, the statistics in float64.
#[test]
fn the_fused_layer_keeps_its_type() -> Result<()> {
    let mut norm = filled(nn::BatchNorm2d::new(6)?)?;
    nn::to_dtype(&mut norm, DType::F64)?;
    let model = nn::Sequential::new()
        .push(filled(conv(4, 6, true, 1)?)?)
        .push(norm);
    let mut gm = symbolic_trace(&model)?;
    assert!(gm.apply(&FuseBatchNorm)?.changed);
    let y: Tensor = gm.forward(&Tensor::rand((2, 4, 8, 8))?)?;
    assert_eq!(y.dtype()?, DType::F32);
    Ok(())
}

#[derive(Module, Clone, Debug)]
struct Net {
    conv: nn::Conv2d,
    bn: nn::BatchNorm2d,
}

#[trace]
impl Net {
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        ops::relu(&self.bn.forward(&self.conv.forward(x)?)?)
    }
}

fn net(c_in: usize) -> Result<Net> {
    filled(Net {
        conv: conv(c_in, 4, true, 1)?,
        bn: nn::BatchNorm2d::new(4)?,
    })
}

#[test]
fn fused_weights_are_plain_and_the_model_is_untouched() -> Result<()> {
    let model = net(3)?;
    let x = Tensor::rand((1, 3, 8, 8))?;
    let before = (model.forward(&x)?.to_vec()?, model.conv.weight.to_vec()?);
    let gm = fused_is_equal(&model, &x)?;
    assert_eq!(nn::variables(&gm)?.len(), 0);
    for (path, value) in gm.named_parameters() {
        assert!(!Tensor::from_value(value)?.candle()?.track_op(), "{path}");
    }
    let after = (model.forward(&x)?.to_vec()?, model.conv.weight.to_vec()?);
    assert_eq!(before, after);
    assert_eq!(nn::variables(&model)?.len(), 4);
    let names: Vec<String> = gm.graph().nodes().map(|n| n.name().to_string()).collect();
    assert_eq!(names, ["x", "conv", "relu", "output"]);
    Ok(())
}

#[test]
fn fusion_refuses_training_with_the_reason_and_the_mend() -> Result<()> {
    let mut model = net(3)?;
    model.train();
    let mut gm = symbolic_trace(&model)?;
    let printed = gm.graph().to_string();
    let Err(error) = gm.apply(&FuseBatchNorm) else {
        panic!("a batch norm in training mode must be refused");
    };
    assert_eq!(
        (error.pass(), error.node()),
        (Some("FuseBatchNorm"), Some("bn"))
    );
    assert!(
        error
            .location()
            .is_some_and(|at| at.to_string().contains("fusion.rs"))
    );
    says(
        &error.to_string(),
        &[
            "`bn` is in training mode",
            "own statistics",
            "`conv`",
            "call `eval()` on the model before tracing",
        ],
    );
    assert_eq!(gm.graph().to_string(), printed);
    assert!(FuseBatchNorm::plan(&gm).is_err());
    // The fix.
    gm.eval();
    assert!(gm.apply(&FuseBatchNorm)?.changed);
    Ok(())
}

#[derive(Module, Clone, Debug)]
struct Skips {
    conv: nn::Conv2d,
    shared: nn::Conv2d,
    read: nn::Conv2d,
    bn: nn::BatchNorm2d,
    bn_a: nn::BatchNorm2d,
    bn_b: nn::BatchNorm2d,
    bn_read: nn::BatchNorm2d,
    bn_input: nn::BatchNorm2d,
}

#[trace]
impl Skips {
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let several = self.conv.forward(&self.bn_input.forward(x)?)?;
        let several = (self.bn.forward(&several)? + &several)?;
        let a = self.bn_a.forward(&self.shared.forward(x)?)?;
        let b = self.bn_b.forward(&self.shared.forward(&(x * 2.0)?)?)?;
        let read = self.bn_read.forward(&self.read.forward(x)?)?;
        let read = (read + self.read.weight.sum(..)?)?;
        ((several + a)? + b)? + read
    }
}

#[test]
fn what_cannot_be_folded_stays_and_says_why() -> Result<()> {
    let norm = || nn::BatchNorm2d::new(4);
    let model = filled(Skips {
        conv: conv(4, 4, true, 1)?,
        shared: conv(4, 4, true, 1)?,
        read: conv(4, 4, true, 1)?,
        bn: norm()?,
        bn_a: norm()?,
        bn_b: norm()?,
        bn_read: norm()?,
        bn_input: norm()?,
    })?;
    let mut gm = symbolic_trace(&model)?;
    let plan = FuseBatchNorm::plan(&gm)?;
    let found = reasons(&plan);
    let expected = [
        (
            "bn_input",
            "%x is not a call of a convolution or a linear layer",
        ),
        (
            "bn",
            "the result of %conv has 2 users, and must stay as it is for %add",
        ),
        ("bn_a", "`shared` is called 2 times"),
        ("bn_b", "`shared` is called 2 times"),
        ("bn_read", "reads a tensor of `read` by itself"),
    ];
    assert_eq!(found.len(), expected.len(), "{plan}");
    for ((node, reason), (name, part)) in found.iter().zip(expected) {
        assert_eq!(*node, name);
        says(reason, &[part]);
    }
    assert!(plan.fused.is_empty());
    says(&plan.to_string(), &["%bn (bn): stays: the result of %conv"]);
    // Batch norms that stay may be in training mode, too.
    gm.train();
    assert!(!gm.apply(&FuseBatchNorm)?.changed);
    assert_eq!(gm.attributes().modules.len(), 8);
    Ok(())
}

#[test]
fn types_statistics_channels_and_shapes_must_fit() -> Result<()> {
    let mut without = nn::BatchNorm2d::new(4)?;
    (without.running_mean, without.running_var) = (None, None);
    let pair = |norm: Box<dyn Module>| -> Result<GraphModule> {
        let mut model = nn::Sequential::new().push(conv(4, 4, true, 1)?).push(norm);
        model.eval();
        symbolic_trace(&model)
    };
    for (norm, part) in [
        (
            Box::new(without) as Box<dyn Module>,
            "no running statistics",
        ),
        (Box::new(nn::BatchNorm1d::new(4)?), "takes a BatchNorm2d"),
        (
            Box::new(nn::BatchNorm2d::new(3)?),
            "normalises 3 channels, and `0` gives 4",
        ),
    ] {
        let mut gm = pair(norm)?;
        says(reasons(&FuseBatchNorm::plan(&gm)?)[0].1, &[part]);
        assert!(!gm.apply(&FuseBatchNorm)?.changed);
    }
    // Rows of 6 words of width 6: the batch norm normalises the words, the layer gives the widths.
    let model = filled(
        nn::Sequential::new()
            .push(nn::Linear::new(4, 6)?)
            .push(nn::BatchNorm1d::new(6)?),
    )?;
    let mut gm = symbolic_trace(&model)?;
    says(
        reasons(&FuseBatchNorm::plan(&gm)?)[0].1,
        &[
            "%_0",
            "only if it has 2 dims",
            "run `propagate_shapes` first",
        ],
    );
    let x = Tensor::rand((2, 6, 4))?;
    let expected: Tensor = gm.forward(&x)?;
    assert!(!gm.apply(&FuseBatchNorm)?.changed);
    assert_eq!(gm.forward::<Tensor>(&x)?.to_vec()?, expected.to_vec()?);
    gm.propagate_shapes(&x)?;
    says(
        reasons(&FuseBatchNorm::plan(&gm)?)[0].1,
        &["gave shape [2, 6, 6]", "takes 2 dims"],
    );
    gm.propagate_shapes(&Tensor::rand((2, 4))?)?;
    assert_eq!(FuseBatchNorm::plan(&gm)?.fused[0].layer_path, "0");
    // A signal without a batch: the batch norm takes its length for the channels.
    let model = nn::Sequential::new()
        .push(nn::Conv1d::new(2, 6, 1)?)
        .push(nn::BatchNorm1d::new(6)?);
    let mut gm = symbolic_trace(&filled(model)?)?;
    let why = "run `propagate_shapes` first";
    says(reasons(&FuseBatchNorm::plan(&gm)?)[0].1, &[why]);
    gm.propagate_shapes(&Tensor::rand((2, 6))?)?;
    says(reasons(&FuseBatchNorm::plan(&gm)?)[0].1, &["takes 3 dims"]);
    Ok(())
}

/// Numbers that are too large for half precision once they are folded.
#[test]
fn what_would_overflow_stays() -> Result<()> {
    let pair = |weight: f64, bias: f64| -> Result<GraphModule> {
        let linear = nn::Linear {
            weight: Tensor::full((1, 1), weight, DType::F16)?,
            bias: Some(Tensor::full(1, bias, DType::F16)?),
        };
        let mut norm = nn::BatchNorm1d::new(1)?;
        norm.running_var = Some(Tensor::full(1, 1e-5, DType::F32)?);
        let mut model = nn::Sequential::new().push(linear).push(norm);
        model.eval();
        symbolic_trace(&model)
    };
    let x = Tensor::full((2, 1), 0.001, DType::F16)?;
    for (weight, bias, part) in [(600.0, 0.0, "weight"), (1.0, 600.0, "bias")] {
        let mut gm = pair(weight, bias)?;
        gm.propagate_shapes(&x)?;
        let expected: Tensor = gm.forward(&x)?;
        let part = format!("the folded {part} of `0` would be too large for its type");
        says(
            reasons(&FuseBatchNorm::plan(&gm)?)[0].1,
            &[&part, "float16"],
        );
        assert!(!gm.apply(&FuseBatchNorm)?.changed);
        assert_eq!(gm.forward::<Tensor>(&x)?.to_vec()?, expected.to_vec()?);
    }
    let mut gm = pair(2.0, 1.0)?;
    gm.propagate_shapes(&x)?;
    assert!(gm.apply(&FuseBatchNorm)?.changed);
    Ok(())
}

#[derive(Module, Clone, Debug)]
struct SharedNorm {
    first: nn::Conv2d,
    second: nn::Conv2d,
    other: nn::Conv2d,
    bn: nn::BatchNorm2d,
}

#[trace]
impl SharedNorm {
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let a = self.bn.forward(&self.first.forward(x)?)?;
        let b = self.bn.forward(&self.second.forward(x)?)?;
        let other = self.other.forward(x)?;
        (self.bn.forward(&other)? + other)? + (a * b)?
    }
}

#[test]
fn a_batch_norm_of_several_calls_is_folded_into_each_and_stays_for_the_rest() -> Result<()> {
    let mut model = filled(SharedNorm {
        first: conv(3, 4, false, 1)?,
        second: conv(3, 4, true, 1)?,
        other: conv(3, 4, true, 1)?,
        bn: nn::BatchNorm2d::new(4)?,
    })?;
    model.eval();
    let gm = fused_is_equal(&model, &Tensor::rand((2, 3, 8, 8))?)?;
    assert_eq!(gm.graph().find_nodes(&Op::CallModule("bn".into())).len(), 1);
    assert!(gm.submodule("bn").is_ok());
    Ok(())
}

/// torch folds at run time, so that weights can be trained on; here the weights are folded once,
/// and only parts before them are trained: outputs and the gradient of the input are equal.
#[test]
fn folding_keeps_the_gradient_of_the_input() -> Result<()> {
    let one = |model: &dyn Module| -> Result<()> {
        let x = Tensor::rand((3, 4, 9, 9))?.into_parameter()?;
        let mut gm = symbolic_trace(model)?;
        let gradient = |gm: &GraphModule| -> Result<(Tensor, Tensor)> {
            let y: Tensor = gm.forward(&x)?;
            let loss = (&y * &y)?.sum(..)?;
            let grads = loss.candle()?.backward().map_err(Error::other)?;
            let of_x = grads.get(x.candle()?).cloned();
            let of_x = of_x.ok_or_else(|| Error::msg("the input has a gradient"))?;
            Ok((y, of_x.into()))
        };
        let (expected, expected_gradient) = gradient(&gm)?;
        assert!(gm.apply(&FuseBatchNorm)?.changed);
        let (found, found_gradient) = gradient(&gm)?;
        is_close(&found, &expected, 1e-5)?;
        is_close(&found_gradient, &expected_gradient, 1e-5)
    };
    for bias in [false, true] {
        let sequential = nn::Sequential::new()
            .push(conv(4, 8, bias, 1)?)
            .push(nn::BatchNorm2d::new(8)?)
            .push(nn::ReLU::new())
            .push(conv(8, 4, bias, 4)?)
            .push(nn::BatchNorm2d::new(4)?);
        one(&filled(sequential)?)?;
    }
    one(&net(4)?)
}

/// Folding thousands of pairs takes time in proportion to their number.
#[test]
fn many_pairs_are_folded() -> Result<()> {
    let mut model = nn::Sequential::new();
    for _ in 0..2000 {
        model = model
            .push(nn::Linear::new(2, 2)?)
            .push(nn::BatchNorm1d::new(2)?);
    }
    model.eval();
    let mut gm = symbolic_trace(&model)?;
    gm.propagate_shapes(&Tensor::rand((1, 2))?)?;
    let record = gm.apply(&FuseBatchNorm)?;
    assert_eq!(
        (record.erased.len(), gm.attributes().modules.len()),
        (2000, 2000)
    );
    Ok(())
}
