//! The names that torchvision gives to nodes: `names.txt`, by `torchvision_names.py`.

use fx_nn::models::{alexnet, mobilenet, resnet, vgg, vit};
use fx_nn::module::Module;
use fx_nn::passes::FeatureExtractor;
use fx_nn::prelude::*;
use fx_nn::trace::{TraceContext, Tracer};

/// The containers that are types of `torchvision.ops`, each of which torchvision takes as a layer.
struct BlocksOfTorchvision;

impl Tracer for BlocksOfTorchvision {
    fn is_leaf_module(&self, _: &TraceContext, module: &dyn Module, path: &str) -> bool {
        let Some(container) = (module as &dyn std::any::Any).downcast_ref::<nn::Sequential>()
        else {
            return module.is_leaf();
        };
        // `Conv2dNormActivation`, and `MLP`.
        let begins_with_conv = (&*container[0] as &dyn std::any::Any).is::<nn::Conv2d>();
        let is_block = container.len() == 3 && begins_with_conv;
        is_block || path.ends_with(".mlp")
    }
}

fn listed(name: &str) -> Vec<&'static str> {
    let blocks = include_str!("names.txt").split("\n\n");
    let mut found = blocks
        .map(str::lines)
        .filter_map(|mut lines| (lines.next() == Some(name)).then(|| lines.collect::<Vec<_>>()));
    found.next().unwrap_or_default()
}

fn compare(name: &str, model: &dyn Module, with_blocks: bool) -> Result<()> {
    let mut names = FeatureExtractor::new(model);
    if with_blocks {
        names = names.tracing(|trace| trace.tracer(BlocksOfTorchvision));
    }
    let (train, eval) = names.node_names()?;
    assert!(!train.is_empty());
    assert_eq!(train, listed(&format!("{name} train")), "{name}");
    assert_eq!(eval, listed(&format!("{name} eval")), "{name}");
    Ok(())
}

#[test]
fn names_of_nodes_are_those_of_torchvision() -> Result<()> {
    compare("resnet18", &resnet::resnet18(10)?, false)?;
    compare("resnet50", &resnet::resnet50(10)?, false)?;
    compare("alexnet", &alexnet::alexnet(10)?, false)?;
    compare("vgg11_bn", &vgg::vgg11_bn(10)?, false)?;
    compare("mobilenet_v2", &mobilenet::mobilenet_v2(10)?, true)?;
    compare("vit_b_16", &vit::vit_b_16(224, 10)?, true)
}
