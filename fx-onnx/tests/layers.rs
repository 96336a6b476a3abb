//! Layers of files that come in: at the paths that files give, with weights to train, tied where they were.

use fx_nn::module::ComponentExt;
use fx_nn::prelude::*;
use fx_nn::tensor::Object;
use fx_onnx::{Export, Load, OnnxExt};

fn back(gm: &GraphModule, x: &Tensor) -> Result<GraphModule> {
    let (bytes, _) = gm.to_onnx_bytes(&Export::example(x))?;
    Ok(Load::new().from_bytes(bytes)?.module)
}

#[derive(Module)]
struct Block {
    conv: nn::Conv2d,
    bn: nn::BatchNorm2d,
    head: nn::Linear,
    norm: nn::LayerNorm,
}

#[trace]
impl Block {
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let x = self.bn.forward(&self.conv.forward(x)?)?.relu()?;
        // Three dims: a product with the turned weight, and a sum.
        let rows = x.flatten(2, -1)?.transpose(1, 2)?;
        self.norm.forward(&self.head.forward(&rows)?)
    }
}

fn block() -> Result<GraphModule> {
    let mut block = Block {
        conv: nn::Conv2d::new(3, 4, 3)?,
        bn: nn::BatchNorm2d::new(4)?,
        head: nn::Linear::new(4, 5)?,
        norm: nn::LayerNorm::new(5)?,
    };
    block.eval();
    symbolic_trace(&block)
}

/// Every layer is there again, with its options and its weights, as parameters.
#[test]
fn layers_are_where_they_were() -> Result<()> {
    let (gm, x) = (block()?, Tensor::randn((2, 3, 6, 6))?);
    let mut read = back(&gm, &x)?;
    let conv = read.submodule_as::<nn::Conv2d>("conv")?;
    assert_eq!(conv.weight.dims()?, [4, 3, 3, 3]);
    assert_eq!(
        read.submodule_as::<nn::Linear>("head")?.weight.dims()?,
        [5, 4]
    );
    assert_eq!(
        read.submodule_as::<nn::LayerNorm>("norm")?.normalized_shape,
        [5]
    );
    assert!(!read.submodule_as::<nn::BatchNorm2d>("bn")?.training);
    let names: Vec<String> = gm
        .named_parameters()
        .into_keys()
        .map(|n| n.to_string())
        .collect();
    let again: Vec<String> = read
        .named_parameters()
        .into_keys()
        .map(|n| n.to_string())
        .collect();
    assert_eq!(names, again);
    let (own, other): (Tensor, Tensor) = (gm.forward(&x)?, read.forward(&x)?);
    assert!(fx_nn::allclose(&own, &other, 1e-5, 1e-6)?.close);
    // The weights can be trained.
    let gradients = other.sum(..)?.backward()?;
    let weight = &read.submodule_as::<nn::Linear>("head")?.weight;
    assert!(gradients.get(weight)?.is_some());
    // And replaced: what was read is a graph module like any other.
    read.replace_modules("head", |_, linear: &nn::Linear| {
        nn::LoraLinear::from_linear(linear, 2, 1.0)
    })?;
    let adapted: Tensor = read.forward(&x)?;
    assert!(fx_nn::allclose(&own, &adapted, 1e-5, 1e-6)?.close);
    Ok(())
}

#[derive(Module)]
struct Tied {
    table: nn::Embedding,
    shared: nn::Linear,
}

#[trace]
impl Tied {
    fn forward(&self, ids: &Tensor) -> Result<Tensor> {
        let x = self.shared.forward(&self.table.forward(ids)?)?;
        let x = self.shared.forward(&x.relu()?)?;
        ops::linear(&x, &self.table.weight, None)
    }
}

/// A layer that is called twice is one layer, and a weight with two readers is one parameter.
#[test]
fn what_was_shared_is_shared() -> Result<()> {
    let model = Tied {
        table: nn::Embedding::new(11, 4)?,
        shared: nn::Linear::new(4, 4)?,
    };
    let gm = symbolic_trace(&model)?;
    let ids = Tensor::from_vec(vec![1i64, 10, 3], (1, 3))?;
    let read = back(&gm, &ids)?;
    let calls = read
        .graph()
        .nodes()
        .filter(|node| *node.target() == *"shared")
        .count();
    assert_eq!(calls, 2, "{}", read.graph());
    let table = &read.submodule_as::<nn::Embedding>("table")?.weight;
    let heads: Vec<&nn::Linear> = read.modules_of().map(|(_, linear)| linear).collect();
    let tied = heads
        .iter()
        .filter(|head| Object::object_id(&head.weight) == Object::object_id(table))
        .count();
    assert_eq!(tied, 1);
    let (own, other): (Tensor, Tensor) = (gm.forward(&ids)?, read.forward(&ids)?);
    assert!(fx_nn::allclose(&own, &other, 1e-5, 1e-6)?.close);
    Ok(())
}

/// A file without names of modules still has layers, which can be written as Rust.
#[test]
fn layers_without_names_have_paths() -> Result<()> {
    let (a, b) = (Tensor::randn((4, 3))?, Tensor::randn((5, 4))?);
    let gm = symbolic_trace(traced!(move |x: &Tensor| {
        ops::linear(&ops::linear(x, &a, None)?.relu()?, &b, None)
    }))?;
    let x = Tensor::randn((2, 3))?;
    let read = back(&gm, &x)?;
    let paths: Vec<&str> = read
        .modules_of::<nn::Linear>()
        .map(|(path, _)| path)
        .collect();
    assert_eq!(paths, ["linear", "linear_1"]);
    let source = fx_nn::graph_module::Folder::new("Net").source(&read)?;
    assert!(source.contains("pub linear: fx_nn::nn::Linear"), "{source}");
    Ok(())
}
