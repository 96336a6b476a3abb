//! `RemoveDropout`, `RemoveIdentity`, `counts`, and the passes one after another on whole models.

use fx_nn::models::{mobilenet, resnet};
use fx_nn::module::ComponentExt;
use fx_nn::passes::{FuseBatchNorm, RemoveDropout, RemoveIdentity, counts};
use fx_nn::prelude::*;

use crate::passes::{filled, is_close};

#[derive(Module, Clone, Debug)]
struct Drops {
    fc: nn::Linear,
    off: nn::Dropout,
    on: nn::Dropout,
    never: nn::Dropout,
    same: nn::Identity,
}

#[trace]
impl Drops {
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let x = self.off.forward(&self.off.forward(&self.fc.forward(x)?)?)?;
        let x = self.same.forward(&self.never.forward(&x)?)?;
        let y = ops::dropout(&x, 0.5, false)?;
        let y = ops::dropout(&y, 0.0, true)?;
        let z = ops::dropout(&self.on.forward(&y)?, 0.5, true)?;
        z + x
    }
}

fn drops() -> Result<Drops> {
    let mut off = nn::Dropout::new(0.5)?;
    off.training = false;
    Ok(Drops {
        fc: nn::Linear::new(3, 3)?,
        off,
        on: nn::Dropout::new(0.5)?,
        never: nn::Dropout::new(0.0)?,
        same: nn::Identity::default(),
    })
}

#[test]
fn what_gives_its_input_leaves() -> Result<()> {
    let model = drops()?;
    let mut gm = symbolic_trace(&model)?;
    let x = Tensor::rand((4, 3))?;
    fx_nn::manual_seed(3);
    let expected: Tensor = gm.forward(&x)?;
    let record = gm.apply(&RemoveIdentity)?;
    assert_eq!(record.erased.len(), 6);
    let kept: Vec<&str> = gm.attributes().modules.keys().map(|k| &**k).collect();
    assert_eq!(kept, ["fc", "on"]);
    fx_nn::manual_seed(3);
    assert_eq!(gm.forward::<Tensor>(&x)?.to_vec()?, expected.to_vec()?);
    assert!(!gm.apply(&RemoveIdentity)?.changed);
    Ok(())
}

#[test]
fn dropout_leaves_in_every_mode() -> Result<()> {
    let mut gm = symbolic_trace(&drops()?)?;
    let record = gm.apply(&RemoveDropout)?;
    assert_eq!(record.erased.len(), 7);
    let names: Vec<String> = gm.graph().nodes().map(|n| n.name().to_string()).collect();
    assert_eq!(names, ["x", "fc", "same", "add", "output"]);
    let x = Tensor::rand((4, 3))?;
    let fc: Tensor = gm.forward(&x)?;
    let expected = (drops_of(&gm, &x)? * 2.0)?;
    assert_eq!(fc.to_vec()?, expected.to_vec()?);
    Ok(())
}

fn drops_of(gm: &GraphModule, x: &Tensor) -> Result<Tensor> {
    gm.submodule("fc")?.forward(x)
}

#[test]
fn a_mode_that_a_run_decides_stays() -> Result<()> {
    let f = traced!(|x: &Tensor| ops::dropout(x, 0.5, true));
    let mut gm = symbolic_trace(f)?;
    let mut graph = gm.graph_mut();
    let dropout = graph.find_name("dropout").map(|node| node.id());
    let dropout = dropout.ok_or_else(|| Error::msg("it is there"))?;
    let first = graph.placeholders().next().map(|node| node.id());
    let first = first.ok_or_else(|| Error::msg("it is there"))?;
    let flag = graph.inserting_after(first)?.placeholder("training")?;
    graph.node_mut(dropout)?.update_kwarg("training", flag)?;
    drop(graph);
    assert!(!gm.apply(&RemoveIdentity)?.changed);
    Ok(())
}

/// The same conv stack as torch's: convolution, batch norm, relu, dropout.
#[test]
fn a_stack_of_convolutions_is_prepared_for_inference() -> Result<()> {
    let mut model = nn::Sequential::new();
    for channels in [3, 16] {
        model = model
            .push(nn::Conv2d::new(channels, 16, 3)?.padding(1).bias(false))
            .push(nn::BatchNorm2d::new(16)?)
            .push(nn::ReLU::new())
            .push(nn::Dropout::new(0.2)?);
    }
    let model = filled(model)?;
    let mut gm = symbolic_trace(&model)?;
    gm.apply(&FuseBatchNorm)?;
    gm.apply(&RemoveDropout)?;
    assert_eq!(gm.graph().len(), 6);
    let x = Tensor::rand((3, 3, 16, 16))?;
    is_close(&gm.forward(&x)?, &model.forward(&x)?, 1e-5)
}

#[test]
fn models_are_prepared_for_inference() -> Result<()> {
    let x = Tensor::rand((2, 3, 64, 64))?;
    let both = |mut gm: GraphModule, norms: usize, drops: usize, expected: Tensor| -> Result<()> {
        assert_eq!(gm.apply(&FuseBatchNorm)?.erased.len(), norms);
        assert_eq!(gm.apply(&RemoveDropout)?.erased.len(), drops);
        assert!(FuseBatchNorm::plan(&gm)?.skipped.is_empty());
        is_close(&gm.forward(&x)?, &expected, 1e-5)
    };
    let mut resnet = filled(resnet::resnet18(1000)?)?;
    nn::set_requires_grad(&mut resnet, false)?;
    both(symbolic_trace(&resnet)?, 20, 0, resnet.forward(&x)?)?;
    let mut mobilenet = filled(mobilenet::mobilenet_v2(1000)?)?;
    nn::set_requires_grad(&mut mobilenet, false)?;
    both(symbolic_trace(&mobilenet)?, 52, 1, mobilenet.forward(&x)?)
}

#[test]
fn counts_are_those_of_the_summary() -> Result<()> {
    let mut model = resnet::resnet18(10)?;
    model.eval();
    nn::set_requires_grad(&mut model, false)?;
    let x = Tensor::rand((1, 3, 32, 32))?;
    let gm = symbolic_trace(&model)?;
    let (counted, summary) = (counts(&gm, &x)?, fx_nn::summary(&model, &x)?);
    assert_eq!(counted.multiply_adds()?, summary.modules[0].multiply_adds);
    assert_eq!(counted.nodes.len(), gm.graph().len());
    let conv = counted.node("conv1")?;
    assert_eq!(conv.multiply_adds, 16 * 16 * 64 * 3 * 7 * 7);
    let given = 64 * 16 * 16 * 4;
    assert_eq!(conv.size.output_size, given);
    assert_eq!(conv.size.total_size, given + 64 * 3 * 7 * 7 * 4);
    assert!(counted.uncounted.is_empty());
    assert!(counted.node("nothing").is_err());
    // Fewer nodes, the same products.
    let mut fused = gm.clone();
    fused.apply(&FuseBatchNorm)?;
    assert_eq!(
        counts(&fused, &x)?.multiply_adds()?,
        counted.multiply_adds()?
    );
    Ok(())
}
