//! Activations of a model, chosen by path patterns, without a hook in its code.
#![allow(clippy::print_stdout, reason = "an example shows what it does")]

use fx_nn::models::resnet::resnet18;
use fx_nn::prelude::*;

fn main() -> Result<()> {
    let mut model = resnet18(1000)?;
    model.eval();
    nn::set_requires_grad(&mut model, false)?;
    let traced = symbolic_trace(&model)?;
    let x = Tensor::rand((1, 3, 64, 64))?;

    let seen = traced.capture(&["layer*", "layer1.*.conv2", "avgpool"], &x)?;
    for (path, value) in &seen {
        println!("{path:16} {}", value.describe());
    }

    // The first block's activation equals the result of calling the block by hand.
    let stem = model.bn1.forward(&model.conv1.forward(&x)?)?.relu()?;
    let by_hand = model.layer1[0].forward(&model.maxpool.forward(&stem)?)?;
    let seen = traced.capture(&["layer1.0"], &x)?;
    let block = Tensor::from_value(seen["layer1.0"].clone())?;
    let closeness = fx_nn::allclose(&block, &by_hand, 0.0, 0.0)?;
    println!("layer1.0 beside a call by hand: {closeness}");
    Ok(())
}
