//! Features of ResNet-18 by the names of torchvision: a module that returns them as a dict, in both modes.
#![allow(clippy::print_stdout, reason = "an example shows what it does")]

use fx_nn::models::resnet::resnet18;
use fx_nn::passes::{create_feature_extractor, get_graph_node_names};
use fx_nn::prelude::*;

fn main() -> Result<()> {
    let model = resnet18(1000)?;
    let (train, eval) = get_graph_node_names(&model)?;
    println!(
        "{} nodes, the same in both modes: {}",
        train.len(),
        train == eval
    );
    println!("the last ones: {}", train[train.len() - 4..].join(", "));

    let nodes = [
        ("layer1", "low"),
        ("layer3.0.relu_1", "middle"),
        ("layer4", "high"),
    ];
    let mut extractor = create_feature_extractor(&model, nodes)?;
    let x = Tensor::rand((1, 3, 224, 224))?;
    for mode in ["training", "evaluation"] {
        extractor.set_training(mode == "training");
        let features: IndexMap<String, Tensor> = extractor.forward(&x)?;
        for (name, feature) in &features {
            println!("{mode:10} {name:6} {:?}", feature.dims()?);
        }
    }
    // The pooling and the classifier behind `layer4` are gone.
    let (kept, all) = (
        extractor.named_parameters().len(),
        model.named_parameters().len(),
    );
    println!("{kept} of {all} parameters are left");
    Ok(())
}
